"""The recent past of an online run: imputed anew from particles of a lag ago, given all that was observed since.

The particles at the older mark are a weighted sample of what had happened by then, given what had been observed by
then. Algorithm 1 goes on from them, with the proposal that was given, to now: the whole is a weighted sample given all
that was observed (and the product of both evidences estimates that of all events without bias). Only the last lag of it
is given back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.batch import batches_by_length
from retrodict.events.stream_set import StreamSet
from retrodict.proposals.base import Proposal
from retrodict.proposals.smoothers import type_names
from retrodict.smc.describe import describe_run
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.engines.base import Went
from retrodict.smc.guesses import Guesses, join
from retrodict.smc.islands import unite_weights
from retrodict.smc.online.arrivals import Line, Name
from retrodict.smc.online.carry import Ahead, make_batch, pick_engine
from retrodict.smc.particles import Particles
from retrodict.smc.posterior import Posterior
from retrodict.smc.resampling import log_mean
from retrodict.smc.sampler import particle_keys
from retrodict.smc.tracing import EngineRun, Traced, trace_run

if TYPE_CHECKING:
    from retrodict.smc.online.online import Online


@torch.no_grad()
def look_back(online: Online, lines: dict[Name, Line]) -> Posterior:
    """The posterior of the last lag of each stream."""
    names = list(lines)
    lengths = np.array([len(line.times) for line in lines.values()], dtype=np.int64)
    groups = batches_by_length(lengths, online._at_once) or [np.zeros(0, dtype=np.int64)]
    parts, log_evidence = [], np.zeros(len(names))
    for group in groups:
        some = {names[i]: lines[names[i]] for i in group}
        ahead = [Ahead(line.marks.older.time, line.times, line.types, line.until) for line in some.values()]
        went, keys = _go_on(online, online.proposal, some, ahead, "older")
        assert went.result is not None
        result = went.result.on_host()
        log_evidence[group] = log_mean(result.log_evidence.view(len(group), online.islands)).numpy()
        starts = np.array([line.start for line in some.values()], dtype=np.float64)
        run = EngineRun(np.arange(len(group)), result, keys.cpu(), starts, online.islands)
        parts.append(_cut(trace_run(run), list(some.values()), online.lag))
    order = np.argsort(np.concatenate(groups))
    full, lagged = (join([getattr(part, name) for part in parts], order) for name in ("full", "lagged"))
    diagnostics = Diagnostics.concatenate([part.diagnostics for part in parts], order)
    about = describe_run(online.proposal, online.engine, online.seed, online.resample)
    return Posterior(recent(online, lines), full, lagged, log_evidence, diagnostics, None, about | {"lag": online.lag})


def _first(line: Line, lag: float) -> float:
    """Where the last lag of a stream begins, since its start."""
    return max(0.0, line.until - lag)


def recent(online: Online, lines: dict[Name, Line]) -> StreamSet:
    """What was observed in the last lag of each stream."""
    times, types = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for line in lines.values():
        own, first = np.array(line.times), _first(line, online.lag)
        kept = (own > first) | (first == 0.0)
        times.append(own[kept] + line.start)
        types.append(np.array(line.types, dtype=np.int64)[kept])
    offsets = np.cumsum([0, *map(len, times[1:])])
    starts = np.array([line.start + _first(line, online.lag) for line in lines.values()], dtype=np.float64)
    ends = np.array([line.start + line.until for line in lines.values()], dtype=np.float64)
    events = np.concatenate(times), np.concatenate(types)
    names = type_names(online.proposal.model)
    return StreamSet.trusted(*events, offsets, starts, ends, list(lines), names, axis=online.axis)


def _cut(traced: Traced, lines: list[Line], lag: float) -> Traced:
    """The ensembles of B streams without what lies before the last lag."""
    firsts = np.array([_first(line, lag) for line in lines], dtype=np.float64)
    starts = np.array([line.start for line in lines], dtype=np.float64)
    gone = np.array(
        [np.searchsorted(line.times, f, side="right") * (f > 0) for line, f in zip(lines, firsts, strict=True)]
    )
    gone = gone.astype(np.int64)

    def shifted(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Segments [B, ..., S] without those that have gone."""
        at = gone[:, None] + np.arange(values.shape[-1])
        at = at.reshape(len(at), *[1] * (values.ndim - 2), at.shape[1])
        kept = np.take_along_axis(values, np.minimum(at, values.shape[-1] - 1), -1)
        return np.where(at < values.shape[-1], kept, np.nan)

    def cut(guesses: Guesses) -> Guesses:
        stream = guesses.guess_of_event() // guesses.weights.shape[1]
        kept = (guesses.event_times > (starts + firsts)[stream]) | (firsts == 0.0)[stream]
        return replace(keep(guesses, kept), families=shifted(guesses.families))

    d = traced.diagnostics
    ahead = np.nan_to_num(shifted(d.ahead.astype(np.float64))).astype(np.int64)
    return Traced(cut(traced.full), cut(traced.lagged), Diagnostics(shifted(d.ess), ahead, d.resamplings))


def keep(guesses: Guesses, kept: NDArray[np.bool_]) -> Guesses:
    """The guesses with some of their events, [E]."""
    offsets = np.concatenate([[0], np.cumsum(kept)])[guesses.offsets]
    return Guesses(guesses.event_times[kept], guesses.event_types[kept], offsets, guesses.weights, guesses.families)


class Present(NamedTuple):
    """The particles of N streams now."""

    particles: Particles  # of N I runs
    row_keys: Tensor  # [N I M]
    weights: NDArray[np.float64]  # [N, I M]: they add up to one
    families: NDArray[np.float64]  # [N, I]: effective sample size of each island
    log_evidence: NDArray[np.float64]  # [N]


@torch.no_grad()
def look_now(online: Online, lines: dict[Name, Line]) -> Present:
    """Particles carried on, in copies, from the heads to now."""
    ahead = [Ahead(line.marks.head.time, [], [], line.until) for line in lines.values()]
    went, keys = _go_on(online, online._carrier.proposal, lines, ahead, "head")
    assert went.result is not None
    result, M = went.result, online.particles // online.islands
    own = went.particles.log_weights.view(len(keys), M)
    weights, log_evidence = unite_weights(own, result.log_evidence, online.islands)
    families = result.trace.ess[:, 0].view(len(lines), online.islands).cpu().numpy()
    return Present(went.particles, particle_keys(keys, M), weights.cpu().numpy(), families, log_evidence.cpu().numpy())


def _go_on(
    online: Online, proposal: Proposal, lines: dict[Name, Line], ahead: list[Ahead], mark: str
) -> tuple[Went, Tensor]:
    """Algorithm 1 from a mark of each stream to now; also the runs' keys."""
    own, names, model = list(lines.values()), list(lines), proposal.model
    batch = make_batch(model, names, own, ahead, online.axis.since_1970)
    slots = torch.tensor([line.slot for line in own], dtype=torch.int64, device=model.device)
    particles = getattr(online._pools, mark).take(slots, batch.begins)
    numbers, counts = [getattr(line.marks, mark).number for line in own], [len(a.edges) for a in ahead]
    engine = pick_engine(online.engine, proposal, online._carrier.options)
    return online._carrier.go_on(engine, proposal, batch, names, particles, numbers, counts, ends=True)
