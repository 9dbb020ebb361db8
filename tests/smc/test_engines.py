"""Engines: the compiled one against the reference, distribution by distribution, and who is chosen when."""

from __future__ import annotations

import importlib
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

import retrodict as rd
from retrodict.models.simulate import simulate
from retrodict.models.start import StartAtom
from retrodict.smc import engines
from retrodict.smc.engines import native
from tests.checks import weights_are_those_of_the_particles
from tests.conftest import random_neural_hawkes

compiled = pytest.mark.skipif(native.native_module() is None, reason="the native engine was not compiled")
each_proposal = pytest.mark.parametrize(("smooth", "mixing"), [(False, 0), (True, 0), (True, 13)])


def neural_case(smooth: bool, mixing: int = 0, streams: int = 12, atom: bool = False, rates: float | None = None):
    """A random neural Hawkes process in single precision with an awkward number of cells, types and units."""
    model = random_neural_hawkes(num_types=5, hidden_size=19, seed=2, spread=0.6).float()
    with torch.no_grad():
        model.log_scale.copy_(torch.tensor([0.0, -0.5, 0.3, -1.0, 0.0]))
        model.time_scale.fill_(0.7)
    if atom:
        model.start_atom = StartAtom(torch.tensor([0.3, 0.2, 0.1, 0.1, 0.2, 0.1], dtype=torch.float64).log())
    mechanism = rd.ByType([0.5, 0.2, 1.0, 0.0, 0.7] if rates is None else rates)
    observed, _ = mechanism.censor(simulate(model, streams, end=3.0, seed=1), seed=1)
    torch.manual_seed(5)
    proposal = rd.Smoothing(model, mechanism, 21, mixing) if smooth else rd.Filtering(model, mechanism)
    if smooth:
        torch.nn.init.normal_(proposal.readout, std=0.3)
        torch.nn.init.normal_(proposal.start_readout, std=0.3)
        proposal.time_scale.fill_(1.3)
    if mixing:
        for layer, std in ((proposal.mix.past, 0.5), (proposal.mix.future, 0.5), (proposal.mix.readout, 0.4)):
            torch.nn.init.normal_(layer.weight, std=std)
    return observed, proposal


