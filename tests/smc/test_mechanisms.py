"""Every missingness mechanism in filtering and smoothing: exact answers, independent MCMC, calibration.

Poisson: whatever was observed, the missing events are an inhomogeneous Poisson process with rate ρ_k(t) λ_k,
filtering's weights are equal and the evidence is known. Hawkes: a reversible-jump MCMC that shares no code with the
package.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.events.batch import make_batch
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import After, ByType, Contextual, Either, Missingness, ReportingDelay, TimeVarying, Windows
from retrodict.missingness.pieces import of_time
from retrodict.models import Hawkes, Poisson
from retrodict.models.simulate import simulate
from retrodict.proposals import Filtering, Smoothing
from retrodict.random import stream_keys
from retrodict.smc import sampler
from retrodict.smc.impute import impute
from retrodict.smc.particles import Particles
from retrodict.train.divergence import exclusive
from tests.conftest import compiled
from tests.missingness.examples import END, EXAMPLES, START, TYPES, Example
from tests.smc.reversible_jump import AFTER, DELAY, NETWORK, SEVERAL, TABLE, WINDOW, log_joint, reversible_jump

# Every mechanism with every engine that takes it.
each_case = pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(name, engine, marks=needs)
        for name, example in EXAMPLES.items()
        for engine, needs in (("torch", ()), ("native", compiled))
        if engine == "torch" or of_time(example.mechanism.bind(TYPES)) is not None
    ],
)
RATES = np.array([1.0, 0.5, 2.0])
GRID = np.linspace(0, END - START, 60_001)[:-1] + (END - START) / 120_000


def moved(streams: StreamSet, ids: list[str]) -> StreamSet:
    """The streams, which begin at 0, at START and under other names."""
    named = [EventStream(s.times + START, s.types, START, END, name) for s, name in zip(streams, ids, strict=True)]
    return StreamSet(named, types=TYPES)


def observed_streams(example: Example, count: int = 4) -> StreamSet:
    complete = moved(simulate(Poisson(RATES), count, end=END - START, seed=1), list("abcdefgh"[:count]))
    return example.mechanism.censor(complete, seed=2)[0]


def nodes(stream: EventStream) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre between any two times at which some example jumps or bends."""
    seen = stream.times - START
    edges = np.unique(np.clip(np.concatenate([np.arange(0, 61) / 10, seen, seen + 0.7]), 0, END - START))
    points, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + points)).ravel(), (half * weights).ravel()


def exact_evidence(example: Example, stream: EventStream) -> float:
    """sum_obs log(lambda_k (1 - rho_k(t))) - sum_k ∫ lambda_k (1 - rho_k)."""
    own = [example.rate(k, np.array([t - START]), stream)[0] for t, k in stream]
    seen = sum(math.log(RATES[k] * (1 - rho)) for (_, k), rho in zip(stream, own, strict=True))
    times, weights = nodes(stream)
    return seen - sum(RATES[k] * (1 - example.rate(k, times, stream)) @ weights for k in range(3))


@each_case
def test_poisson_weights_are_equal_and_the_evidence_is_exact(name, engine):
    example = EXAMPLES[name]
    observed = observed_streams(example)
    posterior = impute(observed, Filtering(Poisson(RATES), example.mechanism), particles=50, engine=engine)
    np.testing.assert_allclose(posterior.all_weights, 1 / 50, rtol=0, atol=1e-5)
    expected = [exact_evidence(example, stream) for stream in observed]
    np.testing.assert_allclose(posterior.log_evidence, expected, rtol=0, atol=1e-6)


