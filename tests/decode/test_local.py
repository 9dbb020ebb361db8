"""Every phase of the local search lowers the risk or leaves it, and its bookkeeping agrees with alignment."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode.ensemble import Ensemble, cut_blocks, list_candidates, restrict
from retrodict.decode.grouped import group
from retrodict.decode.local import _insertion_gains, _move_and_delete, align_all, improve, local_search
from tests.decode.examples import of_one_type, posterior_like, slow_distance


def one_block(particles: list[list[float]], w: list[float]) -> Ensemble:
    groups = group([of_one_type(p) for p in particles], 1)
    candidates = list_candidates(groups)
    everything = (0, len(candidates.times))
    return restrict(candidates.times, candidates.position, groups.offsets, np.array(w), *everything)


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
        match = np.empty((len(block.weights), len(decode)), np.int64)
        before = align_all(decode, block, insert, delete, match)
        assert before == pytest.approx(risk(decode, block, insert, delete))
        free = np.ones(len(block.times), np.bool_)
        after = np.sort(_move_and_delete(decode, block, insert, delete, match, free))
        assert risk(after, block, insert, delete) <= before + 1e-12


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
        decode, reported = improve(start, block, insert, delete)
        assert reported <= risk(start, block, insert, delete) + 1e-12
        assert reported == pytest.approx(risk(decode, block, insert, delete))
        assert np.isin(decode, block.candidates).all()
        assert improve(decode, block, insert, delete)[1] == pytest.approx(reported)
        assert local_search(block, insert, delete, 4)[1] <= local_search(block, insert, delete, 1)[1]


def test_delete_looks_at_all_particles_before_it_decides() -> None:
    """The first particle lacks the event, the others have it: the printed test inside the loop would drop it."""
    block = one_block([[], [1.0, 9.0], [1.0, 8.0], [1.0]], [0.25] * 4)
    decode = np.array([1.0])
    match = np.empty((4, 1), np.int64)
    align_all(decode, block, 1.0, 1.0, match)
    assert _move_and_delete(decode, block, 1.0, 1.0, match, np.ones(5, np.bool_)).tolist() == [1.0]


def test_insert_may_use_a_time_twice() -> None:
    block = one_block([[1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 3.0]], [0.4, 0.3, 0.3])
    assert improve(np.empty(0), block, 0.1, 0.1)[0].tolist() == [1.0, 1.0]


def test_blocks_cut_at_long_gaps_and_merge_equal_particles() -> None:
    groups = group([of_one_type(p) for p in ([0.0, 9.0], [1.0, 9.0], [1.0], [1.0, 9.5])], 1)
    candidates = list_candidates(groups)
    cuts = cut_blocks(candidates, 2.0)
    assert cuts.tolist() == [0, 2, 4]
    args = candidates.position, groups.offsets, np.array([0.1, 0.2, 0.3, 0.4])
    early = restrict(candidates.times[:2], *args, 0, 2)
    assert early.weights == pytest.approx([0.1, 0.9])
    late = restrict(candidates.times[2:], *args, 2, 4)
    assert sorted(late.weights.tolist()) == pytest.approx([0.3, 0.3, 0.4])
    assert cut_blocks(candidates, 8.0).tolist() == [0, 4]


@pytest.mark.parametrize(("insert", "delete"), [(1.0, 1.0), (1.0, 3.0), (2.0, 0.5)])
@pytest.mark.parametrize("weight", [0.1, 0.3, 0.45, 0.55, 0.7, 0.9])
def test_an_event_stays_if_missing_it_would_cost_more_than_a_false_alarm(weight, insert, delete) -> None:
    block = one_block([[1.0], []], [weight, 1 - weight])
    match = np.empty((2, 1), np.int64)
    align_all(np.array([1.0]), block, insert, delete, match)
    kept = _move_and_delete(np.array([1.0]), block, insert, delete, match, np.ones(1, np.bool_))
    assert len(kept) == (weight * insert >= (1 - weight) * delete)
