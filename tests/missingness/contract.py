"""What every mechanism promises: rates, bounds, breaks, histories, a place in log q, and a way to be saved.

Each check takes an ``Example``: a mechanism with its rates written out by hand; ``check_mechanism`` makes all checks.
"""

from __future__ import annotations

import functools
import json
import math
import tempfile

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.missingness import MECHANISMS, Context, Missingness
from retrodict.random import stream_keys
from tests.missingness.examples import END, START, TYPES, Example

RATES = [1.0, 0.5, 2.0]


@functools.cache
def contract_streams() -> rd.StreamSet:
    """Forty Poisson streams of three types on [10, 16]."""
    drawn = rd.simulate(rd.Poisson(RATES), 40, end=END - START, seed=3)
    named = ["a", *(f"stream {i}" for i in range(39))]
    return rd.StreamSet(
        [rd.EventStream(s.times + START, s.types, START, END, name) for s, name in zip(drawn, named, strict=True)],
        types=TYPES,
    )


def random_context(mechanism: Missingness, rows: int, seed: int = 0) -> Context:
    """Rows with histories of a few events before time 1."""
    generator = torch.Generator().manual_seed(seed)
    history = mechanism.initial((rows,))
    for time in (0.2, 0.5, 0.9):
        kinds = torch.randint(0, 3, (rows,), generator=generator)
        history = mechanism.update(history, kinds, torch.full((rows,), time, dtype=torch.float64))
    start = torch.full((rows,), START, dtype=torch.float64)
    ids = stream_keys(0, ["a" if i % 2 else "b" for i in range(rows)])
    return Context(start, ids, None, start - START + END - START, history)


def rates_of_events_are_those_written_out_by_hand(example: Example) -> None:
    streams = contract_streams()
    ours = example.mechanism.bind(TYPES).event_rates(streams)
    theirs = [example.rate(int(k), np.array([t - START]), stream)[0] for stream in streams for t, k in stream]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    assert len(np.unique(np.round(ours, 6))) > 1


def as_many_events_go_missing_as_should(example: Example) -> None:
    """The number of hidden events, level 0.001; and a stream's own do not depend on the others."""
    mechanism, streams = example.mechanism, contract_streams()
    rates = mechanism.bind(TYPES).event_rates(streams)
    observed, missing = mechanism.censor(streams, seed=4)
    assert observed.num_events + missing.num_events == streams.num_events
    spread = math.sqrt((rates * (1 - rates)).sum())
    assert abs(missing.num_events - rates.sum()) <= 3.3 * spread
    assert mechanism.censor(streams[[7, 0]], seed=4)[0][1] == observed[0]
    assert torch.isfinite(mechanism.log_prob(observed, missing)).all()


@torch.no_grad()
def bounds_hold_everywhere_and_are_tight(example: Example) -> None:
    """Over 300 random intervals, at 60 times in each; short ones hardly exceed the rate itself."""
    mechanism = example.mechanism.bind(TYPES)
    rows = 300
    context = random_context(mechanism, rows)
    generator = torch.Generator().manual_seed(1)
    start = 0.9 + 5.1 * torch.rand(rows, generator=generator, dtype=torch.float64)
    length = (6.0 - start) * torch.rand(rows, generator=generator, dtype=torch.float64) ** 3
    bound = mechanism.bound(start, start + length, context)
    times = start[:, None] + length[:, None] * torch.linspace(0, 1, 60, dtype=torch.float64)
    rates = mechanism.rates(times, context.over(times))
    assert rates.shape == (rows, 60, 3)
    assert bool((rates <= bound[:, None]).all())
    if example.is_tight:
        excess = bound - rates.amax(1)
        assert float(excess[length < 0.05].mean()) < 0.02


@torch.no_grad()
def rates_are_smooth_between_breaks(example: Example) -> None:
    """Sixteen nodes between any two breaks integrate as well as thousands of midpoints."""
    mechanism = example.mechanism.bind(TYPES)
    context = random_context(mechanism, 50)
    start, stop = torch.full((50,), 0.9, dtype=torch.float64), torch.linspace(1.0, 6.0, 50, dtype=torch.float64)
    breaks = mechanism.breaks(start, stop, context)
    edges = torch.stack([start, stop], 1)
    if breaks is not None:
        assert bool((breaks.diff(dim=1) >= 0).all())
        edges = torch.cat([start[:, None], breaks, stop[:, None]], 1)
    points, weights = (torch.as_tensor(x) for x in np.polynomial.legendre.leggauss(16))
    half = edges.diff(dim=1)[..., None] / 2
    times = (edges[:, :-1, None] + half * (1 + points)).flatten(1)
    area = (mechanism.rates(times, context.over(times)) * (half * weights).flatten(1)[..., None]).sum(1)
    many = start[:, None] + (stop - start)[:, None] * (torch.arange(20_000) + 0.5) / 20_000
    fine = mechanism.rates(many, context.over(many)).mean(1) * (stop - start)[:, None]
    torch.testing.assert_close(area, fine, rtol=0, atol=5e-4)


def log_q_has_the_rates_in_events_and_integrals(example: Example) -> None:
    """Filtering: sum log(rho lambda) - ∫ rho lambda; smoothing that ignores the future is the same."""
    few = contract_streams()[:6]
    observed, missing = example.mechanism.censor(few, seed=4)
    model = rd.Poisson(RATES)
    filtering, smoothing = rd.Filtering(model, example.mechanism), rd.Smoothing(model, example.mechanism, 4, mixing=0)
    torch.nn.init.zeros_(smoothing.readout)
    values = zip(*(proposal.log_prob(missing, observed).tolist() for proposal in (filtering, smoothing)), strict=True)
    for stream, hidden, both in zip(few, missing, values, strict=True):
        seen = stream.times - START
        edges = np.unique(np.clip(np.concatenate([np.arange(0, 61) / 10, seen, seen + 0.7]), 0, END - START))
        points, weights = np.polynomial.legendre.leggauss(8)
        half = np.diff(edges)[:, None] / 2
        times, weights = (edges[:-1, None] + half * (1 + points)).ravel(), (half * weights).ravel()
        area = sum(RATES[k] * example.rate(k, times, stream) @ weights for k in range(3))
        own = sum(math.log(RATES[k] * example.rate(int(k), np.array([t - START]), stream)[0]) for t, k in hidden)
        assert both == pytest.approx((own - area, own - area), abs=2e-6)


def it_is_saved_with_a_proposal(example: Example) -> None:
    """Unless it cannot be, as a function of the user's own."""
    if not example.is_saved:
        return
    mechanism, model, streams = example.mechanism, rd.Poisson(RATES), contract_streams()
    model.types = TYPES
    bound = mechanism.bind(TYPES)
    again = MECHANISMS[mechanism.kind].from_config(json.loads(json.dumps(bound.config())))
    with tempfile.TemporaryDirectory() as folder:
        rd.Filtering(model, mechanism).save(folder)
        loaded = rd.load_proposal(folder)
    for same in (again.bind(TYPES), loaded.missingness):
        np.testing.assert_allclose(same.event_rates(streams), bound.event_rates(streams), rtol=0, atol=1e-12)


CHECKS = (
    rates_of_events_are_those_written_out_by_hand,
    as_many_events_go_missing_as_should,
    bounds_hold_everywhere_and_are_tight,
    rates_are_smooth_between_breaks,
    log_q_has_the_rates_in_events_and_integrals,
    it_is_saved_with_a_proposal,
)


def check_mechanism(example: Example) -> None:
    """All checks."""
    for check in CHECKS:
        check(example)
