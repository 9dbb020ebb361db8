"""One smoother for all mechanisms: what it is told, how it is trained, and that any mechanism can be given to it."""

from __future__ import annotations

import itertools
import json
import math
import warnings

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.errors import DataNotice, ModelError
from retrodict.events.batch import make_batch
from retrodict.missingness import Anything, Context
from retrodict.proposals.told_rates import told_rates
from retrodict.train.divergence import Divergence, count_evenly, inclusive
from tests.checks import gradients_are_those_of_finite_differences, weights_are_those_of_the_particles
from tests.conftest import example_model
from tests.missingness.contract import contract_streams
from tests.missingness.examples import END, EXAMPLES, START, TYPES
from tests.smc.test_mechanisms import RATES, exact_evidence, observed_streams

GIVEN = {
    "rates": rd.ByType([0.5, 1.0, 0.2]),
    "windows": rd.Windows([(0.5, 1.1), (1.9, 2.2)], types=["0", "2"], inside=0.8, outside=0.1),
    "delay": rd.ReportingDelay("lognormal", median=0.5, spread=0.8),
    "several": rd.ByType(0.2) * rd.Windows([(1.0, 1.5)]) * rd.ReportingDelay("exponential", mean=0.3),
    "after": rd.After("1", 0.5, rates=0.9, otherwise=0.2),
    "anything": Anything().redrawn(5),
}


def any_smoother(kind: str = "neural_hawkes", dtype: torch.dtype = torch.float64) -> rd.Smoothing:
    """Untrained, with weights of some size."""
    torch.manual_seed(4)
    proposal = rd.Smoothing(example_model(kind).to(dtype), hidden_size=6, mixing=7)
    for weight in (proposal.readout, proposal.mix.readout.weight):
        torch.nn.init.normal_(weight, std=0.6)
    torch.nn.init.normal_(proposal.by_rate, std=1.0)
    return proposal


def pair_of(model: rd.Model, missing: rd.Missingness, streams: int = 6) -> tuple[rd.StreamSet, rd.StreamSet]:
    complete = rd.simulate(model, streams, end=3.0, seed=1)
    return missing.censor(rd.StreamSet(list(complete), types=TYPES), seed=1)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_smoother_is_told_the_mean_rate_of_each_segment_and_the_rate_at_its_end(name):
    """Against 4,000 points of each segment, from the rates that are written out by hand."""
    example = EXAMPLES[name]
    observed = observed_streams(example)
    told = told_rates(example.mechanism.bind(TYPES), make_batch(observed, dtype=torch.float64)).numpy()
    for i, stream in enumerate(observed):
        edges = np.concatenate([[0.0], stream.times - START, [END - START]])
        for j, (left, right) in enumerate(itertools.pairwise(edges)):
            times = left + (right - left) * (np.arange(4000) + 0.5) / 4000
            mean = [example.rate(k, times, stream).mean() for k in range(3)]
            np.testing.assert_allclose(told[i, j, :3], mean, rtol=0, atol=2e-3)
            end = [example.rate(k, np.array([right]), stream)[0] for k in range(3)]
            np.testing.assert_allclose(told[i, j, 3:], end, rtol=0, atol=1e-9)


def test_constant_rates_are_the_same_in_the_table_and_one_by_one():
    """What engines read instead of the network's own weights."""
    proposal = any_smoother().given(GIVEN["rates"])
    observed, missing = pair_of(proposal.model, proposal.missingness)
    batch = make_batch(observed, dtype=torch.float64)
    assert proposal.input_shares(batch) is None
    changing = proposal.given(GIVEN["rates"] * rd.Windows([(50.0, 60.0)]))
    shares = changing.input_shares(batch)
    types = torch.nn.functional.pad(torch.where(batch.mask, batch.types, 3), (0, 1), value=3)
    torch.testing.assert_close(shares, proposal.input_table()[types])
    torch.testing.assert_close(changing.log_prob(missing, observed), proposal.log_prob(missing, observed))


@pytest.mark.parametrize("name", GIVEN)
def test_weights_are_exact_for_any_mechanism(name):
    """Those of the sampler are p / q, evaluated by other code, with the rates of the mechanism that is given."""
    proposal = any_smoother().given(GIVEN[name])
    observed, _ = pair_of(proposal.model, GIVEN[name])
    posterior = rd.impute(
        observed, proposal, 4, missing=GIVEN[name], resample=None, islands=1, engine="torch", sampler="thinning"
    )
    weights_are_those_of_the_particles(posterior, observed, proposal, atol=1e-7)


@pytest.mark.parametrize("name", ["windows", "exponential delay"])
def test_evidence_is_unbiased_where_it_is_known(name):
    """Poisson streams with windows or delays, exactly solvable. Level 0.001."""
    example = EXAMPLES[name]
    stream = observed_streams(example, 1)[0]
    copies = rd.StreamSet([rd.EventStream(stream.times, stream.types, START, END, i) for i in range(200)], types=TYPES)
    torch.manual_seed(1)
    proposal = rd.Smoothing(rd.Poisson(RATES), hidden_size=4)
    torch.nn.init.normal_(proposal.readout, std=0.3)
    posterior = rd.impute(copies, proposal, 20, missing=example.mechanism)
    ratios = np.exp(posterior.log_evidence - exact_evidence(example, stream))
    assert ratios.std() > 0
    assert abs(ratios.mean() - 1) < 3.3 * ratios.std() / math.sqrt(len(ratios))


