"""What an imputation would be at half and twice the odds of going missing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.missingness.base import Context
from retrodict.missingness.odds import with_odds

MODEL = rd.Poisson([0.8, 0.3])
RHO = np.array([0.3, 0.6])


def seen(missing: rd.Missingness) -> rd.StreamSet:
    return missing.censor(rd.simulate(MODEL, 20, end=10.0, seed=5), seed=6)[0]


def other(rho: np.ndarray, factor: float) -> np.ndarray:
    odds = factor * rho / (1 - rho)
    return odds / (1 + odds)


def test_counts_of_a_poisson_process_at_half_once_and_twice_the_odds():
    """λ ρ T are missing, whatever was observed."""
    proposal = rd.Filtering(MODEL, rd.ByType(RHO.tolist()))
    found = rd.sensitivity(seen(proposal.missingness), proposal, 2.0, particles=50)
    for row, factor in zip(found.rows, (0.5, 1.0, 2.0), strict=True):
        mean = 200 * np.array([0.8, 0.3]) * other(RHO, factor)
        np.testing.assert_allclose(list(row.expected.values()), mean, atol=5 * np.sqrt(mean / 50).max())
    assert repr(proposal.missingness) == "ByType({'0': 0.3, '1': 0.6})"
    assert (found.rows[1].distance, found.rows[1].edits) == (0.0, 0)
    assert all(row.edits > 0 and row.distance > 0 for row in found.rows[::2])
    table = found.to_frame()
    assert table["expected"].is_monotonic_increasing
    assert table["decoded"].is_monotonic_increasing


def test_a_smoother_stays_the_proposal_at_other_odds():
    """Its particles are weighted for the rates at hand: an untrained smoother gives the right counts, too."""
    torch.manual_seed(0)
    smoother = rd.Smoothing(MODEL, rd.ByType(RHO.tolist()), 4)
    row = rd.sensitivity(seen(smoother.missingness), smoother, 0.5, (2.0,), particles=100).rows[0]
    np.testing.assert_allclose(sum(row.expected.values()), 200 * float(np.array([0.8, 0.3]) @ other(RHO, 2)), rtol=0.05)


def test_every_mechanism_has_other_odds():
    """Also one that depends on time, whose evidence is then that of a Poisson process with the other rate."""
    mechanism = rd.Windows([(2.0, 7.0)], inside=0.8, outside=0.1).bind(("0", "1"))
    twice = with_odds(mechanism, 2.0)
    t = torch.tensor([1.0, 5.0], dtype=torch.float64)
    context = Context(torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.long), end=t + 5)
    rates = other(np.array([0.1, 0.8]), 2.0)
    np.testing.assert_allclose(twice.rates(t, context)[:, 0], rates)
    streams = seen(mechanism)
    posterior = rd.impute(streams, rd.Filtering(MODEL, twice), particles=5)
    inside = (streams.event_times >= 2) & (streams.event_times < 7)
    logs = np.log(np.array([0.8, 0.3])[streams.event_types] * np.where(inside, 1 - rates[1], 1 - rates[0]))
    survival = 20 * 1.1 * (5 * (1 - rates[0]) + 5 * (1 - rates[1]))
    np.testing.assert_allclose(posterior.log_evidence.sum(), logs.sum() - survival, rtol=1e-6)


def test_rates_of_zero_and_one_have_no_other_odds():
    proposal = rd.Filtering(MODEL, rd.ByType([1.0, 0.0]))
    with pytest.raises(rd.ModelError, match="nothing to vary"):
        rd.sensitivity(seen(proposal.missingness), proposal, 0.5)
