"""Monte Carlo EM: models from incomplete streams, mechanisms for known models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.models.start import StartAtom
from retrodict.train import incomplete as incomplete_module

TRUTH = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)
QUIET = {"progress": False, "device": "cpu"}


def parameters(model: rd.Hawkes) -> np.ndarray:
    return torch.cat([model.base, model.excitation.reshape(-1), model.decay.reshape(-1)]).detach().numpy()


def censored(streams: int, rho=0.5, seed: int = 1) -> tuple[rd.StreamSet, rd.StreamSet]:
    complete = rd.simulate(TRUTH, streams, end=20.0, seed=seed)
    return complete, rd.ByType(rho).censor(complete, seed=seed + 1)[0]


@pytest.fixture(scope="module")
def fits() -> tuple[rd.Hawkes, rd.Hawkes, list[dict[str, float]]]:
    """By EM, and as if nothing were missing; and the metrics of the former's epochs."""
    _, seen = censored(200)
    options = {"epochs": 15, "patience": 15, "averaging": 0.98, "learning_rate": 0.03, **QUIET}
    fitted = rd.fit_incomplete(
        rd.Hawkes, seen, rd.ByType(0.5), seen[:40], filtering=True, particles=20, draws=2, **options
    )
    return fitted.model, rd.fit(rd.Hawkes, seen, seen[:40], **options), fitted.history


def test_em_learns_how_much_happens_when_half_of_it_is_seen(fits):
    """Mean rates of the fitted processes, known to some 2 %; ``experiments/em_hawkes.py`` has the parameters."""

    def rates(model: rd.Hawkes) -> np.ndarray:
        return (model.base @ torch.linalg.inv(torch.eye(2) - model.excitation)).detach().numpy()

    by_em, naive, truth = (rates(model) for model in (*fits[:2], TRUTH))
    np.testing.assert_allclose(by_em, truth, rtol=0.07)
    np.testing.assert_allclose(naive, truth / 2, rtol=0.1)
    assert np.abs(parameters(fits[0]) - parameters(TRUTH)).sum() < np.abs(parameters(fits[1]) - parameters(TRUTH)).sum()


def test_em_finds_the_rates_of_a_poisson_process():
    """There the likeliest rate is known: what is seen, over time and the share that is seen."""
    truth, missing = rd.Poisson([0.8, 0.3]), rd.ByType([0.3, 0.6])
    seen, _ = missing.censor(rd.simulate(truth, 100, end=10.0, seed=5), seed=6)
    fitted = rd.fit_incomplete(
        rd.Poisson, seen, missing, seen, filtering=True, particles=10, draws=4, epochs=25, patience=25, **QUIET
    )
    likeliest = np.bincount(seen.event_types, minlength=2) / 1000.0 / (1 - np.array([0.3, 0.6]))
    np.testing.assert_allclose(fitted.model.rates.detach().numpy(), likeliest, rtol=0.05)


def test_the_evidence_rises(fits):
    evidence = [row["train_evidence"] for row in fits[2]]
    smooth = np.convolve(evidence, np.ones(5) / 5, "valid")
    assert smooth[-1] > smooth[0]
    assert (np.diff(smooth) > -0.003).all()
    assert all(row["dev_elbo"] < -row["dev_loss"] for row in fits[2])


def test_rates_are_learned_where_the_model_is_known():
    """Rates by type from 200 streams: within 3 standard errors, which come from eight parts of the streams."""
    _, seen = censored(200, [0.6, 0.2])

    def learn(streams: rd.StreamSet) -> np.ndarray:
        start = rd.Filtering(TRUTH, rd.ByType([0.4, 0.4]))
        learned = rd.learn_missing(start, streams, rounds=12, particles=20, seed=1)
        assert learned.evidence[-1] > learned.evidence[0]
        assert repr(start.missingness) == "ByType({'0': 0.4, '1': 0.4})"
        return learned.missing.rates(torch.zeros(())).numpy()

    parts = np.array([learn(seen[i::8]) for i in range(8)])
    error = parts.std(0, ddof=1) / np.sqrt(8)
    assert (np.abs(learn(seen) - [0.6, 0.2]) < 3 * error).all()
    assert (error < 0.05).all()


