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
    role = next((role for role, own in names.items() if own == name), "")
    kinds = _KINDS.get(role, ("integer", "boolean", "float"))
    present = column.drop_null()
    if not len(present):
        return column
    if pc.all(pc.match_substring_regex(present, _INTEGER)).as_py():
        return column.cast(pa.int64())
    booleans = pa.array(["true", "false", "True", "False"], column.type)
    if "boolean" in kinds and pc.all(pc.is_in(present, booleans)).as_py():
        return pc.equal(pc.utf8_lower(column), "true")
    if "float" in kinds and pc.all(pc.match_substring_regex(present, _FLOAT)).as_py():
        return column.cast(pa.float64())
    return column


def to_lines(table: pa.Table) -> bytes:
    """A table of text as CSV: fields in quotes where they need them, nothing where there is no value."""
    head = [pa.array([name], pa.large_string()) for name in table.column_names]
    body = [column.combine_chunks() for column in table.columns]
    text = b""
    for columns in (head, body):
        fields = [_quote(column).fill_null("") for column in columns]
        lines = pc.binary_join_element_wise(*fields, pa.scalar(",", pa.large_string()))
        ended = pc.binary_join_element_wise(lines, pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string()))
        text += b"".join(piece.as_buffer().to_pybytes() for piece in _joined(ended))
    return text


def _joined(lines: pa.Array) -> list[pa.Scalar]:
    """All lines as one text."""
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines)
    return [pc.binary_join(whole, pa.scalar("", pa.large_string()))[0]]


def _quote(column: pa.Array) -> pa.Array:
    needs = pc.or_(pc.match_substring_regex(column, '[,"\r\n]'), pc.equal(column, ""))
    if not pc.any(needs).as_py():
        return column
    mark = pa.scalar('"', pa.large_string())
    inner = pc.replace_substring(column, '"', '""')
    empty = pa.scalar("", pa.large_string())
    return pc.if_else(needs, pc.binary_join_element_wise(mark, inner, mark, empty), column)
