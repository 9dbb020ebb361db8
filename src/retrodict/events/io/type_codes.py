"""From the types in a source, names or integers, to indices into one vocabulary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict import _limits
from retrodict._near import correct_type
from retrodict.events.io.request import Places, Request
from retrodict.events.stream_set import describe_types

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # neither 007 nor 1.0
_ADD = "or add it to types="


def sort_names(names: Sequence[str]) -> list[str]:
    """Names in alphabetical order, or in numerical order where every one is an integer."""
    return sorted(names, key=int if all(_INTEGER.fullmatch(name) for name in names) else None)


def check_num_types(number: int, request: Request) -> None:
    """Refuse a vocabulary beyond the limit: usually the column does not hold types."""
    hint = "give the column that holds the types (type=); "
    _limits.check("types", number, f"there are {number:,} different types", file=request.file, hint=hint)


def index_labels(
    codes: NDArray[np.int64], labels: Sequence[str], request: Request, places: Places, ordered: bool = False
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
    known = describe_types(names)

    def explain(i: int) -> tuple[str, str]:
        name = labels[codes[i]]
        return f"unknown type {name!r}; known types are {known}", f"{correct_type(name, names)}, {_ADD}"

    places.refuse(types < 0, explain)
    return types, names


def index_integers(
    values: NDArray[np.int64], request: Request, places: Places
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Type indices [E] and the vocabulary, from integers [E].

    Integers are indices; integers that are too sparse for that (such as postal codes) are names.
    """
    remedy = "integer types count from 0; make the codes text to use them as names"
    places.refuse(values < 0, lambda i: (f"type {values[i]} is negative", remedy))
    if request.types is not None:
        known = f"known types are 0 to {len(request.types) - 1} ({describe_types(request.types)})"
        places.refuse(
            values >= len(request.types), lambda i: (f"unknown type {values[i]}; {known}", f"correct the type, {_ADD}")
        )
        return values, request.types
    distinct, codes = np.unique(values, return_inverse=True)
    check_num_types(len(distinct), request)
    highest = int(distinct[-1]) if len(distinct) else -1
    if not are_sparse(highest, len(distinct)):
        return values, tuple(str(k) for k in range(highest + 1))
    if request.survey is None and request.settled is None:
        request.notices.append(sparse_notice(len(distinct), highest))
    return codes.astype(np.int64), tuple(str(value) for value in distinct)


def are_sparse(highest: int, number: int) -> bool:
    """Whether so many different integers, up to the highest, are names and not indices."""
    return highest >= max(64, 2 * number)


def sparse_notice(number: int, highest: int) -> str:
    """What to say of integers that were taken as names."""
    return (
        f"the {number} integer types go up to {highest}, too sparse for indices: they were taken as names; pass types= "
        "to say otherwise"
    )


def whole_numbers(values: NDArray[Any], places: Places) -> NDArray[np.int64]:
    """Floats that are whole numbers, as integers [E]; anything else is an error."""
    bad = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) >= 2.0**53)
    places.refuse(bad, lambda i: (f"type {values[i]:g} is not a whole number", "give types as names or as integers"))
    return values.astype(np.int64)
