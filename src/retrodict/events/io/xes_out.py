"""XES event logs written: a log that was read as it was, with imputed events; any other streams as a new log.

What was read is written again letter by letter (in UTF-8). An imputed event has a name, a time, the transition that its
type stands for, and the attributes imputed, probability, earliest and latest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from retrodict.errors import DataError
from retrodict.events.io.files import packed
from retrodict.events.io.known_layouts import BOUNDS, IMPUTED, LAYOUTS, TRANSITION, XES_KEY, XES_TEXT, refuse_numbers
from retrodict.events.io.own_table import own_arrow
from retrodict.events.io.tables_out import to_table
from retrodict.events.plain import parse_json
from retrodict.events.stream_set import StreamSet

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_HEAD = """<log xes.version="1849.2016" xmlns="http://www.xes-standard.org/">
\t<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
\t<extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
\t<extension name="Lifecycle" prefix="lifecycle" uri="http://www.xes-standard.org/lifecycle.xesext"/>
"""
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_LAST = re.compile(r"<(?P<closing>/)?(?P<name>[^\s<>/]+)(?(closing)\s*|[^<]*/)>\Z")
_NEW = "\n\t\t"
_MARK = f'<boolean key="{IMPUTED}" value="true"/>'
_STREAM, _TIME, _TYPE = (LAYOUTS["xes"][role] for role in ("stream", "time", "type"))
_CASE = "case:"


def write_xes(streams: StreamSet, file: BinaryIO, target: Path) -> None:
    """Write a stream set as XES into ``file``, which will become ``target``."""
    source = streams.source
    refuse_numbers(streams.axis, "xes", target)
    try:
        about = None if source is None or source.kind != "arrow" else _kept(source.data, target)
        pieces = _new_log(streams, target) if about is None else _as_it_was(streams, about, target)
        with packed(file, target) as out:
            for piece in pieces:
                out.write(piece.encode())
    except pa.ArrowException as error:
        remedy = "convert the extra columns to numbers or text, or leave them out"
        raise DataError(f"XES cannot hold these columns: {error}", file=target, remedy=remedy) from error


def _kept(table: pa.Table, target: Path) -> Mapping[str, str] | None:
    """What precedes and what follows the traces of the log that a table was read from; None where it was none."""
    written = (table.schema.metadata or {}).get(XES_KEY)
    if written is None or not {*XES_TEXT, *LAYOUTS["xes"].values()} <= {*table.column_names}:
        return None
    kinds = [table.schema.field(name).type for name in XES_TEXT]
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    with suppress(ValueError, KeyError, TypeError):
        about = parse_json(written)
        text = all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds)
        if text and all(isinstance(about[key], str) for key in ("head", "tail")):
            return {key: about[key] for key in ("head", "tail")}
    raise DataError("what was kept of the log's text is damaged", file=target, remedy="read the log again")


def _as_it_was(streams: StreamSet, about: Mapping[str, str], target: Path) -> Iterator[str]:
    """The text that was read, with new events in their places."""
    source = streams.source
    assert source is not None
    table = own_arrow(streams, hidden=True)
    old = {*source.data.column_names}
    bounds = [name for name in ("start", "end") if name in table.column_names and name not in old]
    added = _Cells(table.select([n for n in table.column_names if n not in old and n not in bounds]), target)
    fresh = _Cells(table.select([n for n in (_TYPE, _TIME, TRANSITION) if n in table.column_names]), target)
    edges = _Cells(table.select(bounds).rename_columns([BOUNDS[n].removeprefix(_CASE) for n in bounds]), target)
    heads, events, tails = (table[name].to_pylist() for name in XES_TEXT)
    stream = table[_STREAM].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    new = pc.and_(table[_TIME].is_valid(), table[XES_TEXT[1]].is_null()).to_pylist()
    head = about["head"]
    if "imputed" in table.column_names and "imputed" not in old:
        head = head.rstrip() + "\n\t" + _MARK + head[len(head.rstrip()) :]
    yield head
    for rows in np.split(np.arange(len(stream)), np.flatnonzero(np.diff(stream)) + 1) if len(stream) else ():
        one, more = int(rows[0]), edges.row(int(rows[0]))
        bare = len(rows) == 1 and not new[one] and events[one] is None and not more
        head, tail = (heads[one], tails[one]) if bare else _split(heads[one], tails[one] or "", target)
        yield (head or "") + "".join(_NEW + text for text in more)
        for i in rows.tolist():
            if new[i]:
                yield f"{_NEW}<event>{''.join(fresh.row(i) + added.row(i))}</event>"
            elif events[i] is not None:
                yield _with(events[i], added.row(i), target)
        yield tail or ""
    yield about["tail"]


def _split(head: str, tail: str, target: Path) -> tuple[str, str]:
    """What precedes and what follows the events; a trace without events is all tail."""
    if head:
        return head, tail
    opened, closing = _opened(tail, target)
    return opened.rstrip(), opened[len(opened.rstrip()) :] + closing


def _with(event: str, more: list[str], target: Path) -> str:
    """The event with further attributes."""
    if not more:
        return event
    opened, closing = _opened(event, target)
    return opened + "".join(more) + closing


def _opened(text: str, target: Path) -> tuple[str, str]:
    """An element that ends the text, before and from its closing tag, which it gets if it was a single tag.

    No tag has ``<`` within, so that the last one begins the closing tag or the single one; comments stand before it.
    """
    last = _LAST.search(text, max(text.rfind("<"), 0))
    if last is None:
        raise DataError("what was kept of the log's text is damaged", file=target, remedy="read the log again")
    if last["closing"]:
        return text[: last.start()], text[last.start() :]
    return text[: last.end() - 2].rstrip() + ">", f"</{last['name']}>"


class _Cells:
    """Columns as attributes of the rows; ``imputed`` only where it is true."""

    def __init__(self, table: pa.Table, target: Path) -> None:
        self.columns = [_attributes(name, table[name], target) for name in table.column_names]

    def row(self, i: int) -> list[str]:
        """The attributes of a row."""
        return [text for column in self.columns if (text := column[i]) is not None]


def _attributes(key: str, column: pa.ChunkedArray, target: Path) -> list[str | None]:
    """One attribute for each value of a column; None for none."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_boolean(kind):
        words = {True: "true", False: None if key == "imputed" else "false", None: None}
        tag, texts = "boolean", [words[value] for value in column.to_pylist()]
    elif pa.types.is_integer(kind):
        tag, texts = "int", column.cast(pa.string()).to_pylist()
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        tag, texts = "float", [None if v is None else repr(float(v)) for v in column.to_pylist()]
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        tag, texts = "date", _dates(column)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        tag, texts = "string", column.to_pylist()
    else:
        remedy = "convert it to numbers, dates or text, or leave it out"
        raise DataError(f"XES cannot hold column {key!r}, of {kind} values", file=target, remedy=remedy)
    start = f"<{tag} key={_quoted(key, target)} value="
    return [None if text is None else f"{start}{_quoted(text, target)}/>" for text in texts]


