"""Every phase of the local search lowers the risk or leaves it, and its bookkeeping agrees with alignment."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode.aligned import align_all
from retrodict.decode.ensemble import Ensemble, next_cut, restrict
from retrodict.decode.local import _insertion_gains, _move_and_delete, improve, local_search
from retrodict.decode.particles import Particles, prepare
from tests.decode.examples import of_one_type, posterior_like, slow_distance


def one_block(particles: list[list[float]], w: list[float]) -> Ensemble:
    ensemble = prepare([of_one_type(p) for p in particles], w)
    return stretch(ensemble, ensemble.offsets[:-1].copy(), 0, len(ensemble.candidates.times))


def stretch(ensemble: Particles, begin: np.ndarray, first: int, stop: int) -> Ensemble:
    candidates = ensemble.candidates
    return restrict(candidates.times, candidates.position, ensemble.offsets, ensemble.weights, begin, first, stop)


def random_block(seed: int) -> Ensemble:
    streams, w = posterior_like(8, 1, 12, seed)
    return one_block([s.times.tolist() for s in streams], w.tolist())


def risk(decode: np.ndarray, block: Ensemble, insert: float, delete: float) -> float:
    own = [block.times[a:b].tolist() for a, b in zip(block.offsets[:-1], block.offsets[1:], strict=True)]
    return float(block.weights @ [slow_distance(decode.tolist(), p, insert, delete) for p in own])


@pytest.mark.parametrize("seed", range(8))
def test_moving_and_deleting_never_raises_the_risk(seed: int) -> None:
    block, rng = random_block(seed), np.random.default_rng(seed)
    for insert, delete in ((0.2, 0.2), (1.0, 1.0), (0.3, 2.0)):
        decode = np.sort(rng.choice(block.candidates, 7))
        before = align_all(decode, block, insert, delete)
        assert before.risk == pytest.approx(risk(decode, block, insert, delete))
        free = np.ones(len(block.times), np.bool_)
        after = np.sort(_move_and_delete(before, block, insert, delete, free))
        assert risk(after, block, insert, delete) <= before.risk + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_insertion_gain_is_what_inserting_gains(seed: int) -> None:
    """With nothing decoded yet every event is free, and Delta(t) is exact."""
    block = random_block(seed)
    for insert, delete in ((0.2, 0.2), (1.0, 1.0), (0.3, 2.0)):
        gains = _insertion_gains(block, np.ones(len(block.times), np.bool_), insert, delete)
        nothing = risk(np.empty(0), block, insert, delete)
        for j in range(0, len(gains), 5):
            assert gains[j] == pytest.approx(nothing - risk(block.candidates[j : j + 1], block, insert, delete))


@pytest.mark.parametrize("seed", range(8))
def test_search_ends_no_worse_than_it_starts_and_reports_its_risk(seed: int) -> None:
    block, rng = random_block(seed), np.random.default_rng(seed)
    for insert, delete in ((0.2, 0.2), (1.0, 1.0), (0.3, 2.0)):
        start = np.sort(rng.choice(block.candidates, 5))
        decode = improve(align_all(start, block, insert, delete), block, insert, delete, start)
        assert decode.risk <= risk(start, block, insert, delete) + 1e-12
        assert decode.risk == pytest.approx(risk(decode.times, block, insert, delete))
        assert np.isin(decode.times, block.candidates).all()
        assert improve(decode, block, insert, delete, start).risk == pytest.approx(decode.risk)
        assert local_search(block, insert, delete, 4).risk <= local_search(block, insert, delete, 1).risk


def test_delete_looks_at_all_particles_before_it_decides() -> None:
    """The first particle lacks the event, the others have it: the printed test inside the loop would drop it."""
    block = one_block([[], [1.0, 9.0], [1.0, 8.0], [1.0]], [0.25] * 4)
    decode = align_all(np.array([1.0]), block, 1.0, 1.0)
    assert _move_and_delete(decode, block, 1.0, 1.0, np.ones(5, np.bool_)).tolist() == [1.0]


def test_insert_may_use_a_time_twice() -> None:
    block = one_block([[1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 3.0]], [0.4, 0.3, 0.3])
    nothing = np.empty(0)
    assert improve(align_all(nothing, block, 0.1, 0.1), block, 0.1, 0.1, nothing).times.tolist() == [1.0, 1.0]


def test_blocks_cut_at_long_gaps_and_merge_equal_particles() -> None:
    ensemble = prepare([of_one_type(p) for p in ([0.0, 9.0], [1.0, 9.0], [1.0], [1.0, 9.5])], [0.1, 0.2, 0.3, 0.4])
    candidates, begin = ensemble.candidates, ensemble.offsets[:-1].copy()
    assert next_cut(candidates.times, candidates.types, 0, 2.0) == 2
    assert next_cut(candidates.times, candidates.types, 2, 2.0) == 4
    early = stretch(ensemble, begin, 0, 2)
    assert sorted(early.weights.tolist()) == pytest.approx([0.1, 0.9])
    late = stretch(ensemble, begin, 2, 4)
    assert sorted(late.weights.tolist()) == pytest.approx([0.3, 0.3, 0.4])
    assert next_cut(candidates.times, candidates.types, 0, 8.0) == 4


def test_a_search_that_meets_a_known_decode_ends_there() -> None:
    block = random_block(0)
    best = local_search(block, 1.0, 1.0, 1)
    start = align_all(np.empty(0), block, 1.0, 1.0)
    stopped = improve(start, block, 1.0, 1.0, best.times)
    assert best.risk < stopped.risk <= start.risk


@pytest.mark.parametrize(("insert", "delete"), [(1.0, 1.0), (1.0, 3.0), (2.0, 0.5)])
@pytest.mark.parametrize("weight", [0.1, 0.3, 0.45, 0.55, 0.7, 0.9])
def test_an_event_stays_if_missing_it_would_cost_more_than_a_false_alarm(weight, insert, delete) -> None:
    block = one_block([[1.0], []], [weight, 1 - weight])
    decode = align_all(np.array([1.0]), block, insert, delete)
    kept = _move_and_delete(decode, block, insert, delete, np.ones(1, np.bool_))
    assert len(kept) == (weight * insert >= (1 - weight) * delete)
