"""The native engine for every mechanism, model and proposal that it takes: against other code and the reference."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy import stats

import retrodict as rd
from retrodict.events.batch import Batch
from retrodict.missingness import Missingness
from retrodict.models.simulate import simulate
from retrodict.models.start import StartAtom
from tests.checks import weights_are_those_of_the_particles
from tests.conftest import compiled, example_model, random_neural_hawkes, random_state_space

pytestmark = compiled
TYPES = ("0", "1", "2")
LENGTH = 3.0
MECHANISMS: dict[str, Missingness] = {
    "outage": rd.Windows([(0.7, 1.9)]),
    "windows": rd.Windows([(0.0, 0.4), (0.9, 1.3), (2.0, 2.1)], types=["0", "2"], inside=0.9, outside=0.2),
    "table": rd.TimeVarying([0.3, 1.0, 1.0, 2.5], {"0": [0.0, 1.0, 0.2, 0.9], "1": [1, 1, 0, 0]}),
    "delay": rd.ReportingDelay("gamma", mean={"0": 0.3, "1": 0.9, "2": 5.0}, shape=1.4),
    "after": rd.After("1", 0.5, rates={"0": 0.9, "1": 0.3, "2": 0.7}, otherwise={"0": 0.1, "2": 0.4}),
    "several": rd.After(["0", "2"], 0.6, 0.7, 0.1) * rd.Windows([(1.0, 2.0)], inside=0.5) * rd.After("1", 0.3, 0.2)
    * rd.ByType([0.3, 0.0, 0.1]) * rd.ReportingDelay("lognormal", median=0.3, spread=0.8),
}  # fmt: skip
PROPOSALS = {"filtering": None, "smoothing": 0, "mixing": 7}


def a_model(kind: str) -> rd.Model:
    if kind == "poisson":
        return rd.Poisson([1.0, 0.6, 0.8])
    if kind == "hawkes":
        return rd.Hawkes([0.5, 0.3, 0.4], [[0.2, 0.6, 0.1], [0.1, 0.2, 0.5], [0.5, 0.1, 0.1]], [3.0, 2.0, 4.0])
    if kind == "scales":
        return example_model("hawkes_scales")
    if kind == "state space":
        return random_state_space(num_types=3, size=11, seed=2).float()
    return random_neural_hawkes(num_types=3, hidden_size=11, seed=2, spread=0.6).float()


def a_case(mechanism: Missingness, kind: str, how: str, streams: int = 6, atom: bool = False):
    """Observed streams and a proposal with large random weights."""
    model = a_model(kind)
    if atom:
        model.start_atom = StartAtom(torch.tensor([0.4, 0.2, 0.1, 0.3], dtype=torch.float64).log())
    observed, _ = mechanism.censor(simulate(model, streams, end=LENGTH, seed=1), seed=1)
    if PROPOSALS[how] is None:
        return observed, rd.Filtering(model, mechanism)
    torch.manual_seed(5)
    proposal = rd.Smoothing(model, mechanism, 9, PROPOSALS[how])
    torch.nn.init.normal_(proposal.readout, std=0.3)
    torch.nn.init.normal_(proposal.start_readout, std=0.3)
    if proposal.mix is not None:
        for layer, std in ((proposal.mix.past, 0.5), (proposal.mix.future, 0.5), (proposal.mix.readout, 0.4)):
            torch.nn.init.normal_(layer.weight, std=std)
    return observed, proposal


@pytest.mark.parametrize("how", PROPOSALS)
@pytest.mark.parametrize("kind", ["poisson", "hawkes", "scales", "neural", "state space"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_log_weights_are_those_of_the_particles(name, kind, how):
    """Each particle's log weight is log p(x, z) + log p_miss - log q(z | x), evaluated by other code."""
    observed, proposal = a_case(MECHANISMS[name], kind, how, 4)
    posterior = rd.impute(observed, proposal, particles=15, resample=None, seed=3, engine="native", sampler="thinning")
    weights_are_those_of_the_particles(posterior, observed, proposal, nodes=8, atol=3e-3)
    assert len(posterior.event_times) > 0


def tables(posterior: rd.Posterior) -> tuple[np.ndarray, np.ndarray]:
    counts = np.bincount(np.minimum(np.diff(posterior.offsets), 25), minlength=26)
    return counts, np.bincount(posterior.event_types, minlength=3)


def samples_agree(ours: rd.Posterior, theirs: rd.Posterior) -> list[float]:
    """p-values of two-sample tests: counts, types, times, and the log weights of each stream."""
    values = []
    for one, other in zip(tables(ours), tables(theirs), strict=True):
        both = np.stack([one, other])
        both = both[:, both.sum(0) > 20]
        values.append(stats.chi2_contingency(both).pvalue)
    values.append(stats.ks_2samp(ours.event_times, theirs.event_times).pvalue)
    logs = [np.log(p.all_weights * p.all_weights.shape[1]) + p.log_evidence[:, None] for p in (ours, theirs)]
    streams = len(logs[0])
    for one, other in zip(*logs, strict=True):
        rounded = (np.round(one, 3), np.round(other, 3))  # equal weights, up to rounding, are equal
        values.append(min(1.0, streams * stats.ks_2samp(*rounded).pvalue))
    return values


