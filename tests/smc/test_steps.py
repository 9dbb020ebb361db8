"""Algorithm 1 by hand, step by step, is what ``rd.impute`` does."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.smc import impute
from tests.conftest import random_neural_hawkes


def case(kind: str) -> tuple[rd.StreamSet, rd.Proposal]:
    """Streams of unequal length, shortest first, as ``rd.impute`` takes them; one has nothing observed."""
    model, mechanism = random_neural_hawkes(seed=4), rd.ByType([0.5, 0.3, 0.9])
    observed, _ = mechanism.censor(rd.simulate(model, 12, end=5.0, seed=1), seed=1)
    observed = observed[np.argsort(observed.lengths, kind="stable")]
    nothing = rd.StreamSet([rd.EventStream([], [], end=5.0, id="nothing")], types=observed.types)
    observed = rd.StreamSet([*nothing, *observed], types=observed.types)
    torch.manual_seed(0)
    return observed, rd.Filtering(model, mechanism) if kind == "filtering" else rd.Smoothing(model, mechanism, 6)


@pytest.mark.parametrize("options", [{}, {"resample": None}, {"resample": "residual", "sampler": "inversion"}])
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_stepping_by_hand_is_imputing_bit_for_bit(kind, options):
    observed, proposal = case(kind)
    options = {"ess_threshold": 1.1, **options}
    posterior = rd.impute(observed, proposal, 20, seed=3, engine="torch", islands=1, **options)
    taken = list(rd.sweep(observed, proposal, 20, seed=3, **options))
    sample = taken[-1].particles.sample()
    kept = torch.arange(sample.times.shape[2]) < sample.counts[..., None]
    np.testing.assert_array_equal(sample.times[kept], posterior.event_times)
    np.testing.assert_array_equal(sample.types[kept], posterior.event_types)
    np.testing.assert_array_equal(torch.softmax(sample.log_weights, 1), posterior.all_weights)
    np.testing.assert_array_equal(sample.log_evidence, posterior.log_evidence)
    np.testing.assert_array_equal(torch.stack([step.info.ess for step in taken], 1), posterior.diagnostics.ess)
    resampled = torch.stack([step.info.resampled for step in taken], 1)
    np.testing.assert_array_equal(resampled.sum(1), posterior.diagnostics.resamplings)
    assert bool(resampled.any()) == (options.get("resample", "systematic") is not None)


def test_steps_go_from_one_observed_event_to_the_next():
    """After step i every particle has come to observed event i, or to the end, and has no missing event beyond."""
    observed, proposal = case("filtering")
    edges = [np.append(stream.times, stream.end) for stream in observed]
    most = int(observed.lengths.max())
    for number, step in enumerate(rd.sweep(observed, proposal, 20, seed=3)):
        assert step.number == number
        particles = step.particles
        sample = particles.sample()
        for b, own in enumerate(edges):
            until = own[min(number, len(own) - 1)]
            times = sample.times[b][torch.arange(sample.times.shape[2]) < sample.counts[b][:, None]]
            assert bool((times <= until).all())
            np.testing.assert_array_equal(particles.now.view(len(observed), -1)[b], until)
            assert bool(step.info.ess[b].isnan()) == (number >= len(own))
    assert number == most


def test_one_stream_can_be_looked_at_on_the_way():
    """What is known of a Poisson process does not depend on the future: the evidence grows by closed-form factors."""
    rates, rho = [1.0, 0.5], [0.4, 0.2]
    stream = rd.EventStream([1.0, 2.5], [0, 1], end=4.0)
    known, last = 0.0, 0.0
    for step in rd.sweep(stream, rd.Filtering(rd.Poisson(rates), rd.ByType(rho)), particles=5):
        until = [1.0, 2.5, 4.0][step.number]
        known -= (until - last) * sum(r * (1 - p) for r, p in zip(rates, rho, strict=True))
        if step.number < 2:
            known += np.log(rates[step.number] * (1 - rho[step.number]))
        assert float(step.particles.sample().log_evidence[0]) == pytest.approx(known, abs=1e-6)
        last = until


def test_the_example_runs():
    found = doctest.DocTestFinder().find(impute.sweep, "sweep", globs={})
    runner = doctest.DocTestRunner()
    for test in found:
        runner.run(test)
    assert runner.summarize().attempted > 3
    assert runner.summarize().failed == 0


@pytest.mark.parametrize(("options", "message"), [({"particles": 0}, "particles"), ({"sampler": "magic"}, "sampler")])
def test_bad_options_are_refused_at_once(options, message):
    observed, proposal = case("filtering")
    with pytest.raises(rd.ModelError, match=message):
        rd.sweep(observed, proposal, **options)