def _dates(column: pa.ChunkedArray) -> list[str | None]:
    """ISO 8601: milliseconds, or as many digits as are needed, and the offset where there is a zone."""
    kind = column.type if pa.types.is_timestamp(column.type) else pa.timestamp("ms")
    moments = column.cast(kind)
    local = moments if kind.tz is None else pc.local_timestamp(moments)
    texts = pc.replace_substring_regex(local.cast(pa.timestamp("ns")).cast(pa.string()), " ", "T")
    texts = pc.replace_substring_regex(texts, r"(\.\d{3}(?:\d*[1-9])?)0*$", r"\1")
    if kind.tz is None:
        return list(texts.to_pylist())
    offsets = pc.replace_substring_regex(pc.strftime(moments, format="%z"), r"(\d\d)$", r":\1")
    return list(pc.binary_join_element_wise(texts, offsets, "").to_pylist())


def _quoted(text: str, target: Path) -> str:
    if _FORBIDDEN.search(text):
        remedy = "remove control characters from names and text, or write Parquet"
        raise DataError(f"XML cannot hold the text {text[:60]!r}", file=target, remedy=remedy)
    return quoteattr(text, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _string(key: str, text: str, target: Path) -> str:
    return f"<string key={_quoted(key, target)} value={_quoted(text, target)}/>"


def _new_log(streams: StreamSet, target: Path) -> Iterator[str]:
    """Streams of another source as a log; a table that has the columns of a log keeps its rows and columns."""
    source = streams.source
    if source is not None and source.names.get("lifecycle") is not None:
        table, about = own_arrow(streams), None
        bounds = {name: BOUNDS[name] for name in ("start", "end") if name in table.column_names}
        table = table.rename_columns([bounds.get(name, name) for name in table.column_names])
    else:
        table, about = _renamed(to_table(streams), target), {"types": streams.types, "axis": streams.axis.to_dict()}
    yield _DECLARATION + _HEAD + (f"\t{_MARK}\n" if "imputed" in table.column_names else "")
    if about is not None:
        yield f"\t{_string('retrodict', json.dumps(about), target)}\n"
    of_trace = [name for name in table.column_names if name.startswith(_CASE)]
    traces = _Cells(table.select(of_trace).rename_columns([n.removeprefix(_CASE) for n in of_trace]), target)
    events = _Cells(table.drop_columns(of_trace), target)
    ids = table[_STREAM].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    there = pc.or_(table[_TIME].is_valid(), table[_TYPE].is_valid()).to_pylist()
    order = np.argsort(ids, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(ids[order])) + 1) if len(order) else ():
        yield "\t<trace>\n" + "".join(f"\t\t{text}\n" for text in traces.row(int(rows[0])))
        yield "".join(f"\t\t<event>{''.join(events.row(i))}</event>\n" for i in rows.tolist() if there[i])
        yield "\t</trace>\n"
    yield "</log>\n"


def _renamed(table: pa.Table, target: Path) -> pa.Table:
    """Our own table under the names of a log."""
    names: Mapping[str, str] = {"stream": _STREAM, "time": _TIME, "type": _TYPE, **BOUNDS}
    for name in table.column_names[5:]:
        if name in names.values() or name.startswith(_CASE):
            raise DataError(f"there is an extra column {name!r}", file=target, remedy="rename it: XES has its own")
    table = table.set_column(0, "stream", table["stream"].cast(pa.string()))
    return table.rename_columns([names.get(name, name) for name in table.column_names])
