"""XES event logs of process mining (IEEE 1849), plain or gzipped: a trace is a stream, an event has a name and a time.

    <log><trace><string key="concept:name" value="case 7"/>
      <event><string key="concept:name" value="register"/><date key="time:timestamp" value="2010-12-30T11:02:00+01:00"/></event>
    </trace></log>

A log becomes a table with the columns that process miners know: ``concept:name``, ``time:timestamp`` and the other
attributes of events, and those of traces behind ``case:``. A trace without events is an empty stream. Attributes within
attributes, lists, extensions and classifiers are no columns. They are kept as text, as is every trace and every event,
and written again.

A document type (DTD) is refused, so that there are no entities to expand; so is what is nested too deeply.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrodict import _limits
from retrodict.errors import DataError, show
from retrodict.events.io.files import read_bytes
from retrodict.events.io.known_layouts import LAYOUTS, XES_KEY, XES_TEXT
from retrodict.events.io.request import Places, Request
from retrodict.events.io.tables import from_arrow
from retrodict.events.io.time_column import read_time_column
from retrodict.events.plain import parse_json
from retrodict.events.results import RESULTS
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

NAME, TIME = "concept:name", "time:timestamp"
ABOUT = "retrodict"  # the key of the log's attribute in which we say what a log cannot
_TAGS = {"string", "date", "int", "float", "boolean", "id"}
_DEEPEST = 64
_ANYWAY = 2_000_000  # cells that the attributes of any log may fill
_DECLARED = re.compile(rb"^\s*<\?xml[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_ENCODINGS = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "iso-8859-15", "windows-1252", "utf-16"}
_REPAIR = "check the file, or write it again with the tool that made it"


class _Attributes:
    """Values of one level, traces or events: for each key the rows that have it, its texts and its tags."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}
        self.texts: dict[str, list[str]] = {}
        self.tags: dict[str, set[str]] = {}
        self.number = 0

    def add(self, row: int, tag: str, key: str, text: str) -> None:
        rows = self.rows.get(key)
        if rows is None:
            rows = self.rows[key] = []
            self.texts[key], self.tags[key] = [], set()
        if rows and rows[-1] == row:  # a key that is given twice: the first counts
            return
        rows.append(row)
        self.texts[key].append(text)
        self.tags[key].add(tag)
        self.number += 1

    def get(self, key: str, number: int) -> list[str | None]:
        """The texts of a key, one for each of ``number`` rows."""
        values: list[str | None] = [None] * number
        for row, text in zip(self.rows.get(key, ()), self.texts.get(key, ()), strict=True):
            values[row] = text
        return values

    def chosen(self, number: int, request: Request) -> list[str]:
        """The keys that become columns: all, unless sparse ones would fill far more cells than there are values."""
        room = max(_ANYWAY, 16 * self.number) // max(number, 1)
        if len(self.rows) <= room:
            return list(self.rows)
        common = sorted(self.rows, key=lambda key: -len(self.rows[key]))[:room]
        request.notices.append(
            f"{len(self.rows) - len(common):,} rare attributes of {len(self.rows):,} are no columns; all of them come "
            "back when the log is written"
        )
        return [key for key in self.rows if key in {NAME, TIME, *common}]


class _Log:
    """What is found while the text is read: the attributes, and from where to where each trace and event reaches."""

    def __init__(self, data: bytes, request: Request) -> None:
        self.data, self.request = data, request
        self.events, self.traces = _Attributes(), _Attributes()
        self.event_at: list[tuple[int, int]] = []
        self.trace_at: list[tuple[int, int]] = []
        self.trace_of: list[int] = []
        self.path: list[str] = []
        self.about: str | None = None
        self.parser = expat.ParserCreate("UTF-8")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end

    def error(self, problem: str, remedy: str = _REPAIR) -> DataError:
        return self.request.error(f"line {self.parser.CurrentLineNumber}: {problem}", remedy)

    def _refuse_doctype(self, *_: Any) -> None:
        raise self.error("the log has a document type (DTD), which may define entities", "remove <!DOCTYPE ...>")

    def _start(self, tag: str, given: dict[str, str]) -> None:
        tag, path = tag.rpartition(":")[2], self.path
        depth = len(path)
        path.append(tag)
        if depth > _DEEPEST:
            raise self.error(f"attributes are nested more than {_DEEPEST} deep")
        if depth == 0:
            if tag != "log":
                raise self.error(f"the outermost element is <{show(tag)[1:-1]}>, not <log>", "give an XES file")
        elif depth == 1 and tag == "trace":
            self.trace_at.append((self.parser.CurrentByteIndex, -1))
            _limits.check("streams", len(self.trace_at), f"there are {len(self.trace_at):,} traces or more",
                          file=self.request.file)  # fmt: skip
        elif depth == 1 and tag == "event":
            raise self.error("an event stands outside of any trace", "put every event into a <trace>")
        elif depth == 1 and tag == "string" and given.get("key") == ABOUT:
            self.about = given.get("value")
        elif depth == 2 and path[1] == "trace":
            if tag == "event":
                self.event_at.append((self.parser.CurrentByteIndex, -1))
                self.trace_of.append(len(self.trace_at) - 1)
                _limits.check("rows", len(self.event_at), f"there are {len(self.event_at):,} events or more",
                              file=self.request.file)  # fmt: skip
            elif tag in _TAGS:
                self._add(self.traces, len(self.trace_at) - 1, tag, given)
        elif depth == 3 and path[2] == "event" and tag in _TAGS:
            self._add(self.events, len(self.event_at) - 1, tag, given)

    def _add(self, level: _Attributes, row: int, tag: str, given: dict[str, str]) -> None:
        key, value = given.get("key"), given.get("value")
        if key is None or value is None:
            raise self.error(f"<{tag}> has no {'key' if key is None else 'value'}", "give it both key and value")
        level.add(row, tag, key, value)

    def _end(self, written: str) -> None:
        tag, depth = self.path.pop(), len(self.path)
        if (tag == "event" and depth == 2) or (tag == "trace" and depth == 1):
            at, places = self.parser.CurrentByteIndex, self.event_at if tag == "event" else self.trace_at
            if self.data.startswith(b"</" + written.encode(), at):  # else the element is one tag, and ends here
                at = self.data.index(b">", at) + 1
            places[-1] = (places[-1][0], at)


