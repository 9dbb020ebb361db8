"""The Triton engine against exact answers and against the torch engine.

On a GPU all of it runs. With TRITON_INTERPRET=1 kernels run on the CPU, slowly, and a small part of it does.
Statistical tests have fixed seeds; a single comparison fails by chance once in 1000 times.
"""

from __future__ import annotations

import importlib.util
import math
import os

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.errors import ModelError, RunawayError
from retrodict.events.batch import make_batch
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType, Missingness
from retrodict.models import Hawkes, NeuralHawkes, Poisson
from retrodict.models.quadrature import MonteCarlo
from retrodict.models.simulate import simulate
from retrodict.models.start import StartAtom
from retrodict.proposals import Filtering, Proposal, Smoothing
from retrodict.random import stream_keys
from retrodict.smc.engines import ENGINES, choose
from retrodict.smc.engines.gpu.engine import TritonEngine
from retrodict.smc.impute import impute
from retrodict.smc.options import Options
from retrodict.smc.particles import Result
from retrodict.smc.propose import Thinning
from retrodict.smc.resampling import find_scheme
from tests.conftest import random_neural_hawkes
from tests.smc.hawkes_as_neural import hawkes_as_neural
from tests.smc.test_calibration import DRAWS, END, ranks

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and importlib.util.find_spec("triton") is not None
ON_GPU = torch.cuda.is_available() and not INTERPRETED
DEVICE = "cuda" if ON_GPU else "cpu"
runs = pytest.mark.skipif(not (ON_GPU or INTERPRETED), reason="no GPU here")
runs_fast = pytest.mark.skipif(not ON_GPU, reason="no GPU here")

RATES, RHO = [1.0, 0.5, 2.0], [0.5, 0.0, 1.0]
HAWKES = Hawkes([0.3, 0.2], [[0.2, 0.9], [0.1, 0.2]], 3.0)
HIDDEN = ByType([0.9, 0.1])
SCHEMES = [None, "multinomial", "stratified", "systematic", "residual"]


def some(on_gpu: int, interpreted: int) -> int:
    """How many, by how fast things are here."""
    return on_gpu if ON_GPU else interpreted


def poisson_as_neural(rates: list[float], time_scale: float = 2.0) -> NeuralHawkes:
    """Without a readout every rate is s_k log 2 / time_scale."""
    model = NeuralHawkes(len(rates), 5, time_scale=time_scale)
    with torch.no_grad():
        model.readout.zero_()
        model.log_scale.copy_((torch.tensor(rates) * time_scale / math.log(2)).log())
    return model


def random_neural(seed: int = 0) -> NeuralHawkes:
    """A random model in single precision."""
    model = random_neural_hawkes(seed=seed)
    assert isinstance(model, NeuralHawkes)
    return model.float()


def propose(kind: str, model: NeuralHawkes, missing: ByType) -> Proposal:
    """A proposal on this machine's device."""
    if kind == "filtering":
        return Filtering(model, missing).to(DEVICE)
    torch.manual_seed(5)
    smoothing = Smoothing(model, missing, 6, mixing=0)
    torch.nn.init.normal_(smoothing.readout, std=0.4)
    torch.nn.init.normal_(smoothing.start_readout)
    return smoothing.to(DEVICE)


def copies(stream: EventStream, count: int, types: int) -> StreamSet:
    """The same stream many times, under other names."""
    same = [EventStream(stream.times, stream.types, end=stream.end, id=i) for i in range(count)]
    return StreamSet(same, types=[str(k) for k in range(types)])


def run(engine, observed: StreamSet, proposal: Proposal, options: Options, seed: int = 0) -> Result:
    """The engine itself, without what ``impute`` makes of it."""
    batch = make_batch(observed, dtype=proposal.model.dtype, device=proposal.model.device)
    return engine.run(batch, proposal, stream_keys(seed, observed.ids).to(proposal.model.device), options)


