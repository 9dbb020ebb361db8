"""The native engine: Algorithm 1 in C++ (``native/``) on a CPU, for the models that come with the package.

It is compiled when the package is installed, for several instruction sets; the best that this processor has is used.
Neural models are computed in single precision, with times, weights and evidence in double.
"""

from __future__ import annotations

import functools
import importlib
import math
import weakref
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.errors import ModelError, RunawayError
from retrodict.events.batch import Batch
from retrodict.missingness.pieces import Pieces, of_time, pieces_of, rates_at
from retrodict.models import Hawkes, NeuralHawkes, Poisson, StateSpace
from retrodict.models.calendar import Calendar
from retrodict.models.end import EndAtom
from retrodict.models.quadrature import GaussLegendre
from retrodict.proposals.base import Proposal
from retrodict.proposals.filtering import Filtering
from retrodict.proposals.smoothing import Smoothing
from retrodict.smc.ending import Endings, endings
from retrodict.smc.engines.base import Went
from retrodict.smc.options import EIGHT_NODES, Options, runaway_message
from retrodict.smc.particles import Forest, Result, Trace
from retrodict.smc.propose import Inversion, Thinning
from retrodict.smc.resampling import Scheme, multinomial, residual, stratified, systematic
from retrodict.smc.sampler import Begun

_SCHEMES: dict[Scheme | None, int] = {None: 0, multinomial: 1, stratified: 2, systematic: 3, residual: 4}
_SILENCE = -1  # in the place of a type: nothing happened there (native/sweep.hpp)
_GROUP_ROWS = 200  # particles that share a matrix product: enough to fill it, few enough for the cache


@functools.cache
def native_module() -> ModuleType | None:
    """The compiled module for this processor, or None where none was built."""
    try:
        portable = importlib.import_module("retrodict._native_portable")
    except ImportError:
        return None
    try:
        return importlib.import_module(f"retrodict._native_{portable.best()}")
    except ImportError:
        return portable


def _built() -> Any:
    """The compiled module; asked for only where there is one."""
    return native_module()


