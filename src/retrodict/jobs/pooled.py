"""What only all streams together decide: which ensemble answers questions, the usual cost, and which is decoded.

Each chunk leaves a table of a few numbers a stream, and the guesses of those of its streams that are among the
``JUDGED`` of all. From these the same decisions follow as from all streams at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from retrodict._limits import limits
from retrodict.events.atomic import atomic_file, make_folder
from retrodict.events.combine import join
from retrodict.events.gaps import half_of
from retrodict.events.time_axis import TimeAxis
from retrodict.jobs.folder import JobFolder
from retrodict.smc.choice import NEAR_ENOUGH, is_lagged_better
from retrodict.smc.guesses import join as join_guesses
from retrodict.smc.posterior import Posterior, load_posterior, part_of
from retrodict.smc.posterior_folder import save_posterior
from retrodict.smc.totals import Total, moments, total_by

Way = Literal["full", "lagged"]


class Pooled(NamedTuple):
    """The ensemble that answers questions, the cost of decoding in the model's unit, and the ensemble to decode."""

    chosen: Way
    price: float
    way: Way
    total: Total  # missing events of all streams


def keep_numbers(posterior: Posterior, judged: NDArray[np.int64], folder: Path) -> None:
    """Write what of a chunk's posterior all streams together need."""
    make_folder(folder)
    means, variances = zip(*(moments(g.counts(), g.weights) for g in (posterior.full, posterior.lagged)), strict=True)
    columns = {
        "full": means[0],
        "lagged": means[1],
        "variance of full": variances[0],
        "variance of lagged": variances[1],
        "error of full": posterior.errors[:, 0],
        "error of lagged": posterior.errors[:, 1],
        "possible": posterior.is_possible,
        "duration": posterior.observed.durations,
        "events": posterior.observed.lengths,
    }
    with atomic_file(folder / "streams.parquet") as file:
        pq.write_table(pa.table(columns), file)
    if len(judged):
        plain = posterior.observed[judged].replace(axis=TimeAxis(), columns={})  # so that nothing is rounded
        save_posterior(part_of(posterior, judged, plain), folder / "judged", readable=False)


def decide_for_all(job: JobFolder, judged: Sequence[Sequence[int]], cost: float | None) -> Pooled:
    """The decisions, from what all chunks left.

    ``judged`` are the judged streams of each chunk; ``cost`` is in the model's unit, None for the usual one.
    """
    from retrodict.smc.decision import choose_way  # loads Numba

    tables = [pq.read_table(job.pooled / f"{number:05d}" / "streams.parquet") for number in range(len(judged))]
    all = {name: np.concatenate([t[name].to_numpy() for t in tables]) for name in tables[0].column_names}
    errors = np.stack([all["error of full"], all["error of lagged"]], 1)
    some = [load_own(job.pooled / f"{number:05d}" / "judged") for number, own in enumerate(judged) if own]
    two = bool(some) and some[0].full.islands > 1
    chosen: Way = "lagged" if not two or is_lagged_better(errors) else "full"
    expected, variance = (float(all[name][all["possible"]].sum()) for name in (chosen, f"variance of {chosen}"))
    price = half_of(all["duration"], int(all["events"].sum()) + expected) if cost is None else cost
    options = {"tolerance": NEAR_ENOUGH, "method": "exact", "level": 0.9, "threads": torch.get_num_threads()}
    way: Way = choose_way(_judged(some), price, options) if some else "lagged"
    return Pooled(chosen, price, way, total_by(expected, variance))


def load_own(folder: Path) -> Posterior:
    """A posterior that a chunk left: what we wrote ourselves may have any number of rows."""
    with limits(rows=1 << 40):
        return load_posterior(folder)


def _judged(some: list[Posterior]) -> Any:
    """The judged streams of all chunks, in their order."""
    from retrodict.smc.decision import Judged  # loads Numba

    observed = join([posterior.observed for posterior in some], [id for each in some for id in each.observed.ids])
    order = np.arange(len(observed))
    full, lagged = (join_guesses([getattr(p, name) for p in some], order) for name in ("full", "lagged"))
    return Judged(full, lagged, observed, np.concatenate([p.is_possible for p in some]))