def test_gradients_through_the_rates_are_those_of_finite_differences():
    proposal = any_smoother().given(GIVEN["several"])
    observed, missing = pair_of(proposal.model, GIVEN["several"])
    proposal.model.start_atom = None
    gradients_are_those_of_finite_differences(proposal, missing, observed)


def test_the_prior_is_wide_and_each_stream_has_a_mechanism_of_its_own():
    streams = contract_streams()
    prior = Anything().bind(TYPES)
    first, again, other = prior.event_rates(streams), prior.event_rates(streams[::-1]), prior.redrawn(1)
    assert first[streams.stream_of_event == 3].tolist() == again[streams[::-1].stream_of_event == 36].tolist()
    assert (first != other.event_rates(streams)).mean() > 0.5
    many = np.concatenate([prior.redrawn(seed).event_rates(streams) for seed in range(50)])
    assert many.min() == 0
    assert many.max() == 1
    for low, high in ((0.0, 0.0), (1e-9, 0.5), (0.5, 1 - 1e-9), (1.0, 1.0)):
        assert ((many >= low) & (many <= high)).mean() > 0.1


def test_types_whose_names_have_a_word_in_common_often_go_missing_together():
    """As people write it: all pick-ups, or all of the Bronx. Without names it takes luck."""
    streams = torch.arange(2000)
    zero = torch.zeros(2000, dtype=torch.float64)
    together = []
    for types in (["pick-up:Bronx", "pick-up:Queens", "drop-off:Bronx", "drop-off:Queens"], list("0123")):
        rates = Anything().bind(types).rates(zero, Context(zero, streams, None, zero + 5.0))
        together.append(int((rates == torch.tensor([1.0, 1.0, 0.0, 0.0])).all(-1).sum()))
    assert together[0] > 2 * together[1] > 0


@torch.no_grad()
def test_the_priors_bounds_hold_and_its_rates_are_smooth_between_breaks():
    batch = make_batch(contract_streams(), dtype=torch.float64)
    for seed in range(20):
        prior = Anything().redrawn(seed).bind(TYPES)
        context = Context(batch.starts, batch.ids, None, batch.durations)
        start, stop = 0.2 * batch.durations, 0.9 * batch.durations
        times = start[:, None] + (stop - start)[:, None] * torch.linspace(0, 1, 4001, dtype=torch.float64)
        rates = prior.rates(times, context.over(times))
        assert bool((rates <= prior.bound(start, stop, context)[:, None] + 1e-12).all())
        assert bool((rates >= 0).all() & (rates <= 1).all())
        breaks = prior.breaks(start, stop, context)
        jump = (rates.diff(dim=1).abs() > 0.02).any(-1)
        if breaks is None:
            assert not jump.any()
            continue
        near = ((breaks[:, None] > times[:, :-1, None]) & (breaks[:, None] <= times[:, 1:, None])).any(-1)
        assert not (jump & ~near).any()


def test_every_epoch_has_other_mechanisms_and_dev_always_the_same():
    model = rd.Poisson([1.0, 2.0, 0.5])
    streams = rd.simulate(model, 20, end=3.0, seed=1)
    smoother = rd.Smoothing(model, hidden_size=4)
    objectives = [Divergence(smoother, streams, streams, learn_from="data", seed=3) for _ in range(2)]
    hidden = []
    for objective, epoch in ((objectives[0], 0), (objectives[1], 0), (objectives[0], 1)):
        index = objective.epoch_batches(20, 0, epoch)[0]
        batch = objective.batch(np.sort(index), epoch)
        hidden.append((batch.missing, objective.loss(batch, True)[0]))
    assert torch.equal(hidden[0][0], hidden[1][0])
    assert torch.equal(hidden[0][1], hidden[1][1])
    assert not torch.equal(hidden[0][0].sum(1), hidden[2][0].sum(1))
    scores = [objective.loss(objective.batch(np.arange(20), None), False)[0] for objective in objectives]
    assert torch.equal(*scores)


def test_streams_of_which_little_may_be_missing_count_for_more_whatever_is_missing():
    streams = rd.simulate(rd.Poisson([1.0] * 3), 400, end=3.0, seed=1)
    prior = Anything().bind(streams.types).redrawn(2)
    batch = make_batch(streams, dtype=torch.float64)
    counts = count_evenly(prior, batch)
    assert float(counts.mean()) == pytest.approx(1.0)
    shares = prior.on(streams).event_rates(streams)
    shares = np.bincount(streams.stream_of_event, shares, len(streams)) / np.maximum(streams.lengths, 1)
    assert float(counts[shares > 0.9].mean()) < 0.5 < 2 * float(counts[shares < 0.1].mean()) / 3
    moved = make_batch(streams.replace(event_times=streams.event_times * 0.5), dtype=torch.float64)
    assert torch.equal(counts, count_evenly(prior, moved))


