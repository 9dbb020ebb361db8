"""The end atom in imputation: exact posteriors, weights, calibration, for every proposal and engine."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
import torch
from scipy import stats

import retrodict as rd
from retrodict.models.end import EndAtom
from tests.checks import weights_are_those_of_the_particles
from tests.conftest import KINDS, REFERENCE_ONLY, each_engine, example_model, random_neural_hawkes

HAZARDS = [0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0]
RATE, RHO, END = [1.5, 0.5], [0.7, 0.2], 2.0


def poisson() -> rd.Model:
    model = rd.Poisson(RATE)
    model.end_atom = EndAtom.of_counts(HAZARDS, model)
    return model


def smoother(model: rd.Model, mechanism: rd.Missingness, mixing: int | None = 0) -> rd.Smoothing:
    torch.manual_seed(0)
    proposal = rd.Smoothing(model, mechanism, 6, mixing=mixing)
    torch.nn.init.normal_(proposal.readout, std=0.3)
    return proposal


def exact_weights(observed: list[int], how: str) -> np.ndarray:
    """p(observed types, j missing events) of the Poisson process, for j = 0, 1, 2 ... of which one may be at T."""
    weights, seen, lost = [], np.prod([RATE[k] * (1 - RHO[k]) for k in observed]), np.dot(RATE, RHO)
    for missing in range(len(HAZARDS) - len(observed) + 1):
        n, inside = len(observed) + missing, missing - (how == "missing")
        if inside < 0:
            weights.append(0.0)
            continue
        ends = np.prod(1 - np.array(HAZARDS[: n - 1] if how != "cut" else HAZARDS[:n]))
        ends *= HAZARDS[n - 1] if how != "cut" else 1.0
        p = math.exp(-sum(RATE) * END) * seen * (lost * END) ** inside / math.factorial(inside)
        weights.append(p * ends * (lost if how == "missing" else 1.0))
    return np.array(weights)


@each_engine
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("how", ["seen", "missing", "cut"])
@pytest.mark.parametrize("form", ["filtering", "smoothing"])
def test_numbers_of_missing_events_are_exact(form, how, sampler, engine):
    """Evidence, expected number and its distribution over 30 runs, all within 3.3 standard errors."""
    model, mechanism = poisson(), rd.ByType(RHO)
    times, types = [0.41, 1.13, END][: 3 if how == "seen" else 2], [0, 1, 0][: 3 if how == "seen" else 2]
    observed = rd.StreamSet([rd.EventStream(times, types, end=END, id=i) for i in range(30)], types=["0", "1"])
    proposal = rd.Filtering(model, mechanism) if form == "filtering" else smoother(model, mechanism)
    posterior = rd.impute(observed, proposal, 300, seed=1, sampler=sampler, engine=engine, cut=how == "cut")
    exact = exact_weights(types, how)
    evidence = np.exp(posterior.log_evidence) / exact.sum()
    assert abs(evidence.mean() - 1) < 3.3 * evidence.std() / math.sqrt(30)
    counts = posterior._counts(posterior.full, None, None, None)
    for j, probability in enumerate(exact / exact.sum()):
        own = evidence * (((counts == j) * posterior.all_weights).sum(1) - probability)
        assert abs(own.mean()) <= 3.3 * own.std() / math.sqrt(30) + 1e-12
    at_end = posterior.probability("0", END, END)
    if how == "missing":
        own = evidence * (at_end - RATE[0] * RHO[0] / np.dot(RATE, RHO))
        assert abs(own.mean()) <= 3.3 * own.std() / math.sqrt(30) + 1e-12
    else:
        assert not at_end.any()


def with_ends(kind: str, single: bool = False) -> rd.Model:
    """A model of three types whose ends depend on count, type, time and features."""
    model = random_neural_hawkes(seed=4) if kind == "neural_hawkes" else example_model(kind)
    model = model.float() if single else model
    atom = EndAtom.of_counts([0.02, 0.1, 0.2, 0.1, 0.4, 0.6], model)
    atom.by_type.copy_(torch.tensor([-0.5, 0.0, 0.5]))
    atom.by_time.fill_(0.3), atom.time_scale.fill_(2.0)
    atom.by_feature.copy_(torch.linspace(-0.4, 0.4, model.num_features))
    model.end_atom = atom
    return model


RATES = rd.ByType([0.5, 0.3, 0.8])
RANKED = [
    ("hawkes", "filtering"),
    ("neural_hawkes", "smoothing"),
    ("state_space", "smoothing"),
    ("nonlinear_hawkes", "filtering"),
]
MECHANISMS = {
    "by type": RATES,
    "always": rd.ByType([1.0, 0.0, 0.4]),
    "after": RATES * rd.After("1", within=0.7, rates={"0": 0.6}, otherwise=0.1),
    "in windows": rd.Windows([(0.2, 0.9), (1.0, 40.0)], ["0", "1"], inside=0.8, outside=0.1),
}


@each_engine
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("form", ["filtering", "smoothing", "mixing"])
@pytest.mark.parametrize("kind", KINDS)
def test_log_weights_are_those_of_the_particles(kind, form, mechanism, engine):
    """Each particle's log weight is log p(x, z) + log p_miss - log q(z | x), evaluated by other code."""
    if form == "mixing" and kind == "poisson":
        pytest.skip("constant features have nothing to mix")
    if engine == "native" and kind in REFERENCE_ONLY:
        pytest.skip("the torch engine alone takes them")
    single = engine == "native" and kind in ("neural_hawkes", "state_space")
    model, missing = with_ends(kind, single), MECHANISMS[mechanism]
    observed, _ = missing.censor(rd.simulate(model, 12, seed=6), seed=7)
    proposal = rd.Filtering(model, missing)
    if form != "filtering":
        proposal = smoother(model, missing, 5 if form == "mixing" else 0)
    options = {"particles": 6, "seed": 3, "resample": None, "islands": 1, "engine": engine, "sampler": "thinning"}
    # Fast memories, and sharp bends of a softplus, slip between eight.
    nodes = 32 if engine == "torch" and kind in ("state_space", *REFERENCE_ONLY) else 8
    options["integral"] = rd.GaussLegendre(nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.SuspicionNotice)
        posterior = rd.impute(observed, proposal, **options)
        some = observed[np.flatnonzero(posterior.all_weights.min(1) > 0)]
        posterior = rd.impute(some, proposal, **options)
    assert len(some) > 5
    weights_are_those_of_the_particles(posterior, some, proposal, nodes, 3e-3 if engine == "native" else 1e-5)


