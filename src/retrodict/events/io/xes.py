"""XES event logs of process mining (IEEE 1849), plain or gzipped: a trace is a stream, an event has a name and a time.

    <log><trace><string key="concept:name" value="case 7"/>
      <event>
        <string key="concept:name" value="register"/><date key="time:timestamp" value="2010-12-30T11:02:00+01:00"/>
      </event>
    </trace></log>

A log becomes a table with the columns that process miners know: ``concept:name``, ``time:timestamp`` and the other
attributes of events, and those of traces behind ``case:``. A trace without events is an empty stream. Attributes within
attributes, lists, extensions and classifiers are no columns. They are kept as text, as is every trace and every event,
and written again.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrodict import _limits
from retrodict.errors import show
from retrodict.events.io.files import read_bytes
from retrodict.events.io.known_layouts import LAYOUTS, XES_KEY, XES_TEXT
from retrodict.events.io.request import Places, Request
from retrodict.events.io.tables import from_arrow
from retrodict.events.io.time_column import read_time_column
from retrodict.events.io.xes_text import ABOUT, NAME, REPAIR, TIME, Log, as_utf8
from retrodict.events.plain import parse_json
from retrodict.events.results import RESULTS
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis


def read_xes(path: Path, request: Request) -> StreamSet:
    """A stream set from an XES file."""
    data = as_utf8(read_bytes(path), request)
    _limits.ask_memory(8.0 * len(data), "reading this log", "split the file", file=path)
    log = Log(data, request)
    try:
        log.parser.Parse(data, True)
    except expat.ExpatError as error:
        remedy = "copy or download the file again" if "no element" in str(error) else REPAIR
        raise request.error(f"this is not XML, or it is cut off or damaged ({error})", remedy) from error
    if not log.trace_at:
        raise request.error("the log has no traces", "give a log with at least one trace")
    given = request.types
    if log.about is not None:
        _use_about(log.about, request)
    table = _table(log, request)
    if given is None and request.types is not None:  # what we wrote, and what was put in since
        lacking = set(pc.unique(table[NAME].drop_null()).to_pylist()) - {*request.types}
        request.types += tuple(sorted(lacking))
    return from_arrow(table, request)


def _use_about(text: str, request: Request) -> None:
    """Take the vocabulary and the axis that we wrote into a log, where the caller did not give them."""
    try:
        facts = parse_json(text)
        axis, types = TimeAxis.from_dict(facts["axis"]), tuple(str(name) for name in facts["types"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise request.error(f"the log's attribute {ABOUT!r} is damaged", "remove it, or write the log again") from error
    request.axis = axis
    if request.types is None and request.lifecycle is None:
        request.types = types


def _table(log: Log, request: Request) -> pa.Table:
    """One row an event, and one for each trace without events, in the order of the text."""
    of = np.array(log.trace_of, dtype=np.int64)
    number = len(log.trace_at)
    bare = np.setdiff1d(np.arange(number), of)
    trace = np.concatenate([of, bare])
    order = np.argsort(trace, kind="stable")
    trace = trace[order]
    event = pa.array(np.concatenate([np.arange(len(of)), np.zeros(len(bare), np.int64)])[order],
                     mask=np.concatenate([np.zeros(len(of), bool), np.ones(len(bare), bool)])[order])  # fmt: skip
    ids = pa.array(_names(log.traces.get(NAME, number), request), pa.string())
    rows, columns = pa.array(trace), {LAYOUTS["xes"]["stream"]: ids.take(pa.array(trace))}
    places = Places(request.file, np.arange(1, len(trace) + 1), trace, ids.to_pylist())
    for key in (NAME, TIME):
        log.events.rows.setdefault(key, [])
        log.events.texts.setdefault(key, [])
        log.events.tags.setdefault(key, {"string" if key == NAME else "date"})
    taken = {*XES_TEXT}
    for key in log.events.chosen(len(of), request):
        texts = pa.array(log.events.get(key, len(of)), pa.large_string()).take(event)
        if key == TIME:
            columns[key] = _dates(texts, request, places)
        elif key not in columns and key not in taken:
            columns[key] = texts if key == NAME else _typed(texts, log.events.tags[key])
    for key in log.traces.chosen(number, request):
        name = f"case:{key}"
        if name not in columns and name not in taken:
            texts = pa.array(log.traces.get(key, number), pa.large_string())
            columns[name] = _typed(texts, log.traces.tags[key]).take(rows)
    if log.imputed:
        kinds = (pa.bool_(), pa.float64(), columns[TIME].type, columns[TIME].type)
        for name, kind in zip(RESULTS, kinds, strict=True):
            columns.setdefault(name, pa.nulls(len(trace), kind))
        if pa.types.is_boolean(columns["imputed"].type):
            columns["imputed"] = columns["imputed"].fill_null(False)
    heads, events, tails, about = _texts(log)
    for name, texts in ((XES_TEXT[0], heads), (XES_TEXT[2], tails)):
        columns[name] = pa.DictionaryArray.from_arrays(rows.cast(pa.int32()), pa.array(texts, pa.large_string()))
    columns[XES_TEXT[1]] = pa.array(events, pa.large_string()).take(event)
    return pa.table(columns).replace_schema_metadata({XES_KEY: json.dumps(about).encode()})


def _names(names: list[str | None], request: Request) -> list[str]:
    """A name for each trace that no other has."""
    named = [f"trace {i}" if name is None else name for i, name in enumerate(names, start=1)]
    used, seen = set(named), Counter[str]()
    fresh = []
    for i, name in enumerate(named):
        seen[name] += 1
        if seen[name] > 1:
            while f"{name} ({seen[name]})" in used:
                seen[name] += 1
            named[i] = f"{name} ({seen[name]})"
            used.add(named[i])
            fresh.append(named[i])
    if fresh:
        some = "1 trace has" if len(fresh) == 1 else f"{len(fresh):,} traces have"
        request.notices.append(
            f"{some} a name that an earlier one has, and became a stream of its own, told apart by a number, such as "
            + show(fresh[0])
        )
    return named


def _typed(texts: pa.Array, tags: set[str]) -> pa.Array:
    """The values of an attribute as its tag says; text where one of them is not what it says."""
    try:
        if tags == {"date"}:
            moments = texts.cast(pa.timestamp("ns", "UTC"))
            with suppress(pa.ArrowInvalid):  # microseconds, unless these are not enough
                moments = moments.cast(pa.timestamp("us", "UTC"))
            return moments
        if tags == {"boolean"}:
            return texts.cast(pa.string()).cast(pa.bool_())
        if tags == {"int"}:
            return texts.cast(pa.int64())
        return texts.cast(pa.float64()) if tags <= {"int", "float"} else texts
    except pa.ArrowException:
        return texts


def _dates(texts: pa.Array, request: Request, places: Places) -> pa.Array:
    """The times of the events, in the one offset that they have; in UTC where they have several."""
    offsets = pc.extract_regex(texts, r"[T ]\d\d.*?(?P<offset>Z|[+-]\d\d(?::?\d\d)?)\s*$")
    zones = set(pc.struct_field(offsets, "offset").drop_null().unique().to_pylist())
    if len(zones) > 1 and request.timezone is None:
        recorded = None if request.axis is None else request.axis.timezone
        request.timezone = recorded or "UTC"
        if recorded is None:
            some = ", ".join(sorted(zones)[:3])
            request.notices.append(
                f"the times have several offsets ({some}), as where clocks are put forward: they are shown, and new "
                "ones written, in UTC; pass timezone= for another zone"
            )
    time = read_time_column(texts, f"attribute {TIME!r}", request, places)
    if not time.calendar:
        if not time.missing.all():
            raise request.error(f"attribute {TIME!r} holds numbers", "give dates, such as 2010-12-30T11:02:00+01:00")
        return pa.nulls(len(texts), pa.timestamp("us", request.timezone))
    instants = np.where(time.missing, 0, time.values).astype(np.int64)
    unit = "ns" if (instants % 1000).any() else "us"
    return (
        pa.array(instants, pa.int64(), mask=time.missing)
        .cast(pa.timestamp("ns", time.zone))
        .cast(pa.timestamp(unit, time.zone))
    )


def _texts(log: Log) -> tuple[list[str], list[str], list[str], dict[str, str]]:
    """What precedes the events of each trace, each event, what follows them; what precedes and follows the traces.

    A piece begins where the one before it ended, so that together they are the whole text.
    """
    heads, events, tails = [], [], []
    first = np.searchsorted(log.trace_of, np.arange(len(log.trace_at) + 1)).tolist()
    at = log.trace_at[0][0]
    about = {"head": log.data[:at].decode()}
    for i, (_, close) in enumerate(log.trace_at):
        own = range(first[i], first[i + 1])
        start = at + len(log.data[at : log.event_at[own.start][0]].rstrip()) if own else at
        heads.append(log.data[at:start].decode())
        at = start
        for event in own:
            stop = log.event_at[event][1]
            events.append(log.data[at:stop].decode())
            at = stop
        tails.append(log.data[at:close].decode())
        at = close
    return heads, events, tails, about | {"tail": log.data[at:].decode()}