@runs
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_poisson_weights_are_equal_and_the_evidence_is_exact(kind):
    missing = ByType(RHO)
    observed, _ = missing.censor(simulate(Poisson(RATES), some(20, 3), end=6.0, seed=1), seed=2)
    proposal = propose(kind, poisson_as_neural(RATES), missing)
    if kind == "smoothing":
        torch.nn.init.zeros_(proposal.readout)
    posterior = impute(observed, proposal, particles=50, engine="triton")
    np.testing.assert_allclose(posterior.all_weights, 1 / 50, rtol=0, atol=2e-6)
    expected = [
        sum(math.log(RATES[k] * (1 - RHO[k])) for _, k in stream)
        - 6.0 * sum(r * (1 - p) for r, p in zip(RATES, RHO, strict=True))
        for stream in observed
    ]
    np.testing.assert_allclose(posterior.log_evidence, expected, rtol=0, atol=1e-4)


@runs
def test_poisson_missing_events_are_poisson():
    missing = ByType(RHO)
    observed, _ = missing.censor(simulate(Poisson(RATES), 4, end=3.0, seed=1), seed=2)
    proposal = propose("filtering", poisson_as_neural(RATES), missing)
    posterior = impute(observed, proposal, particles=some(2000, 150), resample=None, engine="triton")
    for k, mean in ((0, 1.5), (2, 6.0)):
        counts = posterior._counts(posterior.full, k, None, None).reshape(-1)
        top = int(mean + 2 * math.sqrt(mean))
        seen = np.bincount(np.minimum(counts, top), minlength=top + 1)
        pmf = stats.poisson.pmf(np.arange(top), mean)
        assert stats.chisquare(seen, np.append(pmf, 1 - pmf.sum()) * len(counts)).pvalue > 1e-3
    assert posterior.expected_count(1).max() == 0
    assert stats.kstest(posterior.event_times, stats.uniform(0, 3).cdf).pvalue > 1e-3


@pytest.fixture(scope="module")
def stream() -> EventStream:
    return HIDDEN.censor(simulate(HAWKES, 1, end=8.0, seed=4), seed=1)[0][0]


@pytest.fixture(scope="module")
def truth(stream) -> dict[str, tuple[float, float]]:
    """Evidence and expected counts from 60,000 particles of the torch engine, with standard errors."""
    many = impute(copies(stream, 12, 2), Filtering(HAWKES, HIDDEN), particles=5000, seed=77, engine="torch")
    values = {"evidence": np.exp(many.log_evidence), "0": many.expected_count(0), "1": many.expected_count(1)}
    return {name: (x.mean(), x.std() / math.sqrt(len(x))) for name, x in values.items()}


@runs
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_hawkes_posteriors_are_those_of_the_torch_engine(kind, stream, truth):
    proposal = propose(kind, hawkes_as_neural(HAWKES), HIDDEN)
    count = some(24, 4)
    mine = impute(copies(stream, count, 2), proposal, particles=some(2000, 200), seed=3, engine="triton")
    values = {"evidence": np.exp(mine.log_evidence), "0": mine.expected_count(0), "1": mine.expected_count(1)}
    for name, x in values.items():
        mean, error = truth[name]
        assert abs(x.mean() - mean) < 3.3 * math.hypot(x.std(ddof=1) / math.sqrt(count), error) + 2e-3 * mean, name


@runs_fast
@pytest.mark.parametrize("engine", ["triton", "triton-fp32"])
@pytest.mark.parametrize("resample", SCHEMES)
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_the_evidence_of_400_small_runs_averages_to_the_truth(kind, resample, engine, stream, truth):
    proposal = propose(kind, hawkes_as_neural(HAWKES), HIDDEN)
    small = impute(copies(stream, 400, 2), proposal, particles=10, seed=6, resample=resample, engine=engine, islands=1)
    values = np.exp(small.log_evidence)
    mean, error = truth["evidence"]
    assert abs(values.mean() - mean) < 3.3 * math.hypot(values.std() / 20, error) + 1e-3 * mean
    if resample is not None:
        assert small.diagnostics.resamplings.sum() > 0


