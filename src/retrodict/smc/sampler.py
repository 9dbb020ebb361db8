"""Sequential Monte Carlo: particle filtering and smoothing (Algorithm 1), vectorised over streams x particles.

    for each segment (t_i, t_{i+1}]:                                   line 9
        draw missing events in it, particle by particle                DrawSegment, lines 24-49
        weigh by p / q so far, and by the observed event at its end    lines 42-47
        resample when the effective sample size is low                 lines 12, 14-22

Two slips of the printed algorithm are mended: q's survival on the last piece before an observed event, and p's
survival to T, are part of the weight (both integrals run over all of [0, T]). Rows advance on their own inside a
segment, and the particles of a stream meet at each observed event; streams never wait for one another.
Weights and evidence are in log space throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from retrodict.errors import RunawayError
from retrodict.events.batch import Batch
from retrodict.missingness.base import Context
from retrodict.models.state import put, take
from retrodict.models.thinning import categorical
from retrodict.proposals.base import Proposal
from retrodict.random import split, uniform
from retrodict.smc.compensator import Quadrature, Rule, Segments
from retrodict.smc.particles import Particles
from retrodict.smc.propose import Ask, Sampler, Step, Thinning, Varying
from retrodict.smc.resampling import Scheme, effective_size, log_mean
from retrodict.smc.script import Script

_RESAMPLE, _PARTICLE = 6, 8  # branches of each stream's random numbers; particle m has branch 8 + m
_START = 3
_THINNING = Thinning()


@dataclass(frozen=True)
class Options:
    """How to run Algorithm 1."""

    particles: int = 50
    scheme: Scheme | None = None
    ess_threshold: float = 0.5
    sampler: Sampler | None = None  # the engine's own choice
    rule: Rule = Quadrature()  # noqa: RUF009
    max_events: int = 100_000


class Run(NamedTuple):
    """The weighted particles of B streams, and how it went (only looked at).

    ``times``, ``types`` [B, M, C] and ``counts`` [B, M]; ``log_weights`` [B, M] (not normalised);
    ``log_evidence`` [B]; ``ess`` [B, S] at each observed event and at the end, NaN beyond; ``parents`` [B, S, M] who
    each particle was copied from there; ``resampled`` [B, S]; ``accepted`` [B] share of moves accepted, where particles
    were moved after the sweep.
    """

    times: Tensor
    types: Tensor
    counts: Tensor
    log_weights: Tensor
    log_evidence: Tensor
    ess: Tensor
    parents: Tensor
    resampled: Tensor
    accepted: Tensor | None = None


def runaway_message(most: int) -> str:
    """What to say of a particle with more missing events than ``most``."""
    return (
        f"a particle proposed more than {most:,} missing events in a stream. The model may be explosive, or a missing "
        "rate too close to 1 for it; raise max_events if so many are plausible."
    )


@torch.no_grad()
def sequential_monte_carlo(
    observed: Batch,
    proposal: Proposal,
    keys: Tensor,
    options: Options,
    script: Script | None = None,
) -> Run:
    """Sample the missing events of B observed streams; ``keys`` [B] are the streams' random keys.

    With a ``script`` of B M rows particles follow it instead of drawing, outside of their windows.
    """
    smc = _Sweep(observed, proposal, keys, options, script)
    smc.draw_start()
    while bool(smc.alive.any()):
        rows = (smc.particles.open & smc.alive[smc.stream]).nonzero()[:, 0]
        if len(rows):
            smc.draw_segment(rows)
        waiting = smc.particles.open.view(-1, smc.M).any(1)
        ready = (smc.alive & ~waiting).nonzero()[:, 0]
        if len(ready):
            smc.meet(ready)
    return smc.result()


class _Sweep:
    """One sweep over B streams: the state of Algorithm 1 and its procedures."""

    def __init__(
        self,
        observed: Batch,
        proposal: Proposal,
        keys: Tensor,
        options: Options,
        script: Script | None,
    ) -> None:
        self.script = script
        self.followed = torch.zeros(len(keys) * options.particles, dtype=torch.int64, device=keys.device)
        self.observed, self.proposal, self.model, self.options = observed, proposal, proposal.model, options
        B, self.M = len(observed.durations), options.particles
        device = observed.durations.device
        self.keys = keys
        self.stream = torch.arange(B, device=device).repeat_interleave(self.M)
        self.row_keys = split(keys[:, None], _PARTICLE + torch.arange(self.M, device=device)).reshape(-1)
        past = proposal.missingness.initial((B * self.M,), device)
        self.particles = Particles.begin(self.model.initial((B * self.M,)), B * self.M, device, past)
        self.prepared = proposal.prepare(observed)
        self.counts = observed.mask.sum(1)
        self.edges = torch.cat([observed.times, observed.durations[:, None]], 1)  # right end of each segment
        self.segment = torch.zeros_like(self.counts)
        self.alive = torch.ones(B, dtype=torch.bool, device=device)
        self.log_evidence = torch.zeros(B, dtype=torch.float64, device=device)
        S = self.edges.shape[1]
        self.ess = torch.full((B, S), torch.nan, dtype=torch.float64, device=device)
        self.parents = torch.arange(self.M, device=device, dtype=torch.int32).expand(B, S, self.M).clone()
        self.resampled = torch.zeros(B, S, dtype=torch.bool, device=device)

    def draw_start(self) -> None:
        """Where the model has an atom at the start and nothing was observed there, draw what happened."""
        if self.model.start_atom is None:
            return
        some = self.observed.mask[:, 0] if self.observed.mask.shape[1] else torch.zeros_like(self.alive)
        seen = some & (self.edges[:, 0] == 0)
        rows = (~seen[self.stream]).nonzero()[:, 0]
        if not len(rows):
            return
        zero = torch.zeros_like(rows)
        ahead = self.proposal.ahead(self.prepared, self.stream[rows], zero)
        context = self._context(take(self.particles.state, rows), rows)
        log_q = self.proposal.start_log_probs(ahead, context)
        outcome = categorical(log_q.exp(), uniform(split(self.row_keys[rows], _START), zero))
        own_q = log_q.gather(1, outcome[:, None])[:, 0]
        if self.script is not None:
            counts = self.script.left[rows] <= 0
            outcome = torch.where(counts & self.script.drawn[rows], outcome, self.script.at_start(rows))
            own_q = torch.where(counts, log_q.gather(1, outcome[:, None])[:, 0], 0.0)
            self.followed[rows] = (self.script.at_start(rows) > 0).long()
        time = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
        rho = self.proposal.missingness.rates(time, context)
        log_p = self.model.start_atom.log_probs[outcome]
        drawn = outcome > 0
        types = (outcome - 1).clamp(min=0)
        log_p = log_p + torch.where(drawn, rho.gather(1, types[:, None])[:, 0], 1.0).log()
        self.particles.log_weights[rows] += (log_p - own_q).double()
        hit = rows[drawn]
        state = self.model.update(take(self.particles.state, hit), types[drawn], time[drawn])
        self.particles.append(hit, types[drawn], time[drawn], state)
        self._remember(hit, types[drawn], time[drawn])

    def draw_segment(self, rows: Tensor) -> None:
        """One round of DrawSegment for rows short of their segment's end (lines 30-47)."""
        now, number = self.particles.now[rows], self.segment[self.stream[rows]]
        right = self.edges[self.stream[rows], number]
        if self.script is not None:
            drawing = self.script.is_drawing(rows, now)
            self._follow(self.script, rows[~drawing], right[~drawing])
            rows, number, right = rows[drawing], number[drawing], right[drawing]
        if not len(rows):
            return
        p = self.particles
        state = take(p.state, rows)
        ahead = self.proposal.ahead(self.prepared, self.stream[rows], number)
        context = self._context(state, rows)
        reach = right if self.script is None else self.script.horizon(rows, p.now[rows], right)
        ask = Ask(
            lambda t: self.proposal.rates(state, ahead, t, context).proposal,
            lambda a, b: self.proposal.bound(state, ahead, a, b, context),
            self.row_keys[rows],
            p.rounds[rows],
            p.now[rows],
            reach,
            p.window[rows],
            self._varying(state, context, p.now[rows], reach),
        )
        step = (self.options.sampler or _THINNING).step(ask)
        p.rounds[rows] += 1
        self._take_step(rows, state, ahead, step, right)

    def _follow(self, script: Script, rows: Tensor, right: Tensor) -> None:
        """The same round for rows whose events are given."""
        if not len(rows):
            return
        p, number = self.particles, self.segment[self.stream[rows]]
        ahead = self.proposal.ahead(self.prepared, self.stream[rows], number)
        reach = script.horizon(rows, p.now[rows], right)
        self.followed[rows] = script.catch_up(rows, self.followed[rows], p.now[rows])
        step = script.step(rows, self.followed[rows], reach, number == self.counts[self.stream[rows]], p.window[rows])
        self.followed[rows] += step.found.long()
        self._take_step(rows, take(p.state, rows), ahead, step, right)

    def _take_step(self, rows: Tensor, state: Any, ahead: Any, step: Step, right: Tensor) -> None:
        """Rows go on to their next event or to the end of their segment, and are weighed if they got there."""
        p = self.particles
        p.now[rows], p.window[rows] = step.now, step.window
        closed = ~step.found & (step.now >= right)
        p.open[rows] = ~closed
        ended = (step.found | closed).nonzero()[:, 0]
        if len(ended):
            self._weigh_piece(rows, ended, state, ahead, step, right)

    def _weigh_piece(self, rows: Tensor, ended: Tensor, state: Any, ahead: Any, step: Step, right: Tensor) -> None:
        """p and q on the piece since the last event, and at the event that ends it, if one does (lines 41, 43)."""
        p = self.particles
        rows, state, ahead = rows[ended], take(state, ended), take(ahead, ended)
        found, types = step.found[ended], step.type[ended]
        stop = torch.where(found, step.time[ended], right[ended])
        context = self._context(state, rows)
        breaks = self.proposal.missingness.breaks(state.time, stop, context)
        segments = self._segments(rows, right[ended], breaks)
        times, weights = self.options.rule.nodes(state.time, stop, segments)
        rates = self.proposal.rates(state, ahead, torch.cat([times, stop[:, None]], 1), context)
        area_p = (rates.model[:, :-1].sum(-1).double() * weights).sum(1)
        area_q = (rates.proposal[:, :-1].sum(-1).double() * weights).sum(1)
        own = types[:, None]
        log_p = (rates.model[:, -1] * rates.missing[:, -1]).gather(1, own)[:, 0].double().log()
        log_q = rates.proposal[:, -1].gather(1, own)[:, 0].double().log()
        if step.area is not None and step.log_rate is not None:
            area_q, log_q = step.area[ended], step.log_rate[ended]
        if self.script is not None:
            within = self.script.clip(rows, state.time, stop)
            times, weights = self.options.rule.nodes(*within, segments)
            area_q = (self.proposal.rates(state, ahead, times, context).proposal.sum(-1).double() * weights).sum(1)
            log_q = torch.where(self.script.counts_at(rows, stop), log_q, 0.0)
        p.log_weights[rows] += area_q - area_p + torch.where(found, log_p - log_q, 0.0)
        after = self.model.update(take(state, found), types[found], stop[found])
        p.append(rows[found], types[found], stop[found], after)
        self._remember(rows[found], types[found], stop[found])
        if int(p.counts.max()) > self.options.max_events:
            raise RunawayError(runaway_message(self.options.max_events))

    def meet(self, streams: Tensor) -> None:
        """All particles of these streams have reached the end of their segment: observe what is there."""
        number = self.segment[streams]
        last = number == self.counts[streams]
        self._observe(streams[~last], number[~last])
        ess = effective_size(self.particles.log_weights.view(-1, self.M)[streams])
        self.ess[streams, number] = ess
        scheme = self.options.scheme
        low = ess < self.options.ess_threshold * self.M if scheme is not None else torch.zeros_like(last)
        low = low & (ess > 0) & ~last
        if scheme is not None and bool(low.any()):
            self._resample(scheme, streams[low], number[low])
        going = streams[~last]
        self._read(going, number[~last])
        self.segment[going] += 1
        self.alive[streams[last]] = False

    def _observe(self, streams: Tensor, number: Tensor) -> None:
        """Weigh by p of the observed event and by 1 - ρ (lines 43, 45)."""
        rows = self._rows(streams)
        state = take(self.particles.state, rows)
        kind = self.observed.types[streams, number].repeat_interleave(self.M)
        time = self.edges[streams, number].repeat_interleave(self.M)
        own = kind[:, None]
        log_p = self.model.log_activate(self.model.drive(state, time)).gather(1, own)[:, 0]
        if self.model.start_atom is not None:
            by_atom = (number.repeat_interleave(self.M) == 0) & (time == 0)
            log_p = torch.where(by_atom, self.model.start_atom.log_type(kind), log_p)
        rho = self.proposal.missingness.rates(time, self._context(state, rows)).gather(1, own)[:, 0]
        self.particles.log_weights[rows] += log_p.double() + torch.log1p(-rho.double())

    def _resample(self, scheme: Scheme, streams: Tensor, number: Tensor) -> None:
        """Procedure Resample: copy particles in proportion to their weights, which their mean replaces."""
        weights = self.particles.log_weights.view(-1, self.M)[streams]
        self.log_evidence[streams] += log_mean(weights)
        counter = number[:, None] * self.M + torch.arange(self.M, device=weights.device)
        u = uniform(split(self.keys[streams], _RESAMPLE)[:, None], counter)
        parents = scheme(torch.softmax(weights, -1), u)
        rows = self._rows(streams)
        self.particles.copy_rows(rows, (streams[:, None] * self.M + parents).reshape(-1))
        self.particles.log_weights[rows] = 0.0
        self.parents[streams, number] = parents.to(torch.int32)
        self.resampled[streams, number] = True

    def _read(self, streams: Tensor, number: Tensor) -> None:
        """The model reads the observed event; the particles go on into the next segment (line 44)."""
        if not len(streams):
            return
        rows, p = self._rows(streams), self.particles
        kind = self.observed.types[streams, number].repeat_interleave(self.M)
        time = self.edges[streams, number].repeat_interleave(self.M)
        p.state = put(p.state, rows, self.model.update(take(p.state, rows), kind, time))
        self._remember(rows, kind, time)
        p.now[rows], p.open[rows] = time, True

    def result(self) -> Run:
        """The particles with what is left in their weights, and the evidence (line 13)."""
        B = len(self.alive)
        p = self.particles
        weights = p.log_weights.view(B, self.M)
        return Run(
            times=p.times.view(B, self.M, p.times.shape[1]),
            types=p.types.view(B, self.M, p.types.shape[1]),
            counts=p.counts.view(B, self.M),
            log_weights=weights,
            log_evidence=self.log_evidence + log_mean(weights),
            ess=self.ess,
            parents=self.parents,
            resampled=self.resampled,
        )

    def _rows(self, streams: Tensor) -> Tensor:
        return (streams[:, None] * self.M + torch.arange(self.M, device=streams.device)).reshape(-1)

    def _context(self, state: Any, rows: Tensor) -> Context:
        stream, o = self.stream[rows], self.observed
        history = tuple(field[rows] for field in self.particles.history)
        return Context(o.starts[stream], o.ids[stream], state, o.durations[stream], history)

    def _remember(self, rows: Tensor, types: Tensor, times: Tensor) -> None:
        """The mechanism's summary of these rows' histories takes in one more event each."""
        p = self.particles
        if p.history and len(rows):
            known = tuple(field[rows] for field in p.history)
            p.remember(rows, self.proposal.missingness.update(known, types, times))

    def _varying(self, state: Any, context: Context, now: Tensor, reach: Tensor) -> Varying | None:
        """What a sampler that interpolates has to know where missing rates vary."""
        if self.proposal.missingness.is_constant:
            return None
        return Varying(
            lambda: self.proposal.missingness.breaks(now, reach, context),
            lambda t, a, b: self.proposal.floor(state, t, a, b, context),
        )

    def _segments(self, rows: Tensor, right: Tensor, breaks: Tensor | None) -> Segments:
        number = self.segment[self.stream[rows]]
        before = self.edges[self.stream[rows], (number - 1).clamp(min=0)]
        return Segments(number, torch.where(number > 0, before, 0.0), right, self.keys[self.stream[rows]], breaks)
