"""The Triton engine for every mechanism and proposal that it takes: exact answers, other code, and the torch engine.

On a GPU all of it runs; with TRITON_INTERPRET=1 kernels run on the CPU, slowly, and a small part of it does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import retrodict as rd
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import Missingness
from retrodict.models.simulate import simulate
from retrodict.models.start import StartAtom
from retrodict.smc.engines import ENGINES
from retrodict.smc.engines.gpu.engine import TritonEngine
from retrodict.smc.impute import impute
from retrodict.smc.options import Options
from retrodict.smc.resampling import find_scheme
from tests.missingness.examples import END, EXAMPLES, START, TYPES
from tests.smc.hawkes_as_neural import hawkes_as_neural
from tests.smc.test_calibration import DRAWS, ranks
from tests.smc.test_mechanisms import RATES, exact_evidence, observed_streams
from tests.smc.test_native_mechanisms import MECHANISMS as IN_TIME
from tests.smc.test_triton import DEVICE, ON_GPU, poisson_as_neural, random_neural, run, runs, runs_fast, some

MECHANISMS: dict[str, Missingness] = {"by type": rd.ByType([0.5, 0.2, 0.9]), **IN_TIME}
UNITS = {"filtering": None, "smoothing": 0, "mixing": 21}
TAKEN = [name for name in EXAMPLES if name not in ("contextual", "either, looking back", "custom")]
IN_STEPS = ["by type", "windows", "narrow window", "windows that recur", "windows by stream", "steps", "after"]
HAWKES = rd.Hawkes([0.5, 0.3, 0.4], [[0.2, 0.6, 0.1], [0.1, 0.2, 0.5], [0.5, 0.1, 0.1]], [3.0, 2.0, 4.0])


def propose(kind: str, model: rd.NeuralHawkes, mechanism: Missingness, scale: float = 1.0) -> rd.Proposal:
    """A proposal with large random weights on this machine's device."""
    units = UNITS[kind]
    if units is None:
        return rd.Filtering(model, mechanism).to(DEVICE)
    torch.manual_seed(5)
    made = rd.Smoothing(model, mechanism, 9, units)
    torch.nn.init.normal_(made.readout, std=0.3 * scale)
    torch.nn.init.normal_(made.start_readout, std=0.3)
    if made.mix is not None:
        for layer, std in ((made.mix.past, 0.5), (made.mix.future, 0.5), (made.mix.readout, 0.4 * scale)):
            torch.nn.init.normal_(layer.weight, std=std)
    return made.to(DEVICE)


def a_case(name: str, kind: str, count: int, length: float = 3.0) -> tuple[StreamSet, rd.Proposal]:
    model = random_neural(seed=2)
    observed, _ = MECHANISMS[name].censor(simulate(model, count, end=length, seed=1), seed=1)
    return observed, propose(kind, model, MECHANISMS[name])


def own_log_weights(posterior: rd.Posterior, observed: StreamSet, proposal: rd.Proposal) -> tuple[Any, Any]:
    """The log weights of all particles, and log p(x, z) + log p_miss - log q(z | x) by other code, [N, M] each."""
    particles = posterior.all_weights.shape[1]
    logs = np.log(posterior.all_weights * particles) + posterior.log_evidence[:, None]
    values = []
    for m in range(particles):
        drawn = StreamSet([posterior.particles(i)[m] for i in range(len(observed))], types=observed.types)
        complete, _ = rd.combine(observed, drawn)
        value = proposal.model.log_likelihood(complete) + proposal.missingness.log_prob(observed, drawn).to(DEVICE)
        values.append((value - proposal.log_prob(drawn, observed)).detach().cpu().numpy())
    return logs, np.stack(values, 1)