@runs_fast
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_ranks_are_uniform(kind):
    """Simulation-based calibration, as in ``test_calibration.py``."""
    model, missing = random_neural(seed=4), ByType([0.5, 0.3, 0.8])
    observed, hidden = missing.censor(simulate(model, 500, end=END, seed=21), seed=22)
    posterior = impute(observed, propose(kind, model, missing), particles=200, seed=23, engine="triton")
    table = ranks(posterior, hidden, seed=24)
    values = [stats.chisquare(np.bincount(column, minlength=DRAWS + 1)).pvalue for column in table.T]
    assert min(values) > 1e-3, values


@runs
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_particles_have_the_law_of_the_torch_engines(kind):
    """Counts, times, types and log weights of independent particles, without resampling."""
    model, missing = random_neural(), ByType([0.5, 0.2, 0.9])
    observed, _ = missing.censor(simulate(model, some(6, 2), end=4.0, seed=3), seed=3)
    proposal = propose(kind, model, missing)
    options = Options(some(3000, 150))
    mine, theirs = (
        run(ENGINES[name], observed, proposal, options, seed).sample for name, seed in (("triton", 1), ("torch", 2))
    )
    for b in range(len(observed)):
        counts = [r.counts[b].cpu().numpy() for r in (mine, theirs)]
        kept = [np.arange(r.times.shape[2]) < r.counts[b].cpu().numpy()[:, None] for r in (mine, theirs)]
        times = [r.times[b].cpu().numpy()[k] for r, k in zip((mine, theirs), kept, strict=True)]
        types = [r.types[b].cpu().numpy()[k] for r, k in zip((mine, theirs), kept, strict=True)]
        weights = [r.log_weights[b].cpu().numpy() for r in (mine, theirs)]
        top = int(np.quantile(counts[1], 0.9)) + 1
        table = [np.bincount(np.minimum(c, top), minlength=top + 1) for c in counts]
        used = np.sum(table, 0) > 0
        assert stats.chi2_contingency(np.array(table)[:, used]).pvalue > 1e-3
        assert stats.ks_2samp(*times).pvalue > 1e-3
        assert stats.chi2_contingency([np.bincount(k, minlength=3) for k in types]).pvalue > 1e-3
        assert stats.ks_2samp(*weights).pvalue > 1e-3


@runs
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_a_streams_particles_do_not_depend_on_its_batch(kind):
    """Nor on the number of slots (waiting streams take those that become free), nor on the order."""
    model, missing = random_neural(), ByType([0.9, 0.2, 0.9])
    observed, _ = missing.censor(simulate(model, some(30, 5), end=4.0, seed=1), seed=1)
    proposal = propose(kind, model, missing)
    options = Options(8, find_scheme("systematic"), 1.0)
    ran = run(TritonEngine(), observed, proposal, options)
    whole, trace = ran.sample, ran.trace
    few_slots = run(TritonEngine(in_flight=24), observed, proposal, options).sample
    backwards = run(TritonEngine(), observed[::-1], proposal, options).sample
    alone = run(TritonEngine(), observed[:1], proposal, options).sample
    sevens = [run(TritonEngine(), observed[i : i + 7], proposal, options).sample for i in range(0, len(observed), 7)]
    assert bool(trace.resampled.any())
    for other, mine in [
        (few_slots, slice(None)),
        (type(whole)(*(x.flip(0) for x in backwards)), slice(None)),
        (alone, slice(0, 1)),
        *((part, slice(7 * i, 7 * i + 7)) for i, part in enumerate(sevens)),
    ]:
        C = min(other.times.shape[2], whole.times.shape[2])
        assert torch.equal(other.counts, whole.counts[mine])
        assert torch.equal(other.times[..., :C], whole.times[mine][..., :C])
        assert torch.equal(other.types[..., :C], whole.types[mine][..., :C])
        assert torch.equal(other.log_weights, whole.log_weights[mine])
        assert torch.equal(other.log_evidence, whole.log_evidence[mine])


