"""Columns of text, as CSV has them: what each value is written as, and how a value is written."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"  # always fits 64 bits
_FLOAT = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$|^(?i:nan)$"  # but not 007, which is a code
_KINDS = {"stream": ("integer",), "type": ("integer", "float")}


def infer(column: pa.ChunkedArray, name: str, names: Mapping[str, str | None]) -> pa.ChunkedArray:
    """What every value is written as, else the text itself; ``names`` are the columns that play parts."""
    return as_kind(column, choose_kind(written_as(column), name, names))


def written_as(column: pa.ChunkedArray) -> set[str]:
    """The kinds that every value could be; all of them, and "nothing", where there is no value."""
    present = column.drop_null()
    if not len(present):
        return {"nothing", "integer", "boolean", "float"}
    booleans = pa.array(["true", "false", "True", "False"], column.type)
    fits = {
        "integer": pc.match_substring_regex(present, _INTEGER),
        "boolean": pc.is_in(present, booleans),
        "float": pc.match_substring_regex(present, _FLOAT),
    }
    return {kind for kind, flags in fits.items() if pc.all(flags).as_py()}


def choose_kind(fits: set[str], name: str, names: Mapping[str, str | None]) -> str:
    """The kind of a column, of those that its values fit and that its part allows."""
    role = next((role for role, own in names.items() if own == name), "")
    allowed = _KINDS.get(role, ("integer", "boolean", "float"))
    return "text" if "nothing" in fits else next((kind for kind in allowed if kind in fits), "text")


def as_kind(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    """A column of text as integers, booleans or floats."""
    if kind == "boolean":
        return pc.equal(pc.utf8_lower(column), "true")
    return column if kind == "text" else column.cast(pa.int64() if kind == "integer" else pa.float64())


def to_lines(table: pa.Table, header: bool = True, separator: str = ",") -> bytes:
    """A table of text as CSV: fields in quotes where they need them, nothing where there is no value."""
    head = [pa.array([name], pa.large_string()) for name in table.column_names]
    body = [column.combine_chunks() for column in table.columns]
    text = b""
    for columns in (head, body) if header else (body,):
        fields = [_quote(column, separator).fill_null("") for column in columns]
        lines = pc.binary_join_element_wise(*fields, pa.scalar(separator, pa.large_string()))
        ended = pc.binary_join_element_wise(lines, pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string()))
        text += b"".join(piece.as_buffer().to_pybytes() for piece in _joined(ended))
    return text


def _joined(lines: pa.Array) -> list[pa.Scalar]:
    """All lines as one text."""
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines)
    return [pc.binary_join(whole, pa.scalar("", pa.large_string()))[0]]


def _quote(column: pa.Array, separator: str) -> pa.Array:
    needs = pc.or_(pc.match_substring_regex(column, f'[{separator}"\r\n]'), pc.equal(column, ""))
    if not pc.any(needs).as_py():
        return column
    mark = pa.scalar('"', pa.large_string())
    inner = pc.replace_substring(column, '"', '""')
    empty = pa.scalar("", pa.large_string())
    return pc.if_else(needs, pc.binary_join_element_wise(mark, inner, mark, empty), column)
