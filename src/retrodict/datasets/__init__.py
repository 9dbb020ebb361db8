"""Data sets to learn and measure with: the paper's synthetic, elevator and taxi streams, and flights.

>>> train, dev, test = load("elevator", seed=0, sizes=(5, 1, 1))

A data set is a function that returns ``Splits``; to add one, write it and list it in ``DATASETS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrodict.datasets.elevator import elevator
from retrodict.datasets.flights import flights, flights_sample, flights_splits
from retrodict.datasets.folder import read_splits, write_splits
from retrodict.datasets.synthetic import synthetic, synthetic_set
from retrodict.datasets.taxi import taxi
from retrodict.errors import DataError
from retrodict.events.stream_set import Splits

DATASETS: dict[str, Callable[..., Splits]] = {
    "synthetic": synthetic_set,
    "elevator": elevator,
    "taxi": taxi,
    "flights": flights_splits,
}


def find(name: str) -> Callable[..., Splits]:
    """The function that makes a data set."""
    if name not in DATASETS:
        raise DataError(f"there is no data set {name!r}", remedy=f"use one of {', '.join(DATASETS)}")
    return DATASETS[name]


def load(name: str, **options: Any) -> Splits:
    """Train, dev and test streams of a data set by name; ``options`` are those of its function."""
    return find(name)(**options)


__all__ = [
    "DATASETS",
    "elevator",
    "find",
    "flights",
    "flights_sample",
    "flights_splits",
    "load",
    "read_splits",
    "synthetic",
    "synthetic_set",
    "taxi",
    "write_splits",
]
