"""Sequential Monte Carlo against an independent reversible-jump MCMC: a Hawkes process of three types."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models import Hawkes
from retrodict.proposals import Filtering, Smoothing
from retrodict.smc.impute import impute
from tests.conftest import each_engine
from tests.smc.reversible_jump import BY_TYPE, log_joint, reversible_jump

BASE = [0.4, 0.2, 0.3]
EXCITATION = [[0.2, 0.6, 0.1], [0.1, 0.2, 0.5], [0.5, 0.1, 0.1]]
DECAY = [3.0, 2.0, 4.0]
CASES = {
    "by type": ([0.6, 0.3, 0.8], EventStream([0.55, 1.3, 1.42, 2.1], [0, 1, 2, 0], end=2.5)),
    "deterministic": ([0.0, 1.0, 0.0], EventStream([0.3, 0.8, 1.5, 1.62], [0, 2, 2, 0], end=2.5)),
}


@pytest.fixture(scope="module", params=list(CASES))
def case(request):
    rho, stream = CASES[request.param]
    with np.errstate(divide="ignore"):
        chains = reversible_jump(BASE, EXCITATION, DECAY, rho, stream)
        arrays = [np.array(a) for a in (BASE, EXCITATION, DECAY, rho)]
        seen = (stream.times, stream.types, np.zeros(len(stream), bool), len(stream), stream.end)
        alone = log_joint(*arrays, *seen, BY_TYPE, np.zeros(0))
    return rho, stream, chains, alone


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_counts_and_evidence_agree_with_mcmc(case, kind, sampler, engine):
    """Counts by type and half, and the evidence: all within 3 standard errors of the difference."""
    rho, stream, chains, alone = case
    model, mechanism = Hawkes(BASE, EXCITATION, DECAY).double(), ByType(rho)
    proposal = Filtering(model, mechanism)
    if kind == "smoothing":
        torch.manual_seed(0)
        proposal = Smoothing(model, mechanism, 6, mixing=0, told=False)
        torch.nn.init.normal_(proposal.readout, std=0.4)
    runs = 40
    copies = StreamSet(
        [EventStream(stream.times, stream.types, end=stream.end, id=i) for i in range(runs)], types=["a", "b", "c"]
    )
    posterior = impute(copies, proposal, particles=400, seed=3, sampler=sampler, engine=engine)
    evidence = np.exp(posterior.log_evidence)
    share = evidence / evidence.mean()
    root = math.sqrt(len(chains.empty))

    empty, its_error = chains.empty.mean(), chains.empty.std() / root
    assert its_error < 0.05 * empty  # the chains mix well enough to say something
    expected = math.exp(alone) / empty
    error = math.hypot(evidence.std() / math.sqrt(runs), expected * its_error / empty)
    assert abs(evidence.mean() - expected) < 3 * error

    middle = stream.end / 2
    for k in range(3):
        for half, (a, b) in enumerate(((None, np.nextafter(middle, 0)), (middle, None))):
            theirs = chains.counts[:, k, half]
            values = posterior.expected_count(k, a, b)
            ours = (share * values).mean()
            spread = math.hypot((share * (values - ours)).std() / math.sqrt(runs), theirs.std() / root)
            assert abs(ours - theirs.mean()) <= 3 * spread + 1e-12, (k, half)
            assert (rho[k] > 0) == (ours > 0)