@pytest.mark.parametrize(
    ("name", "kind", "how", "atom"),
    [
        ("outage", "neural", "mixing", False),
        ("outage", "hawkes", "smoothing", True),
        ("windows", "neural", "smoothing", True),
        ("windows", "poisson", "mixing", False),
        ("table", "neural", "filtering", True),
        ("table", "hawkes", "mixing", True),
        ("delay", "neural", "mixing", True),
        ("delay", "poisson", "smoothing", True),
        ("after", "neural", "smoothing", True),
        ("after", "hawkes", "mixing", False),
        ("several", "neural", "mixing", True),
        ("several", "poisson", "filtering", True),
        ("several", "scales", "mixing", True),
        ("delay", "scales", "smoothing", False),
        ("windows", "state space", "filtering", False),
        ("table", "state space", "mixing", True),
        ("several", "state space", "smoothing", True),
    ],
)
def test_the_native_engine_samples_what_the_reference_samples(name, kind, how, atom):
    """Counts, times, types and log weights of 6 x 800 unweighted particles: two-sample tests at level 0.001 each."""
    observed, proposal = a_case(MECHANISMS[name], kind, how, atom=atom)
    options = {"particles": 800, "resample": None, "sampler": "thinning"}
    ours = rd.impute(observed, proposal, seed=1, engine="native", **options)
    theirs = rd.impute(observed, proposal, seed=2, engine="torch", **options)
    assert min(samples_agree(ours, theirs)) > 1e-3


@pytest.mark.parametrize("how", PROPOSALS)
@pytest.mark.parametrize("kind", ["poisson", "hawkes", "neural", "state space"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_inversion_answers_as_thinning_does(name, kind, how):
    """Evidence and counts by type over 150 copies of a stream, resampled often: within 3.6 standard errors."""
    observed, proposal = a_case(MECHANISMS[name], kind, how, atom=True)
    stream = max(observed, key=len)
    copies = [rd.EventStream(stream.times, stream.types, end=LENGTH, id=i) for i in range(150)]
    options = {"particles": 40, "ess_threshold": 0.9, "engine": "native", "islands": 1}
    answers = []
    for seed, sampler in enumerate(("thinning", "inversion")):
        posterior = rd.impute(rd.StreamSet(copies, types=TYPES), proposal, seed=seed, sampler=sampler, **options)
        evidence = np.exp(posterior.log_evidence - posterior.log_evidence.max())
        level = evidence.mean() * np.exp(posterior.log_evidence.max())
        share, root = evidence / evidence.mean(), np.sqrt(len(copies))
        own = [(level, level * share.std() / root)]
        for k in range(3):
            counts = posterior.expected_count(k)
            mean = (share * counts).mean()
            own.append((mean, (share * (counts - mean)).std() / root))
        answers.append(own)
    for (one, error), (other, its_error) in zip(*answers, strict=True):
        assert abs(one - other) <= 3.6 * np.hypot(error, its_error) + 1e-9


@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("kind", ["hawkes", "neural"])
def test_last_triggers_follow_their_particles(kind, sampler):
    """Type 0 is hidden soon after type 1 and seen otherwise: what a particle lacks or has too much is impossible."""
    mechanism = rd.After("1", 0.5, rates={"0": 1.0, "1": 0.6}, otherwise={"1": 0.6})
    observed, proposal = a_case(mechanism, kind, "filtering", 20)
    options = {"particles": 30, "seed": 3, "ess_threshold": 1.0, "islands": 1, "sampler": sampler, "engine": "native"}
    posterior = rd.impute(observed, proposal, **options)
    assert posterior.diagnostics.resamplings.sum() > 50
    for m in range(30):
        drawn = rd.StreamSet([posterior.particles(i)[m] for i in range(20)], types=observed.types)
        possible = torch.isfinite(proposal.missingness.log_prob(observed, drawn)).numpy()
        np.testing.assert_array_equal(possible, posterior.all_weights[:, m] > 0)


def test_a_smoother_may_say_what_each_input_adds(monkeypatch):
    """Shares of inputs, one by one, take the place of the table: as if another smoother's types had been read."""
    observed, proposal = a_case(MECHANISMS["delay"], "neural", "mixing")
    proposal.by_rate = None  # or else both are told of the delay
    other = copy.deepcopy(proposal)
    torch.nn.init.normal_(other.lstm.by_type, std=1.5)

    def shares(batch: Batch) -> torch.Tensor:
        inputs = torch.where(batch.mask, batch.types, proposal.boundary)
        return other.input_table()[torch.nn.functional.pad(inputs, (0, 1), value=proposal.boundary)]

    before, wanted = (rd.impute(observed, p, particles=20, seed=1, engine="native") for p in (proposal, other))
    monkeypatch.setattr(proposal, "input_shares", shares)
    told = rd.impute(observed, proposal, particles=20, seed=1, engine="native")
    assert not np.array_equal(before.log_evidence, wanted.log_evidence)
    np.testing.assert_array_equal(told.log_evidence, wanted.log_evidence)
