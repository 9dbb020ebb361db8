"""Small models with calendars, whose hours pass quickly enough for short streams."""

from __future__ import annotations

import pandas as pd
import torch

import retrodict as rd
from retrodict.models.calendar import Calendar
from retrodict.models.covariates import Covariates
from tests.conftest import example_model

ZONE = "America/New_York"
NIGHT = "2024-03-09T22:00"  # clocks are changed four hours later


def some_covariates() -> Covariates:
    """Two columns of steps around these days."""
    when = pd.DatetimeIndex(["2024-02-01T00:00", "2024-03-09T23:30", "2024-03-10T01:00", "2024-03-10T12:00"])
    table = pd.DataFrame({"when": when, "holiday": [0.0, 1.0, 0.0, 1.0], "price": [3.0, 2.0, 5.0, 1.0]})
    return Covariates.from_table(table, ZONE)


def a_calendar(
    num_types: int, day: int = 2, week: int = 1, size: float = 0.5, covariates: Covariates | None = None
) -> Calendar:
    """Random weights, float64."""
    calendar = Calendar(num_types, day, week, unit="hour", zone=ZONE, covariates=covariates).double()
    generator = torch.Generator().manual_seed(3)
    calendar.weights.data.normal_(0.0, size, generator=generator)
    calendar.weights.data[:, 0] = 0.0
    return calendar


def a_seasonal_model(kind: str, rate: float = 1.0, covariates: Covariates | None = None) -> rd.Model:
    """One of the examples with such a calendar, its intensities multiplied by ``rate``."""
    model = example_model(kind)
    model.types, model.time_unit = ("0", "1", "2"), "hour"
    model.calendar = a_calendar(3, covariates=covariates)
    model.calendar.weights.data[:, 0] = torch.tensor(rate).log()
    return model