@runs
@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_histories_move_with_their_particles(scheme):
    """After the last resampling a particle shares its past with the one it was copied from."""
    model, missing = random_neural(), ByType([0.9, 0.2, 0.9])
    observed, _ = missing.censor(simulate(model, some(20, 3), end=5.0, seed=2), seed=2)
    options = Options(20, find_scheme(scheme), 1.0)
    ran = run(TritonEngine(), observed, propose("filtering", model, missing), options)
    done, trace = ran.sample, ran.trace
    checked = 0
    for b in range(len(observed)):
        steps = trace.resampled[b].nonzero()[:, 0].tolist()
        if not steps:
            continue
        until = observed[b].times[steps[-1]]
        pasts = []
        for m in range(20):
            times = done.times[b, m, : int(done.counts[b, m])].cpu().numpy()
            assert (np.diff(times) >= 0).all()
            pasts.append(times[times < until].tolist())
        parents = trace.parents[b, steps[-1]].tolist()
        for m, parent in enumerate(parents):
            assert parents[parent] == parent
            assert pasts[m] == pasts[parent]
            checked += m != parent
    assert checked > 0


@runs
@pytest.mark.parametrize("kind", ["filtering", "smoothing"])
def test_a_missing_first_event_is_imputed_at_the_start(kind):
    model = poisson_as_neural([1.0, 0.5])
    model.start_atom = StartAtom(torch.tensor([0.2, 0.5, 0.3]).log())
    missing = ByType([0.6, 0.9])
    count = some(20, 4)
    observed = StreamSet(
        [EventStream([1.0], [0], end=2.0, id=i) for i in range(count)] + [EventStream([0.0], [1], end=2.0, id=99)],
        types=["0", "1"],
    )
    posterior = impute(observed, propose(kind, model, missing), particles=some(500, 100), seed=3, engine="triton")
    rest = -2.0 * (1.0 * 0.4 + 0.5 * 0.1)
    total = 0.2 + 0.5 * 0.6 + 0.3 * 0.9
    evidence = np.exp(posterior.log_evidence)
    exact = math.exp(rest) * 0.4 * total
    root = math.sqrt(count)
    assert abs(evidence[:count].mean() - exact) < 3.3 * evidence[:count].std(ddof=1) / root + 1e-5
    assert posterior.log_evidence[count] == pytest.approx(math.log(0.3 * 0.1) + rest, abs=0.05)
    at_start = posterior.probability(1, 0.0, 0.0)
    assert abs(at_start[:count].mean() - 0.27 / total) < 3.3 * at_start[:count].std(ddof=1) / root
    assert at_start[count] == 0


@runs
@pytest.mark.parametrize("particles", [1, 3, pytest.param(3000, marks=runs_fast)])
@pytest.mark.parametrize("resample", ["systematic", "residual"])
def test_any_number_of_particles_and_streams_of_all_lengths(particles, resample):
    """Empty ones, ties, long ones; more particles than are looked at together."""
    model, missing = random_neural(), ByType([0.5, 0.2, 0.9])
    streams = StreamSet(
        [
            EventStream([], [], end=3.0, id="empty"),
            EventStream([0.0, 1.0, 1.0, 1.0, 3.0], [0, 1, 1, 0, 1], end=3.0, id="ties"),
            EventStream(np.linspace(0.1, 2.9, 40), [0, 1] * 20, end=3.0, id="long"),
            EventStream([], [], end=0.0, id="nothing"),
        ],
        types=["0", "1", "2"],
    )
    proposal = propose("smoothing", model, missing)
    mine = impute(streams, proposal, particles=particles, seed=4, resample=resample, engine="triton")
    assert np.isfinite(mine.log_evidence).all()
    assert mine.log_evidence[3] == 0.0
    if particles == 3000:
        theirs = impute(streams, proposal, particles=particles, seed=5, resample=resample, engine="torch")
        np.testing.assert_allclose(mine.log_evidence, theirs.log_evidence, atol=0.3)
        np.testing.assert_allclose(mine.expected_count(), theirs.expected_count(), rtol=0.1, atol=0.1)


