"""The paper's New York taxi streams (appendix G.5): where taxis pick up and drop off, borough by borough.

    train, dev, test = taxi("trip_data_4.csv")  # a raw file of 2013, or a folder of them
    train, dev, test = taxi("nyc_taxi_2013")    # a folder of prepared streams

A stream is what one driver does with one medallion until a break: it is cut where a drop-off and the next pick-up are
more than six hours apart. It starts with its first pick-up, time 0, and ends with its last drop-off; pick-ups and
drop-offs alternate. What the paper does not say is read off the streams its authors used:

- They have 22 to 38 events, and the number of streams grows up to 38 and breaks off: others were left out.
- None is in whole minutes, as half of the records of 2013 are: streams in whole minutes are left out.

Two trips of a driver that overlap are an error of recording, and the stream is cut there too. Trips with impossible
times or outside the five boroughs are left out, so the streams around them may lack a trip. Times are those of the
clocks in New York: on the nights when these are put forward or back they are an hour off.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrodict.datasets.boroughs import BOROUGHS
from retrodict.datasets.folder import find_part, read_splits
from retrodict.datasets.taxi_trips import Trips, read_trips
from retrodict.errors import DataError, DataNotice
from retrodict.events.stream_set import Splits, StreamSet
from retrodict.events.time_axis import TimeAxis
from retrodict.missingness import ByType

TYPES = tuple(f"{action}:{borough}" for action in ("drop-off", "pick-up") for borough in BOROUGHS)
DETERMINISTIC = ByType([0.0] * 5 + [1.0] * 5)  # pick-ups are never seen
STOCHASTIC = ByType(0.5)
SIZES = (5000, 500, 500)

LONGEST_BREAK = 6 * 3600  # seconds
FEWEST_EVENTS, MOST_EVENTS = 22, 38
# The training streams of a prepared folder may come in parts, as not all of the authors' own are to be had.
PREPARED_TRAIN = ("train", "train_long", "test1", "extra_long")
_RAW_SUFFIXES = (".csv", ".csv.gz", ".csv.zip", ".zip")


def taxi(source: str | os.PathLike[str] | None = None, seed: int = 0, sizes: tuple[int, int, int] = SIZES) -> Splits:
    """Train, dev and test streams, times in hours, from raw trip files or from a folder of prepared streams.

    From raw files, ``sizes`` streams are drawn at random; where there are fewer, all are split in that proportion, with
    a notice. Prepared streams are taken as they are.
    """
    if source is None:
        remedy = "give source=, a trip_data file of 2013, a folder of them, or a folder of prepared streams"
        raise DataError("the taxi records do not come with retrodict", remedy=remedy)
    path = Path(source)
    if path.is_dir() and find_part(path, "test") is not None:
        return read_splits(path, PREPARED_TRAIN)
    return _draw(cut_shifts(read_trips(_raw_files(path))), sizes, seed)


def cut_shifts(trips: Trips, fewest: int = FEWEST_EVENTS, most: int = MOST_EVENTS) -> StreamSet:
    """Each driver's trips, cut at breaks and overlaps, where there are ``fewest`` to ``most`` events to the second."""
    pause = trips.pickup[1:] - trips.dropoff[:-1]
    goes_on = (np.diff(trips.driver) == 0) & (pause >= 0) & (pause <= LONGEST_BREAK)
    first = np.unique(np.concatenate([[0], np.flatnonzero(~goes_on) + 1, [len(trips.driver)]]))
    counts = np.diff(first)
    kept = (2 * counts >= fewest) & (2 * counts <= most)
    kept &= ~_all_of((trips.pickup % 60 == 0) & (trips.dropoff % 60 == 0), first)
    some = np.repeat(kept, counts)
    seconds = np.stack([trips.pickup[some], trips.dropoff[some]], axis=1).ravel()
    types = np.stack([trips.origin[some] + 5, trips.goal[some]], axis=1).ravel().astype(np.int64)
    lengths = 2 * counts[kept]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    hours = (seconds - np.repeat(seconds[offsets[:-1]], lengths)) / 3600
    return StreamSet.trusted(
        hours,
        types,
        offsets,
        np.zeros(len(lengths)),
        hours[offsets[1:] - 1],
        _ids(trips, trips.driver[first[:-1][kept]]),
        TYPES,
        axis=TimeAxis("hour"),
    )


def _all_of(flags: NDArray[np.bool_], first: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each run of ``flags`` that starts at one of ``first`` (the last is the end), whether all are true."""
    true = np.concatenate([[0], np.cumsum(flags)])
    return np.diff(true[first]) == np.diff(first)


def _ids(trips: Trips, driver: NDArray[np.int64]) -> list[str]:
    """The driver's name and a running number; ``driver`` [N] is sorted."""
    number = np.arange(len(driver)) - np.searchsorted(driver, driver) + 1
    return [f"{trips.drivers[d]}-{n:03d}" for d, n in zip(driver, number, strict=True)]


def _raw_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.name.endswith(_RAW_SUFFIXES))
    if not files:
        remedy = "give a folder with train, dev and test streams, or with trip_data files of 2013 (.csv, .gz, .zip)"
        raise DataError("there are neither prepared streams nor trip files in this folder", file=path, remedy=remedy)
    return files


def _draw(streams: StreamSet, sizes: tuple[int, int, int], seed: int) -> Splits:
    """Disjoint random parts of the given sizes, or of that proportion where there are too few streams."""
    wanted, found = sum(sizes), len(streams)
    if not found:
        remedy = "give at least some days of trips recorded to the second"
        raise DataError(f"no stream of {FEWEST_EVENTS} to {MOST_EVENTS} events is left of these trips", remedy=remedy)
    first, second = np.cumsum(sizes)[:2]
    if found < wanted:
        warnings.warn(
            f"there are {found:,} streams where the paper has {wanted:,}; all are used", DataNotice, stacklevel=3
        )
        first, second, wanted = round(first * found / wanted), round(second * found / wanted), found
    order = np.random.default_rng(seed).permutation(found)[:wanted]
    return Splits.cut(streams[order], int(first), int(second))
