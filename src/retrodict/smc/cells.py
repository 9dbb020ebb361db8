"""Kernels over all guesses of all streams: expected counts between observed events, copies of events, their owners."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def add_events(
    first: int,
    stop: int,
    event_times: Any,
    event_types: Any,
    owners: Any,
    weights: Any,
    middle: int,
    times: Any,
    offsets: Any,
    cells: Any,
) -> None:
    """Add the weight of every event of streams ``first`` to ``stop`` to its segment and type, [2, segments, K].

    Guesses from ``middle`` on are added up apart; stream i was observed at times[offsets[i]:offsets[i + 1]].
    """
    M = weights.shape[1]
    for i in range(first, stop):
        for m in range(M):
            at = offsets[i]
            for e in range(owners[i * M + m], owners[i * M + m + 1]):
                while at < offsets[i + 1] and times[at] < event_times[e]:
                    at += 1
                cells[int(m >= middle), at + i, event_types[e] % cells.shape[2]] += weights[i, m]


@njit(cache=True, nogil=True)
def copy_events(
    times: Any, types: Any, offsets: Any, target: Any, new_times: Any, new_types: Any, first: int, stop: int
) -> None:
    """Copy events offsets[i] : offsets[i + 1] of streams ``first`` to ``stop``, those of stream i to target[i]."""
    for i in range(first, stop):
        for e in range(offsets[i + 1] - offsets[i]):
            new_times[target[i] + e] = times[offsets[i] + e]
            new_types[target[i] + e] = types[offsets[i] + e]


@njit(cache=True, nogil=True)
def name_owners(
    owners: Any, weights: Any, skipped: int, streams: Any, draws: Any, shares: Any, first: int, stop: int
) -> None:
    """Write the stream, guess and weight of every event of streams ``first`` to ``stop``; the first is ``skipped``."""
    M = weights.shape[1]
    before = owners[skipped * M]
    for i in range(skipped + first, skipped + stop):
        for m in range(M):
            for e in range(owners[i * M + m] - before, owners[i * M + m + 1] - before):
                streams[e], draws[e], shares[e] = i, m, weights[i, m]