def test_how_much_streams_count_changes_the_gradient_and_not_the_score():
    proposal = any_smoother()
    complete = rd.StreamSet(list(rd.simulate(proposal.model, 30, end=3.0, seed=1)), types=TYPES)
    objective = Divergence(proposal, complete, complete, learn_from="data")
    batch = objective.batch(objective.epoch_batches(30, 0, 0)[0], 0)

    def of_batch(even: bool) -> tuple[float, torch.Tensor]:
        objective._points = None
        loss, _ = objective.loss(batch, training=True)
        if not even:
            objective._points = None
            loss = inclusive(objective._in_epoch, batch, objective._integral(True)).sum()
        (gradient,) = torch.autograd.grad(loss, proposal.readout)
        return loss.item(), gradient

    (score, weighted), (plain_score, plain) = of_batch(True), of_batch(False)
    assert score == pytest.approx(plain_score, rel=1e-12)
    assert not torch.allclose(weighted, plain)


def test_a_smoother_trained_without_a_mechanism_beats_filtering_for_several():
    """Causes and their effects: log q of what is hidden, higher for each mechanism."""
    model = rd.Hawkes([0.4, 0.02], [[0.0, 0.95], [0.0, 0.0]], 6.0)
    streams = rd.simulate(model, 260, end=8.0, seed=1)
    torch.manual_seed(0)
    smoother = rd.fit(rd.Smoothing(model, hidden_size=16), streams[:200], streams[200:], epochs=50, progress=False)
    given = [rd.ByType([1.0, 0.0]), rd.ByType(0.5), rd.Windows([(2.0, 5.0)]) * rd.ByType([0.9, 0.0])]
    for missing in given:
        observed, hidden = missing.censor(streams[200:], seed=2)
        ours, theirs = (
            float(q.log_prob(hidden, observed).detach().sum())
            for q in (smoother.given(missing), rd.Filtering(model, missing))
        )
        assert ours > theirs + 0.02 * hidden.num_events, missing


def test_a_smoother_for_anything_has_to_be_told_what_goes_missing(tmp_path):
    proposal = any_smoother()
    observed, hidden = pair_of(proposal.model, GIVEN["rates"])
    for use in (rd.impute, rd.check, lambda x, q: list(rd.sweep(x, q)), lambda x, q: rd.sensitivity(x, q, 1.0)):
        with pytest.raises(ModelError, match=r"told which events go missing: give missing="):
            use(*((proposal, observed) if use is rd.check else (observed, proposal)))
    with pytest.raises(ModelError, match=r"Give a mechanism, such as rd\.ByType"):
        rd.impute(observed, proposal, missing=0.5)
    loaded = rd.load_proposal(proposal.save(tmp_path))
    assert isinstance(loaded.missingness, Anything)
    for missing in GIVEN.values():
        ours, theirs = (q.given(missing).log_prob(hidden, observed) for q in (proposal, loaded))
        assert torch.equal(ours, theirs)
    assert len(list(rd.sweep(observed, loaded, 5, missing=GIVEN["windows"])))


def test_a_mechanism_that_a_smoother_was_not_trained_for_is_worth_a_notice():
    model, missing = example_model("hawkes"), rd.ByType([0.5, 1.0, 0.2])
    observed, _ = pair_of(model, missing, 2)
    smoother = rd.Smoothing(model, missing, 4)
    with pytest.warns(DataNotice, match=r"trained for 0=0.5, 1=1, 2=0.2 is used for 0.9 of every type"):
        rd.impute(observed, smoother, 4, missing=rd.ByType(0.9))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataNotice)
        rd.impute(observed, smoother, 4, missing=rd.ByType({"0": 0.5, "1": 1.0, "2": 0.2}))
        rd.impute(observed, rd.Smoothing(model, hidden_size=4), 4, missing=missing)
        rd.impute(observed, rd.Filtering(model, rd.ByType(0.9)), 4, missing=missing)


def test_folders_of_before_smoothers_were_told_rates_keep_loading(tmp_path):
    model, missing = example_model("neural_hawkes"), GIVEN["rates"]
    observed, hidden = pair_of(model, missing)
    before = rd.Smoothing(model, missing, 6, told=False)
    file = before.save(tmp_path) / "proposal.json"
    about = json.loads(file.read_text())
    assert about["config"].pop("told") is False
    file.write_text(json.dumps(about))
    loaded = rd.load_proposal(tmp_path)
    assert loaded.by_rate is None
    assert torch.equal(loaded.log_prob(hidden, observed), before.log_prob(hidden, observed))
    other = loaded.given(GIVEN["windows"])
    assert other.input_shares(make_batch(observed)) is None
    with pytest.warns(DataNotice, match="is used for windows"):
        assert len(rd.impute(observed, loaded, 4, missing=GIVEN["windows"])) == len(observed)
