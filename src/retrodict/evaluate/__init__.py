"""How good an imputation is: against the truth, and against another imputation (section 5)."""

from retrodict.evaluate.matching import pair_streams
from retrodict.evaluate.scores import (
    CountError,
    Coverage,
    EventScore,
    Scores,
    TransportScore,
    count_error,
    event_score,
    interval_coverage,
    score,
    transport_score,
)
from retrodict.evaluate.significance import PermutationTest, paired_permutation_test

__all__ = [
    "CountError",
    "Coverage",
    "EventScore",
    "PermutationTest",
    "Scores",
    "TransportScore",
    "count_error",
    "event_score",
    "interval_coverage",
    "pair_streams",
    "paired_permutation_test",
    "score",
    "transport_score",
]
