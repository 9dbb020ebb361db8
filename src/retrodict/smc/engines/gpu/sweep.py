"""The loop over rounds (Algorithm 1, line 7): kernels recorded once as CUDA graphs and replayed until all is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import triton
from torch import Tensor

from retrodict.errors import RunawayError
from retrodict.events.batch import Batch
from retrodict.missingness.by_type import ByType
from retrodict.models.ctlstm import Cells, ContinuousTimeLSTM
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.proposals.base import Proposal
from retrodict.proposals.smoothing import Smoothing
from retrodict.smc.engines.gpu import pack
from retrodict.smc.engines.gpu.arrange import arrange
from retrodict.smc.engines.gpu.backward import step_back, tabulate
from retrodict.smc.engines.gpu.begin import begin
from retrodict.smc.engines.gpu.buffers import Shape, Tiles, make_back_buffers, make_buffers, make_nodes
from retrodict.smc.engines.gpu.draw import DONE, EVENTS, HIGHEST, LIMIT, NEXT, RUNAWAY, STREAMS, draw
from retrodict.smc.engines.gpu.meet import meet
from retrodict.smc.engines.gpu.read import copy, read
from retrodict.smc.options import Options, runaway_message
from retrodict.smc.particles import Forest, Result, Trace

_ROUNDS = 4  # a replay; even, since waiting rows are listed in two lists that take turns
_STEPS = 8  # of the right-to-left pass a replay
_COPIERS = 1056


class Sweep:
    """Buffers and graphs of one shape; ``run`` may be called again and again."""

    def __init__(self, shape: Shape, tiles: Tiles) -> None:
        self.shape, self.tiles = shape, tiles
        self.on_gpu = shape.device.type == "cuda"
        self.buffers = make_buffers(shape, tiles)
        self.back = make_back_buffers(shape, tiles, self.buffers) if shape.back_hidden else None
        self.per_round = shape.rows * (2 if shape.atom else 1)  # events added in a round at most
        expected = shape.streams * shape.particles * shape.segments
        self.buffers |= make_nodes(max(expected, 4 * _ROUNDS * self.per_round), shape.device)
        self.given_rho = torch.zeros(shape.types, dtype=torch.float64, pin_memory=self.on_gpu)
        self.packed: list[Tensor] = []
        self.given = torch.zeros(8, dtype=torch.int64, pin_memory=self.on_gpu)
        if self.on_gpu:
            self.looks = [torch.zeros(8, dtype=torch.int64, pin_memory=True) for _ in range(2)]
            self.events = [torch.cuda.Event() for _ in range(2)]
            # With nothing listed the kernels do nothing: run them once so that they are compiled.
            self._begin()
            self._round(0)
            self._round(1)
            self.start = self._recorded(self._begin)
            self.rounds = self._record()
            if self.back is not None:
                self._step_back(1)
                self.steps = self._recorded(lambda: self._step_back(_STEPS))

    def run(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options) -> Result:
        """Algorithm 1 for B streams, at most as many as the shape has room for."""
        self._load(observed, proposal, keys, options)
        if self.back is not None:
            self._read_back(observed.types.shape[1] + 1)
        if self.shape.atom:
            first = self._first_cells(proposal, observed)
            kinds, weights = pack.draw_starts(
                observed, proposal, first, keys, self.buffers["rho"], self.shape.particles
            )
            self.buffers["start_kind"][: len(kinds)] = kinds
            self.buffers["start_log"][: len(weights)] = weights
        self.start.replay() if self.on_gpu else self._begin()
        self._loop(options)
        return self._result(len(keys), observed.types.shape[1] + 1)

    def _load(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options) -> None:
        b, B, shape = self.buffers, len(keys), self.shape
        assert isinstance(proposal.missingness, ByType)
        rho = proposal.missingness.vector
        assert rho is not None
        possible = rho.nonzero()
        self.given_rho.copy_(rho)
        b["rho"].copy_(self.given_rho, non_blocking=True)
        numbers = [0] * 8
        numbers[NEXT.value], numbers[STREAMS.value], numbers[LIMIT.value] = shape.slots, B, options.max_events
        numbers[HIGHEST.value] = int(possible.max()) if len(possible) else 0
        self.given.copy_(torch.tensor(numbers))
        b["tally"].copy_(self.given, non_blocking=True)
        b["clock"][1] = options.ess_threshold
        self._pack(proposal)
        self._arrange(observed, keys)
        if shape.slots < B:  # long ones first, so that no slot is left with one at the end
            b["order"][:B] = b["counts"][:B].argsort(descending=True)

    def _pack(self, proposal: Proposal) -> None:
        """Weights into the buffers; for weights that lie where they lay before, a replay."""
        if not self.on_gpu:
            return self._pack_weights(proposal)
        tensors = [*proposal.parameters(), *proposal.buffers()]
        if [x.data_ptr() for x in tensors] != [x.data_ptr() for x in self.packed]:
            self._pack_weights(proposal)
            self.packed = [x.detach() for x in tensors]  # kept, so that their addresses stay theirs
            self.packing = self._recorded(lambda: self._pack_weights(proposal))
        return self.packing.replay()

    def _pack_weights(self, proposal: Proposal) -> None:
        b, shape, model = self.buffers, self.shape, proposal.model
        assert isinstance(model, NeuralHawkes)
        shares = self._pack_network(b, model.lstm, model.readout, shape.hidden, self.tiles.read_columns)
        b["by_type"].copy_(pack.pack_types(model, b["rho"], shape.padded_types))
        b["scores"].copy_(pack.edge_scores(model, b["rho"]))
        first = pack.first_states(model, shares)
        b["state"][shape.rows : shape.rows + len(first)] = first
        b["clock"][0], b["clock"][3] = 1 / model.time_scale, model.time_scale
        b["counters"].zero_()
        b["steps"].zero_()
        if self.back is not None:
            assert isinstance(proposal, Smoothing)
            columns = self.tiles.back_columns
            self._pack_network(self.back, proposal.lstm, proposal.readout, shape.back_hidden, columns)
            b["clock"][2] = 1 / proposal.time_scale

    def _pack_network(
        self, values: dict[str, Any], lstm: ContinuousTimeLSTM, readout: Tensor, D: int, columns: int
    ) -> Tensor:
        shares, recurrent = pack.pack_lstm(lstm, D, columns, self.shape.exact)
        values["by_kind"].copy_(shares)
        values["recurrent"].copy_(recurrent)
        size, rows = pack.pack_readout(readout, self.shape.padded_types, D)
        values["sizes"].copy_(size)
        values["readout"].copy_(rows)
        return shares

    def _arrange(self, observed: Batch, keys: Tensor) -> None:
        """Streams into the buffers."""
        L, shape = observed.types.shape[1], self.shape
        if L == 0:  # kernels want something to point at
            observed = replace(observed, times=observed.durations, types=keys, mask=keys)
        names = ("times", "types", "mask", "durations")
        values = self.buffers | {name: getattr(observed, name).contiguous() for name in names}
        values |= {"stream_keys": keys.contiguous(), "B": len(keys), "L": L, "K": shape.types}
        cut = {"ATOM": shape.atom, "BL": 64, "MB": self._block}
        self._launch(arrange, (shape.streams,), values, cut, 1 if self._block <= 64 else 4)

    def _read_back(self, segments: int) -> None:
        """The right-to-left pass and its table."""
        if not self.on_gpu:
            return self._step_back(segments)
        for _ in range(-(-segments // _STEPS)):
            self.steps.replay()
        return None

    def _first_cells(self, proposal: Proposal, observed: Batch) -> Cells | None:
        """The right-to-left LSTM's cells in each stream's first segment, [B, D']."""
        if self.back is None:
            return None
        assert isinstance(proposal, Smoothing)
        turn = observed.mask.sum(1) % 2
        fields = self.back["cells"][turn, torch.arange(len(turn), device=turn.device), :, : proposal.hidden_size]
        return Cells(*fields.unbind(1))

    def _step_back(self, steps: int) -> None:
        shape, t = self.shape, self.tiles
        D = shape.back_hidden
        groups = (D // t.back_columns, triton.cdiv(shape.streams, t.back_rows))
        cut = {"D": D, "BM": t.back_rows, "BN": t.back_columns, "BK": min(D, t.back_depth)}
        for _ in range(steps):
            self._launch(step_back, groups, self.back, cut | {"EXACT": shape.exact}, t.back_warps)
            self._launch(
                tabulate,
                (shape.streams,),
                self.back,
                {"D": D, "KP": shape.padded_types, "BB": 1, "BD": min(D, 64)},
                t.back_warps,
            )

    def _begin(self) -> None:
        blocks = {"ATOM": self.shape.atom, "MB": self._block}
        self._launch(begin, (self.shape.slots,), self.buffers, blocks, 4)
        self._copy(parity=1)

    def _copy(self, parity: int) -> None:
        width = 4 * self.shape.hidden
        cut = {"parity": parity, "WIDTH": width, "BLOCK": min(width & -width, 1024)}
        self._launch(copy, (min(self.shape.rows, _COPIERS),), self.buffers, cut, 4)

    def _round(self, parity: int) -> None:
        """Rows draw, particles meet, the LSTM reads, copies follow."""
        shape, t, b = self.shape, self.tiles, self.buffers
        D, KP, M = shape.hidden, shape.padded_types, shape.particles
        cut: dict[str, Any] = {"D": D, "KP": KP, "BR": t.draw_rows, "BD": min(D, t.draw_depth)}
        cut |= {"parity": parity, "SMOOTH": bool(shape.back_hidden), "EXACT": shape.exact}
        warps = min(8, t.draw_warps * KP // 16)
        self._launch(draw, (triton.cdiv(shape.rows, t.draw_rows),), b, cut, warps)
        cut = {"parity": parity, "SCHEME": shape.scheme, "ATOM": shape.atom, "MB": self._block, "LOG": M.bit_length()}
        self._launch(meet, (shape.slots,), b, cut, 1 if self._block <= 64 else 4)
        cut = {"D": D, "BM": t.read_rows, "BN": t.read_columns, "BK": min(D, t.read_depth)}
        groups = (D // t.read_columns, triton.cdiv(shape.rows, t.read_rows))
        self._launch(read, groups, b, cut | {"EXACT": shape.exact}, t.read_warps, 2 if shape.exact else t.read_stages)
        self._copy(parity)

    @property
    def _block(self) -> int:
        """How many particles of a slot are looked at together."""
        return min(self.tiles.block, max(16, triton.next_power_of_2(self.shape.particles)))

    def _launch(
        self, kernel: Any, groups: tuple[int, ...], values: Any, cut: dict[str, Any], warps: int, stages: int = 2
    ) -> None:
        """Launch a kernel with the buffers its parameters name."""
        wanted = {name: values[name] for name in kernel.arg_names if name in values}
        kernel[groups](**wanted, **cut, num_warps=warps, num_stages=stages)

    def _recorded(self, work: Any) -> Any:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            work()
        return graph

    def _record(self) -> Any:
        def rounds() -> None:
            for i in range(_ROUNDS):
                self._round(i % 2)

        return self._recorded(rounds)

    def _loop(self, options: Options) -> None:
        """Rounds until every stream is done; the host looks at the tally of one replay while the next one runs."""
        number = 0
        while True:
            if not self.on_gpu:
                self._round(0)
                self._round(1)
                seen = self.buffers["tally"]
            else:
                self.rounds.replay()
                self.looks[number % 2].copy_(self.buffers["tally"], non_blocking=True)
                self.events[number % 2].record()
                number += 1
                if number == 1:
                    continue
                self.events[number % 2].synchronize()
                seen = self.looks[number % 2]
            tally = seen.tolist()
            if tally[RUNAWAY.value]:
                raise RunawayError(runaway_message(options.max_events))
            if tally[DONE.value] >= tally[STREAMS.value]:
                return
            self._make_room(tally[EVENTS.value])

    def _make_room(self, used: int) -> None:
        """More nodes before they run out: two replays may be under way before the next look."""
        room = len(self.buffers["node_time"])
        if used + 3 * _ROUNDS * self.per_round <= room:
            return
        for name, more in make_nodes(2 * room, self.shape.device).items():
            more[:room] = self.buffers[name]
            self.buffers[name] = more
        if self.on_gpu:
            self.start, self.rounds = self._recorded(self._begin), self._record()

    def _result(self, B: int, S: int) -> Result:
        b = self.buffers
        used = int(b["tally"][EVENTS.value])
        forest = Forest(*(b[name][:used].clone() for name in ("node_time", "node_kind", "node_parent")))
        ess, parents, log_weights, heads = (
            b[name][:B, :S].clone() for name in ("ess", "parents", "step_weights", "step_heads")
        )
        trace = Trace(ess, parents, b["resampled"][:B, :S].bool(), log_weights, heads)
        return Result(forest, trace, b["log_evidence"][:B].clone())
