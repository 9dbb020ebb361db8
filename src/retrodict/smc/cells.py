"""Expected numbers of missing events between observed ones: a kernel over all guesses of all streams."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def add_events(
    event_times: Any, event_types: Any, owners: Any, weights: Any, times: Any, offsets: Any, cells: Any
) -> None:
    """Add the weight of every event to its segment and type; stream i was observed at times[offsets[i]:...]."""
    N, M = weights.shape
    for i in range(N):
        for m in range(M):
            at = offsets[i]
            for e in range(owners[i * M + m], owners[i * M + m + 1]):
                while at < offsets[i + 1] and times[at] < event_times[e]:
                    at += 1
                cells[at + i, event_types[e] % cells.shape[1]] += weights[i, m]