class NativeEngine:
    """Compiled kernels; threads over groups of streams, as many as torch uses."""

    name = "native"
    affords = 1000

    def __init__(self) -> None:
        self._packed: weakref.WeakKeyDictionary[Proposal, tuple[Any, Any]] = weakref.WeakKeyDictionary()

    def unavailable(self) -> str | None:
        """Whether it was compiled."""
        if native_module() is None:
            return (
                "its kernels were not compiled when retrodict was installed, because no C++ compiler with "
                "vector types was found, or not Python's headers. Install them (g++, clang, "
                "clang-cl) and install retrodict again."
            )
        return None

    def refuses(self, proposal: Proposal, options: Options) -> str | None:
        """What it was not written for."""
        model = proposal.model
        if model.device.type != "cpu":
            return f"the model is on {model.device}, and it runs on CPUs."
        if type(model) not in (NeuralHawkes, StateSpace, Hawkes, Poisson):
            return f"it knows neural Hawkes, state-space, Hawkes and Poisson processes, not {type(model).__name__}."
        if isinstance(model, StateSpace) and model.num_layers > 1:
            return f"it knows state spaces of one layer, and this one has {model.num_layers}."
        if isinstance(model, NeuralHawkes | StateSpace) and model.dtype != torch.float32:
            return "it computes neural models in single precision, and this one is in double."
        if type(proposal) not in (Filtering, Smoothing):
            return f"it knows filtering and smoothing, not {type(proposal).__name__}."
        if of_time(proposal.missingness) is None:
            return f"it knows mechanisms that depend on time and on After alone, not {proposal.missingness!r}."
        if not isinstance(options.integral, GaussLegendre):
            return f"it integrates by Gauss-Legendre quadrature, not {type(options.integral).__name__}."
        if isinstance(options.sampler, Inversion) and options.integral != EIGHT_NODES:
            return f"with inversion its quadrature is built in: it takes {EIGHT_NODES}, not {options.integral}."
        if not (options.sampler is None or isinstance(options.sampler, Thinning | Inversion)):
            return f"it draws by thinning or inversion, not {type(options.sampler).__name__}."
        if options.scheme not in _SCHEMES:
            return "it does not know this resampling scheme."
        return None

    def rows_at_once(self, proposal: Proposal) -> int:
        """Enough groups to keep every thread busy, in results of a bounded size."""
        return 12_800 * min(torch.get_num_threads(), 8)

    def run(self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options) -> Result:
        """Algorithm 1."""
        draws = torch.full_like(observed.durations, proposal.model.start_atom is not None, dtype=torch.bool)
        ends = endings(observed, proposal, options)
        batch = _batch(observed, keys, observed.mask.sum(1), draws, ends)
        return self._run(observed, proposal, keys, options, batch, None)

    def go_on(
        self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options, begun: Begun, ends: bool
    ) -> Went:
        """Algorithm 1 from where particles stand, which are changed (``TorchEngine.go_on``)."""
        p, model = begun.particles, proposal.model
        taken = _take_state(p.state, model.num_types)
        own = [x.contiguous().numpy() for x in (p.log_weights, p.window, p.rounds)]
        since = p.state.time.contiguous().numpy()
        begins, numbers = observed.begins.contiguous().numpy(), begun.numbers.contiguous().numpy()
        particles = _built().Particles(taken, since, *own, begins, numbers, ends)
        draws = (begun.numbers == 0) & (model.start_atom is not None)
        batch = _batch(observed, keys, begun.counts, draws)
        result = self._run(observed, proposal, keys, options, batch, particles, p.log_evidence.numpy())
        p.state = _give_state(p.state, taken, since)
        p.log_weights, p.window, p.rounds = map(torch.from_numpy, own)
        p.log_evidence = result.log_evidence
        return Went(p, result if ends else None)

    def _run(
        self,
        observed: Batch,
        proposal: Proposal,
        keys: Tensor,
        options: Options,
        batch: Any,
        particles: Any,
        evidence: NDArray[np.float64] | None = None,
    ) -> Result:
        """Run it from the start, or on from particles, which are replaced, and the evidence so far."""
        B, M, S = len(keys), options.particles, observed.times.shape[1] + 1
        log_evidence = np.zeros(B) if evidence is None else evidence.copy()
        ess = np.full((B, S), np.nan)
        parents = np.tile(np.arange(M, dtype=np.int32), (B, S, 1))
        resampled, log_weights = np.zeros((B, S), np.bool_), np.zeros((B, S, M))
        heads = np.full((B, S, M), -1, np.int32)
        results = _built().Results(log_evidence, ess, parents, resampled, log_weights, heads)
        model, future = self._weights(proposal)
        pieces = pieces_of(proposal.missingness, observed, proposal.model.calendar)
        assert pieces is not None
        never_change = _never_change(pieces)
        rates, shares = _rates(observed, proposal, pieces, never_change), _shares(observed, proposal)
        threads = torch.get_num_threads()
        group = max(1, min(_GROUP_ROWS // M, -(-B // threads)))
        settings = _settings(proposal, options, pieces, never_change)
        given = model, future, settings, batch, rates, shares, results, group, threads, particles
        histories = _built().sweep(*given)
        if histories.runaway:
            raise RunawayError(runaway_message(options.max_events))
        E = histories.size
        times, types, before = np.zeros(E), np.zeros(E, np.int32), np.zeros(E, np.int32)
        histories.write(times, types, before, heads)
        forest = Forest(*map(torch.from_numpy, (times, types, before)))
        trace = Trace(*map(torch.from_numpy, (ess, parents, resampled, log_weights, heads)))
        return Result(forest, trace, torch.from_numpy(log_evidence))

    def _weights(self, proposal: Proposal) -> tuple[Any, Any]:
        """The packed weights of a proposal's model and of its view of the future, kept until they change."""
        tensors = [*proposal.parameters(), *proposal.buffers()]
        # The sum as well: changes through ``.data`` leave no version.
        version: list[Any] = [(t.data_ptr(), t._version, float(t.detach().sum())) for t in tensors]
        if isinstance(proposal, Smoothing):
            version.append(_arrays(proposal.input_table())[0].tobytes())
        known = self._packed.get(proposal)
        if known is None or known[0] != version:
            if any(bool(torch.isnan(t).any()) for t in tensors):
                raise ModelError("some weights of this model or proposal are not numbers. Was its training broken off?")
            known = version, (_pack_model(proposal), _pack_future(proposal))
            self._packed[proposal] = known
        weights: tuple[Any, Any] = known[1]
        return weights


def _batch(observed: Batch, keys: Tensor, lengths: Tensor, draws: Tensor, known: Endings | None = None) -> Any:
    """Where each of ``lengths`` [B] segments and the stream ends, what was seen there, which streams may have lost an
    event at their start, if that is to be drawn, and how they ended, if that is known."""
    none = torch.zeros_like(draws)
    seen, missing = (none, none) if known is None else (known.seen.any(1), known.missing)
    edges = torch.cat([observed.times, observed.durations[:, None]], 1).double()
    ends = torch.arange(edges.shape[1]) >= lengths[:, None]
    edges = torch.where(ends, observed.durations[:, None].double(), edges)
    seen_at_start = (lengths > 0) & (edges[:, 0] == 0)
    return _built().Batch(
        edges.contiguous().numpy(),
        torch.where(observed.mask, observed.types, _SILENCE).to(torch.int32).contiguous().numpy(),
        lengths.to(torch.int32).numpy(),
        keys.contiguous().numpy(),
        (draws & ~seen_at_start).numpy(),
        seen.contiguous().numpy(),
        missing.contiguous().numpy(),
    )


def _take_state(state: Any, types: int) -> NDArray[np.float64]:
    """What models remember of R rows beside the time of the last event, [R, ...]; a copy."""
    fields = [field.double().flatten(1) for field in state[:-1]] or [state.time.new_zeros(len(state.time), types)]
    return torch.cat(fields, 1).contiguous().clone().numpy()


def _give_state(like: Any, taken: NDArray[np.float64], since: NDArray[np.float64]) -> Any:
    """A state of the kind of another from what was taken of it."""
    widths = [math.prod(field.shape[1:]) for field in like[:-1]] or [taken.shape[1]]
    parts = zip(torch.from_numpy(taken).split(widths, 1), like[:-1], strict=False)
    fields = [part.reshape(field.shape).to(field.dtype) for part, field in parts]
    return type(like)(*fields, torch.from_numpy(since))


def _never_change(pieces: Pieces) -> bool:
    """Whether rates are the same at all times, in all streams and after all histories."""
    return not pieces.after and pieces.factors is None and bool((pieces.rates == pieces.rates[:1, :1, :1]).all())


def _rates(observed: Batch, proposal: Proposal, pieces: Pieces, never_change: bool) -> Any:
    """Missing rates of observed events, at the start and at the end, and, where they change, in between.

    The factor that a calendar gives an observed event is the same for all particles: it goes with its rate.
    """
    mechanism, calendar = proposal.missingness, proposal.model.calendar
    seen = rates_at(mechanism, observed, observed.times).gather(2, observed.types[..., None])[..., 0]
    start = 1 - rates_at(mechanism, observed, torch.zeros_like(observed.durations)[:, None])[:, 0]
    end = rates_at(mechanism, observed, observed.durations[:, None])[:, 0]
    for part in pieces.after:
        start = start * (1 - part.late)
    some = slice(0, 0) if never_change else slice(None)
    log_seen, season = torch.log1p(-seen), list[Tensor]()
    if calendar is not None and pieces.factors is not None:
        log_seen = log_seen + _log_factors(observed, calendar, proposal.model.start_atom is not None)
        season = [pieces.factors, calendar.factor(observed.durations, observed.starts).detach()]
    tensors = (log_seen, 1 - start, end, pieces.breaks, pieces.rates[:, some], pieces.bends[:, some], *season)
    arrays = [tensor.contiguous().numpy() for tensor in tensors]
    return _built().Rates(*arrays, *[None] * (8 - len(arrays)))


@torch.no_grad()
def _log_factors(observed: Batch, calendar: Calendar, start_atom: bool) -> Tensor:
    """The calendar's c_k at observed events, [B, L]; nothing at the start where an atom scores the event."""
    found = calendar.log_factor(observed.times, observed.starts[:, None])
    found = found.gather(2, observed.types[..., None])[..., 0]
    if start_atom and found.shape[1]:
        found[:, 0] = torch.where(observed.times[:, 0] == 0, 0.0, found[:, 0])
    return found


def _shares(observed: Batch, proposal: Proposal) -> NDArray[np.float32] | None:
    """What the inputs of the right-to-left LSTM add to its gates, [B, S, 7 D'], where their types do not say that."""
    shares = proposal.input_shares(observed) if isinstance(proposal, Smoothing) else None
    return None if shares is None else _arrays(shares)[0]


def _settings(proposal: Proposal, options: Options, pieces: Pieces, never_change: bool) -> Any:
    """Options as the compiled code takes them."""
    rule, atom = options.integral, proposal.model.start_atom
    assert isinstance(rule, GaussLegendre)
    one_for_all = pieces.rates[:1, 0, 0].sum(0).tolist()  # zeros where there are no streams
    missing = one_for_all if never_change else []
    after = [
        _built().Recent(part.trigger.int().tolist(), part.reach, part.soon.tolist(), part.late.tolist())
        for part in pieces.after
    ]
    nodes, weights = rule.nodes((), torch.zeros((), dtype=torch.float64))
    grid, antiderivatives = _grid(options.sampler.points if isinstance(options.sampler, Inversion) else 2)
    return _built().Settings(
        options.particles,
        _SCHEMES[options.scheme],
        options.ess_threshold,
        isinstance(options.sampler, Inversion),
        options.max_events,
        nodes.tolist(),
        weights.tolist(),
        rule.reach if rule.graded else math.inf,
        rule.ratio,
        rule.error,
        rule.graded and proposal.model.calendar is None,
        grid.tolist(),
        antiderivatives.reshape(-1).tolist(),
        missing,
        after,
        [] if atom is None else atom.log_probs.tolist(),
        *_end_atom(proposal.model.end_atom),
    )


def _end_atom(atom: EndAtom | None) -> tuple[list[float], list[float], float, list[float]]:
    """Log odds by count, type, time and feature; no counts where the model has no atom."""
    if atom is None:
        return [], [], 0.0, []
    by_time = float(atom.by_time) / float(atom.time_scale)
    return atom.by_count.tolist(), atom.by_type.tolist(), by_time, atom.by_feature.tolist()


@functools.cache
def _grid(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Chebyshev's points on [0, 1], [n], and the antiderivatives of their Lagrange polynomials by powers, [n, n+1]."""
    grid = (1 - np.cos(np.pi * np.arange(points) / (points - 1))) / 2
    powers = np.linalg.inv(np.vander(grid, increasing=True)).T
    return grid, np.pad(powers / np.arange(1, points + 1), ((0, 0), (1, 0)))


def _pack_model(proposal: Proposal) -> Any:
    model = proposal.model
    mix = proposal.mix if isinstance(proposal, Smoothing) else None
    if isinstance(model, NeuralHawkes):
        units = _arrays(model.readout[:0] if mix is None else mix.past.weight)
        lstm = _arrays(model.lstm.by_type, model.lstm.by_hidden, model.lstm.bias)
        readout, scale = _arrays(model.readout, model.log_scale.exp())
        return _built().NeuralWeights(*lstm, readout, scale, float(model.time_scale), *units)
    if isinstance(model, StateSpace):
        (layer,) = model.each()
        own = _arrays(layer.decays, layer.bias, torch.sigmoid(layer.gates), layer.jumps)
        out = _arrays(model.readout, model.offset, model.log_scale.exp())
        units = _arrays(model.readout[:0] if mix is None else mix.past.weight)
        return _built().StateSpaceWeights(*own, *out, float(model.time_scale), *units)
    K = model.num_types
    units = _arrays(torch.zeros(0, K) if mix is None else mix.past.weight)
    if isinstance(model, Hawkes):
        decays, jumps = model.decays.reshape(-1), model.jumps.double().reshape(K, -1)
        return _built().HawkesWeights(model.base.tolist(), decays.tolist(), jumps.detach().numpy(), *units)
    assert isinstance(model, Poisson)
    return _built().HawkesWeights(model.rates.tolist(), [1.0], np.zeros((0, K)), *units)


def _pack_future(proposal: Proposal) -> Any:
    if not isinstance(proposal, Smoothing):
        return None
    table = proposal.input_table()
    lstm = _arrays(table, proposal.lstm.by_hidden, torch.zeros_like(table[0]))
    readouts = _arrays(proposal.readout, proposal.start_readout)
    mix, none = proposal.mix, proposal.readout[:0]
    units = (none, none[:, 0], none.t()) if mix is None else (mix.future.weight, mix.past.bias, mix.readout.weight)
    further = _arrays(*units, proposal.future_weight())
    return _built().FutureWeights(*lstm, *readouts, float(proposal.time_scale), *further)


def _arrays(*tensors: Tensor) -> list[NDArray[np.float32]]:
    return [t.detach().to(torch.float32).contiguous().numpy() for t in tensors]
