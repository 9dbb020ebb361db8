"""``rd.impute`` on a cluster: some streams to each worker at a time, and one posterior of all."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from retrodict.errors import DataNotice, SuspicionNotice
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.conflicts import IDLE
from retrodict.proposals.base import Proposal
from retrodict.smc.afford import Means, means_of, settle_particles
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.guesses import join
from retrodict.smc.options import Options
from retrodict.smc.posterior import Posterior
from retrodict.smc.ray_pool import RayPool
from retrodict.smc.windows import windows_in

_PER_CHUNK = 500  # streams
Sampler = Callable[..., Posterior]
_Shared = tuple[Sampler, Proposal, dict[str, Any], Options]


def on_cluster(
    pool: RayPool,
    sample: Sampler,
    observed: StreamSet,
    proposal: Proposal,
    options: dict[str, Any],
    how: Options,
    progress: Callable[[int], None] | None,
) -> Posterior:
    """The posterior that ``sample(observed, proposal, **options)`` gives, worked out by the workers of a cluster.

    What hangs on all streams together is settled here, so that all chunks have the same particles.
    """
    edges = [*range(0, len(observed), _PER_CHUNK), len(observed)]
    plain = observed.replace()  # what the streams were read from stays here
    items = [(number, plain[first:stop]) for number, (first, stop) in enumerate(itertools.pairwise(edges))]
    here = pool.device == proposal.model.device.type
    means = means_of(options["engine"], proposal, how) if here else None
    shared = (sample, proposal.to("cpu"), options, how)
    found: dict[int, Posterior] = {}
    notes: dict[str, type[Warning]] = {}
    with pool.open(shared, _prepare) as session:
        if means is None:
            ((_, means),) = session.each(_means, [None])
        means = means._replace(rows=options["rows"] or means.rows)
        longest = int(observed.lengths.max(initial=0))
        particles = settle_particles(options["particles"], means, proposal, len(observed), longest, len(observed))
        settled = {"engine": means.engine, "particles": particles}
        for item, (posterior, said) in session.each(_sample, [_Item(*item, settled) for item in items]):
            found[item.number] = posterior
            notes |= said
            if progress is not None:
                progress(sum(len(part) for part in found.values()))
    for text, kind in notes.items():
        warnings.warn(text, kind, stacklevel=4)
    return _join([found[number] for number in sorted(found)], proposal.model.matched(observed), proposal)


class _Item:
    """Streams of one chunk; equal only to itself, so that it can be counted."""

    def __init__(self, number: int, streams: StreamSet, settled: dict[str, Any]) -> None:
        self.number, self.streams, self.settled = number, streams, settled

    def __str__(self) -> str:
        return f"chunk {self.number}"


def _prepare(shared: _Shared, device: str) -> _Shared:
    sample, proposal, options, how = shared
    return sample, proposal.to(device), options, how


def _means(shared: _Shared, _: None) -> Means:
    """What a worker is able to do, where the driver cannot tell."""
    proposal, options, how = shared[1:]
    return means_of(options["engine"], proposal, how)


def _sample(shared: _Shared, item: _Item) -> tuple[Posterior, dict[str, type[Warning]]]:
    """The posterior of a chunk without its model, and the notices."""
    sample, proposal, options, _ = shared
    kinds = (DataNotice, SuspicionNotice)
    with warnings.catch_warnings(record=True) as caught:
        for kind in kinds:
            warnings.simplefilter("always", kind)
        warnings.filterwarnings("ignore", rf"{IDLE} \d")  # a window may be for streams of other chunks
        posterior = sample(item.streams, proposal, **options | item.settled)
    posterior.model = None
    return posterior, {str(one.message): one.category for one in caught if issubclass(one.category, kinds)}


def _join(parts: list[Posterior], observed: StreamSet, proposal: Proposal) -> Posterior:
    """One posterior of all chunks, in their order."""
    order = np.arange(len(observed))
    full, lagged = (join([getattr(part, name) for part in parts], order) for name in ("full", "lagged"))
    evidence = np.concatenate([part.log_evidence for part in parts])
    diagnostics = Diagnostics.concatenate([part.diagnostics for part in parts], order)
    edges = [text for part in parts for text in part.about.get("edges", ()) if not text.startswith(IDLE)]
    about = parts[0].about | ({"edges": edges} if edges else {}) | windows_in(proposal.missingness, observed)
    return Posterior(observed, full, lagged, evidence, diagnostics, proposal.model, about)
