"""Consensus decoding of whole streams: every type and every stretch on its own, in one compiled call."""

from __future__ import annotations

import numpy as np

from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.compiled import entry_point
from retrodict.decode.ensemble import restrict
from retrodict.decode.exact import exact_search
from retrodict.decode.local import local_search


@entry_point
def solve_blocks(
    candidates: Floats,
    position: Ints,
    offsets: Ints,
    weights: Floats,
    cuts: Ints,
    insert: float,
    delete: float,
    tolerance: float,
    rounds: int,
    starts: int,
    exact: bool,
) -> tuple[Ints, float]:
    """Candidates [I] that make up the consensus (repeated where it has several events), and a bound on its risk.

    Exact search follows the local search from ``starts`` starts; without ``exact`` only its bound is used.
    """
    decode = np.empty(len(position), np.int64)
    count = 0
    lower = 0.0
    for block in range(len(cuts) - 1):
        first, stop = cuts[block], cuts[block + 1]
        ensemble = restrict(candidates[first:stop], position, offsets, weights, first, stop)
        times, _ = local_search(ensemble, insert, delete, starts)
        optimum, _, proven = exact_search(ensemble, insert, delete, times, tolerance, rounds)
        if exact:
            times = optimum
        lower += proven
        if count + len(times) > len(decode):  # where deletions are free, a decode may outgrow the particles
            decode = np.concatenate((decode, np.empty(count + len(times), np.int64)))
        for time in times:
            decode[count] = first + np.searchsorted(ensemble.candidates, time)
            count += 1
    return decode[:count], lower
