"""Sample the posterior over the missing events of observed streams: all at once, or step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch

from retrodict import _limits
from retrodict.errors import ModelError, SuspicionNotice
from retrodict.events.batch import batches_by_length, make_batch
from retrodict.events.results import refuse_results
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import warn_of
from retrodict.models.quadrature import Integral
from retrodict.proposals.base import Proposal
from retrodict.random import stream_keys
from retrodict.smc.diagnostics import Diagnostics, surviving_ancestors
from retrodict.smc.engines import choose
from retrodict.smc.islands import settle, unite
from retrodict.smc.options import Options
from retrodict.smc.particles import Result
from retrodict.smc.posterior import Posterior, concatenate
from retrodict.smc.propose import Sampler
from retrodict.smc.rejuvenate import rejuvenate as move
from retrodict.smc.sampler import SequentialMonteCarlo, Step

_MUCH = 200_000


def impute(
    observed: StreamSet | EventStream,
    proposal: Proposal,
    particles: int = 50,
    seed: int = 0,
    resample: str | None = "systematic",
    ess_threshold: float = 0.5,
    engine: str = "auto",
    *,
    sampler: str | Sampler | None = None,
    integral: Integral | None = None,
    islands: int = 1,
    rejuvenate: int = 0,
    rows: int | None = None,
    max_events: int = 100_000,
    progress: Callable[[int], None] | None = None,
) -> Posterior:
    """Sample ``particles`` weighted guesses of the missing events of each observed stream (Algorithm 1).

    ``proposal`` is a ``Filtering`` or a trained ``Smoothing``. ``resample`` names a scheme (multinomial, stratified,
    systematic, residual) used when the effective sample size falls below ``ess_threshold`` times the particles; None
    for none. Against degeneracy, ``islands`` splits the particles into independent runs combined by their evidence, and
    ``rejuvenate`` is how often every particle is moved afterwards (``smc/rejuvenate.py``); the default is neither.

    ``engine`` names what runs it (torch, the reference; native, compiled for CPUs; triton, for GPUs), "auto" the
    fastest that can; ``sampler`` how events are drawn from q (thinning, inversion), by default the engine's own;
    ``integral`` how intensities are integrated, ``rd.GaussLegendre(8)`` by default.

    A stream's particles depend on its id and the seed, not on the other streams. ``rows`` bounds how many
    particles are worked on at once, and a particle with more than ``max_events`` missing events raises a RunawayError:
    nothing is cut silently. ``progress`` is called with the number of streams done.
    """
    options = Options.of(particles, resample, ess_threshold, sampler, integral, max_events)
    if not (isinstance(islands, int) and islands > 0 and particles % islands == 0):
        raise ModelError(f"islands must divide the {particles} particles evenly, but is {islands!r}.")
    if not (isinstance(rejuvenate, int) and rejuvenate >= 0):
        raise ModelError(f"rejuvenate must be a whole number of moves, but is {rejuvenate!r}.")
    model = proposal.model
    observed = model.matched(observed)
    warn_of(observed, skip=("ends",))
    refuse_results(observed)
    options = replace(options, particles=particles // islands)
    chosen = choose(engine, proposal, options)
    _ask_memory(observed, proposal, particles)
    parts, done = [], 0
    at_once = particles * (2 if rejuvenate else 1)
    rows = rows or (12_800 if rejuvenate else chosen.rows_at_once(proposal))
    groups = batches_by_length(observed.lengths, max(1, rows // at_once)) or [np.zeros(0, dtype=np.int64)]
    for index in groups:
        batch = make_batch(observed, index, dtype=model.dtype, device=model.device)
        keys = stream_keys(seed, [observed.ids[i] for i in index]).to(model.device)
        settled, own_keys = settle(batch, keys, islands)
        run = unite(chosen.run(settled, proposal, own_keys, options), islands)
        if rejuvenate:
            run = move(batch, run, proposal, keys, rejuvenate, options)
        parts.append(_posterior(observed[index], run, proposal))
        done += len(index)
        if progress is not None:
            progress(done)
    posterior = concatenate(parts, observed, np.argsort(np.concatenate(groups), kind="stable"))
    for found in posterior.suspicions():
        warnings.warn(str(found), SuspicionNotice, stacklevel=2)
    return posterior


def sweep(
    observed: StreamSet | EventStream,
    proposal: Proposal,
    particles: int = 50,
    seed: int = 0,
    resample: str | None = "systematic",
    ess_threshold: float = 0.5,
    *,
    sampler: str | Sampler | None = None,
    integral: Integral | None = None,
    max_events: int = 100_000,
) -> Iterator[Step]:
    """What ``rd.impute`` with the torch engine does, one observed event at a time; options are as there.

    Step i has drawn the missing events up to observed event i of every stream, weighed and perhaps resampled the
    particles, and read the event; a stream's last step takes it to its end. ``step.particles`` is what is carried on
    and ``step.info`` what is only looked at (``smc/particles.py``, ``smc/sampler.py``).

    >>> import retrodict as rd
    >>> filtering = rd.Filtering(rd.Hawkes([0.2, 0.1], [[0.0, 0.9], [0.0, 0.0]], 2.0), rd.ByType([1.0, 0.0]))
    >>> stream = rd.EventStream([3.0, 7.0], [1, 1], end=10.0)
    >>> for step in rd.sweep(stream, filtering, particles=1000):
    ...     missing, weights = step.particles.counts, step.particles.log_weights.softmax(0)
    ...     print(f"event {step.number}: {float(weights @ missing.double()):.2f} missing so far")
    event 0: 0.77 missing so far
    event 1: 1.59 missing so far
    event 2: 1.68 missing so far
    """
    options = Options.of(particles, resample, ess_threshold, sampler, integral, max_events)
    model = proposal.model
    streams = model.matched(observed)
    batch = make_batch(streams, dtype=model.dtype, device=model.device)
    return SequentialMonteCarlo(batch, proposal, stream_keys(seed, streams.ids).to(model.device), options).steps()


def _ask_memory(observed: StreamSet, proposal: Proposal, particles: int) -> None:
    """Refuse more particles than fit: their weights and counts, and the states of those of one stream."""
    state = 16 * proposal.model.num_features + 48 * proposal.model.num_types
    need = 40.0 * len(observed) * particles + float(particles) * state
    _limits.ask_memory(
        need, f"{particles:,} particles of {len(observed):,} streams", "use fewer particles, or fewer streams at a time"
    )


def _posterior(observed: StreamSet, run: Result, proposal: Proposal) -> Posterior:
    sample, trace = run
    kept = torch.arange(sample.times.shape[2], device=sample.times.device) < sample.counts[..., None]
    log_weights = sample.log_weights.double()
    dead = ~torch.isfinite(log_weights.amax(1, keepdim=True))
    weights = torch.softmax(torch.where(dead, 0.0, log_weights), 1).cpu().numpy()
    # Many small steps: small arrays are faster on the CPU, large ones stay on the device.
    parents = trace.parents if trace.parents.numel() > _MUCH else trace.parents.cpu()
    steps = (~trace.ess.isnan()).sum(1).to(parents.device)
    diagnostics = Diagnostics(
        trace.ess.cpu().numpy(),
        surviving_ancestors(parents, steps).cpu().numpy(),
        trace.resampled.sum(1).cpu().numpy(),
        weights.max(1),
        np.full(len(weights), np.nan) if trace.accepted is None else trace.accepted.cpu().numpy(),
    )
    counts = sample.counts.cpu().numpy()
    shift = np.repeat(observed.starts, counts.sum(1))
    return Posterior(
        observed,
        sample.times[kept].cpu().numpy() + shift,
        sample.types[kept].cpu().numpy(),
        np.concatenate([[0], np.cumsum(counts.reshape(-1))]),
        weights,
        sample.log_evidence.cpu().numpy(),
        diagnostics,
        proposal.model,
    )
