"""Cures for degeneracy leave the posterior as it is: islands and moves against exact answers."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import torch

from retrodict.errors import ModelError
from retrodict.events.batch import make_batch
from retrodict.events.pairs import make_pairs
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models import Poisson
from retrodict.models.quadrature import GaussLegendre
from retrodict.models.simulate import simulate
from retrodict.models.start import StartAtom
from retrodict.proposals import Filtering, Smoothing
from retrodict.random import stream_keys
from retrodict.smc import rejuvenate
from retrodict.smc.impute import impute
from retrodict.smc.islands import settle, unite
from retrodict.smc.options import Options
from retrodict.smc.particles import Result
from retrodict.smc.resampling import multinomial
from retrodict.smc.sampler import SequentialMonteCarlo
from retrodict.smc.script import Replay, Script
from tests.conftest import random_neural_hawkes
from tests.smc.test_exact import CASES, _random_smoothing, golden_case

RUNS = 700
smc_impute = sys.modules["retrodict.smc.impute"]  # the module; the name is also a function's


def many(observed: StreamSet, count: int) -> StreamSet:
    one = observed[0]
    return StreamSet([EventStream(one.times, one.types, end=one.end, id=i) for i in range(count)], types=observed.types)


def proposal_of(kind, model, mechanism):
    return Filtering(model, mechanism) if kind == "filtering" else _random_smoothing(model, mechanism)


@pytest.mark.parametrize(("name", "kind"), [(CASES[0], "filtering"), (CASES[0], "smoothing"), (CASES[1], "filtering")])
def test_moves_alone_reach_the_exact_posterior(name, kind):
    """One particle a run, drawn from q and never weighed: after 150 moves it is a draw from the posterior."""
    model, mechanism, observed, exact = golden_case(name)
    posterior = impute(many(observed, RUNS), proposal_of(kind, model, mechanism), particles=1, seed=4, rejuvenate=150)
    for k in range(model.num_types):
        checks = [(posterior.expected_count(k), exact["E_count"][k])]
        checks += [
            (posterior.expected_count(k, a, b), mean)
            for (a, b), mean in zip(exact["windows"], exact["E_count_window"][k], strict=True)
        ]
        for values, mean in checks:
            assert abs(values.mean() - mean) <= 3.3 * values.std() / math.sqrt(RUNS) + 1e-12


def test_moves_that_ignore_the_rest_of_the_stream_are_noticed(monkeypatch):
    """The test above can fail: accept every move."""
    plain = rejuvenate.Replay.run

    def equal(self) -> Result:
        run = plain(self)
        run.sample.log_weights.zero_()
        return run

    monkeypatch.setattr(rejuvenate.Replay, "run", equal)
    model, mechanism, observed, exact = golden_case("1_tiny1_rho_1type")
    posterior = impute(many(observed, 1500), Filtering(model, mechanism), particles=1, seed=4, rejuvenate=10)
    values = posterior.expected_count(0)
    assert abs(values.mean() - exact["E_count"][0]) > 5 * values.std() / math.sqrt(1500)


def test_moves_reach_the_start_atom():
    """An exact posterior at the start instant, which moves of the first segment must draw too."""
    model = Poisson([1.0, 0.5])
    model.start_atom = StartAtom(torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).log())
    mechanism = ByType([0.6, 0.9])
    observed = StreamSet([EventStream([1.0], [0], end=2.0, id=i) for i in range(2000)], types=["a", "b"])
    torch.manual_seed(0)
    proposal = Smoothing(model, mechanism, 4)
    torch.nn.init.normal_(proposal.start_readout)
    torch.nn.init.normal_(proposal.readout, std=0.5)
    posterior = impute(observed, proposal, particles=1, seed=3, rejuvenate=40)
    values = posterior.probability("b", 0.0, 0.0)
    exact = 0.27 / (0.2 + 0.5 * 0.6 + 0.3 * 0.9)
    assert abs(values.mean() - exact) < 3.3 * math.sqrt(exact * (1 - exact) / 2000)
    assert posterior.expected_count("a", 1e-9, 2.0).mean() == pytest.approx(1.2, abs=0.1)


def errors_of_islands(name, kind, moves) -> tuple[float, list[float]]:
    """z-scores of evidence and counts of 24 runs with 200 islands of 2, which only their evidence can put right."""
    model, mechanism, observed, exact = golden_case(name)
    proposal = proposal_of(kind, model, mechanism)
    posterior = impute(observed, proposal, particles=400, seed=5, islands=200, rejuvenate=moves)
    evidence = np.exp(posterior.log_evidence - exact["log_evidence"])
    runs = math.sqrt(len(observed))
    scores = []
    for k in range(model.num_types):
        error = evidence * (posterior.expected_count(k) - exact["E_count"][k])
        scores.append(abs(error.mean()) / (error.std() / runs + 1e-12))
    return abs(evidence.mean() - 1) / (evidence.std() / runs + 1e-12), scores


@pytest.mark.parametrize("moves", [0, 3])
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
@pytest.mark.parametrize("name", CASES)
def test_islands_are_exact(name, kind, moves):
    evidence, counts = errors_of_islands(name, kind, moves)
    assert evidence < 3.3
    assert max(counts) < 3.3


def test_islands_that_count_the_same_are_noticed(monkeypatch):
    """The test above can fail: leave their evidence out of the islands' weights."""
    plain = smc_impute.unite

    def blind(run: Result, islands: int) -> Result:
        sample = run.sample._replace(log_evidence=torch.zeros_like(run.sample.log_evidence))
        return plain(run._replace(sample=sample), islands)

    monkeypatch.setattr(smc_impute, "unite", blind)
    evidence, counts = errors_of_islands(CASES[0], "smoothing", 0)
    assert max(evidence, *counts) > 5


