"""Dates as a spreadsheet writes them, such as 10/03/2025 07:48, in the form that a user names: read as ISO 8601.

>>> date_form("day-first").to_iso(pa.array(["10/3/2025 7:48", "10.03.2025", "31.12.25"])).to_pylist()
['2025-03-10T07:48:00', '2025-03-10T00:00:00', None]

A form is "day-first", "month-first" or a format such as "%d.%m.%Y %H:%M". What needs no guess is read in every form:
one digit for two, a time of day without seconds or with fractions of them, an offset at the end, and ISO 8601.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from retrodict.errors import DataError, show

LARGE = pa.large_string()
FIRST = {"day-first": "d", "month-first": "m"}
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_NAMES = "(?i:" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + ")"
_OFFSET = r"(?: ?(?P<offset>Z|[+-]\d\d(?::?\d\d)?))?"
_FRACTION = r"(?:[.,](?P<fraction>\d{1,9}))?"
_SECONDS = rf"(?::(?P<second>\d\d){_FRACTION})?"
_CLOCK = rf"(?P<hour>\d{{1,2}}):(?P<minute>\d\d){_SECONDS}{_OFFSET}"
_PARTS = {  # of a format: the pattern of each, as Arrow's RE2 and Python have it
    "d": r"(?P<day>\d{1,2})",
    "m": r"(?P<month>\d{1,2})",
    "Y": r"(?P<year>\d{4})",
    "y": r"(?P<short_year>\d\d)",
    "b": f"(?P<short_name>{_NAMES})",
    "B": f"(?P<name>{_NAMES})",
    "H": r"(?P<hour>\d{1,2})",
    "I": r"(?P<hour>\d{1,2})",
    "M": r"(?P<minute>\d\d)",
    "S": r"(?P<second>\d\d)",
    "f": r"(?P<fraction>\d{1,9})",
    "p": r"(?P<half>(?i:[ap]\.?m\.?))",
    "z": r"(?P<offset>Z|[+-]\d\d(?::?\d\d)?)",
}
_ISO = r"^\d{4}-\d\d-\d\d(?:[T ]|$)"
_SLASHED = re.compile(r"\d{1,2}([./-])\d{1,2}[./-](\d{4}|\d\d)\b")
_YEAR_FIRST = re.compile(r"\d{4}([./])\d{1,2}[./]\d{1,2}\b")
_HALF = re.compile(r"\d ?[ap]\.?m\b", re.I)


class DateForm(NamedTuple):
    """``pattern`` has a group for each part of a date; ``takes_iso`` is false where ISO 8601 would mean another day."""

    name: str
    pattern: str
    takes_iso: bool

    def to_iso(self, column: pa.Array) -> pa.Array:
        """Texts [R] in ISO 8601, null where a text does not have this form; the number of a day may still be wrong."""
        texts = pc.utf8_trim_whitespace(column.cast(LARGE))
        parts = self.parts(texts)
        nothing = pa.scalar("", LARGE)

        def two(name: str) -> pa.Array:
            return pc.utf8_lpad(parts.get(name, nothing), 2, "0")

        year = parts.get("year")
        if year is None:
            short = parts["short_year"]
            year = joined(pc.if_else(pc.less(short, "69"), "20", "19"), short)  # as strptime reads them
        name = parts.get("name", parts.get("short_name"))
        month = two("month") if name is None else _number_of(name)
        hour = two("hour") if "half" not in parts else _of_24(two("hour"), parts["half"])
        fraction = parts.get("fraction", nothing)
        fraction = pc.if_else(pc.equal(fraction, ""), "", joined(".", fraction))
        clock = joined(hour, ":", two("minute"), ":", two("second"), fraction, parts.get("offset", nothing))
        iso = joined(year, "-", month, "-", two("day"), "T", clock)
        return (
            pc.coalesce(iso, pc.if_else(pc.match_substring_regex(texts, _ISO), texts, None)) if self.takes_iso else iso
        )

    def parts(self, texts: pa.Array) -> dict[str, pa.Array]:
        """The parts of each text [R] by name: null where a text does not have this form, "" where it lacks the part."""
        found = pc.extract_regex(texts, self.pattern)
        return {field.name: pc.struct_field(found, field.name).cast(LARGE) for field in found.type}

    def advice(self, text: str) -> tuple[str, str]:
        """What is wrong with a text that cannot be read in this form, and the remedy."""
        words = {"day-first": "with the day first", "month-first": "with the month first"}
        problem = f"as a date {words.get(self.name, f'of the form {self.name!r}')}"
        if self.name not in FIRST:
            return problem, "correct it, or pass the format that all dates have"
        if _format_of(text, FIRST[self.name]) is not None:
            return problem, f"pass the format, such as dates='{_format_of(text, FIRST[self.name])}'"
        other = next(name for name in FIRST if name != self.name)
        return problem, f"correct it, or pass dates='{other}' if all dates are written so"


@cache
def date_form(dates: str) -> DateForm:
    """The form that a user named."""
    if dates in FIRST:
        parts = [_PARTS["d"], _PARTS["m"]] if dates == "day-first" else [_PARTS["m"], _PARTS["d"]]
        date = "[./-]".join([*parts, _PARTS["Y"]])
        return DateForm(dates, f"^{date}(?:(?:,? +|T){_CLOCK})?$", True)
    pieces = re.findall(r"%.?|[^%]+", dates)
    parts_in_order = [piece[1] for piece in pieces if piece[0] == "%" and piece[1:] in _PARTS]
    _check(dates, pieces, parts_in_order)
    pattern, before = "", ""
    for piece, after in zip(pieces, [*pieces[1:], ""], strict=True):
        if piece[0] != "%":
            pattern += re.escape(piece)
        elif piece == "%%":
            pattern += "%"
        else:
            own = _PARTS[piece[1]]
            beside = any(near[:1] == "%" and near != "%%" for near in (before, after))
            pattern += own.replace(r"\d{1,2}", r"\d\d") if beside else own  # else nothing tells where a number ends
            pattern += _SECONDS if piece == "%M" and "S" not in parts_in_order else ""
            pattern += _FRACTION if piece == "%S" and "f" not in parts_in_order else ""
        before = piece
    if not {"H", "I"} & {*parts_in_order}:
        pattern += f"(?:[ T]{_CLOCK})?"
    elif "z" not in parts_in_order:
        pattern += _OFFSET
    takes_iso = [part for part in parts_in_order if part in "Ydm"] != ["Y", "d", "m"]
    try:
        pc.extract_regex(pa.array([], LARGE), f"^{pattern}$")
    except (pa.ArrowException, UnicodeError) as error:
        remedy = "leave out what is neither a part of a date nor a mark between two"
        raise DataError(f"dates= is {show(dates)}, which cannot be searched for", remedy=remedy) from error
    return DateForm(dates, f"^{pattern}$", takes_iso)


def _check(dates: str, pieces: list[str], parts: list[str]) -> None:
    """Raise for what is no format, or one that does not say a date."""
    example = "such as dates='%d.%m.%Y %H:%M'"
    if not parts:
        remedy = f"use day-first, month-first, or a format, {example}"
        raise DataError(f"dates= is {show(dates)}, which is no form of dates", remedy=remedy)
    unknown = next((piece for piece in pieces if piece[0] == "%" and piece != "%%" and piece[1:] not in _PARTS), None)
    if unknown is not None:
        listed = " ".join(f"%{part}" for part in _PARTS)
        raise DataError(f"dates= is {show(dates)}, and {unknown} is unknown", remedy=f"use some of {listed}")
    groups = {"a day (%d)": "d", "a month (%m)": "mbB", "a year (%Y)": "Yy"}
    clock = {"an hour (%H)": "HI", "minutes (%M)": "M"}
    groups |= clock if {*"HIMSfpz"} & {*parts} else {}
    groups |= {"seconds (%S)": "S"} if "f" in parts else {}
    groups |= {"%I (1 to 12)": "I", "AM or PM (%p)": "p"} if {*"Ip"} & {*parts} else {}
    for what, letters in groups.items():
        number = sum(part in letters for part in parts)
        if number != 1:
            problem = f"dates= is {show(dates)}, which has {what} {'not' if number == 0 else 'more than'} once"
            raise DataError(problem.replace("not once", "not at all"), remedy=f"give the whole format, {example}")
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None:
        raise DataError(
            f"dates= is {show(dates)}, which has %{twice} twice", remedy=f"give the whole format, {example}"
        )


def advice_without_form(text: str) -> str | None:
    """How to say the form of a date that is not in ISO 8601 (but never which of two it is); None for other texts."""
    if _YEAR_FIRST.match(text):
        return f"pass dates='{_format_of(text, 'd')}' if years come first, then months"
    if _SLASHED.match(text):
        day, month = (_format_of(text, first) or name for name, first in FIRST.items())
        return f"pass dates='{day}' if days come first, dates='{month}' if months do"
    return None


def _format_of(text: str, first: str) -> str | None:
    """A format for a date with the year first or in two digits, or with AM or PM; None for any other."""
    clock = " %I:%M %p" if _HALF.search(text) else " %H:%M" if ":" in text else ""
    found = _YEAR_FIRST.match(text)
    if found is not None:
        return f"%Y{found[1]}%m{found[1]}%d{clock}"
    found = _SLASHED.match(text)
    if found is None or (len(found[2]) == 4 and "%p" not in clock):
        return None
    second = "m" if first == "d" else "d"
    return f"%{first}{found[1]}%{second}{found[1]}%{'Y' if len(found[2]) == 4 else 'y'}{clock}"


def joined(*parts: str | pa.Array | pa.Scalar) -> pa.Array:
    """Texts joined piece by piece; null where one is null."""
    large = [pa.scalar(part, LARGE) if isinstance(part, str) else part.cast(LARGE) for part in parts]
    return pc.binary_join_element_wise(*large, pa.scalar("", LARGE))


def _number_of(name: pa.Array) -> pa.Array:
    """The number of a month, "01" to "12", from its name."""
    known = pa.array([month[:3].lower() for month in MONTHS], LARGE)
    number = pc.add(pc.index_in(pc.utf8_lower(pc.utf8_slice_codeunits(name, 0, 3)), known), 1)
    return pc.utf8_lpad(number.cast(LARGE), 2, "0")


def _of_24(hour: pa.Array, half: pa.Array) -> pa.Array:
    """Hours "00" to "23" from "01" to "12" with AM or PM; null for other hours."""
    known = pa.array([f"{h:02}" for h in (12, *range(1, 12))], LARGE)
    place = pc.index_in(hour, known)
    late = pc.starts_with(pc.utf8_lower(half), "p")
    return pc.utf8_lpad(pc.add(place, pc.if_else(late, 12, 0)).cast(LARGE), 2, "0")
