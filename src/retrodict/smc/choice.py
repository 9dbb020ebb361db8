"""Which ensemble to believe, the full or the lagged one: each island is judged by what another, independent one says.

An island's expected number of missing events in a cell (a type in a segment between observed events) errs by its own
noise, and that of the lagged ensemble by its bias too. The full ensemble of another island errs independently, and on
average not at all, so that

    R(r) = Σ_cells (m_A^r - m_B^full)² + (m_B^r - m_A^full)²

is, up to a constant, the expected squared error of recipe r. It is pooled over all streams: choosing for each stream
by itself would be noisier than what is to be decided.
"""

from __future__ import annotations

from retrodict.events.stream_set import StreamSet
from retrodict.smc.guesses import Guesses


def prefers_lagged(full: Guesses, lagged: Guesses, observed: StreamSet) -> bool:
    """Whether the lagged ensemble is the better one; without a second island it is taken for that."""
    if full.islands < 2:
        return True
    judges, others = (guesses.expected_counts_of_halves(observed) for guesses in (full, lagged))
    as_full, as_lagged = (
        float(((own[0] - judges[1]) ** 2 + (own[1] - judges[0]) ** 2).sum()) for own in (judges, others)
    )
    return as_lagged < as_full
