"""On a GPU imputation gives the same particles; these tests run where there is one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retrodict.missingness import ByType
from retrodict.models.simulate import simulate
from retrodict.proposals import Filtering, Smoothing
from retrodict.smc.impute import impute
from tests.conftest import KINDS, example_model
from tests.missingness.examples import EXAMPLES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_particles_as_on_the_cpu(kind, smooth, sampler):
    torch.manual_seed(1)
    model, mechanism = example_model(kind), ByType([0.5, 0.2, 1.0])
    observed, _ = mechanism.censor(simulate(model, 30, end=3.0, seed=1), seed=1)
    proposal = Filtering(model, mechanism)
    if smooth:
        proposal = Smoothing(model, mechanism, 6, mixing=0)
        torch.nn.init.normal_(proposal.readout, std=0.3)
    here = impute(observed, proposal, particles=20, seed=2, sampler=sampler, engine="torch")
    there = impute(observed, proposal.cuda(), particles=20, seed=2, sampler=sampler, engine="torch")
    np.testing.assert_array_equal(there.event_types, here.event_types)
    np.testing.assert_allclose(there.event_times, here.event_times, rtol=0, atol=1e-9)
    np.testing.assert_allclose(there.all_weights, here.all_weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(there.log_evidence, here.log_evidence, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")  # some windows lie after the end
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_mechanism_runs_on_the_gpu(name, sampler):
    model, mechanism = example_model("hawkes"), EXAMPLES[name].mechanism
    observed, _ = mechanism.censor(simulate(model, 10, end=3.0, seed=1), seed=1)
    proposal = Filtering(model, mechanism)
    here = impute(observed, proposal, particles=20, seed=2, sampler=sampler, engine="torch")
    there = impute(observed, proposal.cuda(), particles=20, seed=2, sampler=sampler, engine="torch")
    np.testing.assert_array_equal(there.event_types, here.event_types)
    np.testing.assert_allclose(there.event_times, here.event_times, rtol=0, atol=1e-9)
    np.testing.assert_allclose(there.log_evidence, here.log_evidence, rtol=0, atol=1e-9)
