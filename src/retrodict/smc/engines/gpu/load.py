"""Streams, weights and missing rates into the buffers, before each run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.missingness.pieces import Pieces
from retrodict.models.end import EndAtom
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.proposals.base import Proposal
from retrodict.proposals.smoothing import Smoothing
from retrodict.smc.ending import Endings
from retrodict.smc.engines.gpu import pack
from retrodict.smc.engines.gpu.arrange import arrange
from retrodict.smc.engines.gpu.buffers import Shape, Tiles
from retrodict.smc.engines.gpu.draw import HIGHEST, LIMIT, MISSING, NEXT, SEEN, STREAMS
from retrodict.smc.engines.gpu.launch import launch, recorded
from retrodict.smc.options import Options


class Job(NamedTuple):
    """B streams to be run."""

    observed: Batch
    proposal: Proposal
    keys: Tensor  # [B]
    options: Options
    pieces: Pieces | None  # how missing rates change; None where they are constant
    inputs: Tensor | None  # [B, S, 7 D']: gates' shares of the right-to-left LSTM's inputs, where a table does not do
    endings: Endings | None  # how streams end; None where the model has no end atom


class Loader:
    """Fills the buffers of one shape."""

    def __init__(self, shape: Shape, tiles: Tiles, buffers: dict[str, Any], back: dict[str, Any] | None) -> None:
        self.shape, self.tiles, self.buffers, self.back = shape, tiles, buffers, back
        self.on_gpu = shape.device.type == "cuda"
        self.given_rho = torch.zeros(shape.types, dtype=torch.float64, pin_memory=self.on_gpu)
        self.given = torch.zeros(8, dtype=torch.int64, pin_memory=self.on_gpu)
        self.packed: list[Tensor] = []

    def load(self, job: Job) -> None:
        """All that a run needs."""
        b, B, shape = self.buffers, len(job.keys), self.shape
        highest = self._load_rates(job)
        numbers = [0] * 8
        numbers[NEXT.value], numbers[STREAMS.value], numbers[LIMIT.value] = shape.slots, B, job.options.max_events
        numbers[HIGHEST.value] = highest
        self.given.copy_(torch.tensor(numbers))
        b["tally"].copy_(self.given, non_blocking=True)
        b["clock"][1] = job.options.ess_threshold
        self._pack(job.proposal)
        if self.back is not None:
            assert isinstance(job.proposal, Smoothing)
            # Not recorded with the other weights: it may depend on the mechanism.
            self.back["by_kind"].copy_(pack.pack_shares(job.proposal.input_table(), shape.back_hidden))
            if job.inputs is not None:
                self.back["inputs"][:B, : job.inputs.shape[1]] = pack.pack_shares(job.inputs, shape.back_hidden)
        self._arrange(job.observed, job.keys)
        if job.endings is not None:
            b["ended"].zero_()
            seen, missing = job.endings.seen.any(1).int(), job.endings.missing.int()
            b["ending"][:B] = SEEN.value * seen + MISSING.value * missing
        if job.pieces is not None:
            kept = pack.log_kept(job.observed, job.pieces, shape.atom)
            b["edge_log"][:B, : kept.shape[1]] += kept
        if shape.slots < B:  # long ones first, so that no slot is left with one at the end
            b["order"][:B] = b["counts"][:B].argsort(descending=True)

    def _load_rates(self, job: Job) -> int:
        """Missing rates; returns the last type that can go missing, where they are constant."""
        b, pieces, highest = self.buffers, job.pieces, 0
        if pieces is None:
            rho = job.proposal.missingness.rates(torch.zeros((), dtype=torch.float64))
            possible = rho.nonzero()
            highest = int(possible.max()) if len(possible) else 0
            self.given_rho.copy_(rho)
        else:
            B, P, _, K = pieces.rates.shape
            b["breaks"][:B] = pieces.breaks[:, -1:]
            b["breaks"][:B, : P + 1] = pieces.breaks
            b["controls"][:B, :P, :, :K] = pieces.rates
            for a, part in enumerate(pieces.after):
                b["reach"][a] = part.reach
                b["recent"][a, :, :K] = torch.stack([part.soon, part.late])
                b["is_trigger"][a, :K] = part.trigger
        b["rho"].copy_(self.given_rho, non_blocking=True)
        return highest

    def _pack(self, proposal: Proposal) -> None:
        """Weights into the buffers; for weights that lie where they lay before, a replay."""
        if not self.on_gpu:
            return self._pack_weights(proposal)
        tensors = [*proposal.parameters(), *proposal.buffers()]
        if [x.data_ptr() for x in tensors] != [x.data_ptr() for x in self.packed]:
            self._pack_weights(proposal)
            self.packed = [x.detach() for x in tensors]  # kept, so that their addresses stay theirs
            self.packing = recorded(lambda: self._pack_weights(proposal))
        return self.packing.replay()

    def _pack_weights(self, proposal: Proposal) -> None:
        b, shape, model = self.buffers, self.shape, proposal.model
        assert isinstance(model, NeuralHawkes)
        KP, D, columns = shape.padded_types, shape.hidden, self.tiles.read_columns
        shares = pack.pack_shares(model.lstm.bias + model.lstm.by_type, D)
        b["by_kind"].copy_(shares)
        b["recurrent"].copy_(pack.pack_recurrent(model.lstm, D, columns, shape.exact))
        self._pack_readout(b, model.readout, D)
        b["by_type"].copy_(pack.pack_types(model, b["rho"], KP))
        b["scores"].copy_(pack.edge_scores(model, b["rho"]))
        if model.end_atom is not None:
            self._pack_ends(model.end_atom)
        first = pack.first_states(model, shares)
        b["state"][shape.rows : shape.rows + len(first)] = first
        b["clock"][0], b["clock"][3] = 1 / model.time_scale, model.time_scale
        b["counters"].zero_()
        b["steps"].zero_()
        if self.back is not None:
            assert isinstance(proposal, Smoothing)
            self._pack_future(self.back, proposal)
            b["clock"][2] = 1 / proposal.time_scale

    def _pack_ends(self, atom: EndAtom) -> None:
        b = self.buffers
        b["end_counts"].copy_(atom.by_count)
        b["end_types"][: self.shape.types] = atom.by_type
        b["end_features"][: len(atom.by_feature)] = atom.by_feature
        b["clock"][4] = atom.by_time.double() / atom.time_scale.double()

    def _pack_future(self, back: dict[str, Any], proposal: Smoothing) -> None:
        """The right-to-left LSTM, and the units in which past and future interact: columns after those of the types."""
        shape, b, mix, D = self.shape, self.buffers, proposal.mix, self.shape.back_hidden
        back["recurrent"].copy_(pack.pack_recurrent(proposal.lstm, D, self.tiles.back_columns, shape.exact))
        readout: Tensor = proposal.readout
        if mix is not None:
            readout = torch.cat([F.pad(readout, (0, 0, 0, shape.padded_types - len(readout))), mix.future.weight])
            b["mix_past"].copy_(pack.pack_half(mix.past.weight, shape.units, shape.hidden))
            b["mix_out"].copy_(pack.pack_half(mix.readout.weight, shape.padded_types, shape.units))
            back["offsets"][shape.padded_types : shape.padded_types + len(mix.past.bias)] = mix.past.bias
        self._pack_readout(back, readout, D)

    def _pack_readout(self, values: dict[str, Any], readout: Tensor, D: int) -> None:
        size, rows = pack.pack_readout(readout, len(values["sizes"]), D)
        values["sizes"].copy_(size)
        values["readout"].copy_(rows)

    def _arrange(self, observed: Batch, keys: Tensor) -> None:
        """Streams into the buffers."""
        L, shape = observed.types.shape[1], self.shape
        if L == 0:  # kernels want something to point at
            observed = replace(observed, times=observed.durations, types=keys, mask=keys)
        names = ("times", "types", "mask", "durations")
        values = self.buffers | {name: getattr(observed, name).contiguous() for name in names}
        values |= {"stream_keys": keys.contiguous(), "B": len(keys), "L": L, "K": shape.types}
        block = self.tiles.particles_at_once(shape.particles)
        launch(arrange, (shape.streams,), values, {"ATOM": shape.atom, "BL": 64, "MB": block}, 1 if block <= 64 else 4)
