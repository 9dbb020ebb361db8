"""What only all streams together decide: which ensemble answers questions, the usual cost, and which is decoded.

Each chunk leaves a table of a few numbers a stream, and the guesses of those of its streams that are among the
``JUDGED`` of all. From these the same decisions follow as from all streams at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from retrodict._limits import limits
from retrodict.events.atomic import atomic_file, make_folder
from retrodict.events.gaps import half_of
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis
from retrodict.jobs.folder import JobFolder
from retrodict.smc.choice import is_lagged_better, squared_errors
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.guesses import Guesses
from retrodict.smc.guesses import join as join_guesses
from retrodict.smc.posterior import Posterior, load_posterior
from retrodict.smc.posterior_folder import save_posterior

Way = Literal["full", "lagged"]


class Pooled(NamedTuple):
    """The ensemble that answers questions, the cost of decoding in the model's unit, and the ensemble to decode."""

    chosen: Way
    price: float
    way: Way
    expected: float  # missing events of all streams


def keep_numbers(posterior: Posterior, judged: NDArray[np.int64], folder: Path) -> None:
    """Write what of a chunk's posterior all streams together need."""
    make_folder(folder)
    two = posterior.full.islands > 1
    errors = (
        squared_errors(posterior.full, posterior.lagged, posterior.observed) if two else np.zeros((len(posterior), 2))
    )
    columns = {
        "full": _expected(posterior.full),
        "lagged": _expected(posterior.lagged),
        "error of full": errors[:, 0],
        "error of lagged": errors[:, 1],
        "possible": posterior.is_possible,
        "duration": posterior.observed.durations,
        "events": posterior.observed.lengths,
    }
    with atomic_file(folder / "streams.parquet") as file:
        pq.write_table(pa.table(columns), file)
    if len(judged):
        save_posterior(_some(posterior, judged), folder / "judged")


def _expected(guesses: Guesses) -> NDArray[np.float64]:
    return (guesses.weights * guesses.counts()).sum(1)


def _some(posterior: Posterior, which: NDArray[np.int64]) -> Posterior:
    """Some of the streams, by plain numbers alone, so that nothing is rounded when they are written."""
    observed = posterior.observed[which]
    d = posterior.diagnostics
    width = int(observed.lengths.max(initial=0)) + 1
    full, lagged = (g.of_streams(which) for g in (posterior.full, posterior.lagged))
    full, lagged = (
        Guesses(g.event_times, g.event_types, g.offsets, g.weights, g.families[..., :width]) for g in (full, lagged)
    )
    plain = observed.replace(axis=TimeAxis(), columns={})
    few = Diagnostics(d.ess[which, :width], d.ahead[which, :width], d.resamplings[which])
    return Posterior(plain, full, lagged, posterior.log_evidence[which], few)


def decide_for_all(job: JobFolder, chunks: int, judged: Mapping[int, Any], cost: float | None) -> Pooled:
    """The decisions, from what all chunks left; ``cost`` is in the model's unit, None for the usual one."""
    from retrodict.smc.decision import choose_way  # loads Numba

    tables = [pq.read_table(job.pooled / f"{number:05d}" / "streams.parquet") for number in range(chunks)]
    all = {name: np.concatenate([t[name].to_numpy() for t in tables]) for name in tables[0].column_names}
    errors = np.stack([all["error of full"], all["error of lagged"]], 1)
    some = [load_own(job.pooled / f"{number:05d}" / "judged") for number in range(chunks) if len(judged[number])]
    two = bool(some) and some[0].full.islands > 1
    chosen: Way = "lagged" if not two or is_lagged_better(errors) else "full"
    expected = float(all[chosen][all["possible"]].sum())
    price = half_of(all["duration"], int(all["events"].sum()) + expected) if cost is None else cost
    options = {"tolerance": 1e-3, "method": "exact", "level": 0.9, "threads": 1}
    way: Way = choose_way(_judged(some), price, options) if some else "lagged"
    return Pooled(chosen, price, way, expected)


def load_own(folder: Path) -> Posterior:
    """A posterior that a chunk left: what we wrote ourselves may have any number of rows."""
    with limits(rows=1 << 40):
        return load_posterior(folder)


def _judged(some: list[Posterior]) -> Any:
    """The judged streams of all chunks, in their order."""
    from retrodict.smc.decision import Judged  # loads Numba

    observed = _concatenate([posterior.observed for posterior in some])
    order = np.arange(len(observed))
    full, lagged = (join_guesses([getattr(p, name) for p in some], order) for name in ("full", "lagged"))
    return Judged(full, lagged, observed, np.concatenate([p.is_possible for p in some]))


def _concatenate(sets: list[StreamSet]) -> StreamSet:
    """The streams of several sets of one vocabulary."""
    times, types, starts, ends = (
        np.concatenate([getattr(one, name) for one in sets])
        for name in ("event_times", "event_types", "starts", "ends")
    )
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([one.lengths for one in sets]))])
    ids = [name for one in sets for name in one.ids]
    return StreamSet.trusted(times, types, offsets, starts, ends, ids, sets[0].types, axis=sets[0].axis)
