"""Which column of a table plays which part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from retrodict.events.io.request import Request

RESERVED = ("stream", "time", "type", "start", "end")
_MEANING = {
    "stream": "says which stream an event belongs to (or stream=False if the table is a single stream)",
    "time": "says when an event happened",
    "type": "says what happened",
}


class Roles(NamedTuple):
    """Column names; ``stream`` is None for a table of one stream, ``start`` and ``end`` may be values."""

    stream: str | None
    time: str
    type: str
    start: Any
    end: Any
    extras: list[str]


def find_roles(table: Mapping[str, Any], request: Request) -> Roles:
    """The columns the caller named, or those with our own names."""
    stream = None if request.stream is False else _find("stream", request.stream, table, request)
    time = _find("time", request.time, table, request)
    kind = _find("type", request.type, table, request)
    start, end = (_find_bound(role, table, request) for role in ("start", "end"))
    used = {name for name in (stream, time, kind, start, end) if isinstance(name, str)}
    return Roles(stream, time, kind, start, end, [name for name in table if name not in used])


def _find(role: str, given: Any, table: Mapping[str, Any], request: Request) -> str:
    name = role if given is None else given
    if isinstance(name, str) and name in table:
        return name
    missing = f"there is no column {name!r}" + ("" if given is None else f" ({role}=)")
    remedy = f'pass {role}="..." with the name of the column that {_MEANING[role]}'
    raise request.error(f"{missing}; the columns are {describe_columns(table)}", remedy)


def _find_bound(role: str, table: Mapping[str, Any], request: Request) -> Any:
    """A column or a value; text that is no column must at least look like a date or a number."""
    given = getattr(request, role)
    source = role if given is None and role in table else given
    if isinstance(source, str) and source not in table and not source.strip().lstrip("+-")[:1].isdigit():
        problem = f"there is no column {source!r} ({role}=); the columns are {describe_columns(table)}"
        raise request.error(problem, f"pass {role}= with the name of a column, a number or a datetime")
    return source


def names_of_times(request: Request) -> set[str]:
    """The names of the columns that hold times, if there are such columns."""
    given = {role: getattr(request, role) for role in ("time", "start", "end")}
    return {role if name is None else name for role, name in given.items() if name is None or isinstance(name, str)}


def extra_names(roles: Roles, request: Request) -> dict[str, str]:
    """New name -> old name of each extra column; underscores are added to names that our own tables use.

    A start or end of our own file that the caller replaces is no extra column.
    """
    taken = {*RESERVED, *roles.extras}
    names = {}
    for source in roles.extras:
        if request.axis is not None and source in ("start", "end"):
            continue
        name = source
        while source in RESERVED and name in taken:
            name += "_"
        if name != source and source not in ("start", "end"):
            request.notices.append(f"column {source!r} is kept as the extra column {name!r}")
        names[name] = source
    return names


def describe_columns(table: Mapping[str, Any], most: int = 12) -> str:
    """The names of the columns, for messages."""
    names = [repr(name) for name in table]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "none"
