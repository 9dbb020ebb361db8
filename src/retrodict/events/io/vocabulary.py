"""From the types in a source, names or integers, to indices into one vocabulary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.events.io.request import Places, Request
from retrodict.events.stream_set import describe_types

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def is_integer_text(text: str) -> bool:
    """Whether ``text`` is just how an integer is written, so that "007" and "1.0" are not."""
    return _INTEGER.fullmatch(text) is not None


def sort_names(names: Sequence[str]) -> list[str]:
    """Names in alphabetical order, or in numerical order where every one is an integer."""
    if all(is_integer_text(name) for name in names):
        return sorted(names, key=int)
    return sorted(names)


def check_num_types(number: int, request: Request) -> None:
    """Refuse a vocabulary beyond the limit: mostly it is a column that does not hold types."""
    _limits.check(
        "types", number, f"there are {number:,} different types", file=request.file,
        hint="give the column that holds the types (type=); ",
    )  # fmt: skip


def index_labels(
    codes: NDArray[np.int64],
    labels: Sequence[str],
    request: Request,
    places: Places,
    ordered: bool = False,
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Type indices [E] and the vocabulary, from ``labels[codes]``.

    The vocabulary is the caller's; or, when there is none, the labels in the order they have (``ordered``)
    or sorted.
    """
    names = request.types
    if names is None:
        check_num_types(len(labels), request)
        names = tuple(labels if ordered else sort_names(labels))
    position = {name: k for k, name in enumerate(names)}
    table = np.array([position.get(label, -1) for label in labels], dtype=np.int64)
    types = table[codes]
    if (types < 0).any():
        bad = int(np.argmax(types < 0))
        raise places.error(
            bad,
            f"unknown type {labels[codes[bad]]!r}; known types are {describe_types(names)}",
            "correct the type, or add it to types=",
        )
    return types, names


def index_integers(
    values: NDArray[np.int64], request: Request, places: Places
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Type indices [E] and the vocabulary, from integers [E].

    Integers are indices; unless they are too sparse for that (postal codes, say): then they are names.
    """
    if (values < 0).any():
        bad = int(np.argmax(values < 0))
        raise places.error(
            bad,
            f"type {values[bad]} is negative",
            "integer types count from 0; make the codes text to use them as names",
        )
    if request.types is not None:
        unknown = values >= len(request.types)
        if unknown.any():
            bad = int(np.argmax(unknown))
            raise places.error(
                bad,
                f"unknown type {values[bad]}; known types are 0 to {len(request.types) - 1} "
                f"({describe_types(request.types)})",
                "correct the type, or add it to types=",
            )
        return values, request.types
    distinct, codes = np.unique(values, return_inverse=True)
    check_num_types(len(distinct), request)
    highest = int(distinct[-1]) if len(distinct) else -1
    if highest < max(64, 2 * len(distinct)):
        return values, tuple(str(k) for k in range(highest + 1))
    request.notices.append(
        f"the {len(distinct)} integer types go up to {highest}, too sparse for indices: they were taken as "
        "names; pass types= to say otherwise"
    )
    return codes.astype(np.int64), tuple(str(value) for value in distinct)


def whole_numbers(values: NDArray[Any], places: Places) -> NDArray[np.int64]:
    """Floats that are whole numbers, as integers [E]; anything else is an error."""
    bad = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) >= 2.0**53)
    if bad.any():
        first = int(np.argmax(bad))
        raise places.error(
            first,
            f"type {values[first]:g} is not a whole number",
            "give types as names or as integers",
        )
    return values.astype(np.int64)