def test_rates_of_zero_and_one_stay():
    _, seen = censored(20, [0.6, 0.0])
    learned = rd.learn_missing(rd.Filtering(TRUTH, rd.ByType([0.3, 0.0])), seen, rounds=3, particles=10)
    assert learned.missing.rates(torch.zeros(()))[1] == 0
    with pytest.raises(rd.ModelError, match="nothing to learn in a Windows"):
        rd.learn_missing(rd.Filtering(TRUTH, rd.Windows([(1.0, 2.0)])), seen)


def test_delays_are_learned_where_the_model_is_known(tmp_path):
    complete = rd.simulate(TRUTH, 100, end=10.0, seed=3)
    seen, _ = rd.ReportingDelay("exponential", mean=2.5).censor(complete, seed=4)
    start = rd.Filtering(TRUTH, rd.ReportingDelay("exponential", mean=1.5))
    first = rd.learn_missing(start, seen, rounds=2, particles=100, directory=tmp_path)
    learned = rd.learn_missing(start, seen, rounds=18, particles=100, directory=tmp_path)
    assert learned.evidence[:2] == first.evidence  # it went on with what it found
    with pytest.raises(rd.TrainingError, match="holds another run"):
        rd.learn_missing(start, seen[:50], rounds=3, particles=100, directory=tmp_path)
    assert len(learned.evidence) == 18
    means = list(learned.missing.config()["mean"].values())
    assert np.allclose(means, 2.5, atol=0.7), means
    assert learned.evidence[-1] > learned.evidence[0] + 0.002


def test_both_are_learned_only_with_complete_streams():
    _, seen = censored(60, [0.7, 0.2])
    with pytest.raises(rd.ModelError, match="cannot both be learned from incomplete streams alone"):
        rd.fit_incomplete(rd.Hawkes, seen, rd.ByType(0.4), learn_missing=True, **QUIET)
    other = rd.simulate(TRUTH, 60, end=20.0, seed=77)
    fitted = rd.fit_incomplete(
        rd.Hawkes, seen, rd.ByType(0.4), seen, complete=other, learn_missing=True, filtering=True,
        particles=15, draws=2, epochs=12, patience=12, **QUIET,
    )  # fmt: skip
    rates = fitted.missing.rates(torch.zeros(())).numpy()
    assert np.allclose(rates, [0.7, 0.2], atol=0.12), rates


def small_case(**options):
    torch.manual_seed(0)
    _, seen = censored(24)
    return rd.fit_incomplete(
        rd.NeuralHawkes(2, 8),
        seen[:16],
        rd.ByType(0.5),
        seen[16:],
        particles=8,
        draws=2,
        batch_size=8,
        **QUIET,
        **options,
    )