@runs
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_log_weights_are_those_of_the_particles(name, kind):
    """Up to what the lines that events are drawn from differ from λ^q; such differences have no trend."""
    observed, proposal = a_case(name, kind, some(8, 2))
    posterior = impute(observed, proposal, particles=some(40, 12), resample=None, seed=3, engine="triton")
    ours, theirs = own_log_weights(posterior, observed, proposal)
    assert len(posterior.event_times) > 0
    off = ours - theirs
    assert np.quantile(np.abs(off), 0.75) < 0.02, np.sort(np.abs(off).ravel())
    assert np.abs(off).max() < 0.3
    assert abs(np.median(off)) < 0.005


@runs
@pytest.mark.parametrize("name", IN_STEPS)
def test_poisson_weights_are_equal_and_the_evidence_is_exact(name):
    """Where rates are constant between jumps, lines are exact, and so are weights and evidence."""
    example = EXAMPLES[name]
    observed = observed_streams(example, some(8, 2))
    proposal = propose("filtering", poisson_as_neural(RATES.tolist()), example.mechanism)
    posterior = impute(observed, proposal, particles=20, engine="triton")
    np.testing.assert_allclose(posterior.all_weights, 1 / 20, rtol=0, atol=1e-5)
    expected = [exact_evidence(example, stream) for stream in observed]
    np.testing.assert_allclose(posterior.log_evidence, expected, rtol=0, atol=1e-4)


@runs
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("name", TAKEN)
def test_the_evidence_is_unbiased(name, kind):
    """A stream with a long gap: the lines are far from the rates, and weights make up for it. Level 0.001."""
    if not (ON_GPU or (name, kind) in (("gamma delay", "filtering"), ("either", "mixing"))):
        pytest.skip("takes a GPU")
    example, count = EXAMPLES[name], some(200, 8)
    times, types = np.array([10.2, 10.6, 10.9]), np.array([0, 1, 1])
    copies = StreamSet([EventStream(times, types, START, END, str(i)) for i in range(count)], types=TYPES)
    proposal = propose(kind, poisson_as_neural(RATES.tolist()), example.mechanism, scale=0.5)
    posterior = impute(copies, proposal, particles=some(200, 60), engine="triton", islands=1)
    ratios = np.exp(posterior.log_evidence - exact_evidence(example, copies[0]))
    least = 3.9 if ON_GPU else stats.t(count - 1).ppf(1 - 5e-4)
    assert abs(ratios.mean() - 1) < least * ratios.std(ddof=1) / math.sqrt(count) + 1e-4


@runs_fast
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("name", ["windows", "delay", "after", "several"])
def test_hawkes_posteriors_are_those_of_the_torch_engine(name, kind):
    """Evidence and counts by type, with resampling at nearly every observed event. Level 0.001 each."""
    mechanism = MECHANISMS[name]
    seen = [EventStream([0.3, 0.55, 1.3, 1.42, 2.1], [0, 1, 1, 2, 0], end=2.5, id=i) for i in range(200)]
    copies = StreamSet(seen, types=TYPES)
    ours = propose(kind, hawkes_as_neural(HAWKES), mechanism, scale=0.5)
    estimates = []
    for engine, proposal in (("triton", ours), ("torch", rd.Filtering(HAWKES.to(DEVICE), mechanism))):
        made = impute(copies, proposal, particles=400, seed=7, ess_threshold=0.9, engine=engine, islands=1)
        evidence = np.exp(made.log_evidence)
        estimates.append([evidence, *(evidence * made.expected_count(k) for k in range(3))])
    HAWKES.cpu()
    for mine, theirs in zip(*estimates, strict=True):
        error = math.hypot(mine.std(), theirs.std()) / math.sqrt(200)
        assert abs(mine.mean() - theirs.mean()) <= 3.3 * error + 2e-3 * theirs.mean()