def test_one_island_is_the_plain_run_and_the_first_of_several():
    model, mechanism = random_neural_hawkes(), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 5, end=3.0, seed=1), seed=1)
    plain = impute(observed, Filtering(model, mechanism), particles=10, seed=2)
    split = impute(observed, Filtering(model, mechanism), particles=20, seed=2, islands=2)
    for i in range(5):
        for ours, theirs in zip(plain.particles(i), split.particles(i)[:10], strict=True):
            np.testing.assert_allclose(ours.times, theirs.times, rtol=0, atol=1e-9)
    np.testing.assert_allclose(split.all_weights.sum(1), 1)


def test_islands_do_not_mix():
    model, mechanism = random_neural_hawkes(seed=4), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 5, end=6.0, seed=1), seed=1)
    batch, keys = settle(make_batch(observed, dtype=torch.float64), stream_keys(0, observed.ids), 2)
    run = SequentialMonteCarlo(batch, Filtering(model, mechanism), keys, Options(10, multinomial, 1.1)).run()
    trace = unite(run, 2).trace
    assert bool(trace.resampled.any())
    assert bool((trace.parents[..., :10] < 10).all())
    assert bool((trace.parents[..., 10:] >= 10).all())


def test_a_set_without_streams_is_imputed():
    model, mechanism = random_neural_hawkes(), ByType(0.5)
    nothing = StreamSet([], types=["0", "1", "2"])
    for options in ({}, {"islands": 2}, {"rejuvenate": 1}):
        assert len(impute(nothing, Filtering(model, mechanism), particles=4, **options)) == 0


def test_the_resampling_before_moves_is_on_record():
    model, mechanism = random_neural_hawkes(seed=4), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 5, end=6.0, seed=1), seed=1)
    posterior = impute(observed, Filtering(model, mechanism), particles=30, resample=None, rejuvenate=1)
    assert (posterior.diagnostics.resamplings == 1).all()
    assert posterior.diagnostics.ancestors[:, 0].mean() < 30


def test_scripts_are_followed_through_ties_and_from_the_start():
    """Events at the start, tied with each other and tied with an observed one, in the order of a complete stream."""
    model, mechanism = random_neural_hawkes(), ByType(0.5)
    observed = StreamSet([EventStream([1.0, 3.0], [0, 1], end=3.0)], types=["0", "1", "2"])
    missing = StreamSet([EventStream([0.0, 0.5, 0.5, 1.0, 3.0], [2, 0, 1, 2, 0], end=3.0)], types=["0", "1", "2"])
    pairs = make_pairs(observed, missing, dtype=torch.float64)
    keys = stream_keys(0, observed.ids)
    options = Options(1, None, integral=GaussLegendre(16))
    never = torch.full((1,), torch.inf, dtype=torch.float64)
    times, types = (torch.tensor(x)[None] for x in (missing.event_times, missing.event_types))
    script = Script(times, types, never, never, torch.zeros(1, dtype=torch.bool))
    sample = Replay(pairs.observed, Filtering(model, mechanism), keys, options, script).run().sample
    assert sample.times[0, 0, : sample.counts[0, 0]].tolist() == [0.0, 0.5, 0.5, 1.0, 3.0]
    assert sample.types[0, 0, : sample.counts[0, 0]].tolist() == [2, 0, 1, 2, 0]
    with torch.no_grad():
        expected = model.batch_log_likelihood(pairs.complete) + mechanism.log_prob(observed, missing)
    torch.testing.assert_close(sample.log_weights[:, 0], expected)


def test_moved_particles_do_not_depend_on_their_batch():
    model, mechanism = random_neural_hawkes(), ByType([0.5, 0.2, 1.0])
    observed, _ = mechanism.censor(simulate(model, 12, end=3.0, seed=1), seed=1)
    options = {"particles": 6, "seed": 2, "islands": 2, "rejuvenate": 4}
    whole = impute(observed, Filtering(model, mechanism), **options)
    apart = impute(observed, Filtering(model, mechanism), rows=6, **options)
    np.testing.assert_array_equal(apart.event_types, whole.event_types)
    np.testing.assert_allclose(apart.event_times, whole.event_times, rtol=0, atol=1e-9)


def test_moves_make_histories_distinct_again():
    model, mechanism = random_neural_hawkes(seed=4), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 10, end=12.0, seed=1), seed=1)
    filtering = Filtering(model, mechanism)
    before = impute(observed, filtering, particles=40, seed=2, resample="multinomial", ess_threshold=1.1)
    after = impute(observed, filtering, particles=40, seed=2, resample="multinomial", ess_threshold=1.1, rejuvenate=20)
    early = [p.distinct_histories(3.0).mean() for p in (before, after)]
    assert early[1] > 1.5 * early[0]
    assert 0.05 < after.diagnostics.accepted.mean() < 1


@pytest.mark.parametrize(("options", "message"), [({"islands": 3}, "islands"), ({"rejuvenate": -1}, "rejuvenate")])
def test_bad_options_are_refused(options, message):
    model, mechanism = random_neural_hawkes(), ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 2, end=3.0, seed=1), seed=1)
    with pytest.raises(ModelError, match=message):
        impute(observed, Filtering(model, mechanism), particles=10, **options)
