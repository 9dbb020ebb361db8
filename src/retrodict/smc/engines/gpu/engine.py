"""The Triton engine: Algorithm 1 for neural Hawkes processes on a GPU. What it does not take, it refuses in words."""

from __future__ import annotations

import importlib.util
import os
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from retrodict.events.batch import Batch
from retrodict.missingness.pieces import Pieces, of_time, pieces_of
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.proposals.base import Proposal
from retrodict.proposals.filtering import Filtering
from retrodict.proposals.smoothing import Smoothing
from retrodict.smc.ending import endings
from retrodict.smc.options import EIGHT_NODES, Options
from retrodict.smc.particles import Forest, Result, Trace
from retrodict.smc.propose import Inversion
from retrodict.smc.resampling import Scheme, multinomial, residual, stratified, systematic

if TYPE_CHECKING:
    from retrodict.smc.engines.gpu.load import Job
    from retrodict.smc.engines.gpu.sweep import Sweep

_SCHEMES: list[Scheme | None] = [None, multinomial, stratified, systematic, residual]  # numbered as in meet.py
_MOST_TYPES, _MOST_UNITS, _MOST_PARTICLES = 256, 1024, 100_000
_KEPT = 4  # shapes whose buffers and graphs are kept


class TritonEngine:
    """Inversion in kernels; the LSTM's matrix products have the precision of tf32, or, where ``exact``, of float32."""

    affords = 1000

    def __init__(self, name: str = "triton", exact: bool = False, in_flight: int = 65_536) -> None:
        self.name, self.exact = name, exact
        self.in_flight = in_flight  # rows worked on in one round at most
        self._sweeps: OrderedDict[object, Sweep] = OrderedDict()

    def unavailable(self) -> str | None:
        """It needs Triton, and a GPU (or Triton's interpreter, which runs kernels on the CPU to debug them)."""
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed."
        if not (torch.cuda.is_available() or _interpreted()):
            return "there is no CUDA device."
        return None

    def refuses(self, proposal: Proposal, options: Options) -> str | None:
        """All but filtering and smoothing with a single-precision neural Hawkes process on a GPU."""
        model = proposal.model
        if type(model) is not NeuralHawkes:
            return f"it takes neural Hawkes models, not {type(model).__name__}."
        if type(proposal) not in (Filtering, Smoothing):
            return f"it takes filtering and smoothing proposals, not {type(proposal).__name__}."
        if isinstance(proposal, Smoothing) and proposal.mixing > _MOST_UNITS:
            return f"it takes at most {_MOST_UNITS:,} mixing units, and this smoother has {proposal.mixing:,}."
        if model.calendar is not None:
            return "it does not know models with a calendar."
        if of_time(proposal.missingness) is None:
            return (
                "it takes missing rates that depend on the time and the last trigger, and "
                f"{type(proposal.missingness).__name__} may look at more."
            )
        if model.dtype != torch.float32:
            return f"it computes in float32, and the model is in {str(model.dtype).removeprefix('torch.')}."
        if model.device.type != ("cpu" if _interpreted() else "cuda"):
            return f"the model is on the {model.device.type}, not on a CUDA device."
        if model.num_types > _MOST_TYPES:
            return f"it takes at most {_MOST_TYPES} types, and the model has {model.num_types}."
        if options.particles > _MOST_PARTICLES:
            return f"it takes at most {_MOST_PARTICLES:,} particles a stream."
        if options.integral != EIGHT_NODES:
            return f"its quadrature is built in: it takes {EIGHT_NODES}, not {options.integral}."
        if not (options.sampler is None or isinstance(options.sampler, Inversion)):
            return "it draws by inversion only."
        if options.scheme not in _SCHEMES:
            return "it does not know this resampling scheme."
        return None

    def rows_at_once(self, proposal: Proposal) -> int:
        """Many times what is in flight: finished slots take waiting streams."""
        if proposal.model.device.type != "cuda":
            return 1 << 14
        return max(8192, min(8 * self.in_flight, _memory(proposal.model.device) >> 18))

    @torch.no_grad()
    def run(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options) -> Result:
        """Algorithm 1, as many streams at a time as leave most of the memory free."""
        B, S, mechanism = len(keys), observed.types.shape[1] + 1, proposal.missingness
        if not B:
            return _nothing(S, options.particles, keys.device)
        pieces = None if mechanism.is_constant else pieces_of(mechanism, observed)
        at_once = self._streams_at_once(proposal, S, pieces, options)
        parts = []
        for first in range(0, B, at_once):
            some = slice(first, first + at_once)
            parts.append(self._run_part(observed.rows(some), proposal, keys[some], options, _some(pieces, some)))
        return _join(parts)

    def _run_part(
        self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options, pieces: Pieces | None
    ) -> Result:
        from retrodict.smc.engines.gpu.load import Job

        inputs = proposal.input_shares(observed) if isinstance(proposal, Smoothing) else None
        job = Job(observed, proposal, keys, options, pieces, inputs, endings(observed, proposal, options))
        return self._sweep(job).run(job)

    def _streams_at_once(self, proposal: Proposal, segments: int, pieces: Pieces | None, options: Options) -> int:
        from retrodict.smc.engines.gpu.pack import padded_size, padded_types, padded_units

        KP = padded_types(proposal.model.num_types)
        a_segment, a_piece = 72 * KP + 16 * options.particles + 40, 16 * KP + 8
        if isinstance(proposal, Smoothing):
            a_segment += 72 * padded_units(proposal.mixing)
            a_segment += 0 if pieces is None else 2 * 28 * padded_size(proposal.hidden_size)
        a_stream = _round_up(segments) * a_segment
        a_stream += 0 if pieces is None else 2 * pieces.rates.shape[1] * a_piece
        memory = _memory(proposal.model.device) if proposal.model.device.type == "cuda" else 1 << 30
        return max(1, memory // 16 // a_stream)

    def _sweep(self, job: Job) -> Sweep:
        """The buffers and graphs for this shape, made once."""
        from retrodict.smc.engines.gpu.buffers import Shape, Tiles
        from retrodict.smc.engines.gpu.pack import padded_size, padded_types, padded_units
        from retrodict.smc.engines.gpu.sweep import Sweep

        proposal, (B, L), M = job.proposal, job.observed.types.shape, job.options.particles
        model, smoother = proposal.model, proposal if isinstance(proposal, Smoothing) else None
        assert isinstance(model, NeuralHawkes)
        memory = _memory(model.device) if model.device.type == "cuda" else 1 << 40
        streams = 1 << (B - 1).bit_length()
        shape = Shape(
            slots=max(1, min(streams, min(self.in_flight, memory >> 20) // M)),
            particles=M,
            streams=streams,
            segments=_round_up(L + 1),
            hidden=padded_size(model.hidden_size),
            types=model.num_types,
            padded_types=padded_types(model.num_types),
            back_hidden=padded_size(smoother.hidden_size) if smoother else 0,
            units=padded_units(smoother.mixing) if smoother else 0,
            inputs=job.inputs is not None,
            pieces=1 << (job.pieces.rates.shape[1] - 1).bit_length() if job.pieces else 0,
            after=len(job.pieces.after) if job.pieces else 0,
            scheme=_SCHEMES.index(job.options.scheme),
            atom=model.start_atom is not None,
            ends=0 if model.end_atom is None else len(model.end_atom.by_count),
            exact=self.exact,
            device=model.device,
        )
        if shape not in self._sweeps:
            while self._sweeps and (len(self._sweeps) >= _KEPT or self._is_tight(model.device)):
                self._sweeps.popitem(last=False)
            self._sweeps[shape] = Sweep(shape, Tiles(draw_rows=64, read_rows=128) if _interpreted() else Tiles())
        self._sweeps.move_to_end(shape)
        return self._sweeps[shape]

    def _is_tight(self, device: torch.device) -> bool:
        """Whether more than half of the memory is taken."""
        return device.type == "cuda" and torch.cuda.memory_allocated(device) > _memory(device) // 2


def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


def _memory(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).total_memory


def _round_up(segments: int) -> int:
    return -(-segments // 16) * 16


def _some(pieces: Pieces | None, streams: slice) -> Pieces | None:
    """Those of some streams."""
    if pieces is None:
        return None
    return Pieces(pieces.breaks[streams], pieces.rates[streams], pieces.after, pieces.bends[streams])


def _join(parts: list[Result]) -> Result:
    """Runs of parts of a batch as one."""
    if len(parts) == 1:
        return parts[0]
    forests, traces, first = [], [], 0
    for forest, trace, _ in parts:
        forests.append(forest._replace(before=_renumbered(forest.before, first)))
        traces.append(trace._replace(heads=_renumbered(trace.heads, first)))
        first += len(forest.times)
    joined = [map(torch.cat, zip(*fields, strict=True)) for fields in (forests, traces)]
    return Result(Forest(*joined[0]), Trace(*joined[1]), torch.cat([run.log_evidence for run in parts]))


def _renumbered(events: Tensor, first: int) -> Tensor:
    return torch.where(events >= 0, events + first, events)


def _nothing(S: int, M: int, device: torch.device) -> Result:
    """The run of no streams."""

    def empty(*size: int, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.zeros(0, *size, dtype=dtype, device=device)

    whole = partial(empty, dtype=torch.int32)
    trace = Trace(empty(S), whole(S, M), empty(S, dtype=torch.bool), empty(S, M), whole(S, M))
    return Result(Forest(empty(), whole(), whole()), trace, empty())