@runs_fast
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_particles_have_the_law_of_the_torch_engines(name, kind):
    """Counts, times, types and log weights of independent particles, without resampling."""
    observed, proposal = a_case(name, kind, 4)
    blur = np.random.default_rng(0)  # many weights are equal, up to rounding: particles without events
    samples = [run(ENGINES[e], observed, proposal, Options(2000), s).sample for e, s in (("triton", 1), ("torch", 2))]
    for b in range(len(observed)):
        counts = [r.counts[b].cpu().numpy() for r in samples]
        kept = [np.arange(r.times.shape[2]) < c[:, None] for r, c in zip(samples, counts, strict=True)]
        times = [r.times[b].cpu().numpy()[k] for r, k in zip(samples, kept, strict=True)]
        types = [np.bincount(r.types[b].cpu().numpy()[k], minlength=3) for r, k in zip(samples, kept, strict=True)]
        top = int(np.quantile(counts[1], 0.9)) + 1
        table = [np.bincount(np.minimum(c, top), minlength=top + 1) for c in counts]
        for one, other in (table, types):
            both = np.stack([one, other])
            both = both[:, both.sum(0) > 20]
            assert both.shape[1] < 2 or stats.chi2_contingency(both).pvalue > 1e-4
        assert stats.ks_2samp(*times).pvalue > 1e-4
        logs = [r.log_weights[b].cpu().numpy() for r in samples]
        assert stats.ks_2samp(*(x + blur.normal(0, 0.01, len(x)) for x in logs)).pvalue > 1e-4


@runs_fast
@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("name", ["several", "delay"])
def test_ranks_are_uniform(name, kind):
    """Simulation-based calibration, as in ``test_calibration.py``."""
    model, mechanism = random_neural(seed=4), MECHANISMS[name]
    observed, hidden = mechanism.censor(simulate(model, 500, end=3.0, seed=21), seed=22)
    posterior = impute(observed, propose(kind, model, mechanism), particles=200, seed=23, engine="triton")
    table = ranks(posterior, hidden, seed=24)
    values = [stats.chisquare(np.bincount(column, minlength=DRAWS + 1)).pvalue for column in table.T]
    assert min(values) > 1e-3, values


@runs
def test_a_streams_particles_do_not_depend_on_its_batch():
    """Nor on the number of slots, nor on the order; with rates that change, triggers and mixing."""
    observed, proposal = a_case("several", "mixing", some(30, 4))
    options = Options(8, find_scheme("systematic"), 1.0)
    whole = run(TritonEngine(), observed, proposal, options)
    assert bool(whole.trace.resampled.any())
    few_slots = run(TritonEngine(in_flight=16), observed, proposal, options)
    backwards = run(TritonEngine(), observed[::-1], proposal, options)
    assert torch.equal(few_slots.log_evidence, whole.log_evidence)
    assert torch.equal(backwards.log_evidence.flip(0), whole.log_evidence)
    assert torch.equal(few_slots.sample.counts, whole.sample.counts)
    assert torch.equal(few_slots.sample.log_weights, whole.sample.log_weights)


@runs
@pytest.mark.parametrize("exact", [False, True])
def test_mixing_that_adds_nothing_changes_nothing(exact):
    """With w = 0 the units are there, and particles are those of the paper's form."""
    observed, plain = a_case("by type", "smoothing", 2)
    mixing = propose("mixing", plain.model, MECHANISMS["by type"])
    mixing.load_state_dict(plain.state_dict(), strict=False)
    torch.nn.init.zeros_(mixing.mix.readout.weight)
    one, other = (run(TritonEngine(exact=exact), observed, p, Options(8)) for p in (plain, mixing))
    # Events lie in the forest in the order in which rows came to add them.
    assert torch.equal(one.sample.types, other.sample.types)
    assert torch.allclose(one.sample.times, other.sample.times, rtol=0, atol=1e-5)
    assert torch.allclose(one.log_evidence, other.log_evidence, rtol=0, atol=1e-4)