@each_case
def test_poisson_missing_events_are_an_inhomogeneous_poisson_process(name, engine):
    """Counts by type are Poisson with mean ∫ rho_k lambda_k, and times have that density; level 0.001 each."""
    example = EXAMPLES[name]
    observed, proposal = observed_streams(example, 1), Filtering(Poisson(RATES), example.mechanism)
    posterior = impute(observed, proposal, particles=1500, resample=None, engine=engine)
    for i in range(len(observed)):
        for k in range(3):
            rate = RATES[k] * example.rate(k, GRID, observed[i])
            mean = rate.mean() * (END - START)
            counts = posterior._counts(posterior.full, k, None, None)[i]
            if mean < 1e-12:
                assert counts.max() == 0
                continue
            top = int(mean + 4 * math.sqrt(mean)) + 1
            pmf = stats.poisson.pmf(np.arange(top), mean)
            wanted = np.append(pmf, 1 - pmf.sum()) * len(counts)
            seen = np.bincount(np.minimum(counts, top), minlength=top + 1)
            keep = wanted > 1
            seen, wanted = (np.append(x[keep], x[~keep].sum()) for x in (seen, wanted))
            assert stats.chisquare(seen, wanted + 1e-9).pvalue > 1e-3, (i, k)
            times = np.concatenate([z.times[z.types == k] for z in posterior.particles(i)]) - START
            cdf = np.cumsum(rate) / rate.sum()
            assert stats.kstest(np.interp(times, GRID, cdf), "uniform").pvalue > 1e-3, (i, k)


@each_case
def test_inversion_has_an_unbiased_evidence(name, engine):
    """A stream with a long gap: the interpolant is far from the rates, and weights make up for it. Level 0.001."""
    example = EXAMPLES[name]
    times, types = np.array([10.2, 10.6, 10.9]), np.array([0, 1, 1])
    copies = StreamSet([EventStream(times, types, START, END, str(i)) for i in range(20)], types=TYPES)
    options = {"particles": 200, "sampler": "inversion", "resample": None, "engine": engine}
    posterior = impute(copies, Filtering(Poisson(RATES), example.mechanism), **options)
    ratios = np.exp(posterior.log_evidence - exact_evidence(example, copies[0]))
    assert abs(ratios.mean() - 1) < 3.9 * ratios.std() / math.sqrt(20) + 1e-6