def quantities(z: rd.EventStream, end: float) -> list[float]:
    """Counts in all, of type 0, in the first half; the first time; whether there is one at the end."""
    half = (z.times < end / 2).sum()
    return [len(z), (z.types == 0).sum(), half, z.times[0] if len(z) else end, float(len(z) and z.times[-1] == end)]


def ranks_are_uniform(posterior: rd.Posterior, missing: rd.StreamSet) -> None:
    """Chi-square tests of the truth's rank among 19 draws of the full ensemble, at level 0.001 each."""
    draws, generator = posterior.draws(19, seed=24, ensemble="full"), np.random.default_rng(25)
    ranks = np.zeros((len(missing), 5), dtype=int)
    for i, end in enumerate(posterior.observed.ends):
        actual = np.array(quantities(missing[i], end))
        drawn = np.array([quantities(d[i], end) for d in draws])
        ranks[i] = (drawn < actual).sum(0) + generator.integers(0, (drawn == actual).sum(0) + 1)
    values = [stats.chisquare(np.bincount(column, minlength=20)).pvalue for column in ranks.T]
    assert min(values) > 1e-3, values


@each_engine
@pytest.mark.parametrize(("kind", "form"), RANKED)
def test_ranks_are_uniform(kind, form, engine):
    """Simulation-based calibration."""
    if engine == "native" and kind in REFERENCE_ONLY:
        pytest.skip("the torch engine alone takes them")
    model = with_ends(kind, single=engine == "native" and kind in ("neural_hawkes", "state_space"))
    observed, missing = RATES.censor(rd.simulate(model, 400, seed=21), seed=22)
    proposal = rd.Filtering(model, RATES) if form == "filtering" else smoother(model, RATES)
    ranks_are_uniform(rd.impute(observed, proposal, 200, seed=23, engine=engine), missing)


