"""Probabilities as they came true: what a check on held-out streams found of those that a model gives.

A model that is not exactly true gives probabilities that are not exactly right. ``rd.check`` tells, for imputed events
of like probability, how many were really there. ``Reliability`` is the increasing function that these shares suggest
(isotonic regression). It is never applied unasked: ``check.calibrate(posterior)``, ``retrodict impute --calibrate``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError, DataNotice, ModelError

FEWEST = 100  # imputed events that a check must have had
_FACTOR = 2.0  # by which the cost may differ from that of the check


class Reliability(NamedTuple):
    """Probabilities that were given and the shares that happened, both from 0 to 1, increasing; and at which cost."""

    given: list[float]
    happened: list[float]
    cost: float
    events: int

    @classmethod
    def of_check(cls, check: Mapping[str, Any]) -> Reliability:
        """That of a check (``Check.to_dict``); to each row one event of the probability given is added, so that
        nothing becomes certain."""
        from scipy.optimize import isotonic_regression  # takes long to load

        rows: Sequence[Mapping[str, Any]] = check.get("reliability", [])
        events = int(sum(row["events"] for row in rows))
        if events < FEWEST:
            raise DataError(
                f"the check had {events:,} imputed events, too few to calibrate probabilities by",
                remedy=f"check on more complete streams, so that at least {FEWEST} events are imputed",
            )
        n, p, share = (np.array([row[key] for row in rows], float) for key in ("events", "probability", "value"))
        fitted = isotonic_regression((n * share + p) / (n + 1), weights=n + 1).x
        given, happened = [0.0, *p.tolist(), 1.0], [0.0, *fitted.tolist(), 1.0]
        return cls(given, happened, float(check["coverage"]["cost"]), events)

    @classmethod
    def kept(cls, about: Any) -> Reliability:
        """What ``_asdict`` gave, read from a file."""
        try:
            given, happened = ([float(value) for value in about[name]] for name in ("given", "happened"))
            cost, events = float(about["cost"]), int(about["events"])
            good = len(given) == len(happened) > 1 and cost > 0 and math.isfinite(cost)
            for values in (given, happened):
                good = good and min(values) >= 0 and max(values) <= 1 and values == sorted(values)
            if not good:
                raise ValueError("its numbers do not fit together")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"how probabilities were calibrated is not known ({error})", remedy="impute again"
            ) from error
        return cls(given, happened, cost, events)

    def __call__(self, probability: NDArray[np.float64], cost: float) -> NDArray[np.float64]:
        """Calibrated probabilities of events that were decoded at a cost; a notice if that is far from the check's."""
        if not self.cost / _FACTOR <= cost <= self.cost * _FACTOR:
            warnings.warn(
                f"probabilities are calibrated by a check at cost {self.cost:.4g}, and this answer is one at cost "
                f"{cost:.4g}: check at this cost, too",
                DataNotice,
                stacklevel=4,
            )
        return np.interp(probability, self.given, self.happened).round(6)


def refuse_other(check: Mapping[str, Any], model: str, missing: str) -> None:
    """Refuse to calibrate by a check of another model, or of another way to go missing."""
    about = check["about"]
    if about.get("model") != model:
        raise ModelError("the check is one of another model. Check this one, and calibrate by that.")
    if about.get("missing") != missing:
        raise ModelError(
            f"the check hid {about.get('missing') or 'nothing'}, and what is imputed is {missing}. Check with the same "
            "mechanism (missing=, --missing), and calibrate by that. An outage with dates of its own is that of no "
            "check: leave the calibration out, and check with such an outage on dates of complete streams to see how "
            "probabilities come true."
        )
