"""How much an imputation hangs on the missing rates: the same streams at half, once and twice the odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from retrodict.decode import transport
from retrodict.errors import ModelError
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Missingness
from retrodict.missingness.by_type import ByType
from retrodict.missingness.odds import with_odds
from retrodict.proposals.base import Proposal
from retrodict.smc.impute import impute
from retrodict.smc.posterior import Posterior
from retrodict.smc.unlike import rates_on_trial


@dataclass(frozen=True)
class AtOdds:
    """What is imputed with the odds of going missing times ``factor``."""

    factor: float
    log_evidence: float  # of all streams
    expected: dict[str, float]  # missing events by type
    decoded: StreamSet
    distance: float  # per stream, of the decode from the decode at the odds as given
    edits: int  # events that one of the two decodes has and the other has not, in all streams


@dataclass(frozen=True)
class Sensitivity:
    """One row for each factor of the odds, at the ``cost`` of an event too many or too few."""

    rows: tuple[AtOdds, ...]
    cost: float

    def to_frame(self, library: str = "pandas") -> Any:
        """One row a factor: evidence, expected missing events (in all, and by type), and the decode."""
        import pandas as pd

        from retrodict.events.io.tables_out import in_library  # loads Arrow

        frame = pd.DataFrame(
            [
                {
                    "odds": row.factor,
                    "log_evidence": row.log_evidence,
                    "expected": sum(row.expected.values()),
                    **{f"expected {name}": value for name, value in row.expected.items()},
                    "decoded": row.decoded.num_events,
                    "distance": row.distance,
                    "edits": row.edits,
                }
                for row in self.rows
            ]
        )
        return in_library(frame, library)


def sensitivity(
    observed: StreamSet | EventStream,
    proposal: Proposal,
    cost: float,
    factors: Sequence[float] = (0.5, 1.0, 2.0),
    *,
    missing: Missingness | None = None,
    posterior: Posterior | None = None,
    **options: Any,
) -> Sensitivity:
    """Impute with the odds ρ / (1 - ρ) of going missing times each of ``factors``, and compare counts and decodes.

    A trained smoother stays the proposal: its particles are weighted for the other rates. ``posterior`` is one that was
    sampled at the odds as given; ``missing`` and ``options`` are those of ``rd.impute``. Rates of 0 and 1 have no other
    odds.
    """
    proposal = proposal.ready(missing)
    check_odds(proposal)
    results = {}
    for factor in dict.fromkeys((1.0, *factors)):
        other = proposal.given(with_odds(proposal.missingness, factor))
        with rates_on_trial():
            here = posterior if factor == 1 and posterior is not None else impute(observed, other, **options)
        results[factor] = (here, here.consensus(cost))
    usual = results[1.0][1]
    rows = tuple(_compare(factor, *results[factor], usual, cost) for factor in factors)
    return Sensitivity(rows, cost)


def check_odds(proposal: Proposal) -> None:
    """Refuse rates by type that are the same at any odds."""
    if isinstance(proposal.missingness, ByType):
        rates = proposal.missingness.rates(torch.zeros(()))
        if not ((rates > 0) & (rates < 1)).any():
            raise ModelError(
                "all missing rates are 0 or 1, which are the same at any odds: there is nothing to vary. To see what "
                "hangs on a rate of 1, impute with a lower one, such as 0.9, and compare."
            )


def _compare(factor: float, posterior: Posterior, decoded: StreamSet, usual: StreamSet, cost: float) -> AtOdds:
    apart = [transport(a, b, cost) for a, b in zip(decoded, usual, strict=True)]
    types = posterior.observed.types
    return AtOdds(
        factor,
        float(posterior.log_evidence.sum()),
        {name: float(posterior.expected_count(k).sum()) for k, name in enumerate(types)},
        decoded,
        float(np.mean([a.distance for a in apart])) if apart else 0.0,
        sum(a.inserted + a.deleted for a in apart),
    )