def read_xes(path: Path, request: Request) -> StreamSet:
    """A stream set from an XES file."""
    data = _as_utf8(read_bytes(path), request)
    _limits.ask_memory(8.0 * len(data), "reading this log", "split the file", file=path)
    log = _Log(data, request)
    try:
        log.parser.Parse(data, True)
    except expat.ExpatError as error:
        remedy = "copy or download the file again" if "no element" in str(error) else _REPAIR
        raise request.error(f"this is not XML, or it is cut off or damaged ({error})", remedy) from error
    if not log.trace_at:
        raise request.error("the log has no traces", "give a log with at least one trace")
    if log.about is not None:
        _use_about(log.about, request)
    return from_arrow(_table(log, request), request)


def _as_utf8(data: bytes, request: Request) -> bytes:
    """The text in UTF-8, whatever encoding it declares."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        name = "utf-16"
    else:
        declared = _DECLARED.match(data[3:300] if data[:3] == b"\xef\xbb\xbf" else data[:300])
        name = "utf-8" if declared is None else declared[1].decode().lower()
    if name not in _ENCODINGS:
        raise request.error(f"the encoding {name!r} is not known", "save the file as UTF-8")
    try:
        text = data.decode("utf-8-sig" if name in ("utf-8", "utf8") else name)
    except UnicodeError as error:
        raise request.error(f"the file is not {name} text", "save it as UTF-8") from error
    if name in ("utf-8", "utf8"):
        return data.removeprefix(b"\xef\xbb\xbf")
    start = re.sub(r"(<\?xml[^>]*?\bencoding\s*=\s*)([\"'])[^\"']*[\"']", r"\1\2UTF-8\2", text[:300])
    return (start + text[300:]).encode()


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


def _table(log: _Log, request: Request) -> pa.Table:
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
    if all(name in columns for name in RESULTS) and pa.types.is_boolean(columns["imputed"].type):
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
    repeated = 0
    for i, name in enumerate(named):
        seen[name] += 1
        if seen[name] > 1:
            repeated += 1
            while (fresh := f"{name} ({seen[name]})") in used:
                seen[name] += 1
            used.add(fresh)
            named[i] = fresh
    if repeated:
        request.notices.append(
            f"{repeated:,} traces have a name that an earlier one has: they are streams of their own, told apart by a "
            "number, such as " + repr(next(new for new, old in zip(named, names, strict=True) if new != old and old))
        )
    return named


def _typed(texts: pa.Array, tags: set[str]) -> pa.Array:
    """The values of an attribute as its tag says; text where one of them is not what it says."""
    try:
        if tags == {"date"}:
            return texts.cast(pa.timestamp("us", "UTC"))
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
                f"the times have several offsets ({some}), as where clocks are put forward: they are shown, and imputed "
                "ones written, in UTC; pass timezone= for another zone"
            )
    time = read_time_column(texts, f"attribute {TIME!r}", request, places)
    if not time.calendar:
        if not time.missing.all():
            raise request.error(f"attribute {TIME!r} holds numbers", "give dates, such as 2010-12-30T11:02:00+01:00")
        return pa.nulls(len(texts), pa.timestamp("us", request.timezone))
    instants = np.where(time.missing, 0, time.values).astype(np.int64)
    unit = "ns" if (instants % 1000).any() else "us"
    return pa.array(instants, pa.int64(), mask=time.missing).cast(pa.timestamp("ns", time.zone)).cast(
        pa.timestamp(unit, time.zone)
    )


def _texts(log: _Log) -> tuple[list[str], list[str], list[str], dict[str, str]]:
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
