"""The optimal transport distance is the paper's, is a metric, and its alignment accounts for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodict.decode import Cost, distance_matrix, distances, transport
from retrodict.decode.transport import as_cost
from retrodict.errors import DataError
from tests.decode.examples import golden, of_one_type, slow_distance, stream

events = st.lists(st.integers(0, 97), max_size=6).map(lambda codes: stream([(n % 2, n // 2 / 8) for n in codes]))
costs = st.sampled_from([0.05, 0.3, 1.0, 2.5, 40.0])
many = settings(max_examples=2500, deadline=None, derandomize=True, database=None)


def test_golden_distances() -> None:
    data = golden("otd_pairs.json")
    for pair in data["pairs"]:
        decoded, ref = stream(pair["decoded"]), stream(pair["ref"])
        for row in pair["by_C"]:
            result = transport(decoded, ref, row["C"])
            assert result.distance == pytest.approx(row["distance"], abs=1e-6)
            assert distances([decoded], [ref], row["C"])[0] == pytest.approx(row["distance"], abs=1e-6)


@given(events, events, costs)
@many
def test_symmetric_for_equal_costs(a, b, cost) -> None:
    assert transport(a, b, cost).distance == pytest.approx(transport(b, a, cost).distance, abs=1e-12)


@given(events, events, events, costs)
@many
def test_triangle_inequality(a, b, c, cost) -> None:
    detour = transport(a, b, cost).distance + transport(b, c, cost).distance
    assert transport(a, c, cost).distance <= detour + 1e-12


@given(events, events, costs)
@many
def test_zero_only_for_the_same_events(a, b, cost) -> None:
    same = sorted(a) == sorted(b)
    assert (transport(a, b, cost).distance == 0) == same
    assert transport(a, a, cost).distance == 0


@given(events, events, costs, costs)
@many
def test_alignment_accounts_for_the_distance(a, b, insert, delete) -> None:
    result = transport(a, b, (insert, delete))
    i, j = result.alignment.T
    assert len(set(i)) == len(i)
    assert len(set(j)) == len(j)
    assert (a.types[i] == b.types[j]).all()
    assert (np.abs(a.times[i] - b.times[j]) <= insert + delete).all()
    for k in (0, 1):  # alignments of one type never cross
        assert (np.diff(b.times[j[a.types[i] == k]]) >= 0).all()
    assert result.moved == pytest.approx(np.abs(a.times[i] - b.times[j]).sum())
    assert (result.deleted, result.inserted) == (len(a) - len(i), len(b) - len(j))
    total = insert * result.inserted + delete * result.deleted + result.moved
    assert result.distance == pytest.approx(total)
    slow = sum(
        slow_distance(a.times[a.types == k].tolist(), b.times[b.types == k].tolist(), insert, delete) for k in (0, 1)
    )
    assert result.distance == pytest.approx(slow, abs=1e-12)


def test_direction_of_unequal_costs() -> None:
    """A predicted event that is not true is deleted; a true one that was not predicted is inserted."""
    one, none = of_one_type([1.0]), of_one_type([])
    assert transport(one, none, Cost(insert=2.0, delete=5.0))[:4] == (5.0, 0.0, 0, 1)
    assert transport(none, one, Cost(insert=2.0, delete=5.0))[:4] == (2.0, 0.0, 1, 0)


def test_long_streams_in_a_narrow_band() -> None:
    """Only the band of alignable pairs is computed: 20,000 events against 20,000 take well under a second."""
    rng = np.random.default_rng(0)
    a = of_one_type(np.sort(rng.uniform(0, 1000, 20_000)))
    b = of_one_type(np.clip(np.sort(a.times + rng.normal(0, 1e-4, len(a))), 0, 1000))
    result = transport(a, b, 0.01)
    assert result.inserted == result.deleted
    assert result.distance < 20_000 * 1e-3


def test_many_pairs_agree_with_single_ones() -> None:
    rng = np.random.default_rng(1)
    streams = [stream(list(zip(rng.integers(3, size=n), rng.uniform(0, 9, n), strict=True))) for n in range(12)]
    matrix = distance_matrix(streams[:5], streams, (0.4, 0.7))
    for i in range(5):
        for j in range(12):
            assert matrix[i, j] == pytest.approx(transport(streams[i], streams[j], (0.4, 0.7)).distance)
    assert distances(streams[:5], streams[:5], 0.5) == pytest.approx(np.zeros(5))
    assert distances([], [], 0.5).shape == (0,)


@pytest.mark.parametrize("cost", [-1.0, (1.0, -1.0), float("nan"), float("inf"), 0.0, (1, 2, 3), "dear", None])
def test_bad_costs_are_refused_with_a_remedy(cost) -> None:
    with pytest.raises(DataError, match="Remedy"):
        transport(of_one_type([]), of_one_type([1.0]), cost)


def test_other_bad_input() -> None:
    with pytest.raises(DataError, match="not an EventStream"):
        transport([1.0], of_one_type([1.0]), 1.0)
    with pytest.raises(DataError, match="2 streams in a but 1 in b"):
        distances([of_one_type([])] * 2, [of_one_type([])], 1.0)
    with pytest.raises(DataError, match="single EventStream"):
        distances(of_one_type([]), [of_one_type([])], 1.0)


@pytest.mark.parametrize("cost", [1e308, (1.0, 1e305), 1.7e308])
def test_costs_that_would_overflow_are_refused(cost):
    with pytest.raises(DataError, match="too large"):
        as_cost(cost)
