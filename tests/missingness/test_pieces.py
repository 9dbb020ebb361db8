"""Rates in pieces, as engines take them, are the mechanism's own: everywhere, and just left and right of jumps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.events.batch import Batch, make_batch
from retrodict.missingness import After, ByType, Context, Either, ReportingDelay, TimeVarying, Windows
from retrodict.missingness.odds import with_odds
from retrodict.missingness.pieces import Pieces, of_time, pieces_of, rates_at
from tests.missingness.examples import EXAMPLES, TYPES

SLOW = {"0": 0.002, "1": 0.05, "2": 7.0}
DATES = 1.7e9  # seconds since 1970
MECHANISMS = {name: e.mechanism for name, e in EXAMPLES.items() if not e.looks_back and name != "custom"} | {
    "hours of dated streams": Windows([("22:00", "06:00"), ("12:00", "12:30")], every="day", inside=0.7, unit="second"),
    "steps by the hour": TimeVarying([0, 1, 1.5], [0.3, 1.0, 0.0], every=2.0, steps=True),
    "a table with a jump": TimeVarying([0.5, 2.0, 2.0, 3.0], {"0": [0.0, 1.0, 0.2, 0.9], "2": [1, 1, 0, 0]}),
    "delays of many sizes": ReportingDelay("exponential", mean=SLOW),
    "gamma delays of many sizes": ReportingDelay("gamma", mean=SLOW, shape={"0": 0.8, "1": 4.0, "2": 1.0}),
    "log-normal delays of many sizes": ReportingDelay("lognormal", median=SLOW, spread={"0": 0.3, "1": 1, "2": 2}),
    "delays with ties": ReportingDelay("empirical", delays=[0.5, 0.5, 0.5, 1.0, 2.0, 2.0]),
    "either of two tables": Either(TimeVarying([0, 5], [0.1, 0.9]), TimeVarying([0, 2, 6], [0.9, 0, 0.4])),
    "other odds": with_odds((Windows([(1.0, 2.5)], inside=0.9) * ByType([0.2, 0.0, 1.0])).bind(TYPES), 3.0),
}
LOOKING_BACK = {
    "after": EXAMPLES["after"].mechanism,
    "after, and windows": EXAMPLES["after"].mechanism * EXAMPLES["windows"].mechanism * After("0", 1.5, 0.4, 0.1),
}


def random_streams(seed: int, dated: bool = False) -> Batch:
    """Ten streams of other starts and ends, one of them without duration; or with dates, for some days."""
    generator = np.random.default_rng(seed)
    streams = []
    for i in range(10):
        start = generator.uniform(0, 20) + (DATES if dated else 0.0)
        length = 0.0 if i == 8 else generator.uniform(0.5, 9) * (3e4 if dated else 1.0)
        times = np.sort(generator.uniform(start, start + length, 3)) if length else []
        streams.append(
            rd.EventStream(times, [0, 1, 2] if length else [], start, start + length, "a" if i == 3 else str(i))
        )
    return make_batch(rd.StreamSet(streams, types=TYPES), dtype=torch.float64)


def context_of(batch: Batch) -> Context:
    return Context(batch.starts, batch.ids, None, batch.durations)


def times_to_try(batch: Batch, pieces: Pieces) -> torch.Tensor:
    """Random ones, and such as lie in the first and the last millionth of every piece, [B, N]."""
    anywhere = batch.durations[:, None] * torch.rand(len(batch.ids), 400, dtype=torch.float64)
    left, right = pieces.breaks[:, :-1], pieces.breaks[:, 1:]
    inset = torch.maximum(
        1e-6 * (right - left), 4 * torch.finfo(torch.float64).eps * (1 + batch.starts[:, None] + left)
    )
    wide = right - left > 2 * inset
    near = [torch.where(wide, left + inset, 0.0), torch.where(wide, right - inset, 0.0)]
    return torch.cat([anywhere, *near], 1)


@pytest.mark.parametrize("name", MECHANISMS)
@torch.no_grad()
def test_pieces_are_the_mechanism_itself(name):
    """Also just left and right of jumps, where the test without them would see nothing of a jump at a wrong place."""
    torch.manual_seed(0)
    batch = random_streams(1, "dated" in name)
    mechanism = MECHANISMS[name].bind(TYPES, "second" if "dated" in name else None)
    pieces = pieces_of(mechanism, batch)
    t = times_to_try(batch, pieces)
    torch.testing.assert_close(pieces.at(t), mechanism.rates(t, context_of(batch).over(t)), rtol=0, atol=1e-6)
    assert not pieces.after
    at_start = torch.zeros_like(t[:, :1])
    torch.testing.assert_close(rates_at(mechanism, batch, at_start), pieces.at(at_start), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", LOOKING_BACK)
@torch.no_grad()
def test_what_looks_back_is_told_apart_from_what_depends_on_time(name):
    torch.manual_seed(0)
    batch = random_streams(2)
    mechanism = LOOKING_BACK[name].bind(TYPES)
    pieces = pieces_of(mechanism, batch)
    assert len(pieces.after) == 1 + ("windows" in name)
    t = times_to_try(batch, pieces)
    history = mechanism.initial(batch.durations.shape)
    for kind, time in ((1, 0.3), (0, 0.4), (2, 0.45)):
        history = mechanism.update(history, torch.full_like(batch.ids, kind), torch.full_like(batch.durations, time))
    context = context_of(batch)._replace(history=history)
    seen = 1 - pieces.at(t)
    for part, last in zip(pieces.after, (0.3, 0.4), strict=False):
        seen = seen * (1 - torch.where((t - last < part.reach)[..., None], part.soon, part.late))
    late = t > 0.45
    torch.testing.assert_close(1 - seen[late], mechanism.rates(t, context.over(t))[late], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", MECHANISMS)
@torch.no_grad()
def test_pieces_cover_their_streams_and_stay_probabilities(name):
    batch = random_streams(3, "dated" in name)
    pieces = pieces_of(MECHANISMS[name].bind(TYPES, "second" if "dated" in name else None), batch)
    assert bool((pieces.breaks[:, 0] == 0).all())
    assert bool((pieces.breaks[:, -1] == batch.durations).all())
    assert bool((pieces.breaks.diff(dim=1) >= 0).all())
    assert bool(((pieces.rates >= 0) & (pieces.rates <= 1)).all())
    assert bool(pieces.bends[:, 0].all())
    assert pieces.rates.shape[1] < 200


@torch.no_grad()
def test_integrals_cut_where_pieces_bend_are_right():
    """Eight nodes between bends, against all the pieces' own exact integrals."""
    batch = random_streams(4)
    for name in ("gamma delay", "log-normal delay", "time varying", "windows that recur", "empirical delay"):
        pieces = pieces_of(MECHANISMS[name].bind(TYPES), batch)
        points, weights = (torch.as_tensor(x) for x in np.polynomial.legendre.leggauss(8))
        for b in range(10):
            edges = torch.cat([pieces.breaks[b, :-1][pieces.bends[b]], batch.durations[b : b + 1]])
            half = edges.diff()[:, None] / 2
            times = (edges[:-1, None] + half * (1 + points)).reshape(1, -1)
            own = Pieces(*(x[b : b + 1] if isinstance(x, torch.Tensor) else x for x in pieces))
            area = (own.at(times)[0] * (half * weights).reshape(-1, 1)).sum(0)
            exact = (pieces.rates[b].mean(1) * pieces.breaks[b].diff()[:, None]).sum(0)
            torch.testing.assert_close(area, exact, rtol=0, atol=3e-5)


def test_constant_rates_are_one_piece_and_exact():
    pieces = pieces_of(ByType([0.3, 0.0, 1.0]).bind(TYPES), random_streams(1))
    assert pieces.rates.shape == (10, 1, 4, 3)
    assert bool((pieces.rates == torch.tensor([0.3, 0.0, 1.0], dtype=torch.float64)).all())


@pytest.mark.parametrize("name", ["contextual", "custom", "either, looking back"])
def test_what_looks_at_more_than_time_has_no_pieces(name):
    mechanism = EXAMPLES[name].mechanism.bind(TYPES)
    assert of_time(mechanism) is None
    assert pieces_of(mechanism, random_streams(1)) is None
