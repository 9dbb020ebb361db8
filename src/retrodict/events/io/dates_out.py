"""Dates written as a table writes its own: 10/3/2025 7:48 where that is how they are, with as many digits.

An example, which is one of the table's texts, says how. What it leaves out (seconds, or the time of day) is written
only where it is not zero.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from retrodict.events.io.date_forms import LARGE, MONTHS, DateForm, joined

_SHORT = {"day": "date", "month": "date", "hour": "hour"}  # parts that may have one digit, and what these belong to


def fitting(form: DateForm, column: pa.Array) -> pa.Array:
    """The texts [R] that have this form, without space around them; null for others."""
    texts = pc.utf8_trim_whitespace(column.cast(LARGE))
    return pc.if_else(pc.match_substring_regex(texts, form.pattern), texts, None)


def short_parts(form: DateForm, texts: pa.Array) -> set[str]:
    """Which of "date" and "hour" have no leading zero in texts of this form."""
    parts = form.parts(texts)
    lengths = {name: pc.utf8_length(parts[name]) for name in _SHORT if name in parts}
    return {_SHORT[name] for name, length in lengths.items() if pc.any(pc.equal(length, 1)).as_py()}


def make_example(form: DateForm, text: str, short: Collection[str]) -> str:
    """A text of this form whose numbers have one digit exactly where those of its table may have one."""
    found = re.match(form.pattern, text)
    assert found is not None
    for name in sorted((name for name in _SHORT if _has(found, name)), key=found.start, reverse=True):
        digits = "1" if _SHORT[name] in short else "01"
        text = text[: found.start(name)] + digits + text[found.end(name) :]
    return text


def offset_of(form: DateForm, example: str) -> str:
    """The offset with which an example ends; "" for none."""
    found = re.match(form.pattern, example)
    return found["offset"] if found is not None and _has(found, "offset") else ""


def pieces_of(form: DateForm, example: str) -> list[str | tuple[str, str]]:
    """What an example is put together from, without its offset: the name and text of each part, the texts between."""
    found = re.match(form.pattern, example)
    assert found is not None
    end = found.start("offset") if _has(found, "offset") else len(example)
    names = sorted((name for name in found.groupdict() if name != "offset" and _has(found, name)), key=found.start)
    pieces: list[str | tuple[str, str]] = []
    at = 0
    for name in names:
        pieces += [example[at : found.start(name)], (name, found[name])]
        at = found.end(name)
    return [piece for piece in [*pieces, example[at:end]] if piece]


def write_like(form: DateForm, example: str, wall: pa.Array) -> pa.Array:
    """Naive timestamps [E] in nanoseconds as texts like the example, without its offset."""
    found = re.match(form.pattern, example)
    assert found is not None
    parts = pieces_of(form, example)
    pieces = [part if isinstance(part, str) else _part(part[0], found, wall) for part in parts]
    if not _has(found, "hour"):
        midnight = pc.equal(pc.floor_temporal(wall, unit="day"), wall)
        clock = joined(" ", _digits(pc.hour(wall), 2), ":", _digits(pc.minute(wall), 2), _seconds(wall))
        pieces.append(pc.if_else(midnight, "", clock))
    return joined(*pieces)


def _part(name: str, found: re.Match[str], wall: pa.Array) -> pa.Array:
    """One part of each date, with as many digits as the example has."""
    width = len(found[name])
    if name in ("name", "short_name"):
        words = MONTHS if name == "name" else [month[:3] for month in MONTHS]
        return pa.array(words, LARGE).take(pc.subtract(pc.month(wall), 1))
    if name == "half":
        words = ["am", "pm"] if width == 2 else ["a.m.", "p.m."]
        late = pc.greater_equal(pc.hour(wall), 12)
        return pc.if_else(late, *(_text(word if found[name].islower() else word.upper()) for word in words[::-1]))
    if name == "fraction":
        return pc.utf8_rpad(_fraction(wall), width, "0")
    if name == "short_year":
        return pc.utf8_slice_codeunits(_digits(pc.year(wall), 4), 2, 4)
    if name == "hour" and _has(found, "half"):
        twelve = pc.if_else(pc.equal(pc.hour(wall), 0), 12, pc.hour(wall))
        return _digits(pc.if_else(pc.greater(twelve, 12), pc.subtract(twelve, 12), twelve), width)
    number = _digits({"second": pc.second, "minute": pc.minute, "hour": pc.hour, "day": pc.day, "month": pc.month,
                      "year": pc.year}[name](wall), width)  # fmt: skip
    if name == "minute" and not _has(found, "second"):
        return joined(number, _seconds(wall))
    if name == "second" and not _has(found, "fraction"):
        return joined(number, _rest(wall))
    return number


def _seconds(wall: pa.Array) -> pa.Array:
    """Seconds and what is finer, after a colon; "" where they are zero."""
    whole = pc.equal(pc.floor_temporal(wall, unit="minute"), wall)
    return pc.if_else(whole, "", joined(":", _digits(pc.second(wall), 2), _rest(wall)))


def _rest(wall: pa.Array) -> pa.Array:
    """The fraction of a second, after a point; "" where it is zero."""
    fraction = _fraction(wall)
    return pc.if_else(pc.equal(fraction, ""), "", joined(".", fraction))


def _fraction(wall: pa.Array) -> pa.Array:
    digits = [_digits(part(wall), 3) for part in (pc.millisecond, pc.microsecond, pc.nanosecond)]
    return pc.utf8_rtrim(joined(*digits), "0")


def _digits(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(LARGE), width, "0")


def _has(found: re.Match[str], name: str) -> bool:
    return bool(found.groupdict().get(name))


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, LARGE)
