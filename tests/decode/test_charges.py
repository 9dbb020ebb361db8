"""Charges on consensus events: the decode is optimal for risk plus charges, and its certificate says so."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode import Charges, Cost, Ensembles, decode_set
from retrodict.decode.bound import bound
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.exact import exact_search
from retrodict.decode.local import _insertion_gains, _move_and_delete, align_all, improve, local_search
from tests.decode.examples import least_objective, random_stretch, slow_distance, slow_risk

COSTS = (Cost(0.3, 0.3), Cost(1.0, 0.4), Cost(0.5, 2.0))


def charged(ensemble: Ensemble, seed: int, most: float = 0.5) -> Ensemble:
    """The ensemble with five segments, each of which charges its events something else, one of them nothing."""
    rng = np.random.default_rng(seed)
    edges = np.quantile(ensemble.candidates, [0.2, 0.4, 0.6, 0.8])
    values = rng.permutation([0.0, *(most * rng.random(4))])
    return ensemble._replace(charge=values[np.searchsorted(edges, ensemble.candidates)])


def charge_of(decode: np.ndarray, ensemble: Ensemble) -> float:
    return float(ensemble.charge[np.searchsorted(ensemble.candidates, decode)].sum())


def slow_objective(decode: np.ndarray, ensemble: Ensemble, cost: Cost) -> float:
    return slow_risk(decode, ensemble, cost) + charge_of(decode, ensemble)


def test_decodes_of_a_charged_set_equal_brute_force_and_prove_it() -> None:
    """On coarse grids, with ties, empty particles, events at the edge of a segment and costs of zero."""
    rng = np.random.default_rng(8)
    changed = 0
    for _ in range(250):
        grid = int(rng.choice([3, 5, 40]))
        particles = [np.sort(rng.integers(0, grid + 1, size=n) / grid * 4) for n in rng.integers(0, 4, size=3)]
        w = rng.random(3) + 0.01
        w /= w.sum()
        cost = Cost(float(rng.choice([0.1, 0.5, 1.0, 3.0])), float(rng.choice([0.0, 0.2, 0.8, 5.0])))
        starts, values = np.array([0.0, *np.sort(rng.choice([1.0, 1.6, 2.0, 3.2], 2))]), 0.5 * rng.random(3)
        offsets = np.array([0, *map(len, particles)]).cumsum()
        times = np.concatenate(particles)
        ensembles = Ensembles(times, np.zeros(len(times), np.int64), offsets, w[None])
        charges = Charges(starts, values, np.array([0, 3]))
        found = decode_set(ensembles, [cost], charges, threads=1)[0]

        def price(t: float, starts=starts, values=values, cost=cost) -> float:
            return cost.delete * values[np.searchsorted(starts, t, side="right") - 1]

        def objective(z: list[float], particles=particles, w=w, cost=cost, price=price) -> float:
            return w @ [slow_distance(z, tuple(p), *cost) for p in particles] + sum(map(price, z))

        most = max(map(len, particles)) if len(np.unique(times)) <= 5 else 1
        best = least_objective(particles, w, cost, lambda t, most=most: most, price)
        assert objective(found.times.tolist()) == pytest.approx(found.objective[0], rel=1e-9, abs=1e-12)
        assert found.objective[0] <= best + 1e-12
        assert found.objective[0] - found.lower_bound[0] <= 1e-9 * found.objective[0] + 1e-14
        changed += not np.array_equal(found.times, decode_set(ensembles, [cost], threads=1)[0].times)
    assert changed > 20


@pytest.mark.parametrize("seed", range(6))
def test_the_exact_search_ends_at_one_objective_with_a_valid_certificate(seed: int) -> None:
    """The potentials keep the rules of docs/consensus.md, section 6, and their bound meets the objective."""
    ensemble = charged(random_stretch(seed), seed)
    owner, times, weights = ensemble.owner, ensemble.times, ensemble.weights
    for cost in COSTS:
        starts = [local_search(ensemble, cost, 1), align_all(ensemble.candidates, ensemble, cost)]
        ends = [exact_search(ensemble, cost, start, 1e-12, 100) for start in starts]
        assert ends[0][0].objective == pytest.approx(ends[1][0].objective, rel=1e-11)
        for decode, lower in ends:
            assert decode.objective == pytest.approx(slow_objective(decode.times, ensemble, cost))
            assert lower == pytest.approx(decode.objective, rel=1e-11)
        guess = np.random.default_rng(seed).normal(0, 1.0, len(times))
        lower, f, _ = bound(guess, ensemble, cost)
        price = ensemble.charge.copy()
        for m, weight in enumerate(weights):
            own, at = f[owner == m], times[owner == m]
            assert (np.abs(own[:, None] - own) <= np.abs(at[:, None] - at) + 1e-12).all()
            extended = own + np.abs(ensemble.candidates[:, None] - at)
            price += weight * np.minimum(extended.min(axis=1, initial=np.inf), cost.delete)
        assert price.min() >= -1e-12
        assert bound(f, ensemble, cost).price == pytest.approx(price, abs=1e-12)
        assert lower == pytest.approx(-weights[owner] @ f)
        assert lower <= ends[0][0].objective + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_phases_of_the_local_search_never_raise_risk_plus_charges(seed: int) -> None:
    ensemble, rng = charged(random_stretch(seed), seed), np.random.default_rng(seed)
    for cost in COSTS:
        start = np.sort(rng.choice(ensemble.candidates, 7))
        before = align_all(start, ensemble, cost)
        assert before.objective == pytest.approx(slow_objective(start, ensemble, cost))
        after = np.sort(_move_and_delete(before, ensemble, cost, np.ones(len(ensemble.times), np.bool_)))
        assert slow_objective(after, ensemble, cost) <= before.objective + 1e-12
        assert improve(before, ensemble, cost, start).objective <= before.objective
        gains = _insertion_gains(ensemble, np.ones(len(ensemble.times), np.bool_), cost)
        nothing = slow_risk(np.empty(0), ensemble, cost)
        for j in range(0, len(gains), 9):
            assert gains[j] == pytest.approx(nothing - slow_objective(ensemble.candidates[j : j + 1], ensemble, cost))


@pytest.mark.parametrize("seed", range(20))
def test_an_event_moves_where_way_and_charge_are_least_together(seed: int) -> None:
    ensemble, cost = charged(random_stretch(seed), seed, most=0.2), Cost(3.0, 0.1)
    start = align_all(np.random.default_rng(seed).choice(ensemble.candidates, 1), ensemble, cost)
    aligned = start.match[:, 0]
    mass, at = ensemble.weights[aligned >= 0], ensemble.times[aligned[aligned >= 0]]
    inside = (ensemble.candidates >= at.min()) & (ensemble.candidates <= at.max())
    total = np.abs(ensemble.candidates[inside][:, None] - at) @ mass + ensemble.charge[inside]
    moved = _move_and_delete(start, ensemble, cost, np.ones(len(ensemble.times), np.bool_))
    assert total[np.searchsorted(ensemble.candidates[inside], moved[0])] == pytest.approx(total.min())


def test_the_local_search_is_a_good_start_under_charges() -> None:
    excess = []
    for seed in range(30):
        ensemble = charged(random_stretch(seed), seed)
        for cost in COSTS:
            start = local_search(ensemble, cost, 1)
            excess.append(start.objective / exact_search(ensemble, cost, start, 1e-12, 100)[0].objective - 1)
    assert np.mean(excess) < 0.01


def one_event(share: float, charge: float, at: float = 5.0) -> int:
    """How many events are decoded where this share of 10 particles has one; the segment from 4 to 6 is charged."""
    count = round(10 * share)
    times, offsets = np.full(count, at), np.minimum(np.arange(11), count)
    ensembles = Ensembles(times, np.zeros(count, np.int64), offsets, np.full((1, 10), 0.1))
    charges = Charges(np.array([0.0, 4.0, 6.0]), np.array([0.0, charge, 0.0]), np.array([0, 3]))
    return len(decode_set(ensembles, [1.0], charges, threads=1)[0].times)


def test_one_family_alone_never_carries_an_event() -> None:
    """W > (1 + W^2) / 2 never holds, so a charge of C_delete / N, N = 1 / sum of W^2, needs agreement of several."""
    for share in (0.6, 0.9, 1.0):
        assert one_event(share, charge=0.0) == 1
        assert one_event(share, charge=share**2 + (1 - share) ** 2 + 1e-6) == 0
    assert one_event(0.9, charge=0.7) == one_event(0.9, charge=1e6, at=6.0) == one_event(0.9, 1e6, at=3.9) == 1
    assert one_event(0.9, charge=0.9) == one_event(1.0, charge=1e6, at=4.0) == 0


@pytest.mark.parametrize(("guesses", "is_told"), [(20, True), (30, True), (30, False)])
def test_intervals_of_few_guesses_hold_the_truth_as_often_as_they_say(guesses: int, is_told: bool) -> None:
    """The truth is one more draw of the distribution of the guesses."""
    streams = 2000
    times = np.random.default_rng(5).gamma(4.0, 0.5, (streams, guesses + 1))
    offsets = np.arange(streams * guesses + 1)
    types = np.zeros(streams * guesses, np.int64)
    ensembles = Ensembles(times[:, 1:].ravel(), types, offsets, np.full((streams, guesses), 1 / guesses))
    charge = 1 / guesses if is_told else 0.0
    charges = Charges(np.zeros(streams), np.full(streams, charge), np.arange(streams + 1))
    (found,) = decode_set(ensembles, [100.0], charges, level=0.8)
    assert (np.diff(found.offsets) == 1).all()
    covered = ((found.earliest <= times[:, 0]) & (times[:, 0] <= found.latest)).mean()
    assert abs(covered - 0.8) < 0.025 if is_told else covered < 0.79, covered


@pytest.mark.parametrize("is_told", [True, False])
def test_probabilities_of_few_guesses_come_true(is_told: bool) -> None:
    """How likely an event is differs from stream to stream; of those that 8 guesses speak for, so many happen."""
    streams, guesses = 20_000, 8
    generator = np.random.default_rng(6)
    has = generator.random((streams, guesses + 1)) < generator.beta(0.5, 0.5, (streams, 1))
    offsets = np.concatenate([[0], has[:, 1:].ravel().cumsum()])
    events = int(offsets[-1])
    ensembles = Ensembles(
        np.ones(events), np.zeros(events, np.int64), offsets, np.full((streams, guesses), 1 / guesses)
    )
    charges = Charges(np.zeros(streams), np.full(streams, is_told / guesses), np.arange(streams + 1))
    (found,) = decode_set(ensembles, [1.0], charges, "local")
    decoded = np.diff(found.offsets) == 1
    off = found.probability.mean() - has[decoded, 0].mean()
    assert abs(off) < 0.01 if is_told else off > 0.02, off
