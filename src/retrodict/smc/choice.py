"""Which ensemble to believe, the full or the lagged one: each island is judged by what another, independent one says.

An island's expected number of missing events in a cell (a type in a segment between observed events) errs by its own
noise, and that of the lagged ensemble by its bias too. The full ensemble of another island errs independently, and on
average not at all, so that

    R(r) = Σ_cells (m_A^r - m_B^full)² + (m_B^r - m_A^full)²

is, up to a constant, the expected squared error of recipe r. It is pooled over all streams: choosing for each stream
by itself would be noisier than what is to be decided.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream_set import StreamSet
from retrodict.smc.guesses import Guesses

NEAR_ENOUGH = 1e-2  # a gap that the exact search may leave: it costs about a tenth of that (docs/honest.md)
JUDGED = 1000  # streams, in the order of numbers that follow from their ids, that choose how all are decoded


def is_lagged_better(errors: NDArray[np.float64]) -> bool:
    """Whether the lagged ensemble errs less than the full one, given R of both for each stream, [N, 2]."""
    as_full, as_lagged = errors[:, 0].sum(), errors[:, 1].sum()
    return bool(as_lagged < as_full)


def squared_errors(full: Guesses, lagged: Guesses, observed: StreamSet) -> NDArray[np.float64]:
    """R of the full and of the lagged ensemble for each stream by itself, [N, 2]."""
    if not len(observed):
        return np.zeros((0, 2))
    judges, others = (guesses.expected_counts_of_halves(observed) for guesses in (full, lagged))
    first = observed.offsets[:-1] + np.arange(len(observed))  # a stream has one segment more than events
    errors = [((own[0] - judges[1]) ** 2 + (own[1] - judges[0]) ** 2).sum(1) for own in (judges, others)]
    return np.stack([np.add.reduceat(each, first) for each in errors], 1)
