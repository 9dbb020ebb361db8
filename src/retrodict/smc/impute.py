"""Sample the posterior over the missing events of observed streams: all at once, or step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from retrodict.errors import DataNotice, SuspicionNotice
from retrodict.events.batch import Packed, batches_by_length, make_batch
from retrodict.events.results import refuse_results
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import warn_of
from retrodict.missingness.base import Missingness
from retrodict.missingness.conflicts import beside_windows, first_conflict, misses_all, untouched
from retrodict.models.clocks import warn_of_other_clocks
from retrodict.models.quadrature import Integral
from retrodict.proposals.base import Proposal
from retrodict.random import stream_keys
from retrodict.smc.afford import Means, ask_memory, settle_events, settle_particles
from retrodict.smc.cluster import on_cluster
from retrodict.smc.describe import describe_run
from retrodict.smc.ending import ends_not_observed, ends_of_observed
from retrodict.smc.engines import choose
from retrodict.smc.islands import number_of_islands, settle
from retrodict.smc.options import Options
from retrodict.smc.posterior import Posterior
from retrodict.smc.propose import Sampler
from retrodict.smc.ray_pool import RayPool
from retrodict.smc.sampler import SequentialMonteCarlo, Step
from retrodict.smc.tracing import Tracing
from retrodict.smc.unlike import far_longer, refuse_other_edges
from retrodict.smc.windows import windows_in


def impute(
    observed: StreamSet | EventStream,
    proposal: Proposal,
    particles: int | Literal["auto"] = "auto",
    seed: int = 0,
    resample: str | None = "systematic",
    ess_threshold: float = 0.5,
    engine: str = "auto",
    *,
    missing: Missingness | None = None,
    sampler: str | Sampler | None = None,
    integral: Integral | None = None,
    islands: int | None = None,
    rows: int | None = None,
    max_events: int | None = None,
    cut: bool = False,
    cluster: str | RayPool | None = None,
    progress: Callable[[int], None] | None = None,
) -> Posterior:
    """Sample ``particles`` weighted guesses of the missing events of each observed stream (Algorithm 1).

    "auto" is as many as make the answer honest, as far as the engine affords them: 1,000 with compiled engines, 200
    with torch, where ``posterior.warn()`` tells whether they were enough.
    ``proposal`` is a ``Filtering`` or a trained ``Smoothing``; ``missing`` says how events go missing, where that is
    not what the proposal was made for (``Smoothing(model)`` is for all mechanisms). ``resample`` names a scheme
    (multinomial, stratified, systematic, residual) used when the effective sample size falls below ``ess_threshold``
    times the particles; None for none. ``islands`` splits the particles into independent runs combined by their
    evidence (2 by default, where the particles can be halved), so that what one says can be judged by another.

    ``engine`` names what runs it (torch, the reference; native, compiled for CPUs; triton, for GPUs), "auto" the
    fastest that can; ``sampler`` how events are drawn from q (thinning, inversion), by default the engine's own;
    ``integral`` how intensities are integrated, ``rd.GaussLegendre(8)`` by default.

    A stream's particles depend on its id and the seed, not on the other streams. ``rows`` bounds how many
    particles are worked on at once, and a particle with more than ``max_events`` missing events (by default 100,000, or
    ten times as many as the longest stream has observed ones) raises a RunawayError: nothing is cut silently.
    A model with an end atom takes every stream for one that ended at an event, which went missing if nothing was
    observed there. With ``cut`` such streams just were not watched any longer (``models/end.py``).
    ``cluster`` is the address of a Ray cluster whose workers are to do it, or "local" for one process on each CPU of
    this machine. ``progress`` is called with the number of streams done.
    """
    given = 1 if particles == "auto" else particles
    options = Options.of(given, resample, ess_threshold, sampler, integral, settle_events(max_events, 0), cut)
    model = proposal.model
    observed = model.matched(observed)
    longest = int(observed.lengths.max(initial=0))
    options = replace(options, max_events=settle_events(max_events, longest))
    proposal = proposal.ready(missing, observed)
    if cluster is not None:
        asked: dict[str, Any] = {"particles": particles, "seed": seed, "resample": resample, "islands": islands}
        asked |= {"ess_threshold": ess_threshold, "engine": engine, "sampler": sampler, "integral": integral}
        asked |= {"rows": rows, "max_events": options.max_events, "cut": cut}
        pool = cluster if isinstance(cluster, RayPool) else RayPool(cluster, device=model.device.type)
        return on_cluster(pool, impute, observed, proposal, asked, options, progress)
    refuse_results(observed)
    chosen = choose(engine, proposal, options)
    rows = rows or chosen.rows_at_once(proposal)
    means = Means(chosen.name, chosen.affords, rows)
    particles = settle_particles(particles, means, proposal, len(observed), longest, len(observed))
    islands = number_of_islands(islands, particles)
    warn_of_other_clocks(model, observed)
    told = () if model.training_record.get("lattice") is None else ("lattice",)  # at the fit
    warn_of(observed, skip=("ends", *told) if model.end_atom is None else ("ends", "same number", *told))
    refuse_other_edges(observed, proposal, options)
    if misses_all(proposal.missingness, observed):
        warnings.warn(untouched(observed), DataNotice, stacklevel=2)
    options = replace(options, particles=particles // islands)
    ask_memory(observed, proposal, particles, rows)
    keys = torch.from_numpy(observed.id_keys) if seed == 0 else stream_keys(seed, observed.ids)
    groups = batches_by_length(observed.lengths, max(1, rows // particles)) or [np.zeros(0, dtype=np.int64)]
    packed, done = Packed(observed, model.device), 0
    with Tracing(observed, islands) as tracing:
        digest = tracing.beside(model.digest_later())
        for index in groups:
            settled, own_keys = settle(packed.batch(index, model.dtype), keys[index].to(model.device), islands)
            run = chosen.run(settled, proposal, own_keys, options)
            done += len(index)
            tracing.add(index, run, own_keys, is_last=done == len(observed))
            if progress is not None:
                progress(done)
    posterior = Posterior.later(observed, tracing, tracing.log_evidence, model)
    posterior.about = describe_run(proposal, chosen.name, seed, resample, digest.result())
    posterior.about |= windows_in(proposal.missingness, observed)
    if not posterior.is_possible.all():
        conflict = first_conflict(proposal.missingness, observed)
        posterior.about |= {} if conflict is None else {"conflict": conflict}
    edges = ends_of_observed(observed, proposal) + ends_not_observed(observed, proposal, options)
    edges += [*beside_windows(proposal.missingness, observed), *far_longer(observed, proposal)]
    posterior.about |= {"edges": [str(found) for found in edges]} if edges else {}
    for found in edges + posterior.suspicions(tracing.first_draw()):
        warnings.warn(str(found), SuspicionNotice, stacklevel=2)
    return posterior


def sweep(
    observed: StreamSet | EventStream,
    proposal: Proposal,
    particles: int = 200,
    seed: int = 0,
    resample: str | None = "systematic",
    ess_threshold: float = 0.5,
    *,
    missing: Missingness | None = None,
    sampler: str | Sampler | None = None,
    integral: Integral | None = None,
    max_events: int = 100_000,
    cut: bool = False,
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
    options = Options.of(particles, resample, ess_threshold, sampler, integral, max_events, cut)
    model = proposal.model
    streams = model.matched(observed)
    proposal = proposal.ready(missing, streams)
    batch = make_batch(streams, dtype=model.dtype, device=model.device)
    return SequentialMonteCarlo(batch, proposal, stream_keys(seed, streams.ids).to(model.device), options).steps()