def test_a_cut_after_6_events_tells_how_many_are_missing():
    """With the atom every particle has 6 events; without it expected numbers are off by more than one."""
    model, missing = rd.Hawkes([1.0, 0.5], [[0.4, 0.2], [0.1, 0.3]], 2.0), rd.ByType([0.5, 0.5])
    streams = rd.simulate(model, 200, num_events=6, seed=1)
    model.end_atom = EndAtom.of_counts([1e-6] * 5 + [1 - 1e-6], model)
    observed, hidden = missing.censor(streams, seed=2)
    off = {}
    for name, known in (("with", model), ("without", model.endless())):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rd.SuspicionNotice)
            expected = rd.impute(observed, rd.Filtering(known, missing), 400, seed=3).expected_count()
        off[name] = expected - hidden.lengths
    assert np.abs(off["with"]).max() < 1e-3
    assert np.sqrt((off["without"] ** 2).mean()) > 1


@each_engine
def test_a_stream_that_can_have_lost_nothing_at_its_end_was_cut(engine):
    model, missing = poisson(), rd.Windows([(0.0, 1.0)], inside=0.5)
    observed = rd.StreamSet([rd.EventStream([0.41, 1.13], [0, 1], end=END)], types=["0", "1"])
    posterior = rd.impute(observed, rd.Filtering(model, missing), 200, seed=1, engine=engine)
    assert np.isfinite(posterior.log_evidence).all()
    assert not posterior.probability("0", END, END).any()
    told = rd.impute(observed, rd.Filtering(model, missing), 200, seed=1, engine=engine, cut=True)
    assert told.log_evidence == pytest.approx(posterior.log_evidence)


def test_streams_that_go_on_have_no_end():
    """Online particles, evidence and forecasts are those of the model without its end atom."""
    model, missing = with_ends("hawkes"), RATES
    runs = []
    for own in (model, model.endless()):
        online = rd.Online(rd.Filtering(own, missing), lag=1.0, particles=50)
        online.feed({"a": [(0.5, 1), (0.9, 0)], "b": [(0.3, 2)]}, until=1.2, start=0.0)
        ahead = online.forecast(ahead=1.0).complete.expected_count()
        runs.append([*online.log_evidence(), *online.posterior().expected_count(), *ahead])
    assert runs[0] == runs[1]
    assert model.end_atom is not None


def test_notices_follow_what_the_model_knows():
    model = rd.Hawkes([1.0, 0.5], [[0.4, 0.2], [0.1, 0.3]], 2.0)
    streams, model.end_atom = (
        rd.simulate(model, 60, num_events=6, seed=1),
        EndAtom.of_counts([0.01] * 5 + [0.99], model),
    )
    observed, _ = rd.ByType([0.5, 0.5]).censor(streams, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.SuspicionNotice)
        rd.impute(observed, rd.Filtering(model, rd.ByType([0.5, 0.5])), 50)
    last = observed.event_times[observed.offsets[1:] - 1]
    some = observed.lengths > 1
    wrong = observed.replace(ends=np.where(some, last, observed.ends))
    with pytest.warns(rd.SuspicionNotice, match="though 50% of such events go missing"):
        rd.impute(wrong, rd.Filtering(model, rd.ByType([0.5, 0.5])), 50)


def test_an_end_without_an_event_is_told_where_most_streams_end_at_one():
    """Where the others end at an event that was seen; not where half of the last events go missing anyway."""
    model, missing = poisson(), rd.ByType(RHO)
    whole = [rd.EventStream([0.41 + 0.0137 * i, END], [0, 1], end=END, id=f"s{i}") for i in range(20)]
    open_ended = rd.EventStream([0.4117, 1.5003], [0, 1], end=END, id="open")
    observed = rd.StreamSet([*whole, open_ended], types=["0", "1"])
    said = "stream 'open' ends where no event was observed, .* imputed exactly at that time. Remedy: .* pass cut=True"
    with pytest.warns(rd.SuspicionNotice, match=said):
        posterior = rd.impute(observed, rd.Filtering(model, missing), 20)
    assert re.search(said, posterior.about["edges"][0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.SuspicionNotice)
        rd.impute(observed, rd.Filtering(model, missing), 20, cut=True)
        rd.impute(observed[:20], rd.Filtering(model, missing), 20)
        rd.impute(observed[10:], rd.Filtering(model, rd.Windows([(0.5, 1.0)], inside=0.5)), 20)  # nothing is lost there
        half = rd.StreamSet([whole[0], open_ended], types=["0", "1"])
        rd.impute(half, rd.Filtering(model, missing), 20)