def _evidence_after(never: float, at_start: float, seen: float | None = None, steps: int = 4000) -> float:
    """The evidence of the next test by steps in time: joint probabilities of what is seen and of the last trigger.

    Triggers come at rate 0.5 and nine in ten are missing before 1, none later; type 0 comes at rate 1, and 0.6 of it is
    seen, or 0.2 within 0.5 of a trigger.
    """
    width = 2.0 / steps
    by_age = np.zeros(steps + 1)  # of the last trigger, in steps; ``never`` where there was none
    by_age[0] = at_start
    shown = np.where(np.arange(steps + 1) * width < 0.5 - width / 2, 0.2, 0.6)
    for i in range(steps):
        hidden = 0.45 if i * width < 1 - width / 2 else 0.0
        born = (never + by_age.sum()) * width * hidden
        never *= math.exp(-width * (0.6 + 0.5))
        by_age = np.append(born * math.exp(-width * 0.5), (by_age * np.exp(-width * (shown + 0.5)))[:-1])
        if seen is not None and i + 1 == round(seen / width):
            never, by_age = never * 0.6, by_age * shown
    return never + float(by_age.sum())


@runs
@pytest.mark.parametrize("kind", ["filtering", "mixing"])
def test_a_missing_first_event_is_imputed_at_the_start(kind):
    """The start atom with rates at 0, and triggers at the start: evidence exact, whatever the proposal. Level 0.001."""
    model = poisson_as_neural([1.0, 0.5])
    model.start_atom = StartAtom(torch.tensor([0.2, 0.5, 0.3]).log())
    mechanism = rd.After("1", 0.5, rates={"0": 0.8}, otherwise={"0": 0.4}) * rd.Windows([(0, 1)], types="1", inside=0.9)
    count = some(200, 8)
    seen = [EventStream([1.2], [0], end=2.0, id=i) for i in range(count)]
    seen += [EventStream([0.0], [0], end=2.0, id=-1)]
    posterior = impute(
        StreamSet(seen, types=["0", "1"]), propose(kind, model, mechanism, 0.5), some(500, 80), 3, engine="triton",
        islands=1,
    )  # fmt: skip

    exact = _evidence_after(0.2 + 0.5 * 0.4, 0.3 * 0.9, seen=1.2)
    ratios = np.exp(posterior.log_evidence[:count]) / exact
    assert abs(ratios.mean() - 1) < stats.t(count - 1).ppf(1 - 5e-4) * ratios.std(ddof=1) / math.sqrt(count) + 2e-3
    assert posterior.log_evidence[count] == pytest.approx(math.log(_evidence_after(0.5 * 0.6, 0.0)), abs=0.2)


@runs
def test_inputs_of_the_future_may_have_shares_of_their_own(monkeypatch):
    """One by one they say the same as a table that gives the same shares."""
    observed, proposal = a_case("outage", "smoothing", 2)
    proposal.by_rate = None  # or else it is told of the outage
    table = proposal.input_table() + torch.randn_like(proposal.input_table()) * 0.3
    options = Options(8, find_scheme("systematic"), 1.0)

    def shares(batch: Any) -> torch.Tensor:
        ends = torch.where(batch.mask, batch.types, proposal.boundary)
        return table[torch.nn.functional.pad(ends, (0, 1), value=proposal.boundary)]

    before = run(TritonEngine(), observed, proposal, options)
    with monkeypatch.context() as patch:
        patch.setattr(proposal, "input_shares", shares)
        one = run(TritonEngine(), observed, proposal, options)
    monkeypatch.setattr(proposal, "input_table", lambda: table)
    other = run(TritonEngine(), observed, proposal, options)
    assert torch.equal(one.log_evidence, other.log_evidence)
    assert not torch.equal(one.log_evidence, before.log_evidence)


def test_mechanisms_that_look_at_more_are_refused():
    for name in EXAMPLES:
        proposal = propose("mixing", random_neural(), EXAMPLES[name].mechanism)
        reason = TritonEngine().refuses(proposal, Options())
        if name in TAKEN:
            assert reason is None or "CUDA device" in reason
        else:
            assert reason is not None
            assert "last trigger" in reason
