"""A proposal that looks ahead changes how particles are drawn, not what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import retrodict as rd
from tests.checks import posterior_is_exact
from tests.smc.test_exact import CASES, golden_case
from tests.smc.test_mixing import MISSING, case  # noqa: F401
from tests.smc.test_unbiased import copies


def random_lookahead(model, mechanism, std: float = 1.0) -> rd.Lookahead:
    torch.manual_seed(3)
    proposal = rd.Lookahead(model, mechanism, 5, units=6, steps=2, limit=1.0)
    torch.nn.init.normal_(proposal.readout, std=0.3)
    torch.nn.init.normal_(proposal.value_layer.weight, std=std)
    return proposal


@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("resample", [None, "systematic"])
def test_the_evidence_of_400_small_runs_averages_to_the_truth(resample, sampler, case):  # noqa: F811
    model, stream, truth, error = case
    options = {"particles": 10, "seed": 6, "resample": resample, "sampler": sampler, "ess_threshold": 0.9}
    runs = rd.impute(copies(stream, 400), random_lookahead(model, MISSING), **options)
    values = np.exp(runs.log_evidence)
    assert abs(values.mean() - truth) < 3 * np.hypot(values.std() / 20, error)


def test_a_bound_that_is_too_low_is_noticed(case, monkeypatch):  # noqa: F811
    """The test above can fail: bound the ratio by less than it is."""
    model, stream, truth, _ = case
    monkeypatch.setattr(rd.Lookahead, "most_log_ratio", -1.0)
    proposal = random_lookahead(model, MISSING)
    runs = rd.impute(copies(stream, 400), proposal, particles=10, seed=6, sampler="thinning")
    values = np.exp(runs.log_evidence)
    assert abs(values.mean() - truth) > 5 * values.std() / 20


@pytest.mark.parametrize("name", CASES)
def test_hawkes_posteriors_are_the_exact_ones(name):
    """Evidence and expected counts by type and window over 24 runs, all within 3.3 standard errors."""
    model, mechanism, observed, exact = golden_case(name)
    posterior = rd.impute(observed, random_lookahead(model, mechanism, std=0.5), particles=400, seed=5)
    posterior_is_exact(posterior, model.num_types, exact)