@pytest.mark.parametrize("name", EXAMPLES)
def test_training_knows_the_posterior(name):
    """Smoothing blind to the future is the exact posterior here: log q - log p is -log p(x)."""
    example = EXAMPLES[name]
    observed = observed_streams(example, 2)
    proposal = Smoothing(Poisson(RATES), example.mechanism, 3, mixing=0)
    torch.nn.init.zeros_(proposal.readout)
    batch = make_batch(observed, dtype=torch.float64)
    values = exclusive(proposal, batch, stream_keys(1, observed.ids), draws=3)
    expected = [-exact_evidence(example, stream) for stream in observed]
    np.testing.assert_allclose(values.detach().numpy(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["windows by stream", "either", "either, looking back"])
def test_a_streams_particles_do_not_depend_on_its_batch(name):
    example = EXAMPLES[name]
    observed = observed_streams(example, 8)
    proposal = Filtering(Poisson(RATES), example.mechanism)
    whole = impute(observed, proposal, particles=8, seed=2)
    for other in (impute(observed, proposal, particles=8, seed=2, rows=8), impute(observed[::-1], proposal, 8, 2)):
        for name in observed.ids:
            i, j = whole.observed.ids.index(name), other.observed.ids.index(name)
            for ours, theirs in zip(whole.particles(i), other.particles(j), strict=True):
                np.testing.assert_allclose(ours.times, theirs.times, rtol=0, atol=1e-9)
            assert whole.log_evidence[i] == pytest.approx(other.log_evidence[j], abs=1e-9)


def test_integrals_across_jumps_are_noticed(monkeypatch):
    """The tests above can fail: one rule over the whole of a piece, whatever happens in it."""
    monkeypatch.setattr(Windows, "breaks", Missingness.breaks)
    with pytest.raises(AssertionError, match="Mismatched elements"):
        test_poisson_weights_are_equal_and_the_evidence_is_exact("windows", "torch")


def test_a_bound_that_is_too_low_is_noticed(monkeypatch):
    bound = Windows.bound
    monkeypatch.setattr(Windows, "bound", lambda self, *interval: 0.5 * bound(self, *interval))
    with pytest.raises(AssertionError):
        test_poisson_missing_events_are_an_inhomogeneous_poisson_process("windows", "torch")


def test_an_interpolant_blind_to_jumps_is_noticed(monkeypatch):
    monkeypatch.setattr(sampler, "Varying", lambda *_: None)
    with pytest.raises(AssertionError):
        test_inversion_has_an_unbiased_evidence("narrow window", "torch")


def histories_agree(mechanism: Missingness) -> bool:
    """Whether each particle's history is that of its own events, after resampling at nearly every observed event."""
    ended = []
    plain = sampler.SequentialMonteCarlo.run

    def look(self):
        ended.append(self.particles)
        return plain(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler.SequentialMonteCarlo, "run", look)
        copies = StreamSet([EventStream(SEEN.times, SEEN.types, end=SEEN.end, id=i) for i in range(5)], types=TYPES)
        proposal = Filtering(Hawkes(BASE, EXCITATION, DECAY).double(), mechanism)
        posterior = impute(copies, proposal, particles=40, seed=1, ess_threshold=1.0, engine="torch")
    assert posterior.diagnostics.resamplings.min() >= 3
    complete = []
    for z in (z for i in range(5) for z in posterior.particles(i)):
        times, types = np.append(SEEN.times, z.times), np.append(SEEN.types, z.types)
        order = np.argsort(times)
        complete.append(EventStream(times[order], types[order], end=SEEN.end))
    streams = StreamSet(complete, types=TYPES)
    batch, last = make_batch(streams, dtype=torch.float64), torch.as_tensor(streams.lengths)
    wanted = proposal.missingness.contexts(batch).history
    own = [field[torch.arange(len(last)), last] for field in wanted]
    return all(torch.allclose(ours, theirs) for ours, theirs in zip(ended[0].history, own, strict=True))


@pytest.mark.parametrize("name", ["after", "network"])
def test_histories_follow_their_particles(name, monkeypatch):
    mechanism = JUMPS[name][0]
    assert histories_agree(mechanism)
    plain = Particles.copy_rows

    def wrong(self, rows, parents):
        history = tuple(field.clone() for field in self.history)
        plain(self, rows, parents)
        self.history = history

    monkeypatch.setattr(Particles, "copy_rows", wrong)
    assert not histories_agree(mechanism)


BASE = [0.4, 0.3, 0.3]
EXCITATION = [[0.2, 0.6, 0.1], [0.1, 0.2, 0.5], [0.5, 0.1, 0.1]]
DECAY = [3.0, 2.0, 4.0]
SEEN = EventStream([0.55, 1.3, 1.42, 2.1], [0, 1, 2, 0], end=2.5)


def one_unit() -> Contextual:
    """A contextual mechanism of one hidden unit, whose weights the chain knows too."""
    made = Contextual(3, [0.6], 1)
    with torch.no_grad():
        made.network[0].weight[:] = torch.tensor(NETWORK_NUMBERS[1:4])
        made.network[0].bias[:] = NETWORK_NUMBERS[4]
        made.network[2].weight[:] = torch.tensor(NETWORK_NUMBERS[5:8])[:, None]
        made.network[2].bias[:] = torch.tensor(NETWORK_NUMBERS[8:])
    return made


NETWORK_NUMBERS = [0.6, -1.0, 3.0, 0.5, -1.0, 2.0, 1.5, -2.0, -0.5, -0.5, 0.5]
RHO = np.array([0.7, 0.4, 0.9])
BY_NAME = {str(k): float(rho) for k, rho in enumerate(RHO)}
TENTH = {name: 0.1 * rho for name, rho in BY_NAME.items()}
JUMPS = {
    "window": (Either(*(Windows([(0.8, 1.9)], types=[n], inside=r, outside=0.1 * r) for n, r in BY_NAME.items())),
               RHO, WINDOW, [0.8, 1.9]),
    "table": (TimeVarying([0, 1], {n: [0, r] for n, r in BY_NAME.items()}, every=2), RHO, TABLE, []),
    "delay": (ReportingDelay("exponential", mean={"0": 0.9, "2": 0.9}), [1.0, 0.0, 1.0], DELAY, [0.9]),
    "after": (After("1", 0.6, rates=BY_NAME, otherwise={n: 0.2 * r for n, r in BY_NAME.items()}), RHO, AFTER, [0.6]),
    "network": (one_unit(), [1.0, 1.0, 1.0], NETWORK, NETWORK_NUMBERS),
    "several": (ByType(RHO) * Windows([(0.8, 1.9)], inside=0.5) * ReportingDelay("exponential", mean=0.4),
                RHO, SEVERAL, [0.8, 1.9, 0.4]),
}  # fmt: skip


@pytest.fixture(scope="module", params=list(JUMPS))
def case(request):
    mechanism, rho, how, numbers = JUMPS[request.param]
    chains = reversible_jump(BASE, EXCITATION, DECAY, rho, SEEN, chains=20, steps=50_000, how=how, numbers=numbers)
    arrays = [np.array(a) for a in (BASE, EXCITATION, DECAY, rho)]
    seen = (SEEN.times, SEEN.types, np.zeros(len(SEEN), bool), len(SEEN), SEEN.end)
    return mechanism, chains, log_joint(*arrays, *seen, how, np.array(numbers, dtype=float))


def z_scores(mechanism, chains, alone, engine: str, mixing: int | None, sampler: str) -> np.ndarray:
    """How many standard errors evidence and counts by type and half are off those of the chains."""
    model = Hawkes(BASE, EXCITATION, DECAY).double()
    proposal = Filtering(model, mechanism)
    if mixing is not None:
        torch.manual_seed(0)
        proposal = Smoothing(model, mechanism, 6, mixing=mixing, told=False)
        torch.nn.init.normal_(proposal.readout, std=0.4)
        if mixing:
            torch.nn.init.normal_(proposal.mix.readout.weight, std=0.3)
    runs = 40
    copies = StreamSet([EventStream(SEEN.times, SEEN.types, end=SEEN.end, id=i) for i in range(runs)], types=TYPES)
    posterior = impute(copies, proposal, particles=300, seed=7, sampler=sampler, ess_threshold=0.9, engine=engine)
    assert posterior.diagnostics.resamplings.sum() > 0
    evidence = np.exp(posterior.log_evidence)
    share, root = evidence / evidence.mean(), math.sqrt(len(chains.empty))
    empty, its_error = chains.empty.mean(), chains.empty.std() / root
    assert its_error < 0.05 * empty  # the chains mix well enough to say something
    expected = math.exp(alone) / empty
    error = math.hypot(evidence.std() / math.sqrt(runs), expected * its_error / empty)
    scores, middle = [(evidence.mean() - expected) / error], SEEN.end / 2
    for k in range(3):
        for half, (a, b) in enumerate(((None, np.nextafter(middle, 0)), (middle, None))):
            theirs, values = chains.counts[:, k, half], posterior.expected_count(k, a, b)
            ours = (share * values).mean()
            spread = math.hypot((share * (values - ours)).std() / math.sqrt(runs), theirs.std() / root)
            scores.append((ours - theirs.mean()) / (spread + 1e-12))
    return np.array(scores)


@pytest.mark.parametrize(
    ("engine", "mixing", "sampler"),
    [
        ("torch", None, "inversion"),
        ("torch", 0, "thinning"),
        pytest.param("native", None, "inversion", marks=compiled),
        pytest.param("native", 0, "thinning", marks=compiled),
        pytest.param("native", 5, "thinning", marks=compiled),
    ],
)
def test_hawkes_posteriors_agree_with_mcmc(case, engine, mixing, sampler, record_property):
    """Evidence and six counts within 3 standard errors of the difference."""
    if engine == "native" and of_time(case[0].bind(TYPES)) is None:
        pytest.skip("the torch engine alone takes this mechanism")
    scores = z_scores(*case, engine, mixing, sampler)
    record_property("z_scores", [round(float(z), 2) for z in scores])
    assert np.abs(scores).max() < 3, scores
