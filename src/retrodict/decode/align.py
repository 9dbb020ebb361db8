"""Algorithm 2 (Align): the cheapest edit of one sequence of times into another, for a single event type.

The printed algorithm forgets to accumulate its first row and decrements indices before it uses them in the
back-trace; both are right here. Two events further apart than C_insert + C_delete are never aligned, so row i
of the table is only kept for the true events in that band around predicted event i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.arrays import Bytes, Floats, Ints
from retrodict.decode.compiled import entry_point

DELETE, MOVE, INSERT = np.int8(0), np.int8(1), np.int8(2)
LARGEST_SHARED = 1 << 16  # cells; the band of a larger table is much smaller than the table


class Workspace(NamedTuple):
    """Scratch memory of ``align``, so that many share one allocation; [I+1], [J+1], and cells of the table."""

    low: Ints
    high: Ints
    above: Floats
    row: Floats
    edits: Bytes


@njit
def workspace(predicted: int, true: int) -> Workspace:
    """Memory for at most this many predicted and true events."""
    return Workspace(
        np.empty(predicted + 1, np.int64),
        np.empty(predicted + 1, np.int64),
        np.empty(true + 1),
        np.empty(true + 1),
        np.empty(min(predicted * (true + 1), LARGEST_SHARED), np.int8),
    )


@njit
def _band(predicted: Floats, true: Floats, reach: float, low: Ints, high: Ints) -> int:
    """For each row, how many true events lie before (``low``) and up to the end of (``high``) its band.

    Returns the number of cells in all bands.
    """
    first = stop = cells = 0
    low[0] = high[0] = 0
    for i in range(1, len(predicted) + 1):
        while first < len(true) and true[first] < predicted[i - 1] - reach:
            first += 1
        while stop < len(true) and true[stop] <= predicted[i - 1] + reach:
            stop += 1
        low[i] = first
        high[i] = stop
        cells += stop - first + 1
    return cells


@njit
def align(predicted: Floats, true: Floats, insert: float, delete: float, match: Ints, work: Workspace) -> float:
    """Distance L(predicted, true) of eq. (editdist); ``match`` [I] receives the aligned true index or -1.

    ``predicted`` [I] and ``true`` [J] are sorted. Among alignments of equal cost, moving is preferred.
    """
    low, high, above, row = work.low, work.high, work.above, work.row
    edits = work.edits
    cells = _band(predicted, true, insert + delete, low, high)
    if cells > len(edits):
        edits = np.empty(cells, np.int8)
    above[0] = 0.0
    cell = 0
    for i in range(1, len(predicted) + 1):
        for j in range(high[i - 1] + 1, high[i] + 1):
            # Right of its band the row above goes on by insertions alone.
            above[j - low[i - 1]] = above[j - 1 - low[i - 1]] + insert
        time, within = predicted[i - 1], true[low[i] : high[i]]
        upper, lower, made = above[low[i] - low[i - 1] :], row[1:], edits[cell + 1 :]
        diagonal = upper[0]
        best = diagonal + delete
        row[0], edits[cell] = best, DELETE
        for j in range(len(within)):
            inserted = best + insert
            moved = diagonal + abs(time - within[j])
            diagonal = upper[j + 1]
            best, edit = diagonal + delete, DELETE
            if moved <= best:
                best, edit = moved, MOVE
            if inserted < best:
                best, edit = inserted, INSERT
            lower[j], made[j] = best, edit
        cell += len(within) + 1
        above, row = row, above
    i, j = len(predicted), len(true)
    distance = above[high[i] - low[i]] + (j - high[i]) * insert
    while i > 0:
        j = min(j, high[i])
        edit = edits[cell - (high[i] - j) - 1]
        if edit == INSERT:
            j -= 1
            continue
        cell -= high[i] - low[i] + 1
        i -= 1
        match[i] = -1
        if edit == MOVE:
            j -= 1
            match[i] = j
    return distance


@njit
def _longest(offsets: Ints) -> int:
    """Size of the largest group."""
    longest = 0
    for group in range(len(offsets) - 1):
        longest = max(longest, offsets[group + 1] - offsets[group])
    return longest


@entry_point
def align_groups(
    predicted: Floats,
    predicted_offsets: Ints,
    true: Floats,
    true_offsets: Ints,
    pairs: Ints,
    insert: float,
    delete: float,
    match: Ints,
) -> Floats:
    """Distances [P] of many pairs of groups at once; ``pairs`` [P, 2] index the two lists of groups.

    Where ``match`` is not empty it receives, pair after pair, the position in ``true`` (or -1) for each event
    of the predicted group.
    """
    distances = np.empty(len(pairs))
    work = workspace(_longest(predicted_offsets), _longest(true_offsets))
    scratch = np.empty(_longest(predicted_offsets), np.int64)
    written = 0
    for pair in range(len(pairs)):
        a, b = pairs[pair]
        own = predicted[predicted_offsets[a] : predicted_offsets[a + 1]]
        start = true_offsets[b]
        distances[pair] = align(own, true[start : true_offsets[b + 1]], insert, delete, scratch, work)
        if len(match) > 0:
            for i in range(len(own)):
                match[written + i] = -1 if scratch[i] < 0 else start + scratch[i]
            written += len(own)
    return distances
