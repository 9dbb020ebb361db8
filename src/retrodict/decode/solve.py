"""Consensus decoding of whole streams: every type and every stretch on its own, in one compiled call."""

from __future__ import annotations

import numpy as np

from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.compiled import entry_point
from retrodict.decode.ensemble import next_cut, restrict
from retrodict.decode.exact import exact_search
from retrodict.decode.local import local_search
from retrodict.decode.summary import Summary, summarise


@entry_point
def solve_blocks(
    candidates: Floats,
    types: Ints,
    position: Ints,
    offsets: Ints,
    weights: Floats,
    insert: float,
    delete: float,
    starts: int,
    tolerance: float,
    rounds: int,
    level: float,
) -> tuple[Ints, Floats, Floats, Floats, float]:
    """The fields of a ``Summary`` of the consensus, by type and time, and a lower bound on the risk of any decode.

    Exact search follows the local search from ``starts`` starts; with an infinite ``tolerance`` it only adds
    the bound.
    """
    size = len(position)
    result = Summary(np.empty(size, np.int64), np.empty(size), np.empty((size, 2)), np.zeros(3))
    begin = offsets[:-1].copy()
    first = count = offsets[0]  # a literal 0 would have all callees compiled once more
    lower = 0.0
    while first < len(candidates):
        stop = next_cut(candidates, types, first, insert + delete)
        ensemble = restrict(candidates, position, offsets, weights, begin, first, stop)
        decode = local_search(ensemble, insert, delete, starts)
        decode, proven = exact_search(ensemble, insert, delete, decode, tolerance, rounds)
        lower += proven
        count = summarise(decode, ensemble, level, first, count, result)
        first = stop
    return result.place[:count], result.probability[:count], result.interval[:count], result.expected, lower
