"""Every phase of the local search lowers the risk or leaves it, and its bookkeeping agrees with alignment."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode import Cost
from retrodict.decode.local import _insertion_gains, _move_and_delete, align_all, improve, local_search
from tests.decode.examples import one_stretch, random_stretch, slow_risk

COSTS = (Cost(0.2, 0.2), Cost(1.0, 1.0), Cost(0.3, 2.0))
ONE = Cost(1.0, 1.0)


@pytest.mark.parametrize("seed", range(8))
def test_moving_and_deleting_never_raises_the_risk(seed: int) -> None:
    ensemble, rng = random_stretch(seed), np.random.default_rng(seed)
    for cost in COSTS:
        decode = np.sort(rng.choice(ensemble.candidates, 7))
        before = align_all(decode, ensemble, cost)
        assert before.objective == pytest.approx(slow_risk(decode, ensemble, cost))
        free = np.ones(len(ensemble.times), np.bool_)
        after = np.sort(_move_and_delete(before, ensemble, cost, free))
        assert slow_risk(after, ensemble, cost) <= before.objective + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_insertion_gain_is_what_inserting_gains(seed: int) -> None:
    """With nothing decoded yet every event is free, and Delta(t) is exact."""
    ensemble = random_stretch(seed)
    for cost in COSTS:
        gains = _insertion_gains(ensemble, np.ones(len(ensemble.times), np.bool_), cost)
        nothing = slow_risk(np.empty(0), ensemble, cost)
        for j in range(0, len(gains), 5):
            assert gains[j] == pytest.approx(nothing - slow_risk(ensemble.candidates[j : j + 1], ensemble, cost))


@pytest.mark.parametrize("seed", range(8))
def test_search_ends_no_worse_than_it_starts_and_reports_its_risk(seed: int) -> None:
    ensemble, rng = random_stretch(seed), np.random.default_rng(seed)
    for cost in COSTS:
        start = np.sort(rng.choice(ensemble.candidates, 5))
        decode = improve(align_all(start, ensemble, cost), ensemble, cost, start)
        assert decode.objective <= slow_risk(start, ensemble, cost) + 1e-12
        assert decode.objective == pytest.approx(slow_risk(decode.times, ensemble, cost))
        assert np.isin(decode.times, ensemble.candidates).all()
        assert improve(decode, ensemble, cost, start).objective == pytest.approx(decode.objective)
        assert local_search(ensemble, cost, 4).objective <= local_search(ensemble, cost, 1).objective


def test_delete_looks_at_all_particles_before_it_decides() -> None:
    """The first particle lacks the event, the others have it: the printed test inside the loop would drop it."""
    ensemble = one_stretch([[], [1.0, 9.0], [1.0, 8.0], [1.0]], [0.25] * 4)
    decode = align_all(np.array([1.0]), ensemble, ONE)
    assert _move_and_delete(decode, ensemble, ONE, np.ones(5, np.bool_)).tolist() == [1.0]


def test_insert_may_use_a_time_twice() -> None:
    ensemble = one_stretch([[1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 3.0]], [0.4, 0.3, 0.3])
    nothing, cost = np.empty(0), Cost(0.1, 0.1)
    assert improve(align_all(nothing, ensemble, cost), ensemble, cost, nothing).times.tolist() == [1.0, 1.0]


def test_a_search_that_meets_a_known_decode_ends_there() -> None:
    ensemble = random_stretch(0)
    best = local_search(ensemble, ONE, 1)
    start = align_all(np.empty(0), ensemble, ONE)
    stopped = improve(start, ensemble, ONE, best.times)
    assert best.objective < stopped.objective <= start.objective


@pytest.mark.parametrize(("insert", "delete"), [(1.0, 1.0), (1.0, 3.0), (2.0, 0.5)])
@pytest.mark.parametrize("weight", [0.1, 0.3, 0.45, 0.55, 0.7, 0.9])
def test_an_event_stays_if_missing_it_would_cost_more_than_a_false_alarm(weight, insert, delete) -> None:
    ensemble, cost = one_stretch([[1.0], []], [weight, 1 - weight]), Cost(insert, delete)
    decode = align_all(np.array([1.0]), ensemble, cost)
    kept = _move_and_delete(decode, ensemble, cost, np.ones(1, np.bool_))
    assert len(kept) == (weight * insert >= (1 - weight) * delete)
