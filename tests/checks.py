"""What several tests hold proposals to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

import retrodict as rd
from retrodict.events.batch import make_batch


def weights_are_those_of_the_particles(
    posterior: rd.Posterior, observed: rd.StreamSet, proposal: rd.Proposal, nodes: int = 8, atol: float = 1e-8
) -> None:
    """Each particle's log weight is log p(x, z) + log p_miss - log q(z | x), evaluated by other code."""
    particles = posterior.all_weights.shape[1]
    logs = np.log(posterior.all_weights * particles) + posterior.log_evidence[:, None]
    integral = rd.GaussLegendre(nodes)
    for m in range(particles):
        drawn = rd.StreamSet([posterior.particles(i)[m] for i in range(len(observed))], types=observed.types)
        complete, _ = rd.combine(observed, drawn)
        expected = proposal.model.log_likelihood(complete, integral=integral)
        expected = expected + proposal.missingness.log_prob(observed, drawn)
        expected = expected - proposal.log_prob(drawn, observed, integral=integral)
        np.testing.assert_allclose(logs[:, m], expected.detach(), rtol=0, atol=atol)


def posterior_is_exact(posterior: rd.Posterior, num_types: int, exact: dict[str, Any]) -> None:
    """Evidence and expected counts by type, in all and by window, over all runs: a t test of each.

    Runs of the full ensemble are combined by their evidence, which is unbiased for any number of particles: weights
    normalised run by run are not, and the lagged ensemble is not.
    """
    evidence, full = np.exp(posterior.log_evidence - exact["log_evidence"]), posterior.full
    _mean_is_nought(evidence - 1)
    for k in range(num_types):
        windows = [((None, None), exact["E_count"][k])]
        windows += zip(exact["windows"], exact["E_count_window"][k], strict=True)
        for (start, end), mean in windows:
            counts = (full.weights * posterior._counts(full, k, start, end)).sum(1)
            _mean_is_nought(evidence * (counts - mean))


def _mean_is_nought(errors: NDArray[np.float64], level: float = 1e-5) -> None:
    """A t test; some 500 comparisons at this level raise a false alarm for one seed in 200."""
    runs = len(errors)
    assert abs(errors.mean()) <= stats.t.isf(level / 2, runs - 1) * errors.std(ddof=1) / np.sqrt(runs) + 1e-12


def gradients_are_those_of_finite_differences(
    proposal: rd.Proposal, missing: rd.StreamSet, observed: rd.StreamSet
) -> None:
    """Of log q in every weight of a proposal for a model without an atom at the start; the model has none."""
    own = [p for name, p in proposal.named_parameters() if not name.startswith("model.") and name != "start_readout"]
    proposal.log_prob(missing, observed).sum().backward()
    assert all(p.grad is None for p in proposal.model.parameters())
    for parameter in own:
        direction = torch.randn_like(parameter)
        values = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                parameter.add_(step * direction)
                values.append(float(proposal.log_prob(missing, observed).sum()))
                parameter.sub_(step * direction)
        slope = (values[0] - values[1]) / 2e-5
        assert float((parameter.grad * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-6)


@torch.no_grad()
def bounds_hold(proposal: rd.Proposal, observed: rd.StreamSet, rows: int, points: int, tightness: float) -> None:
    """λ^q never exceeds its bound: random states, segments and intervals, some very short; nor lies far below it."""
    model, batch = proposal.model, make_batch(observed, dtype=proposal.model.dtype)
    prepared = proposal.prepare(batch)
    stream = torch.randint(len(observed), (rows,))
    segment = (torch.rand(rows) * (batch.mask.sum(1)[stream] + 1)).long()
    ahead = proposal.ahead(prepared, stream, segment)
    left = torch.where(segment > 0, batch.times[stream, (segment - 1).clamp(min=0)], 0.0)
    a = left + (ahead.time - left) * torch.rand(rows, dtype=torch.float64)
    b = a + (ahead.time - a) * torch.rand(rows, dtype=torch.float64) ** torch.randint(1, 30, (rows,))
    b[::4] = ahead.time[::4]
    state = model.update(model.initial((rows,)), torch.randint(3, (rows,)), left)
    bound = proposal.bound(state, ahead, a, b)
    grid = a[:, None] + (b - a)[:, None] * torch.linspace(0, 1, points, dtype=torch.float64)
    rates = proposal.rates(state, ahead, grid).proposal
    assert (rates.amax(1) <= bound).all()
    assert (rates.amax(1) / bound).mean() > tightness
