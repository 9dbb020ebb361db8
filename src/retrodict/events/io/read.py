"""Read events from anything: a table in memory, a file, or a folder.

>>> streams = read_events("trips.csv", stream="driver", time="when", type="what")  # doctest: +SKIP

| source | layout |
|---|---|
| pandas, Polars, Arrow, ``.csv``, ``.parquet`` | one row an event |
| ``.jsonl`` | one stream a line |
| ``.json``, a list, a dict | EasyTPP |
| ``.pkl`` | old neural Hawkes and EasyTPP pickles, read as data |
| ``.xes``, tables with its columns | event logs of process mining |
| a folder, tables with its columns | MEDS data sets |
| a folder of other ``.parquet`` files, partitioned or not | one row an event |

CSV, JSON, XES and pickles may be gzipped (``.csv.gz``).
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrodict.errors import DataError
from retrodict.events.io.files import find_format, inner_suffix
from retrodict.events.io.known_layouts import check_codes, check_lifecycle
from retrodict.events.io.request import Request, check_dates, check_encoding, check_types_argument
from retrodict.events.stream_set import StreamSet

_TABLES = {("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table")}
Bound = str | float | datetime.datetime | None


def read_events(
    path_or_frame: Any,
    stream: str | bool | None = None,
    time: str | None = None,
    type: str | None = None,
    start: Bound = None,
    end: Bound = None,
    *,
    types: Sequence[str] | None = None,
    unit: str | None = None,
    timezone: str | None = None,
    format: str | None = None,
    split: str | None = None,
    codes: int | Mapping[str, str] | None = None,
    lifecycle: str | None = None,
    dates: str | None = None,
    encoding: str | None = None,
) -> StreamSet:
    """Read a stream set from a file, a data frame or EasyTPP records.

    ``stream``, ``time`` and ``type`` name columns of a table (by default those called just that);
    ``stream=False`` says that the table is one stream. ``start`` and ``end`` are a column, a number or a
    datetime: by default the columns of that name; else time 0 (for datetimes, the first event) and the last
    event, with a notice. ``types`` is the vocabulary: names in the data must be in it, integers in the data
    are indices into it. ``unit`` says what one unit of time is; datetimes are counted in it. ``timezone``
    is the zone of datetimes that have none, and the one in which all are given back. ``format`` overrides
    the file's suffix, and ``split`` chooses among the splits of an old pickle. ``codes`` says which codes of MEDS
    become which types: the number of parts (between ``//``) to keep, or a mapping from codes, or patterns of them, to
    types. ``lifecycle`` says which events of a process log are read: those that are "complete", "all", or all with
    the transition as a part of their type ("transition"). ``dates`` says how a table's dates are written where it is
    not ISO 8601: "day-first" (10/03/2025 07:48), "month-first", or a format such as "%d.%m.%Y %H:%M". ``encoding`` is
    that of a CSV file which is not UTF-8, such as "cp1252"; it is written again in the same.
    """
    words = {"unit": unit, "timezone": timezone, "split": split, "dates": dates, "encoding": encoding}
    for name, value in words.items():
        if value is not None and not isinstance(value, str):
            raise DataError(f"{name}= is {value!r}, not a word", remedy=f"give {name}= as text")
    request = Request(None, stream, time, type, start, end, check_types_argument(types), unit, timezone, split)
    request.codes, request.lifecycle = check_codes(codes), check_lifecycle(lifecycle)
    request.dates, request.encoding = check_dates(dates), check_encoding(encoding)
    if isinstance(path_or_frame, str | os.PathLike):
        path = Path(path_or_frame)
        request.file = path
        found = _format_of(path, format)
        _refuse_encoding(request, found)
        streams = _reader(found)(path, request)
    elif encoding is not None:
        _refuse_encoding(request, None)
    elif (_library(path_or_frame), path_or_frame.__class__.__name__) in _TABLES:
        from retrodict.events.io.tables import from_frame

        streams = from_frame(path_or_frame, request)
    elif isinstance(path_or_frame, list | dict) or _library(path_or_frame) == "datasets":
        from retrodict.events.io.easytpp import from_objects

        streams = from_objects(path_or_frame, request)
    else:
        raise DataError(
            f"cannot read events from an object of type {path_or_frame.__class__.__name__}",
            remedy="give a path, a pandas or Polars data frame, an Arrow table, or EasyTPP records",
        )
    request.emit_notices()
    return streams


def _refuse_encoding(request: Request, format: str | None) -> None:
    """Refuse an encoding of what is no CSV file: other files say theirs, or have none, as has a table in memory."""
    if request.encoding is not None and format != "csv":
        raise request.error(
            "encoding= is for CSV files alone, and this is none", "leave encoding= out, or give all tables as CSV"
        )


def _format_of(path: Path, format: str | None) -> str:
    """The format of a file or folder that is to be read."""
    if path.is_dir():
        if format not in (None, "meds", "parquet"):
            raise DataError(f"this is a folder, not a file of format {format!r}", file=path, remedy="give one file")
        return "parquet folder" if format == "parquet" or (format is None and _is_table(path)) else "meds"
    found = find_format(path, format)
    if found == "meds" and not path.exists():
        raise DataError("there is no such folder", file=path, remedy="check the path")
    listed = found == "easytpp" and inner_suffix(path) in (".parquet", ".pq")  # known by its columns
    return "parquet" if found == "meds" or listed else found


def _is_table(folder: Path) -> bool:
    from retrodict.events.io.pieces import is_parquet_folder  # loads Arrow

    return is_parquet_folder(folder)


def _library(value: Any) -> str:
    return str(value.__class__.__module__).partition(".")[0]


def _reader(format: str) -> Callable[[Path, Request], StreamSet]:
    """The function that reads a format; imported only now, so that each needs only its own libraries."""
    if format == "csv":
        from retrodict.events.io.csv_file import read_csv as read
    elif format == "parquet":
        from retrodict.events.io.parquet_file import read_parquet as read
    elif format == "parquet folder":
        from retrodict.events.io.parquet_folder import read_parquet_folder as read
    elif format == "jsonl":
        from retrodict.events.io.jsonl import read_jsonl as read
    elif format == "xes":
        from retrodict.events.io.xes import read_xes as read
    elif format == "meds":
        from retrodict.events.io.meds import read_meds as read
    elif format == "easytpp":
        from retrodict.events.io.easytpp import read_easytpp as read
    else:
        from retrodict.events.io.pickles import read_pickle as read
    return read
