"""Trips from the raw 2013 files of New York's taxis, a month of 14 million rows at a time.

The files are ``trip_data_1.csv`` to ``trip_data_12.csv`` (also ``.gz`` or ``.zip``), released by the Taxi and Limousine
Commission and published by C. Whong in 2014: one row a trip, with medallion, hack licence, the times and the
coordinates of pick-up and drop-off, and more that is not needed here.
"""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from retrodict.datasets.boroughs import OUTSIDE, borough_of
from retrodict.errors import DataError, DataNotice

CHUNK = 1_000_000  # rows in memory at once
_IDS = ("medallion", "hack_license")
_TIMES = ("pickup_datetime", "dropoff_datetime")
_PLACES = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
COLUMNS = (*_IDS, *_TIMES, *_PLACES)


class Trips(NamedTuple):
    """N trips, by driver and then by time.

    ``drivers`` names each combination of medallion and licence, sorted; ``driver`` [N] indexes them. ``pickup`` and
    ``dropoff`` [N] are seconds since 1970 by New York's clocks; ``origin`` and ``goal`` [N] index ``BOROUGHS``.
    """

    drivers: list[str]
    driver: NDArray[np.int64]
    pickup: NDArray[np.int64]
    dropoff: NDArray[np.int64]
    origin: NDArray[np.int8]
    goal: NDArray[np.int8]


def read_trips(paths: Sequence[Path], chunk: int = CHUNK) -> Trips:
    """All usable trips of the files; the others are counted in a notice."""
    left_out: Counter[str] = Counter()
    codes: dict[str, int] = {}
    parts = []
    rows = 0
    for path in paths:
        for table in _chunks(path, chunk):
            rows += len(table)
            parts.append(_usable(table, codes, left_out))
    columns = [np.concatenate([part[i] for part in parts]) for i in range(5)]
    trips = _once(_in_order(list(codes), *columns), left_out)
    if left_out.total():
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
        warnings.warn(f"left out {left_out.total():,} of {rows:,} trips: {reasons}", DataNotice, stacklevel=2)
    return trips


def _chunks(path: Path, chunk: int) -> Iterator[pd.DataFrame]:
    """The columns we need, some rows at a time."""
    text = dict.fromkeys((*_IDS, *_TIMES), "str")
    try:
        header = pd.read_csv(path, nrows=0, skipinitialspace=True).columns.str.strip()
        lacking = [name for name in COLUMNS if name not in header]
        if lacking:
            remedy = "give a file of trips as released for 2013 (trip_data, not trip_fare)"
            raise DataError(f"there is no column {', '.join(lacking)}", file=path, remedy=remedy)
        # Names come from the header read above: some of the files have spaces in it.
        with pd.read_csv(
            path, header=0, names=list(header), usecols=list(COLUMNS), dtype=text, skipinitialspace=True,
            chunksize=chunk, low_memory=False,
        ) as reader:  # fmt: skip
            yield from reader
    except FileNotFoundError as error:
        raise DataError("there is no such file", file=path, remedy="check the path") from error
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise _unreadable(path, error) from error
    except pd.errors.EmptyDataError as error:
        raise DataError("the file is empty", file=path, remedy="give a file of trips") from error


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"the table cannot be read: {error}", file=path, remedy="copy or download the file again")


def _usable(table: pd.DataFrame, codes: dict[str, int], left_out: Counter[str]) -> list[NDArray[np.int64]]:
    """Driver codes, times and boroughs of the rows that can be used; why the others cannot is counted."""
    pickup, dropoff = (pd.to_datetime(table[name], format="%Y-%m-%d %H:%M:%S", errors="coerce") for name in _TIMES)
    x1, y1, x2, y2 = (pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64) for name in _PLACES)
    origin, goal = borough_of(x1, y1), borough_of(x2, y2)
    known = table[list(_IDS)].notna().all(axis=1).to_numpy()
    timed = (dropoff > pickup).to_numpy()  # false where either is no time
    placed = (origin != OUTSIDE) & (goal != OUTSIDE)
    left_out["without a driver"] += int((~known).sum())
    left_out["with impossible times"] += int((known & ~timed).sum())
    left_out["that begin or end outside the five boroughs"] += int((known & timed & ~placed).sum())
    good = known & timed & placed
    names = table.loc[good, _IDS[0]] + "-" + table.loc[good, _IDS[1]]
    local, uniques = pd.factorize(names)
    driver = np.array([codes.setdefault(name, len(codes)) for name in uniques], dtype=np.int64)[local]
    seconds = (when[good].to_numpy().astype("datetime64[s]").astype(np.int64) for when in (pickup, dropoff))
    return [driver, *seconds, origin[good], goal[good]]


def _in_order(
    names: list[str],
    driver: NDArray[np.int64],
    pickup: NDArray[np.int64],
    dropoff: NDArray[np.int64],
    origin: NDArray[np.int8],
    goal: NDArray[np.int8],
) -> Trips:
    """Trips sorted by the driver's name and by time, so that the order of files and rows does not matter."""
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(np.array(names, dtype=object), kind="stable")] = np.arange(len(names))
    order = np.lexsort((goal, origin, dropoff, pickup, rank[driver]))
    return Trips(sorted(names), rank[driver][order], pickup[order], dropoff[order], origin[order], goal[order])


def _once(trips: Trips, left_out: Counter[str]) -> Trips:
    """The trips less those that repeat the one before."""
    same = np.ones(max(len(trips.driver) - 1, 0), dtype=bool)
    for column in (trips.driver, trips.pickup, trips.dropoff):
        same &= column[1:] == column[:-1]
    fresh = np.concatenate([[True], ~same])[: len(trips.driver)]
    left_out["recorded twice"] += int((~fresh).sum())
    return Trips(trips.drivers, *(column[fresh] for column in trips[1:]))
