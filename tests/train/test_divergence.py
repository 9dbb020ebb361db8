"""The divergences a proposal is trained by: values and gradients against exact ones, and what mixtures do."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.events.batch import make_batch
from retrodict.events.pairs import make_pairs, pairs_of_draws
from retrodict.missingness.base import Context
from retrodict.models.quadrature import GaussLegendre
from retrodict.proposals import Smoothing
from retrodict.random import stream_keys
from retrodict.smc.options import Options
from retrodict.smc.sampler import SequentialMonteCarlo
from retrodict.train.divergence import Divergence, exclusive
from retrodict.train.module import TrainingModule
from tests.conftest import random_neural_hawkes

RATES, RHO, END = [1.0, 0.6], [0.5, 1.0], 3.0


def poisson_smoother() -> Smoothing:
    torch.manual_seed(2)
    proposal = Smoothing(rd.Poisson(RATES).double(), rd.ByType(RHO), 4)
    torch.nn.init.normal_(proposal.readout, std=1.5)
    return proposal


def exact_exclusive(proposal: Smoothing, batch) -> torch.Tensor:
    """KL(q ‖ p) - log p(x) for a Poisson model, under which z given x is Poisson, and so is it under q.

    ∫ λ^q log(λ^q / ρ λ^p) - λ^q + ρ λ^p, summed over types, and the evidence in closed form.
    """
    rho, rates = torch.tensor(RHO, dtype=torch.float64), torch.tensor(RATES, dtype=torch.float64)
    positions, weights = GaussLegendre(20).nodes((), batch.gaps)
    prepared = proposal.prepare(batch)
    segments = batch.mask.shape[1] + 1
    left = torch.cat([torch.zeros_like(batch.times[:, :1]), batch.times], 1)
    total = torch.zeros(len(batch.durations), dtype=torch.float64)
    stream = torch.arange(len(total))
    for s in range(segments):
        ahead = proposal.ahead(prepared, stream, torch.full_like(stream, s))
        t = left[:, s, None] + batch.gaps[:, s, None] * positions
        state = proposal.model.initial((len(stream),))
        q = proposal.rates(state, ahead, t, Context(batch.starts, stream, state)).proposal
        p = (rho * rates).expand_as(q)
        total = total + ((q * (q / p).log() - q + p).sum(-1) @ weights) * batch.gaps[:, s]
    seen = torch.where(batch.mask, (rates * (1 - rho)).log()[batch.types], 0.0).sum(1)
    return total - (seen - batch.durations * (rates * (1 - rho)).sum())


@pytest.mark.parametrize("draws", [1, 4])
def test_exclusive_values_and_gradients_are_unbiased(draws):
    """Against the exact divergence for a Poisson model: the mean over many draws, within 3.5 standard errors."""
    proposal = poisson_smoother()
    stream = rd.EventStream([0.4, 1.5], [0, 0], end=END)
    one = make_batch(rd.StreamSet([stream], types=["a", "b"]), dtype=torch.float64)
    weights = [p for p in proposal.parameters() if p.requires_grad and p is not proposal.start_readout]
    exact = exact_exclusive(proposal, one)[0]
    slopes = torch.cat([g.reshape(-1) for g in torch.autograd.grad(exact, weights)])
    values, gradients = [], []
    for run in range(40):
        copies = rd.StreamSet(
            [rd.EventStream(stream.times, stream.types, end=END, id=i) for i in range(400 // draws)], types=["a", "b"]
        )
        estimate = exclusive(
            proposal, make_batch(copies, dtype=torch.float64), stream_keys(run, copies.ids), draws
        ).mean()
        values.append(float(estimate.detach()))
        gradients.append(torch.cat([g.reshape(-1) for g in torch.autograd.grad(estimate, weights)]))
    table = torch.stack(gradients)
    assert abs(np.mean(values) - float(exact.detach())) < 3.5 * np.std(values) / math.sqrt(40)
    error = table.std(0) / math.sqrt(40)
    # Of some hundred slopes a few may lie beyond 2 standard errors, hardly any beyond 4.
    z = ((table.mean(0) - slopes) / error.clamp(min=1e-12)).abs()
    assert z.max() < 4.5
    assert (z > 2).double().mean() < 0.12
    assert (slopes.abs() > 4 * error).sum() > 5  # there is something to see


def test_comparing_a_draw_with_the_others_takes_variance_away():
    proposal = poisson_smoother()
    streams = rd.simulate(proposal.model, 60, end=END, seed=1)
    batch = make_batch(rd.ByType(RHO).censor(streams, seed=2)[0], dtype=torch.float64)
    spread = []
    for draws, repeats in ((1, 4), (4, 1)):  # the same number of draws in all
        gradients = []
        for run in range(20):
            estimate = torch.stack(
                [
                    exclusive(proposal, batch, stream_keys(100 * run + r, range(60)), draws).mean()
                    for r in range(repeats)
                ]
            ).mean()
            gradients.append(torch.autograd.grad(estimate, proposal.readout)[0])
        spread.append(torch.stack(gradients).std(0).mean())
    assert spread[1] < 0.5 * spread[0]


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_mixtures_train_and_do_so_reproducibly(beta):
    model = rd.Hawkes([0.4, 0.02], [[0.0, 0.9], [0.0, 0.0]], 4.0)
    streams = rd.simulate(model, 80, end=6.0, seed=1)
    weights = []
    for _ in range(2):
        torch.manual_seed(1)
        proposal = rd.Smoothing(model, rd.ByType([1.0, 0.0]), 8)
        rd.fit(
            proposal,
            streams[:60],
            streams[60:],
            epochs=10,
            batch_size=10,
            beta=beta,
            learning_rate=0.02,
            progress=False,
        )
        weights.append(proposal.readout.detach().clone())
    assert torch.equal(*weights)
    observed = make_batch(
        rd.ByType([1.0, 0.0]).censor(rd.simulate(model, 200, end=6.0, seed=5))[0], dtype=torch.float64
    )
    torch.manual_seed(1)
    before = rd.Smoothing(model, rd.ByType([1.0, 0.0]), 8)
    with torch.no_grad():
        old, new = (exclusive(q, observed, stream_keys(3, range(200)), 8).mean() for q in (before, proposal))
    assert new < old - 0.1


def test_a_run_with_another_divergence_is_not_resumed(tmp_path):
    model = random_neural_hawkes(seed=2).float()
    streams = rd.simulate(model, 20, end=2.0, seed=1)
    proposal = rd.Smoothing(model, rd.ByType(0.5), 4)
    rd.fit(proposal, streams[:15], streams[15:], epochs=1, progress=False, directory=tmp_path)
    with pytest.raises(rd.TrainingError, match="another objective"):
        rd.fit(proposal, streams[:15], streams[15:], epochs=1, progress=False, directory=tmp_path, beta=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 1.5}, "beta"),
        ({"learn_from": "me"}, "learn_from"),
        ({"draws": 0}, "draws"),
        ({"redraw": 0}, "redraw"),
    ],
)
def test_bad_options_are_refused(options, message):
    model = random_neural_hawkes(seed=2)
    streams = rd.simulate(model, 5, end=2.0, seed=1)
    with pytest.raises(rd.ModelError, match=message):
        rd.fit(rd.Smoothing(model, rd.ByType(0.5), 4), streams, streams, progress=False, **options)


def _epoch_times(objective: Divergence, epoch: int) -> torch.Tensor:
    count = sum(len(index) for index in objective.epoch_batches(3, 0, epoch))
    return objective.batch(np.arange(count), epoch).complete.times


@pytest.mark.parametrize("teacher", ["model", "both"])
def test_streams_are_drawn_anew_every_so_many_epochs(teacher):
    model = random_neural_hawkes(seed=2)
    streams = rd.simulate(model, 6, end=2.0, seed=1)
    make = partial(Divergence, rd.Smoothing(model, rd.ByType([1.0, 0.0, 0.0]), 4), streams, streams, redraw=2)
    one = make(learn_from=teacher)
    seen = [_epoch_times(one, epoch) for epoch in range(4)]
    assert len(seen[0]) == (6 if teacher == "model" else 12)
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[2], seen[3])
    assert seen[1].shape != seen[2].shape or not torch.equal(seen[1], seen[2])
    resumed = make(learn_from=teacher)
    assert torch.equal(_epoch_times(resumed, 3), seen[3])


def test_points_of_integrals_are_others_in_every_batch_and_the_same_again():
    """A smoother that knows where a gap ends must not know where it is looked at."""
    model = random_neural_hawkes(seed=2)
    streams = rd.simulate(model, 20, end=2.0, seed=1)

    def losses(epoch: int) -> list[float]:
        torch.manual_seed(0)
        objective = Divergence(rd.Smoothing(model, rd.ByType(0.5), 4), streams, streams, learn_from="data", seed=3)
        torch.nn.init.constant_(objective.proposal.readout, 1.0)
        objective.proposal.lstm.by_type.data.fill_(0.5)
        objective.epoch_batches(20, 0, epoch)
        with torch.no_grad():
            return [float(objective.loss(objective.batch(np.arange(20), epoch), True)[0]) for _ in range(3)]

    first = losses(0)
    assert len(set(first)) == 3
    assert losses(0) == first
    assert first[0] == pytest.approx(first[1], rel=0.2)


def test_a_batch_has_the_streams_with_most_observed_events_first():
    """The right-to-left LSTM then reads no padding; each stream is there once, with its own events."""
    model = random_neural_hawkes(seed=2)
    streams = rd.simulate(model, 20, end=4.0, seed=1)
    objective = Divergence(rd.Smoothing(model, rd.ByType(0.5), 4), streams, streams, learn_from="data", seed=3)
    (index,) = objective.epoch_batches(20, 0, 0)
    batch = objective.batch(index, 0)
    observed = batch.observed.mask.sum(1)
    assert len(set(observed.tolist())) > 3
    assert (observed.diff() <= 0).all()
    assert sorted(index) == list(range(20))
    np.testing.assert_array_equal(batch.complete.mask.sum(1), streams.lengths[batch.index])
    np.testing.assert_array_equal(observed + batch.missing.sum(1), streams.lengths[batch.index])


def test_who_teaches_also_scores():
    """Where the model teaches, its streams are scored too, else the dev data; the run is known by the data given."""
    model = rd.Poisson([3.0])
    sparse = rd.simulate(rd.Poisson([1.0]), 200, end=5.0, seed=1)
    objectives = {
        teacher: Divergence(rd.Smoothing(model, rd.ByType(0.5), 4), sparse[:100], sparse[100:], learn_from=teacher)
        for teacher in ("model", "data", "both")
    }
    dense = objectives["model"].streams.scored
    assert dense.num_events > 2 * sparse[100:].num_events
    np.testing.assert_array_equal(dense.durations, sparse[100:].durations)
    for teacher in ("data", "both"):
        assert objectives[teacher].streams.scored is objectives[teacher].dev
    assert len({objective.fingerprint() for objective in objectives.values()}) == 1
    for teacher, per_stream in (("model", 15), ("data", 5), ("both", 10)):
        objective = objectives[teacher]
        count = sum(len(index) for index in objective.epoch_batches(50, 0, 0))
        assert float(objective.batch(np.arange(count), 0).complete.mask.sum()) / count == pytest.approx(
            per_stream, rel=0.15
        )
        assert objective.name_of(count - 1) == (
            sparse.ids[99] if teacher == "data" else "drawn by the model in place of 99"
        )


def test_a_smoother_learns_the_models_posterior_not_the_datas():
    """A model that believes in causes which the data do not have: it weights the particles, so q must follow it."""
    model, missing = rd.Hawkes([0.4, 0.02], [[0.0, 0.9], [0.0, 0.0]], 4.0), rd.ByType([1.0, 0.0])
    world = rd.Hawkes([0.4, 0.2], [[0.0, 0.2], [0.0, 0.0]], 4.0)
    data = rd.simulate(world, 300, end=10.0, seed=1)
    observed, _ = missing.censor(rd.simulate(world, 60, end=10.0, seed=2))
    sizes = {}
    for teacher in ("model", "data"):
        torch.manual_seed(0)
        smoother = rd.Smoothing(model, missing, 16)
        rd.fit(smoother, data[:250], data[250:], epochs=12, learning_rate=0.02, learn_from=teacher, progress=False)
        posterior = rd.impute(observed, smoother, particles=50, resample=None)
        sizes[teacher] = posterior.diagnostics.final_ess
    gain = sizes["model"] - sizes["data"]
    assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain))


def test_a_model_that_explodes_cannot_teach():
    model = rd.Hawkes([5.0], [[3.0]], 10.0)
    streams = rd.StreamSet([rd.EventStream([1.0], [0], end=20.0, id=i) for i in range(4)], types=["0"])
    with pytest.raises(rd.ModelError, match=r'explosive .* learn_from="data"'):
        rd.fit(rd.Smoothing(model, rd.ByType(0.5), 4), streams, streams, epochs=1, progress=False)


@pytest.mark.parametrize("teacher", ["model", "both"])
def test_windows_of_a_stream_hide_what_is_drawn_in_its_place(teacher):
    """Stream 1 loses what happens in [0, 5), and so does what the model draws for it; others lose nothing."""
    model, missing = rd.Poisson([4.0]), rd.Windows(by_stream={1: [(0.0, 5.0)]})
    streams = rd.simulate(model, 3, end=10.0, seed=1)
    objective = Divergence(rd.Smoothing(model, missing, 4), streams, streams, learn_from=teacher)
    rows = sum(len(index) for index in objective.epoch_batches(3, 0, 0))
    batch = objective.batch(np.arange(rows), 0)
    lost = batch.missing.sum(1).tolist()
    assert [count > 5 for count in lost] == [i % 3 == 1 for i in range(rows)]
    assert rows == (3 if teacher == "model" else 6)


def test_streams_that_only_start_at_another_time_are_another_run(tmp_path):
    model = rd.Poisson([1.0])
    make = lambda start: rd.StreamSet(  # noqa: E731
        [rd.EventStream([5.0], [0], start, 10.0, id=i) for i in range(4)], types=["0"]
    )
    rd.fit(rd.Smoothing(model, rd.ByType(0.5), 4), make(0.0), make(0.0), epochs=1, progress=False, directory=tmp_path)
    with pytest.raises(rd.TrainingError, match="another data"):
        rd.fit(
            rd.Smoothing(model, rd.ByType(0.5), 4), make(4.0), make(4.0), epochs=1, progress=False, directory=tmp_path
        )


def test_draws_are_paired_with_what_was_observed():
    """The tensors are those one gets by way of stream sets."""
    model, mechanism = random_neural_hawkes(), rd.ByType([0.5, 0.2, 1.0])
    observed, _ = mechanism.censor(rd.simulate(model, 12, end=3.0, seed=1), seed=1)
    proposal = rd.Filtering(model, mechanism)
    batch = make_batch(observed, dtype=torch.float64)
    drawn = SequentialMonteCarlo(batch, proposal, stream_keys(0, observed.ids), Options(3)).run().sample
    pairs = pairs_of_draws(batch, drawn.times, drawn.types, drawn.counts)
    posterior = rd.impute(observed, proposal, particles=3, resample=None)
    for m in range(3):
        missing = rd.StreamSet([posterior.particles(i)[m] for i in range(12)], types=observed.types)
        plain = make_pairs(observed, missing, dtype=torch.float64)
        rows = torch.arange(12) * 3 + m
        width = plain.complete.mask.shape[1]
        assert torch.equal(pairs.complete.mask[rows][:, :width], plain.complete.mask)
        assert torch.equal(pairs.missing[rows][:, :width], plain.missing)
        assert torch.equal(pairs.complete.types[rows][:, :width], plain.complete.types)
        torch.testing.assert_close(pairs.complete.gaps[rows][:, : width + 1], plain.complete.gaps)
        with torch.no_grad():
            torch.testing.assert_close(proposal.batch_log_prob(pairs)[rows], proposal.batch_log_prob(plain))


def test_a_run_for_another_model_or_mechanism_is_not_taken_for_this_one(tmp_path):
    """Neither finished nor half-way: a smoother belongs to its model and its missing rates."""
    streams = rd.simulate(random_neural_hawkes(seed=2), 20, end=2.0, seed=1)
    first, second = random_neural_hawkes(seed=2), random_neural_hawkes(seed=3)
    rd.fit(rd.Smoothing(first, rd.ByType(0.5), 4), streams, streams, epochs=1, progress=False, directory=tmp_path)
    before = second.readout.detach().clone()
    for other in (rd.Smoothing(second, rd.ByType(0.5), 4), rd.Smoothing(first, rd.ByType(0.6), 4)):
        with pytest.raises(rd.TrainingError, match="another model and mechanism"):
            rd.fit(other, streams, streams, epochs=1, progress=False, directory=tmp_path)
    assert torch.equal(second.readout, before)


def test_losses_read_late_are_the_same(monkeypatch):
    """A GPU's losses are read every few steps: none is lost at the end of an epoch."""
    model = random_neural_hawkes(seed=2).float()
    streams = rd.simulate(model, 20, end=2.0, seed=1)
    begin, records = TrainingModule.on_fit_start, []
    for every in (1, 16):

        def on_fit_start(self, every=every):
            begin(self)
            self.read_every = every

        monkeypatch.setattr(TrainingModule, "on_fit_start", on_fit_start)
        torch.manual_seed(0)
        proposal = rd.Smoothing(model, rd.ByType(0.5), 4)
        rd.fit(proposal, streams[:15], streams[15:], epochs=2, batch_size=5, progress=False)
        records.append({name: value for name, value in proposal.training_record.items() if name != "seconds"})
    assert records[0] == records[1]
    assert records[0]["train_log_likelihood_per_event"] != 0
