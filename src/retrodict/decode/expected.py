"""The expected distance of one decode a stream under its particles, for a whole set in one call."""

from __future__ import annotations

import numpy as np
from numba import njit

from retrodict.decode.flat import Ensembles, check_ensembles
from retrodict.decode.kernels import Floats, Ints, blocks_of, entry_point, in_threads, longest
from retrodict.decode.transport import Cost, CostLike, align, as_cost, workspace
from retrodict.errors import DataError


def expected_distance_set(
    times: Floats, types: Ints, offsets: Ints, ensembles: Ensembles, cost: CostLike, *, threads: int | None = None
) -> Floats:
    """The risk of given decodes, sum_m w_m L(z, z_m), as an array [N].

    Stream i's decode has the events ``offsets[i]:offsets[i + 1]`` of ``times`` and ``types``, sorted by time. Under the
    particles that a decode was made from this is its ``risk``; under others it is an honest estimate of it.
    """
    checked, price = check_ensembles(ensembles), as_cost(cost)
    N, M = checked.weights.shape
    if offsets.shape != (N + 1,) or times.shape != types.shape or times.shape != (offsets[-1],):
        raise DataError(
            f"ensembles of {N} streams, but offsets {offsets.shape}, times {times.shape} and types {types.shape}",
            remedy="give the times, types and offsets [N + 1] of one decode for each stream",
        )

    def expect(first: int, stop: int) -> Floats:
        return _expected_distances(times, types, offsets, *checked, first, stop, price)

    found = in_threads(expect, blocks_of(checked.offsets[::M]), threads)
    return np.concatenate([np.empty(0), *found])


@entry_point
def _expected_distances(
    times: Floats,
    types: Ints,
    offsets: Ints,
    event_times: Floats,
    event_types: Ints,
    owners: Ints,
    weights: Floats,
    first: int,
    stop: int,
    cost: Cost,
) -> Floats:
    """The expected distance of the decodes of streams ``first`` to ``stop``, [stop - first]."""
    M = weights.shape[1]
    found = np.empty(stop - first)
    for i in range(first, stop):
        decode = slice(offsets[i], offsets[i + 1])
        own = owners[i * M : (i + 1) * M + 1]
        found[i - first] = _expected_distance(
            times[decode], types[decode], event_times, event_types, own, weights[i], cost
        )
    return found


@njit
def _expected_distance(
    times: Floats, types: Ints, event_times: Floats, event_types: Ints, offsets: Ints, weights: Floats, cost: Cost
) -> float:
    """The expected distance of a decode to particles that own events ``offsets[m]:offsets[m + 1]``."""
    kinds = 0
    for kind in types:
        kinds = max(kinds, kind + 1)
    for e in range(offsets[0], offsets[-1]):
        kinds = max(kinds, event_types[e] + 1)
    largest = longest(offsets)
    decode, true = np.empty(len(times)), np.empty(largest)
    own, theirs = np.empty(kinds + 1, np.int64), np.empty(kinds + 1, np.int64)
    _sort_by_type(times, types, decode, own)
    work, match = workspace(len(times), largest), np.empty(len(times), np.int64)
    total = 0.0
    for m in range(len(weights)):
        if weights[m] == 0:
            continue
        events = slice(offsets[m], offsets[m + 1])
        _sort_by_type(event_times[events], event_types[events], true, theirs)
        for k in range(kinds):
            predicted, present = decode[own[k] : own[k + 1]], true[theirs[k] : theirs[k + 1]]
            if len(predicted) > 0 and len(present) > 0:
                total += weights[m] * align(predicted, present, cost, match, work)
            else:
                total += weights[m] * (cost.delete * len(predicted) + cost.insert * len(present))
    return total


@njit
def _sort_by_type(times: Floats, types: Ints, into: Floats, bounds: Ints) -> None:
    """Put times in order of type and time ``into`` [I]; type k is at ``bounds[k]:bounds[k + 1]``."""
    bounds[:] = 0
    for kind in types:
        bounds[kind + 1] += 1
    for k in range(len(bounds) - 1):
        bounds[k + 1] += bounds[k]
    for e in range(len(times)):  # each bound moves on from the start of its type to its end
        into[bounds[types[e]]] = times[e]
        bounds[types[e]] += 1
    for k in range(len(bounds) - 1, 0, -1):
        bounds[k] = bounds[k - 1]
    bounds[0] = 0