@runs
def test_buffers_grow_and_a_runaway_is_stopped():
    """Far more missing events than observed ones: nothing is cut, unless a limit says so."""
    model = poisson_as_neural([1.0, 0.5])
    proposal = propose("filtering", model, ByType([1.0, 0.0]))
    observed = copies(EventStream([], [], end=60.0), 2, 2)
    posterior = impute(observed, proposal, particles=20, resample=None, engine="triton")
    counts = posterior.full.counts().reshape(-1)
    assert abs(counts.mean() - 60) < 3.3 * math.sqrt(60 / 40)
    with pytest.raises(RunawayError, match="more than 20 missing"):
        impute(observed, proposal, particles=20, resample=None, engine="triton", max_events=20)


@runs
def test_no_streams_and_impossible_ones():
    model, missing = random_neural(), ByType([1.0, 0.2, 0.9])
    proposal = propose("filtering", model, missing)
    assert len(impute(StreamSet([], types=["0", "1", "2"]), proposal, particles=5, engine="triton")) == 0
    impossible = copies(EventStream([1.0, 2.0], [0, 1], end=3.0), 1, 3)
    assert impute(impossible, proposal, particles=5, engine="triton").log_evidence[0] == -math.inf


@runs
def test_pieces_are_integrated_to_five_digits():
    """The rule of the kernels on pieces of a random model, whole and cut short by an event."""
    from retrodict.smc.engines.gpu.draw import rule

    model = random_neural_hawkes(hidden_size=16, seed=1)
    torch.manual_seed(0)
    state = model.initial((200,))
    for _ in range(4):
        time = state.time + torch.rand(200, dtype=torch.float64)
        state = model.update(state, torch.randint(0, 3, (200,)), time)
    points, weights, _, _, _, radau, shares = rule().double().split([4, 4, 9, 8, 8, 4, 4])
    edges = torch.linspace(0, 1, 5, dtype=torch.float64) ** 2

    def area(nodes: torch.Tensor, weights: torch.Tensor, length: float) -> torch.Tensor:
        rates = model.intensity(state, state.time[:, None] + length * nodes).sum(-1)
        return (rates * weights * length).sum(1)

    for length in (0.3, 1.0, 3.0):
        exact = model.compensator(state, state.time, state.time + length).sum(-1)
        widths = edges.diff()[:, None]
        got = area((edges[:-1, None] + widths * points).flatten(), (widths * weights).flatten(), length)
        assert (got - exact).abs().max() < 1e-5
        for g in range(4):
            # Cut short near the end of cell g.
            begin, stop = edges[g], edges[g] + 0.9 * widths[g]
            got = area(begin + (stop - begin) * radau, (stop - begin) * shares, length)
            exact = model.compensator(state, state.time + length * begin, state.time + length * stop).sum(-1)
            assert (got - exact).abs().max() < 1e-5


class _Other(Missingness):
    """A mechanism that says nothing of what it depends on."""

    def rates(self, t, context=None):
        return torch.full((*t.shape, 3), 0.5, dtype=torch.float64)


def test_what_it_does_not_take_is_refused_in_words():
    model, missing = random_neural(), ByType(0.5)
    options = Options()
    engine = TritonEngine()
    cases = [
        (Filtering(HAWKES, HIDDEN), options, "neural Hawkes models"),
        (Filtering(random_neural_hawkes(), missing), options, "float32"),
        (Filtering(model, _Other()), options, "last trigger"),
        (Smoothing(model, missing, 6, mixing=1025), options, "1,024 mixing units"),
        (Filtering(model, missing), Options(integral=MonteCarlo(1)), "quadrature"),
        (Filtering(model, missing), Options(sampler=Thinning()), "inversion"),
        (Filtering(model, missing), Options(scheme=lambda w, u: u), "scheme"),
    ]
    for proposal, wanted, words in cases:
        reason = engine.refuses(proposal.to(DEVICE), wanted)
        assert reason is not None
        assert words in reason or "CUDA device" in reason
    assert choose("auto", Filtering(random_neural_hawkes(), missing), options).name == "torch"
    with pytest.raises(ModelError, match="cannot do this"):
        choose("triton", Filtering(random_neural_hawkes(), missing), options)
