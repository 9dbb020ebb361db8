"""Which rows of a known layout are events, and of which type: codes of MEDS, transitions of a process log."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.io.arrow_columns import flatten
from retrodict.events.io.known_layouts import LAYOUTS, TRANSITION
from retrodict.events.io.request import Request
from retrodict.events.io.time_column import to_mask

Mask = NDArray[np.bool_]
BIRTH, DEATH = "MEDS_BIRTH", "MEDS_DEATH"
MANY = 1_000  # types beyond which a notice says how to choose


class Selection(NamedTuple):
    """Which rows are ``events`` [R] and of which type (``types`` [R]); which are births and deaths; parts of a source.

    ``names`` are entries of the source's names that only this layout has.
    """

    events: Mask
    types: pa.Array
    birth: Mask
    death: Mask
    names: Mapping[str, str | None]


def choose_events(columns: Mapping[str, Any], request: Request) -> Selection:
    """The events of a table of ``request.layout``."""
    return _of_meds(columns, request) if request.layout == "meds" else _of_log(columns, request)


def _is(code: str, what: str) -> bool:
    return code == what or code.startswith(what + "//")


def type_of_code(code: str, codes: int | Mapping[str, str] | None) -> str | None:
    """The type that a MEDS code stands for; None for one that is no event.

    >>> type_of_code("LAB//51301//K/uL", 2), type_of_code("MEDS_BIRTH", None), type_of_code("A", {"B*": "b"})
    ('LAB//51301', None, None)
    """
    special = _is(code, BIRTH) or _is(code, DEATH)
    if not isinstance(codes, Mapping):
        return None if special else code if codes is None else "//".join(code.split("//")[:codes])
    if code in codes:
        return codes[code]
    if code in codes.values():  # an imputed event has its type for a code
        return code
    return next(
        (kind for pattern, kind in codes.items() if fnmatchcase(code, pattern) and (not special or "MEDS" in pattern)),
        None,
    )


def _of_meds(columns: Mapping[str, Any], request: Request) -> Selection:
    name = LAYOUTS["meds"]["type"]
    column = text_column(columns[name], name, request)
    labels = column.dictionary.to_pylist()
    kinds = [type_of_code(label, request.codes) for label in labels]
    if isinstance(request.codes, Mapping) and labels and not any(kinds):
        shown = ", ".join(repr(label) for label in labels[:8])
        raise request.error(f"codes= chooses none of the codes, such as {shown}", "correct the patterns")
    number = len({kind for kind in kinds if kind is not None})
    if request.codes is None and number > MANY and request.types is None:
        request.notices.append(
            f"there are {number:,} different codes, each a type of its own; pass codes= to choose some, or to keep "
            "only the first parts of each"
        )
    types = pa.array(kinds, pa.large_string()).take(column.indices)
    known = ~missing_mask(types) | missing_mask(column)  # a row with a time and no code is an error, found later
    births, deaths = (_among(column, [_is(label, what) for label in labels]) for what in (BIRTH, DEATH))
    return Selection(known, types, births, deaths, {})


def _among(column: pa.DictionaryArray, flags: list[bool]) -> Mask:
    found = pa.array(flags, pa.bool_()).take(column.indices).fill_null(False)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def _of_log(columns: Mapping[str, Any], request: Request) -> Selection:
    name = LAYOUTS["xes"]["type"]
    column = text_column(columns[name], name, request)
    names = column.cast(pa.large_string())
    nothing = missing_mask(flat_time := _plain(columns[LAYOUTS["xes"]["time"]])) & missing_mask(names)
    none = np.zeros(len(flat_time), dtype=bool)
    transition = columns.get(TRANSITION)
    mode = request.lifecycle
    if transition is None:
        if mode == "transition":
            names = pc.binary_join_element_wise(names, _text("complete"), _text("+"))
        parts = {"transition": None, "lifecycle": "all" if mode is None else mode}
        return Selection(~nothing, names, none, none, parts)
    steps = text_column(transition, TRANSITION, request).cast(pa.large_string())
    steps = pc.if_else(pc.equal(steps, ""), None, steps).fill_null("complete")
    complete = np.asarray(pc.equal(pc.utf8_lower(steps), "complete").to_numpy(zero_copy_only=False), dtype=bool)
    events = ~nothing
    if mode is None:
        mode = "complete"
        others = pc.value_counts(steps.filter(pa.array(events & ~complete))).to_pylist()
        if others:
            listed = ", ".join(f"{each['counts']:,} {each['values']!r}" for each in others[:8])
            request.notices.append(
                f"only events whose transition is complete were read; set aside, and given back, were {listed}; pass "
                'lifecycle="transition" to make each transition a type, "all" to read all of them, or "complete"'
            )
    if mode == "complete":
        events &= complete
    elif mode == "transition":
        names = pc.binary_join_element_wise(names, steps, _text("+"))
    return Selection(events, names, none, none, {"transition": TRANSITION, "lifecycle": mode})


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _plain(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def missing_mask(column: pa.Array) -> Mask:
    """Which values are null, [R]."""
    return to_mask(column.is_null(nan_is_null=True))


def text_column(column: Any, name: str, request: Request) -> pa.Array:
    """A column of names as dictionary-encoded text."""
    values = pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else flatten(column)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    try:
        return values.cast(pa.large_string()).dictionary_encode()
    except pa.ArrowException as error:
        remedy = "give names as text"
        raise DataError(f"column {name!r} holds {values.type} values", file=request.file, remedy=remedy) from error
