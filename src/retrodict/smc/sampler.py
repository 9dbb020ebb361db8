"""Sequential Monte Carlo: particle filtering and smoothing (Algorithm 1), vectorised over streams x particles.

    for each segment (t_i, t_{i+1}] between observed events:           line 7
        draw missing events in it, particle by particle                line 9, DrawSegment, lines 21-46
        weigh by p / q so far, and by the observed event at its end    lines 41-45
        resample when the effective sample size is low                 line 10, LowESS and Resample, lines 12-20
        let the survivors read the observed event                      line 44

The event is read after resampling, so that only survivors read it; its factors of the weight are taken just before it,
so that the order makes no difference. Two slips of the printed algorithm are mended: q's survival on the last piece
before an observed event, and p's survival to T, are part of the weight (both integrals run over all of [0, T]). Rows
advance on their own inside a segment and meet at its end. Weights and evidence are in log space throughout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from retrodict.errors import RunawayError
from retrodict.events.batch import Batch
from retrodict.missingness.base import Context
from retrodict.models.quadrature import Pieces, grade, is_graded, place_nodes
from retrodict.models.state import take
from retrodict.models.thinning import categorical
from retrodict.proposals.base import Proposal
from retrodict.proposals.intensity import Rates
from retrodict.random import split, uniform
from retrodict.smc.ending import endings
from retrodict.smc.options import Options, runaway_message
from retrodict.smc.particles import Particles, Result, Trace
from retrodict.smc.propose import Ask, Drawn, Thinning, Varying
from retrodict.smc.resampling import effective_size, log_mean

_START, _RESAMPLE, _END, _PARTICLE = 3, 6, 7, 8  # branches of each stream's random numbers; particle m has branch 8 + m


class Info(NamedTuple):
    """How one step went; only looked at."""

    ess: Tensor  # [B] float64: effective sample size before resampling; NaN for streams that ended before
    parents: Tensor  # [B, M] int32: the particle that each particle was copied from; itself where it was not
    resampled: Tensor  # [B]: whether particles were resampled
    log_weights: Tensor  # [B, M] float64: before resampling
    heads: Tensor  # [B, M] int32: each particle's last missing event in the forest, before resampling


class Step(NamedTuple):
    """All streams after one segment: the particles have been weighed, resampled, and have read the event at its end."""

    number: int  # of the observed event, from 0; a stream with n of them ends with step n
    particles: Particles  # what is carried on, live: the next step changes it
    info: Info  # what is only looked at


class Begun(NamedTuple):
    """What streams are gone on with from: particles that have come to the ``begins`` of their batch."""

    particles: Particles
    numbers: Tensor  # [B]: how many segments lie behind each stream
    counts: Tensor  # [B]: how many segments are to be closed; where the batch has no event, nothing happened


class Place(NamedTuple):
    """Where R rows stand in their segments, and what their intensities depend on."""

    rows: Tensor  # [R]: which particles, row b M + m being particle m of stream b
    state: Any  # the model's state, [R, ...]
    ahead: Any  # what the proposal knows of the future, [R, ...]
    context: Context  # what the mechanism knows, [R, ...]
    right: Tensor  # [R] float64: the end of the segment


def particle_keys(keys: Tensor, particles: int) -> Tensor:
    """The random keys of all particles [B M] from those of the streams [B]."""
    return split(keys[:, None], _PARTICLE + torch.arange(particles, device=keys.device)).reshape(-1)


class SequentialMonteCarlo:
    """Algorithm 1 for B observed streams, from the start or on from where it stood; ``keys`` [B] are random."""

    @torch.no_grad()
    def __init__(
        self, observed: Batch, proposal: Proposal, keys: Tensor, options: Options, begun: Begun | None = None
    ) -> None:
        self.observed, self.proposal, self.model = observed, proposal, proposal.model
        self.keys, self.options, self.M = keys, options, options.particles
        # Whether integrals of λ^p are taken in closed form.
        self.exact = self.model.exact_integrals and self.model.calendar is None and is_graded(options.integral)
        B, device = len(keys), observed.durations.device
        self.stream = torch.arange(B, device=device).repeat_interleave(self.M)
        self.row_keys = particle_keys(keys, self.M)
        if begun is None:
            state, history = self.model.initial((B * self.M,)), proposal.missingness.initial((B * self.M,), device)
            particles = Particles.begin(B, self.M, state, history, device)
            begun = Begun(particles, torch.zeros_like(keys), observed.mask.sum(1))
        self.particles, self.numbers, self.counts = begun
        self.endings = endings(observed, proposal, options)
        self.prepared = proposal.prepare(observed)
        self.edges = torch.cat([observed.times, observed.durations[:, None]], 1)  # right end of each segment

    @torch.no_grad()
    def steps(self) -> Iterator[Step]:
        """One step for each observed event, and one for the end (line 7)."""
        self.draw_start()
        for i in range(self.edges.shape[1]):
            yield self.step(i, (self.counts >= i).nonzero()[:, 0])

    @torch.no_grad()
    def step(self, i: int, streams: Tensor) -> Step:
        """Segment i of some of the streams, and what was observed at its end."""
        self.draw_segment(i, streams)
        going = streams[self.counts[streams] > i]  # the others have come to T
        self.draw_end(i, streams[self.counts[streams] <= i])
        seen = going[self.observed.mask[going, i]] if len(going) else going
        self.observe(i, seen)
        ess = self.effective_sizes(streams)
        before = [self.particles.by_stream(x).clone() for x in (self.particles.log_weights, self.particles.heads)]
        low = going[self.is_low(ess[going])]
        parents = self.resample(i, low)
        self.read(i, seen)
        resampled = torch.zeros_like(ess, dtype=torch.bool).index_fill(0, low, True)
        return Step(i, self.particles, Info(ess, parents, resampled, *before))

    def run(self) -> Result:
        """All steps: what was drawn, and the evidence (line 11)."""
        infos = [step.info for step in self.steps()]
        trace = Trace(*(torch.stack(field, 1) for field in zip(*infos, strict=True)))
        p = self.particles
        return Result(p.forest, trace, p.log_evidence + log_mean(p.by_stream(p.log_weights)))

    def draw_start(self) -> None:
        """Where the model has an atom at the start and nothing was observed there, draw what happened."""
        if self.model.start_atom is None:
            return
        seen = (self.counts > 0) & (self.edges[:, 0] == 0)
        rows = ((self.numbers == 0) & ~seen)[self.stream].nonzero()[:, 0]
        if not len(rows):
            return
        at, p = self._place(0, rows), self.particles
        outcome, log_q = self.start_outcome(rows, self.proposal.start_log_probs(at.ahead, at.context))
        drawn, types = outcome > 0, (outcome - 1).clamp(min=0)
        rho = self.proposal.missingness.rates(p.now[rows], at.context).gather(1, types[:, None])[:, 0]
        log_p = self.model.start_atom.log_probs[outcome] + torch.where(drawn, rho, 1.0).log()
        p.log_weights[rows] += (log_p - log_q).double()
        p.append(rows[drawn], types[drawn], p.now[rows[drawn]])
        self._push(rows[drawn], types[drawn], p.now[rows[drawn]])

    def start_outcome(self, rows: Tensor, log_q: Tensor) -> tuple[Tensor, Tensor]:
        """Draw no event (0) or one of type k (1 + k) from log q [R, K+1]: the outcome and its log q, [R] each."""
        outcome = categorical(log_q.exp(), uniform(split(self.row_keys[rows], _START), torch.zeros_like(rows)))
        return outcome, log_q.gather(1, outcome[:, None])[:, 0]

    def draw_end(self, i: int, streams: Tensor) -> None:
        """Where the event that ended the stream went missing, draw it at T: its type in proportion to λ^q_k(T)."""
        if self.endings is None or not len(streams):
            return
        rows = self._rows(streams[self.endings.missing[streams]])
        if not len(rows):
            return
        at, p = self._place(i, rows), self.particles
        rates = self.proposal.rates(at.state, at.ahead, at.right, at.context)
        shares = rates.proposal.double() / rates.proposal.double().sum(1, keepdim=True)
        possible = shares.isfinite().all(1)  # where nothing can go missing, the particle is impossible
        shares = torch.where(possible[:, None], shares, 1.0)
        types = categorical(shares, uniform(split(self.row_keys[rows], _END), torch.zeros_like(rows)))[:, None]
        own = (rates.model * rates.missing).gather(1, types)[:, 0]
        p.log_weights[rows] += torch.where(possible, own.double() / shares.gather(1, types)[:, 0], 0.0).log()
        p.append(rows, types[:, 0], at.right)
        self._push(rows, types[:, 0], at.right, last=torch.ones_like(rows, dtype=torch.bool))

    def draw_segment(self, i: int, streams: Tensor) -> None:
        """Procedure DrawSegment (lines 21-46): each round draws the next event of rows short of the segment's end."""
        rows, p = self._rows(streams), self.particles
        while len(rows):
            at = self._place(i, rows)
            drawn = self.next_event(at)
            p.now[rows], p.window[rows] = drawn.now, drawn.window
            p.rounds[rows] += 1
            closed = ~drawn.found & (drawn.now >= at.right)
            ended = (drawn.found | closed).nonzero()[:, 0]
            if len(ended):
                self.weigh(i, self._some(at, ended), drawn.some(ended))
            rows = rows[~closed]

    def next_event(self, at: Place) -> Drawn:
        """The next missing event from q, or how far the rows have come without one (lines 29-39)."""
        p, rows = self.particles, at.rows
        now, varying = p.now[rows], None
        if not self.proposal.is_timeless:
            varying = Varying(
                lambda: self.proposal.breaks(now, at.right, at.context),
                lambda t, a, b: self.proposal.floor(at.state, t, a, b, at.context),
            )
        ask = Ask(
            lambda t: self.proposal.rates(at.state, at.ahead, t, at.context).proposal,
            lambda a, b: self.proposal.bound(at.state, at.ahead, a, b, at.context),
            self.row_keys[rows],
            p.rounds[rows],
            now,
            at.right,
            p.window[rows],
            varying,
            self.model.speeds(at.state),
        )
        return (self.options.sampler or Thinning()).step(ask)

    def weigh(self, i: int, at: Place, drawn: Drawn) -> None:
        """The factors of the importance weight p / q, equation (3), since each row's last event (lines 41, 43, 45).

        The piece ends with a missing event or with the segment; its survival exp(-∫ λ) counts either way. A missing
        event is then appended to the particle, and the model and the mechanism read it.
        """
        rows, p = at.rows, self.particles
        stop = torch.where(drawn.found, drawn.time, at.right)
        pieces = self._pieces(i, at, stop)
        times, weights = place_nodes(self.options.integral, pieces)
        rates = self.proposal.rates(at.state, at.ahead, torch.cat([times, stop[:, None]], 1), at.context)
        area_p = self.of_p(at, rates, weights, pieces)
        own = (rates.model[:, -1] * rates.missing[:, -1]).gather(1, drawn.type[:, None])[:, 0]
        area_q, log_q = self.of_q(at, drawn, rates, weights, pieces)
        p.log_weights[rows] += area_q - area_p + torch.where(drawn.found, own.double().log() - log_q, 0.0)
        p.since[rows], found = stop, drawn.found
        p.append(rows[found], drawn.type[found], stop[found])
        self._push(rows[found], drawn.type[found], stop[found])
        if int(p.counts.max()) > self.options.max_events:
            raise RunawayError(runaway_message(self.options.max_events))

    def of_p(self, at: Place, rates: Rates, weights: Tensor, pieces: Pieces) -> Tensor:
        """∫ λ^p over the piece, [R], in closed form where the model has one."""
        if self.exact:
            return self.model.compensator(at.state, pieces.start, pieces.stop).sum(-1).double()
        return (rates.model[:, :-1].sum(-1).double() * weights).sum(1)

    def of_q(self, at: Place, drawn: Drawn, rates: Rates, weights: Tensor, pieces: Pieces) -> tuple[Tensor, Tensor]:
        """∫ λ^q over the piece and log λ^q of the event at its end, [R] each."""
        if drawn.area is not None and drawn.log_rate is not None:  # of an interpolant, which is what was drawn from
            return drawn.area, drawn.log_rate
        if self.exact and self.proposal.is_thinned_model:
            caused = self.model.compensator(at.state, pieces.start, pieces.stop)
            area = (rates.missing[:, -1] * caused).sum(-1).double()
        else:
            area = (rates.proposal[:, :-1].sum(-1).double() * weights).sum(1)
        return area, rates.proposal[:, -1].gather(1, drawn.type[:, None])[:, 0].double().log()

    def observe(self, i: int, streams: Tensor) -> None:
        """Weigh by p of the observed event and by 1 - ρ (lines 43, 45)."""
        if not len(streams):
            return
        at = self._place(i, self._rows(streams))
        kind = self.observed.types[streams, i].repeat_interleave(self.M)
        log_p = self.model.log_activate(self.model.drive(at.state, at.right)).gather(1, kind[:, None])[:, 0]
        if self.model.calendar is not None:
            season = self.model.calendar.log_factor(at.right, at.context.start)
            log_p = log_p + season.gather(1, kind[:, None])[:, 0].to(log_p.dtype)
        if self.model.start_atom is not None and i == 0:
            log_p = torch.where(at.right == 0, self.model.start_atom.log_type(kind), log_p)
        rho = self.proposal.missingness.rates(at.right, at.context).gather(1, kind[:, None])[:, 0]
        self.particles.log_weights[at.rows] += log_p.double() + torch.log1p(-rho.double())

    def effective_sizes(self, streams: Tensor) -> Tensor:
        """The effective sample size of these streams, [B]; NaN for others (line 13)."""
        weights = self.particles.log_weights.view(-1, self.M)
        nothing = torch.full_like(self.particles.log_evidence, torch.nan)
        return nothing.index_copy(0, streams, effective_size(weights[streams]))

    def is_low(self, ess: Tensor) -> Tensor:
        """Procedure LowESS (lines 12-15); weights that are all zero stay as they are."""
        if self.options.scheme is None:
            return torch.zeros_like(ess, dtype=torch.bool)
        return (ess < self.options.ess_threshold * self.M) & (ess > 0)

    def resample(self, i: int, streams: Tensor) -> Tensor:
        """Procedure Resample (lines 16-20): copy particles in proportion to their weights, which then are 1 again.

        Returns whom each particle was copied from, [B, M] int32.
        """
        everyone = torch.arange(self.M, device=streams.device, dtype=torch.int32).repeat(len(self.keys), 1)
        if not len(streams):
            return everyone
        assert self.options.scheme is not None
        p, rows = self.particles, self._rows(streams)
        weights = p.log_weights.view(-1, self.M)[streams]
        p.log_evidence[streams] += log_mean(weights)
        counter = (self.numbers[streams] + i)[:, None] * self.M + torch.arange(self.M, device=weights.device)
        u = uniform(split(self.keys[streams], _RESAMPLE)[:, None], counter)
        parents = self.options.scheme(torch.softmax(weights, -1), u)
        p.copy_rows(rows, (streams[:, None] * self.M + parents).reshape(-1))
        p.log_weights[rows] = 0.0
        return everyone.index_copy(0, streams, parents.to(torch.int32))

    def read(self, i: int, streams: Tensor) -> None:
        """The model reads the observed event; the particles go on into the next segment (line 44)."""
        if not len(streams):
            return
        rows = self._rows(streams)
        kind, time = (x[streams, i].repeat_interleave(self.M) for x in (self.observed.types, self.edges))
        last = None if self.endings is None else self.endings.seen[streams, i].repeat_interleave(self.M)
        self._push(rows, kind, time, last)
        self.particles.now[rows] = time

    def _push(self, rows: Tensor, types: Tensor, times: Tensor, last: Tensor | None = None) -> None:
        """One more event onto the histories of these rows, which model and mechanism remember (line 44).

        Where the model has an end atom, rows are weighed by whether the event was the ``last`` one [R]; it was not by
        default.
        """
        if not len(rows):
            return
        p, atom = self.particles, self.model.end_atom
        known = tuple(field[rows] for field in p.history)
        history = self.proposal.missingness.update(known, types, times) if known else known
        state = self.model.update(take(p.state, rows), types, times)
        p.remember(rows, state, history)
        if atom is not None:
            p.lengths[rows] += 1
            features = self.model.features(state, times)
            is_last = torch.zeros_like(rows, dtype=torch.bool) if last is None else last
            p.log_weights[rows] += atom.log_prob(features, types, times, p.lengths[rows], is_last)

    def _rows(self, streams: Tensor) -> Tensor:
        return (streams[:, None] * self.M + torch.arange(self.M, device=streams.device)).reshape(-1)

    def _place(self, i: int, rows: Tensor) -> Place:
        """Where rows stand in segment i."""
        stream, state = self.stream[rows], take(self.particles.state, rows)
        ahead = self.proposal.ahead(self.prepared, stream, torch.full_like(stream, i))
        return Place(rows, state, ahead, self._context(rows, state), self.edges[stream, i])

    def _some(self, at: Place, which: Tensor) -> Place:
        """Some of the rows."""
        rows, state = at.rows[which], take(at.state, which)
        return Place(rows, state, take(at.ahead, which), self._context(rows, state), at.right[which])

    def _context(self, rows: Tensor, state: Any) -> Context:
        stream, o = self.stream[rows], self.observed
        history = tuple(field[rows] for field in self.particles.history)
        return Context(o.starts[stream], o.ids[stream], state, o.durations[stream], history)

    def _pieces(self, i: int, at: Place, stop: Tensor) -> Pieces:
        """Each row's piece since its last event, and where in it missing rates jump or bend."""
        stream = self.stream[at.rows]
        left = self.edges[stream, i - 1] if i else self.observed.begins[stream]
        start, number = self.particles.since[at.rows], self.numbers[stream] + i
        breaks = self.proposal.breaks(start, stop, at.context)
        breaks = grade(self.options.integral, self.model.speeds(at.state), start, stop, breaks)
        breaks = grade(self.options.integral, self.proposal.future_speeds(at.ahead), at.right, left, breaks)
        return Pieces(start, stop, number, left, at.right, self.keys[stream], breaks)