@contextmanager
def cut_after_two_epochs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, a fit is interrupted after its second epoch."""
    plain = incomplete_module.train_objective

    def stop_early(*args, **options):
        plain(*args, **{**options, "epochs": 2})
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(incomplete_module, "train_objective", stop_early)
        with pytest.raises(KeyboardInterrupt):
            yield


def learning_case(**options):
    """With everything that EM learns outside of the steps: rates, and an atom at the start."""
    model = rd.Poisson([0.5, 0.5])
    model.start_atom = StartAtom(torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).log())
    complete = rd.simulate(model, 60, end=6.0, seed=1)
    seen, _ = rd.ByType([0.5, 0.2]).censor(complete, seed=2)
    return rd.fit_incomplete(
        rd.Poisson, seen[:40], rd.ByType([0.3, 0.3]), seen[40:], complete=complete[:20], learn_missing=True,
        filtering=True, particles=8, **QUIET, **options,
    )  # fmt: skip


def state_of(fitted) -> list[float]:
    atom = fitted.model.start_atom.log_probs.tolist()
    return [*fitted.missing.rates(torch.zeros(())).tolist(), *atom, *fitted.model.rates.tolist()]


def test_what_is_learned_outside_of_the_steps_is_resumed_too(tmp_path, monkeypatch):
    whole = learning_case(epochs=4, directory=tmp_path / "whole")
    with cut_after_two_epochs(monkeypatch):
        learning_case(epochs=4, directory=tmp_path / "cut")
    resumed = learning_case(epochs=4, directory=tmp_path / "cut")
    assert [row["dev_loss"] for row in resumed.history] == [row["dev_loss"] for row in whole.history]
    assert state_of(resumed) == state_of(whole)
    again = learning_case(epochs=4, directory=tmp_path / "cut")
    assert state_of(again) == state_of(whole)
    assert rd.read_missing(tmp_path / "cut" / "missing.yaml").bind(["0", "1"]).rates(torch.zeros(()))[0] > 0.3


def test_mechanisms_that_know_streams_by_name_and_streams_that_cannot_be():
    complete = rd.simulate(TRUTH, 12, end=20.0, seed=1)
    windows = rd.Windows(by_stream={name: [(2.0, 9.0)] for name in complete.ids})
    seen, _ = windows.censor(complete, seed=1)
    fitted = rd.fit_incomplete(rd.Hawkes, seen, windows, seen, smoother_size=4, particles=5, draws=1, epochs=1, **QUIET)
    assert np.isfinite(fitted.history[0]["dev_loss"])
    with pytest.raises(rd.ModelError, match="cannot have been observed under this mechanism"):
        rd.fit_incomplete(rd.Hawkes, complete, rd.ByType([1.0, 0.0]), particles=5, epochs=1, **QUIET)
    with pytest.raises(rd.ModelError, match="draws must be at least 1"):
        rd.fit_incomplete(rd.Hawkes, complete, rd.ByType(0.5), draws=0, **QUIET)


def test_the_callers_mechanism_is_left_alone():
    complete = rd.simulate(TRUTH, 10, end=10.0, seed=1)
    mechanism = rd.Contextual(["0", "1"], scales=[1.0], rate=0.3)
    before = mechanism.config()
    seen, _ = rd.ByType(0.3).censor(complete, seed=1)
    rd.learn_missing(rd.Filtering(TRUTH, mechanism), seen, rounds=1, particles=5)
    assert mechanism.config() == before


def test_an_interrupted_fit_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    whole = small_case(epochs=3, directory=tmp_path / "whole")
    with cut_after_two_epochs(monkeypatch):
        small_case(epochs=3, directory=tmp_path / "cut")
    resumed = small_case(epochs=3, directory=tmp_path / "cut")
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)
    smoother = rd.load_proposal(tmp_path / "cut" / "smoother")
    assert isinstance(smoother, rd.Smoothing)
    assert len(rd.load_model(tmp_path / "cut").types) == 2


def test_an_atom_at_the_start_is_learned():
    """Every stream begins with an event that is hidden from half of them: the model learns that all do."""
    model = rd.Poisson([0.5, 0.5])
    model.start_atom = StartAtom(torch.tensor([1e-9, 0.7, 0.3], dtype=torch.float64).log())
    complete = rd.simulate(model, 150, end=6.0, seed=1)
    seen, _ = rd.ByType(0.5).censor(complete, seed=2)
    fitted = rd.fit_incomplete(
        rd.Poisson, seen, rd.ByType(0.5), seen, filtering=True, particles=20, epochs=25, patience=25, **QUIET
    )
    probabilities = fitted.model.start_atom.log_probs.exp().numpy()
    assert probabilities[0] < 0.25
    assert abs(probabilities[1] - 0.7) < 0.2
