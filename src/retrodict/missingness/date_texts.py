"""Dates of a mechanism's file in the form of a table's, such as 10/03/2025 07:48: made ISO 8601 before they are used.

Nothing is guessed: without a form dates are ISO 8601, with one they are either, and a text that is a date of both
kinds, but not the same one, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from retrodict.errors import show
from retrodict.missingness.schedule import read_seconds

if TYPE_CHECKING:
    from retrodict.events.io.date_forms import DateForm

Refuse = Callable[[str, str], NoReturn]  # by a problem and a remedy

_TIMES = {"windows": "window", "by_stream": "window", "times": "time"}  # arguments that hold dates, and of what
_ISO = "ISO 8601, such as 2024-03-01T08:00"
_DIGITS = re.compile(r"(%[a-zA-Z])+")  # a format of which YAML takes the dates for numbers


def in_iso(arguments: Mapping[str, Any], dates: str | None, refuse: Refuse) -> dict[str, Any]:
    """The arguments of a mechanism with dates of the form ``dates`` in ISO 8601; ``refuse`` raises an error."""
    from retrodict.events.io.date_forms import date_form  # loads Arrow

    form = None if dates is None else date_form(dates)
    return {
        key: _each(value, f"key {key!r}", _TIMES[key], form, refuse) if key in _TIMES else value
        for key, value in arguments.items()
    }


def text_in_iso(text: str, dates: str, refuse: Refuse) -> str:
    """One date of the form ``dates`` in ISO 8601; other times as they are."""
    from retrodict.events.io.date_forms import date_form  # loads Arrow

    return _with_form(text, date_form(dates), refuse)


def _each(value: Any, where: str, noun: str | None, form: DateForm | None, refuse: Refuse) -> Any:
    """Every time in lists, and in lists by stream; ``noun`` numbers those of the outer list, which are told apart."""
    if isinstance(value, Mapping):
        return {name: _each(own, f"{where}, stream {str(name)!r}", noun, form, refuse) for name, own in value.items()}
    if isinstance(value, list):
        places = [where if noun is None else f"{where}, {noun} {number}" for number in range(1, len(value) + 1)]
        return [_each(own, place, None, form, refuse) for own, place in zip(value, places, strict=True)]

    def refuse_here(problem: str, remedy: str) -> NoReturn:
        refuse(f"{where}: {problem}", remedy)

    if isinstance(value, str):
        return _without_form(value, refuse_here) if form is None else _with_form(value, form, refuse_here)
    if form is not None and isinstance(value, int) and not isinstance(value, bool) and _DIGITS.fullmatch(form.name):
        refuse_here(
            f"{value} is a number, and dates={form.name!r} has dates of digits alone",
            f"put dates in quotes, and write a number as {value}.0",
        )
    return value


def _without_form(text: str, refuse: Refuse) -> str:
    """The text, unless it is a date that only its form would tell."""
    from retrodict.events.io.date_forms import advice_without_form

    advice = advice_without_form(text.strip()) if read_seconds(text) is None else None
    if advice is not None:
        refuse(f"cannot read {show(text)} as a date", f"write it in {_ISO}, or {advice}, as for the table")
    return text


def _with_form(text: str, form: DateForm, refuse: Refuse) -> str:
    """A date of this form in ISO 8601; other times as they are."""
    import pyarrow as pa

    plain = read_seconds(text)
    iso: str | None = form.to_iso(pa.array([text], pa.large_string()))[0].as_py()
    seconds = None if iso is None else read_seconds(iso)
    if seconds is None:
        if iso is not None or (plain is None and text.strip()[:1].isdigit()):
            problem, _ = form.advice(text)
            refuse(f"cannot read {show(text)} {problem}", f"correct it, or write the date in {_ISO}")
        return text
    assert iso is not None
    if plain is not None and plain != seconds:
        refuse(
            f"{show(text)} has one meaning as dates={form.name!r} and another without",
            f"write {' or '.join(_plainly(each) for each in (iso, text) if _is_iso(each))}, whichever is meant",
        )
    return text if plain is not None else iso


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _plainly(iso: str) -> str:
    """A date in ISO 8601 without marks, which no form with marks can take for its own."""
    return f"{datetime.fromisoformat(iso.strip()):%Y%m%dT%H:%M:%S%z}"