@compiled
@pytest.mark.parametrize("sampler", ["thinning", "inversion"])
@pytest.mark.parametrize("atom", [False, True])
@each_proposal
def test_the_native_engine_samples_what_the_reference_samples(smooth, mixing, atom, sampler):
    """Counts, times, types and log weights of 12 x 1500 unweighted particles: two-sample tests at level 0.001 each."""
    observed, proposal = neural_case(smooth, mixing, atom=atom)
    options = {"particles": 1500, "resample": None, "sampler": sampler}
    ours = rd.impute(observed, proposal, seed=1, engine="native", **options)
    theirs = rd.impute(observed, proposal, seed=2, engine="torch", **options)
    tables = []
    for posterior in (ours, theirs):
        counts = np.diff(posterior.offsets)
        tables.append(
            (np.bincount(np.minimum(counts, 25), minlength=26), np.bincount(posterior.event_types, minlength=5))
        )
        assert (counts > 0).any()
    for one, other in zip(*tables, strict=True):
        both = np.stack([one, other])
        both = both[:, both.sum(0) > 20]
        assert stats.chi2_contingency(both).pvalue > 1e-3
    assert stats.ks_2samp(ours.event_times, theirs.event_times).pvalue > 1e-3
    logs = [np.log(p.all_weights * p.all_weights.shape[1]) + p.log_evidence[:, None] for p in (ours, theirs)]
    for one, other in zip(*logs, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-3 / 12


@compiled
def test_a_wrong_engine_would_be_noticed(monkeypatch):
    """The test above can fail: five per cent off in the rates from which events are drawn."""
    observed, proposal = neural_case(smooth=False)
    theirs = rd.impute(observed, proposal, particles=1500, resample=None, seed=2, engine="torch")
    with torch.no_grad():
        proposal.model.time_scale.mul_(1.05)
    ours = rd.impute(observed, proposal, particles=1500, resample=None, seed=1, engine="native")
    counts = [np.bincount(np.minimum(np.diff(p.offsets), 25), minlength=26) for p in (ours, theirs)]
    both = np.stack(counts)
    assert stats.chi2_contingency(both[:, both.sum(0) > 20]).pvalue < 1e-3


@compiled
@each_proposal
def test_log_weights_are_those_of_the_particles(smooth, mixing):
    """Each particle's log weight is log p(x, z) + log p_miss - log q(z | x), evaluated by other code."""
    observed, proposal = neural_case(smooth, mixing, streams=4)
    posterior = rd.impute(observed, proposal, particles=30, resample=None, seed=3, engine="native")
    weights_are_those_of_the_particles(posterior, observed, proposal, atol=2e-3)


@compiled
@pytest.mark.parametrize("end", [0.1, 3.0, 30.0, 300.0])
def test_units_are_those_of_the_smoother_however_long_the_gap(end):
    """The sums of mixing units, interpolated over gaps of any length, move log weights by less than a hundredth."""
    _, proposal = neural_case(smooth=True, mixing=13, rates=min(0.5, 0.5 / end))
    streams = [rd.EventStream([share * end], [0], end=end, id=str(share)) for share in (0.0, 0.3, 0.9)]
    observed = rd.StreamSet(streams, types=[str(k) for k in range(5)])
    posterior = rd.impute(observed, proposal, particles=20, resample=None, seed=3, engine="native")
    assert len(posterior.event_times) > 0
    weights_are_those_of_the_particles(posterior, observed, proposal, atol=1e-2)


@compiled
@each_proposal
def test_every_instruction_set_gives_the_same_particles(smooth, mixing, monkeypatch):
    observed, proposal = neural_case(smooth, mixing)
    best = native.native_module().__name__.rsplit("_", 1)[-1]
    known = ["portable", "avx2", "avx512"][: 1 + ["portable", "avx2", "avx512"].index(best)]
    results = []
    for name in known:
        module = importlib.import_module(f"retrodict._native_{name}")
        monkeypatch.setattr(native, "native_module", lambda module=module: module)
        monkeypatch.setitem(engines.ENGINES, "native", native.NativeEngine())
        results.append(rd.impute(observed, proposal, particles=40, seed=1, engine="native"))
    for other in results[1:]:
        # Rounding may tip a rare acceptance; the rest agrees to single precision.
        np.testing.assert_allclose(other.log_evidence, results[0].log_evidence, rtol=0, atol=0.05)
        assert abs(len(other.event_times) - len(results[0].event_times)) < 20


@compiled
def test_threads_and_groups_change_nothing():
    observed, proposal = neural_case(smooth=True, streams=30)
    alone = rd.impute(observed, proposal, particles=20, seed=1, engine="native")
    torch.set_num_threads(2)
    try:
        shared = rd.impute(observed, proposal, particles=20, seed=1, engine="native")
    finally:
        torch.set_num_threads(1)
    assert shared.event_times.tobytes() == alone.event_times.tobytes()
    assert shared.all_weights.tobytes() == alone.all_weights.tobytes()
    np.testing.assert_array_equal(shared.lagged.event_times, alone.lagged.event_times)


@compiled
def test_weights_that_changed_are_packed_again():
    observed, proposal = neural_case(smooth=True)
    before = rd.impute(observed, proposal, particles=20, seed=1, engine="native")
    with torch.no_grad():
        proposal.model.readout.mul_(1.5)
    after = rd.impute(observed, proposal, particles=20, seed=1, engine="native")
    proposal.model.readout.data.mul_(1.1)
    data = rd.impute(observed, proposal, particles=20, seed=1, engine="native")
    assert not np.array_equal(data.log_evidence, after.log_evidence)
    proposal.model.readout.data.mul_(1 / 1.1)
    after = rd.impute(observed, proposal, particles=20, seed=1, engine="native")
    fresh = rd.Smoothing(proposal.model, proposal.given_missingness, 21, mixing=0)
    fresh.load_state_dict(proposal.state_dict())
    again = rd.impute(observed, fresh, particles=20, seed=1, engine="native")
    assert not np.array_equal(before.log_evidence, after.log_evidence)
    np.testing.assert_array_equal(after.log_evidence, again.log_evidence)


@compiled
@pytest.mark.parametrize("hidden_size", [4, 16, 33])
@pytest.mark.parametrize("num_types", [1, 5, 17])
@pytest.mark.parametrize("mixing", [1, 16, 40])
def test_any_number_of_units_types_and_cells(mixing, num_types, hidden_size):
    """Log weights of particles, evaluated by other code, whatever has to be padded."""
    model = random_neural_hawkes(num_types, hidden_size, seed=2, spread=0.4).float()
    mechanism = rd.ByType(0.5)
    observed, _ = mechanism.censor(simulate(model, 2, end=2.0, seed=1), seed=1)
    torch.manual_seed(5)
    proposal = rd.Smoothing(model, mechanism, hidden_size + 1, mixing)
    torch.nn.init.normal_(proposal.mix.readout.weight, std=0.3)
    posterior = rd.impute(observed, proposal, particles=5, resample=None, seed=3, engine="native", sampler="thinning")
    logs = np.log(posterior.all_weights * 5) + posterior.log_evidence[:, None]
    for m in range(5):
        missing = rd.StreamSet([posterior.particles(i)[m] for i in range(2)], types=observed.types)
        expected = model.log_likelihood(rd.combine(observed, missing)[0], integral=rd.GaussLegendre(8))
        expected = expected + proposal.missingness.log_prob(observed, missing)
        expected = expected - proposal.log_prob(missing, observed, integral=rd.GaussLegendre(8))
        np.testing.assert_allclose(logs[:, m], expected.detach(), rtol=0, atol=2e-3)


@compiled
@pytest.mark.parametrize("particles", [1, 3000])
def test_any_number_of_particles_and_odd_streams(particles):
    """No events, ties, an event at either end, a stream without duration."""
    _, proposal = neural_case(smooth=True)
    streams = [
        rd.EventStream([], [], end=2.0, id="empty"),
        rd.EventStream([1.0, 1.0, 1.0], [0, 1, 1], end=2.0, id="ties"),
        rd.EventStream([0.0, 2.0], [0, 1], end=2.0, id="ends"),
        rd.EventStream([], [], end=0.0, id="instant"),
    ]
    observed = rd.StreamSet(streams, types=[str(k) for k in range(5)])
    ours = rd.impute(observed, proposal, particles=particles, seed=1, engine="native")
    assert np.isfinite(ours.log_evidence).all()
    assert ours.log_evidence[3] == 0
    if particles > 1:
        theirs = rd.impute(observed, proposal, particles=particles, seed=2, engine="torch")
        np.testing.assert_allclose(ours.log_evidence, theirs.log_evidence, rtol=0, atol=0.1)


@compiled
def test_runaway_particles_are_reported():
    busy = rd.Filtering(rd.Poisson([1000.0]), rd.ByType(1.0))
    stream = rd.EventStream([], [], end=2.0)
    assert rd.impute(stream, busy, particles=2, engine="native").expected_count()[0] > 1500
    with pytest.raises(rd.RunawayError, match="more than 500 missing events"):
        rd.impute(stream, busy, particles=2, max_events=500, engine="native")


@compiled
@pytest.mark.parametrize(
    ("change", "options", "why"),
    [
        ("double", {}, "single precision"),
        ("another kind", {}, "not Other"),
        ("a user's rates", {}, "mechanisms that depend on time and on After alone, not "),
        (None, {"integral": rd.MonteCarlo(1)}, "by Gauss-Legendre quadrature, not MonteCarlo"),
    ],
)
def test_what_an_engine_refuses_it_says(change, options, why):
    observed, proposal = neural_case(smooth=True, streams=2)
    if change == "double":
        proposal = proposal.double()
    if change == "a user's rates":
        proposal = rd.Filtering(proposal.model, rd.Custom(lambda t, context: 0.5 + 0.0 * t, bound=0.5))
    if change == "another kind":
        proposal.__class__ = type("Other", (rd.Smoothing,), {})
    with pytest.raises(rd.ModelError, match=why):
        rd.impute(observed, proposal, particles=5, engine="native", **options)
    assert len(rd.impute(observed, proposal, particles=5, **options)) == 2


def test_without_a_compiler_the_reference_is_used_and_that_is_said_once(monkeypatch):
    observed, proposal = neural_case(smooth=False, streams=2)
    monkeypatch.setattr(native, "native_module", lambda: None)
    engines._say_once.cache_clear()
    with pytest.warns(rd.EngineNotice, match="the torch engine is used; the native engine would be faster"):
        ours = rd.impute(observed, proposal, particles=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.impute(observed, proposal, particles=5)
    reference = rd.impute(observed, proposal, particles=5, engine="torch")
    np.testing.assert_array_equal(ours.event_times, reference.event_times)
    with pytest.raises(rd.ModelError, match=r"no C\+\+ compiler with vector types was found"):
        rd.impute(observed, proposal, particles=5, engine="native")


@pytest.mark.parametrize(
    ("on_gpu", "on_cpu", "engine", "place"),
    [
        ("triton", "native", "auto", "cuda"),
        ("torch", "native", "auto", "cpu"),
        ("torch", "torch", "auto", "cuda"),
        ("triton", "native", "native", "cpu"),
        ("torch", "native", "torch", "cuda"),
    ],
)
def test_auto_takes_the_gpu_unless_compiled_code_runs_on_the_cpu_alone(monkeypatch, on_gpu, on_cpu, engine, place):
    moved = SimpleNamespace(to=lambda device: device)
    chosen = {"cuda": SimpleNamespace(name=on_gpu), "cpu": SimpleNamespace(name=on_cpu)}
    monkeypatch.setattr(engines, "find_device", lambda name: "cuda" if name == "auto" else name)
    monkeypatch.setattr(engines, "choose", lambda name, proposal, options: chosen[proposal])
    assert engines.place(moved, "auto", engine, None) == place
    assert engines.place(moved, "cpu", engine, None) == "cpu"


class Somewhere:
    """Stands in for a proposal that remembers where it was put."""

    def __init__(self, where: str = "cpu") -> None:
        self.where = where

    def to(self, where: str) -> Somewhere:
        return Somewhere(where)


@pytest.mark.parametrize(
    ("on_gpu", "on_cpu", "device", "engine", "there"),
    [
        ("triton", "native", "auto", "auto", "cuda"),
        ("torch", "torch", "auto", "auto", "cuda"),
        ("torch", "native", "auto", "auto", "cpu"),  # compiled code on the CPU alone
        ("triton", "native", "auto", "native", "cpu"),
        ("triton", "native", "auto", "triton", "cuda"),
        ("triton", "native", "cuda", "auto", "cuda"),
    ],
)
def test_where_there_is_a_gpu_it_is_used_by_default(monkeypatch, on_gpu, on_cpu, device, engine, there):
    able = {"cuda": engines.ENGINES[on_gpu], "cpu": engines.ENGINES[on_cpu]}
    monkeypatch.setattr(engines, "find_device", lambda name: "cuda" if name == "auto" else name)
    monkeypatch.setattr(engines, "choose", lambda name, proposal, options: able[proposal.where])
    assert engines.place(Somewhere(), device, engine, engines.Options()).where == there
