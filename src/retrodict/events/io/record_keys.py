"""What an EasyTPP record may hold besides EasyTPP's own keys: further lists, and what would else be lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from retrodict.errors import show
from retrodict.events.io.records import Fail
from retrodict.events.io.request import Request, check_types_argument
from retrodict.events.time_axis import TimeAxis

RECORDS = "time_since_start"  # the column by which a table of records is known
STANDARD = {
    "dim_process", "seq_idx", "seq_len", "time_since_start", "time_since_last_event", "type_event", "start", "end",
    "type_names", "axis",
}  # fmt: skip


def to_plain(value: Any) -> Any:
    """The value for JSON; what JSON has no word for is left out."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def use_names(record: Mapping[str, Any], request: Request) -> None:
    """Take the vocabulary that we wrote into the first record."""
    names = record.get("type_names")
    if names is None or request.types is not None:
        return
    if isinstance(names, np.ndarray):
        names = names.tolist()
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise request.error("'type_names' is not a list of names", "give one name for each type", row=1)
    request.types = check_types_argument(names)


def read_axis(record: Mapping[str, Any], request: Request) -> TimeAxis:
    """The time axis that we wrote into the first record, as JSON has it."""
    recorded = record.get("axis")
    try:
        axis = TimeAxis() if recorded is None else TimeAxis.from_dict(
            {key: each for key, each in recorded.items() if each is not None}
        )  # fmt: skip
    except (ValueError, AttributeError, TypeError) as error:
        raise request.error(f"'axis' is malformed: {show(recorded)}", "leave it out", row=1) from error
    if axis.is_calendar and request.unit not in (None, axis.unit):
        raise request.error(f"unit= is {request.unit!r}, but the times are counted in {axis.unit}s", "drop unit=")
    return TimeAxis(request.unit or axis.unit, axis.origin, axis.timezone)


def read_edge(value: Any, side: str, fail: Fail) -> float | None:
    """The start or end of a stream, where the record says it."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or (type(value) is float and value != value):
        return None
    if type(value) not in (int, float) or abs(value) > 1e300:
        raise fail(f"{side} is {show(value)}, not a number", f"give {side} as a number, or leave it out")
    return float(value)


def read_cells(cells: Any) -> list[Any]:
    """The values of an extra list."""
    return [None if isinstance(cell, float) and cell != cell else cell
            for cell in (cells.tolist() if isinstance(cells, np.ndarray) else cells)]  # fmt: skip
