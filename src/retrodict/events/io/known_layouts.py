"""Tables that are known by the names of their columns: MEDS, and event logs as process miners hold them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from retrodict.errors import DataError
from retrodict.events.io.request import Request
from retrodict.events.time_axis import TimeAxis

LAYOUTS = {
    "meds": {"stream": "subject_id", "time": "time", "type": "code"},
    "xes": {"stream": "case:concept:name", "time": "time:timestamp", "type": "concept:name"},
}
TRANSITION = "lifecycle:transition"
MORE_NAMES = ("transition", "lifecycle", "library", "schema", "dates")  # what some sources name besides their columns
XES_KEY, XES_TEXT = b"retrodict.xes", ("__xes_head", "__xes_event", "__xes_tail")  # the text of an event log
LIFECYCLES = ("complete", "transition", "all")
IMPUTED = "retrodict:imputed"  # the key of a log's attribute: events that are not marked as imputed were observed
BOUNDS = {"start": "case:retrodict:start", "end": "case:retrodict:end"}  # of an event log that we wrote


def is_meds(names: Mapping[str, str | None]) -> bool:
    """Whether the columns of a source have the names of MEDS."""
    return all(names.get(role) == name for role, name in LAYOUTS["meds"].items())


def has_layout(names: Mapping[str, str | None]) -> bool:
    """Whether a source is one of MEDS or an event log, which have names of their own for what is known of streams."""
    return is_meds(names) or "lifecycle" in names


def refuse_numbers(axis: TimeAxis, layout: str, target: Path) -> None:
    """Raise where plain numbers are the times of streams that are to be written in a layout that has dates."""
    if axis.is_calendar:
        return
    remedy = f"{layout.upper()} has dates as times: write Parquet or JSON Lines"
    if not target.suffix:
        remedy = "a name without a suffix is a MEDS data set, and MEDS has dates as times: add .csv, .parquet or .jsonl"
    raise DataError("the times of these streams are plain numbers", file=target, remedy=remedy)


def recognise(columns: Collection[str], request: Request) -> None:
    """Name the columns of a known layout for the caller, who named no others; refuse options of other layouts."""
    for layout, names in LAYOUTS.items():
        given = {role: getattr(request, role) for role in names}
        if any(value not in (None, names[role]) for role, value in given.items()):
            continue
        ours = given["stream"] is None and {"stream", "type"} <= set(columns)
        if not ours and set(names.values()) <= set(columns):
            request.layout = layout
            for role, name in names.items():
                setattr(request, role, name)
    if request.layout == "xes":
        for side, name in BOUNDS.items():
            if getattr(request, side) is None and name in columns:
                setattr(request, side, name)
    refuse_options(request, request.layout)


def refuse_options(request: Request, layout: str | None) -> None:
    """Raise for an option that a source of this layout has no use for."""
    for name, own, what in (("codes", "meds", "MEDS tables"), ("lifecycle", "xes", "event logs (XES)")):
        if getattr(request, name) is not None and layout != own:
            columns = ", ".join(LAYOUTS[own].values())
            raise DataError(
                f"{name}= is for {what} alone, which have the columns {columns}",
                file=request.file,
                remedy=f"drop {name}=",
            )


def check_codes(codes: Any) -> int | Mapping[str, str] | None:
    """The argument ``codes``, if it is a depth or a mapping from codes to types."""
    if codes is None or (isinstance(codes, int) and not isinstance(codes, bool) and codes >= 1):
        return codes
    if isinstance(codes, Mapping) and codes and all(isinstance(x, str) and x for pair in codes.items() for x in pair):
        return dict(codes)
    remedy = 'give the number of parts to keep, such as codes=2, or types by pattern, such as {"LAB//*": "lab"}'
    raise DataError(f"codes= is {codes!r}", remedy=remedy)


def check_lifecycle(lifecycle: Any) -> str | None:
    """The argument ``lifecycle``, if it is one of those that are known."""
    if lifecycle is None or lifecycle in LIFECYCLES:
        return lifecycle
    raise DataError(f"lifecycle= is {lifecycle!r}", remedy=f"use one of {', '.join(LIFECYCLES)}")


def name_and_transition(kind: str, lifecycle: str | None) -> tuple[str, str | None]:
    """What an event of this type has for a name and for a transition.

    >>> name_and_transition("check+start", "transition"), name_and_transition("check", "complete")
    (('check', 'start'), ('check', 'complete'))
    """
    if lifecycle == "transition":
        name, plus, step = kind.rpartition("+")
        return (name, step) if plus else (kind, "complete")
    return kind, "complete" if lifecycle == "complete" else None
