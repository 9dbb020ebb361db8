"""Simulation-based calibration with every mechanism, as in ``test_calibration.py``; chi-square tests at level 0.001.

Events of every type go missing, also those that others go missing after.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import After, Anything, ByType, Custom, Missingness, ReportingDelay, TimeVarying, Windows
from retrodict.models.simulate import simulate
from retrodict.proposals import Filtering, Smoothing
from retrodict.smc.guesses import Guesses
from retrodict.smc.impute import impute
from retrodict.train.fitting import fit
from tests.conftest import example_model
from tests.missingness.examples import contextual
from tests.smc.test_calibration import DRAWS, END, ranks

STREAMS = 500
TYPES = ("0", "1", "2")
MECHANISMS: dict[str, Missingness] = {
    "windows": Windows([(2.5, 0.8)], every=4.0, inside=0.9, outside=0.1),
    "windows by stream": Windows(by_stream={i: [(0.01 * i, 0.01 * i + 1)] for i in range(0, STREAMS, 2)}, clock="axis"),
    "time varying": TimeVarying([0, 1, 2.5], {"0": [0, 1, 0.5], "1": [0.2, 0.2, 1.0], "2": [1, 0, 1]}, every=3),
    "delay": ReportingDelay("gamma", mean={"0": 0.5, "1": 2.0, "2": 5.0}, shape=2.0),
    "after": After(["0", "1"], 0.5, rates=0.9, otherwise=0.2),
    "contextual": contextual(seed=3, blind=False, spread=3.0),
    "several": ByType(0.2) * Windows([(1.0, 1.5)]) * After("2", 0.5, rates={"1": 0.9}),
    "anything": Anything().redrawn(7),
    "custom": Custom(lambda t, context: 0.45 * (1 + torch.cos(3 * t)), bound=0.9),
}


def p_values(
    mechanism: Missingness, smooth: bool, taken_for: Missingness | None = None, trained: int = 0
) -> np.ndarray:
    """One p-value a quantity; streams start at different times. ``taken_for`` is what imputation believes instead.

    A smoother may be ``trained`` for some epochs, for any mechanism.
    """
    model = example_model("hawkes")
    drawn = simulate(model, STREAMS, end=END, seed=21)
    observed, missing = mechanism.censor(_spread(drawn, 1), seed=22)
    proposal = Filtering(model, taken_for or mechanism)
    if smooth:
        torch.manual_seed(5)
        proposal = Smoothing(model, hidden_size=6)  # for whatever is given to it
        torch.nn.init.normal_(proposal.readout, std=0.3)
        if trained:
            fit(proposal, drawn[:100], drawn[100:120], epochs=trained, progress=False)
    particles = 50 if trained else 100  # the truth is one more draw with any number that is enough
    posterior = impute(observed, proposal, particles, 23, ess_threshold=0.7, missing=taken_for or mechanism)
    by_rate = _ranks_of_log_prob(mechanism, posterior, observed, missing)
    # Ranks are those of times since the start.
    shifted = [
        replace(guesses, event_times=_since_start(guesses, posterior)) for guesses in (posterior.full, posterior.lagged)
    ]
    posterior = replace(posterior, observed=_spread(observed, -1), full=shifted[0], lagged=shifted[1])
    table = np.column_stack([ranks(posterior, _spread(missing, -1), seed=24), by_rate])
    return np.array([stats.chisquare(np.bincount(column, minlength=DRAWS + 1)).pvalue for column in table.T])


def _ranks_of_log_prob(mechanism: Missingness, posterior, observed: StreamSet, missing: StreamSet) -> np.ndarray:
    """Of log p_miss itself, which tells whether events were put where they are likely to go missing, [N]."""
    actual = mechanism.log_prob(observed, missing).numpy()
    drawn = np.array([mechanism.log_prob(observed, draw).numpy() for draw in posterior.draws(DRAWS, seed=24)])
    ties = (drawn == actual).sum(0)
    return (drawn < actual).sum(0) + np.random.default_rng(25).integers(0, ties + 1)


def _spread(streams: StreamSet, sign: int) -> StreamSet:
    shifts = sign * (np.arange(len(streams)) % 4).astype(float)
    moved = [
        EventStream(s.times + by, s.types, s.start + by, s.end + by, s.id)
        for s, by in zip(streams, shifts, strict=True)
    ]
    return StreamSet(moved, types=TYPES)


def _since_start(guesses: Guesses, posterior) -> np.ndarray:
    stream = guesses.guess_of_event() // posterior.num_particles
    return guesses.event_times - posterior.observed.starts[stream]


def _by_type(mechanism: Missingness) -> ByType:
    complete = _spread(simulate(example_model("hawkes"), STREAMS, end=END, seed=21), 1)
    rates = mechanism.bind(TYPES).event_rates(complete)
    return ByType([float(rates[complete.event_types == k].mean()) for k in range(3)])


@pytest.mark.parametrize("name", MECHANISMS)
def test_ranks_are_uniform(name, record_property):
    smooth = name in ("windows", "contextual", "anything")
    values = p_values(MECHANISMS[name], smooth, trained=2 if name == "anything" else 0)
    record_property("p_values", [round(float(v), 3) for v in values])
    assert values.min() > 1e-3, values


@pytest.mark.parametrize("name", ["windows", "time varying", "after", "contextual"])
def test_taking_it_for_missing_rates_by_type_is_noticed(name):
    """Impute as if the same share of each type went missing at any time."""
    mechanism = MECHANISMS[name]
    assert p_values(mechanism, smooth=False, taken_for=_by_type(mechanism)).min() < 1e-6
