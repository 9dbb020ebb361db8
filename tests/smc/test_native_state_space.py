"""State spaces on the native engine: whatever has to be padded, every instruction set, what is refused."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.models.state_space import StateSpace
from retrodict.smc import engines
from retrodict.smc.engines import native
from tests.checks import weights_are_those_of_the_particles
from tests.conftest import compiled, random_state_space

pytestmark = compiled


def a_case(size: int, num_types: int, scales: int, mixing: int | None):
    """Observed streams, and a proposal with random weights; None: filtering."""
    generator = torch.Generator().manual_seed(2)
    model = StateSpace(num_types, size, scales=scales, time_scale=0.7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.6, 0.6, generator=generator)
        model.layers[0].log_decay.copy_(torch.linspace(2.0, -1.0, scales - 1))
    mechanism = rd.ByType(0.5)
    observed, _ = mechanism.censor(rd.simulate(model, 3, end=2.0, seed=1), seed=1)
    if mixing is None:
        return observed, rd.Filtering(model, mechanism)
    torch.manual_seed(5)
    proposal = rd.Smoothing(model, mechanism, size + 1, mixing)
    torch.nn.init.normal_(proposal.readout, std=0.3)
    if mixing:
        torch.nn.init.normal_(proposal.mix.readout.weight, std=0.3)
    return observed, proposal


@pytest.mark.parametrize("mixing", [None, 0, 17])
@pytest.mark.parametrize("scales", [1, 2, 8, 17])
@pytest.mark.parametrize(("size", "num_types"), [(1, 1), (16, 5), (33, 17)])
def test_any_number_of_units_types_and_speeds(size, num_types, scales, mixing):
    """Log weights of particles, evaluated by other code, whatever has to be padded; mixing units are interpolated."""
    observed, proposal = a_case(size, num_types, scales, mixing)
    posterior = rd.impute(observed, proposal, particles=5, resample=None, seed=3, engine="native", sampler="thinning")
    weights_are_those_of_the_particles(posterior, observed, proposal, atol=1e-2 if mixing else 2e-3)


@pytest.mark.parametrize("mixing", [None, 7])
def test_every_instruction_set_gives_the_same_particles(mixing, monkeypatch):
    observed, proposal = a_case(19, 5, 5, mixing)
    best = native.native_module().__name__.rsplit("_", 1)[-1]
    sets = ["portable", "avx2", "avx512"]
    results = []
    for name in sets[: 1 + sets.index(best)]:
        module = importlib.import_module(f"retrodict._native_{name}")
        monkeypatch.setattr(native, "native_module", lambda module=module: module)
        monkeypatch.setitem(engines.ENGINES, "native", native.NativeEngine())
        results.append(rd.impute(observed, proposal, particles=40, seed=1, engine="native"))
    for other in results[1:]:
        np.testing.assert_allclose(other.log_evidence, results[0].log_evidence, rtol=0, atol=0.05)
        assert abs(len(other.event_times) - len(results[0].event_times)) < 20


def test_particles_go_on_where_they_stand():
    """What is fed bit by bit is answered as all at once, up to rounding."""
    model, mechanism = random_state_space().float(), rd.ByType([0.5, 0.3, 0.9])
    observed, _ = mechanism.censor(rd.simulate(model, 5, end=5.0, seed=1), seed=1)
    proposal = rd.Filtering(model, mechanism)
    online = rd.Online(proposal, lag=50.0, particles=20, seed=3, engine="native", ess_threshold=1.1)
    for until in (1.0, 2.5, 5.0):
        seen = observed.event_times <= until
        seen &= observed.event_times > until - (1.0 if until == 1.0 else 1.5 if until == 2.5 else 2.5)
        events = {i: [] for i in observed.ids}
        for e in np.flatnonzero(seen):
            name = observed.ids[observed.stream_of_event[e]]
            events[name].append((observed.event_times[e], int(observed.event_types[e])))
        online.feed(events, start=dict.fromkeys(observed.ids, 0.0) if until == 1.0 else None, until=until)
    at_once = rd.impute(observed, proposal, 20, seed=3, engine="native", ess_threshold=1.1)
    np.testing.assert_allclose(online.log_evidence(), at_once.log_evidence, rtol=0, atol=1e-4)


def test_several_layers_and_double_precision_are_left_to_the_reference():
    observed, mechanism = rd.StreamSet([rd.EventStream([1.0], [0], end=2.0)], types=["0", "1", "2"]), rd.ByType(0.5)
    for model, why in (
        (random_state_space(layers=2).float(), "state spaces of one layer, and this one has 2"),
        (random_state_space(), "single precision"),
    ):
        proposal = rd.Smoothing(model, mechanism, 5)
        with pytest.raises(rd.ModelError, match=why):
            rd.impute(observed, proposal, particles=5, engine="native")
        assert len(rd.impute(observed, proposal, particles=5)) == 1
    with pytest.raises(rd.ModelError, match="the triton engine cannot do this"):
        rd.impute(observed, proposal, particles=5, engine="triton")
