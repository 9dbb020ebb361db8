"""Random tables of events as users have them: any names, dtypes, zones, orders, missing values and further columns."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

NAMES = [
    "driver",
    "when",
    "what",
    "shift start",
    "shift, end",
    'a "q"',
    "é",
    "1",
    "fare",
    "time_",
    "note",
    "x.y",
    "END",
]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "-07:00", "+05:30"]
DAY = pd.Timestamp("2013-10-26")  # the clocks are put back during the weeks that follow


@dataclass
class Table:
    """A table in pandas form, and the arguments of ``read_events`` that read it."""

    frame: pd.DataFrame
    arguments: dict[str, Any]
    hours: pd.Series  # the time of each row, NaN where it declares an empty stream
    zone: str | None  # the zone of times, where its offset changes


def zone_of(name: str) -> datetime.tzinfo:
    """A zone by name or by offset."""
    if name[0] not in "+-":
        return ZoneInfo(name)
    minutes = int(name[1:3]) * 60 + int(name[4:])
    return datetime.timezone(datetime.timedelta(minutes=-minutes if name[0] == "-" else minutes))


def time_writer(rng: np.random.Generator) -> tuple[Callable[[pd.Series], pd.Series], dict[str, Any], str | None]:
    """How hours become a column; further arguments to read it; the zone where its offset changes."""
    kind = rng.choice(["float", "int", "numbers", "naive", "zoned", "date", "iso", "iso naive", "objects"])
    if kind == "float":
        return lambda hours: hours, {}, None
    if kind == "int":
        return lambda hours: hours.floordiv(1).astype("Int64" if hours.isna().any() else "int64"), {}, None
    if kind == "numbers":
        return lambda hours: hours.map(repr, na_action="ignore").astype(object), {}, None
    zone = str(rng.choice(ZONES))
    unit = str(rng.choice(["s", "ms", "us", "ns"]))
    changing = zone if "/" in zone else None

    def naive(hours: pd.Series) -> pd.Series:
        return (DAY + pd.to_timedelta((hours * 3600).floordiv(1), unit="s")).dt.as_unit(unit)

    def zoned(hours: pd.Series) -> pd.Series:
        return naive(hours).dt.tz_localize("UTC").dt.tz_convert(zone_of(zone))

    if kind == "naive":
        return naive, {}, None
    if kind == "zoned":
        return zoned, {}, changing
    if kind == "date":
        return lambda hours: naive(hours).dt.date.where(hours.notna(), None), {}, None
    if kind == "objects":
        return (
            lambda hours: zoned(hours).dt.as_unit("us").astype(object).where(hours.notna(), None),
            {"timezone": zone},
            None,
        )
    between = str(rng.choice(["T", " "]))
    if kind == "iso naive":
        local = bool(rng.random() < 0.5)
        more = {"timezone": "Asia/Kolkata"} if local else {}
        return lambda hours: _texts(naive(hours), between, ""), more, None
    style = str(rng.choice(["colon", "plain", "Z"]))
    offset = zone if zone[0] in "+-" else "UTC"

    def iso(hours: pd.Series) -> pd.Series:
        moments = naive(hours).dt.tz_localize("UTC").dt.tz_convert(zone_of(offset))
        written = "Z" if style == "Z" and offset == "UTC" else "+00:00" if offset == "UTC" else offset
        return _texts(moments.dt.tz_localize(None), between, written.replace(":", "") if style == "plain" else written)

    return iso, {}, None


def _texts(naive: pd.Series, between: str, offset: str) -> pd.Series:
    texts = naive.map(lambda moment: moment.isoformat(sep=between) + offset, na_action="ignore")
    return texts.astype(object).where(naive.notna(), None)


def random_table(rng: np.random.Generator) -> Table:
    """A table of up to 4 streams and 12 rows."""
    number = int(rng.integers(1, 5))
    bounds = str(rng.choice(["columns", "values", "none"], p=[0.6, 0.2, 0.2]))
    stream = rng.integers(0, number, int(rng.integers(1, 13)))
    hours = pd.Series(np.round(rng.uniform(1, 300, len(stream)), 3))
    if bounds != "none" and rng.random() < 0.5:
        stream, hours = np.append(stream, number), pd.concat([hours, pd.Series([np.nan])], ignore_index=True)
    if rng.random() < 0.5:
        order = np.lexsort((hours, stream))
        stream, hours = stream[order], hours.iloc[order].reset_index(drop=True)
    write, arguments, zone = time_writer(rng)
    names = [str(name) for name in rng.permutation(NAMES)]
    columns = {names[0]: ids(rng, stream), names[1]: write(hours), names[2]: kinds(rng, hours.notna().to_numpy())}
    arguments |= dict(zip(("stream", "time", "type"), names, strict=False))
    if bounds != "none":
        zeros = pd.Series(np.zeros(len(hours)))
        start, end = write(zeros), write(zeros + 400)
        if bounds == "columns":
            columns |= {names[3]: start, names[4]: end}
            arguments |= {"start": names[3], "end": names[4]}
        else:
            one = [side.iloc[0] for side in (start, end)]
            arguments |= {"start": one[0], "end": one[1]}
            if isinstance(one[0], np.generic):
                arguments |= {"start": one[0].item(), "end": one[1].item()}
    for name in names[5 : 5 + int(rng.integers(0, 5))]:
        columns[name] = extra(rng, len(hours))
    frame = pd.DataFrame(columns)[[str(name) for name in rng.permutation(list(columns))]]
    return Table(frame, arguments, hours, zone)


def ids(rng: np.random.Generator, stream: np.ndarray) -> pd.Series:
    """Names of streams: numbers, text, codes such as 007, or categories."""
    kind = rng.choice(["int", "text", "code", "category"])
    if kind == "int":
        return pd.Series(stream * 10**9)
    texts = pd.Series([f"00{i}" if kind == "code" else f'taxi, "{i}"' for i in stream], dtype=object)
    return texts.astype("category") if kind == "category" else texts


def kinds(rng: np.random.Generator, there: np.ndarray) -> pd.Series:
    """Types: text, categories, integers or booleans; nothing where there is no event."""
    kind = rng.choice(["text", "category", "int", "bool"])
    codes = rng.integers(0, 2, len(there))
    if kind == "int":
        series = pd.Series(codes)
        return series if there.all() else series.astype("Int64").where(pd.Series(there), pd.NA)
    if kind == "bool":
        series = pd.Series(codes.astype(bool))
        return series if there.all() else series.astype("boolean").where(pd.Series(there), pd.NA)
    texts = pd.Series(np.where(codes, "up, left", "down"), dtype=object).where(pd.Series(there), None)
    return texts.astype("category") if kind == "category" else texts


def extra(rng: np.random.Generator, rows: int) -> pd.Series:
    """A further column, often with missing values."""
    holes = pd.Series(rng.random(rows) < rng.choice([0, 0.3]))
    kind = rng.choice(["int", "small", "nullable", "bool", "float", "text", "words", "category", "date", "zoned"])
    if kind == "int":
        return pd.Series(rng.integers(-(2**62), 2**62, rows))
    if kind == "small":
        return pd.Series(rng.integers(0, 200, rows).astype(rng.choice(["uint8", "int16", "float32"])))
    if kind == "nullable":
        return pd.Series(rng.integers(0, 9, rows)).astype("Int64").mask(holes)
    if kind == "bool":
        return pd.Series(rng.random(rows) < 0.5)
    if kind == "float":
        return pd.Series(rng.normal(size=rows) * 10.0 ** rng.integers(-20, 20)).mask(holes)
    if kind in ("date", "zoned"):
        dates = (DAY + pd.to_timedelta(pd.Series(rng.integers(0, 10**12, rows)), unit="us")).mask(holes)
        return dates if kind == "date" else dates.dt.tz_localize("UTC").dt.tz_convert(zone_of(str(rng.choice(ZONES))))
    words = ["", " ", "a,b", 'say "no"', "line\nbreak", "007", "NaN", "null", "é", "1.50", "true"]
    series = pd.Series([words[i] for i in rng.integers(0, len(words), rows)], dtype=object)
    series = series.where(~holes, None)
    return series.astype("category") if kind == "category" else series.astype("str") if kind == "words" else series


def as_csv(frame: pd.DataFrame) -> list[list[str | None]]:
    """Every cell as some program may write it, None for no value; the header first."""
    columns = []
    for _, column in frame.items():
        columns.append([None if pd.isna(value) else str(value) for value in column])
    return [[str(name) for name in frame.columns], *map(list, zip(*columns, strict=True))]


def csv_text(rows: list[list[str | None]]) -> str:
    """CSV in which only empty text is quoted without need."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    mark = "\0empty\0"
    for row in rows:
        writer.writerow([mark if cell == "" else "" if cell is None else cell for cell in row])
    return buffer.getvalue().replace(mark, '""')
