"""Scores mean what they say on streams small enough to count by hand."""

from __future__ import annotations

import json
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodict.decode import consensus, transport
from retrodict.errors import DataError
from retrodict.evaluate import count_error, event_score, interval_coverage, score, transport_score
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis

TRUTH = [
    EventStream([1.0, 4.0, 6.0], [0, 1, 0], end=9.0, id="a"),
    EventStream([], [], end=9.0, id="b"),
]
IMPUTED = [
    EventStream([1.5, 6.25, 8.0], [0, 0, 1], end=9.0, id="a"),
    EventStream([2.0], [1], end=9.0, id="b"),
]


def test_distance_and_its_terms_by_stream_and_type() -> None:
    result = transport_score(TRUTH, IMPUTED, 1.0)
    assert result.moved.tolist() == [[0.75, 0.0], [0.0, 0.0]]
    assert result.inserted.tolist() == [[0, 1], [0, 0]]
    assert result.deleted.tolist() == [[0, 1], [0, 1]]
    single = [transport(i, t, 1.0).distance for t, i in zip(TRUTH, IMPUTED, strict=True)]
    assert result.distance_by_stream.tolist() == single == [2.75, 1.0]
    assert result.distance_per_event == pytest.approx(3.75 / 3)
    assert result.edits_per_event == pytest.approx(3 / 3)
    assert result.moved_per_event == pytest.approx(0.75 / 3)
    assert result.of_type(0).distance_per_event == pytest.approx(0.75 / 2)


def test_events_within_a_tolerance() -> None:
    result = event_score(TRUTH, IMPUTED, 0.3)
    assert (result.matched, result.imputed, result.missing) == (1, 4, 3)
    assert (result.precision, result.recall, result.f1) == (1 / 4, 1 / 3, 2 / 7)
    assert event_score(TRUTH, IMPUTED, 0.5).matched == 2
    assert np.isnan(event_score([TRUTH[1]], [TRUTH[1]], 0.5).recall)


times = st.lists(st.integers(0, 12).map(float), max_size=5).map(sorted)


@given(times, times, st.sampled_from([0.0, 1.0, 2.0, 4.0]))
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
def test_matching_is_the_largest_there_is(a, b, tolerance) -> None:
    def possible(size: int) -> bool:
        return any(
            all(abs(x - y) <= tolerance for x, y in zip(some, others, strict=True))
            for some in combinations(a, size)
            for others in permutations(b, size)
        )

    largest = max(size for size in range(min(len(a), len(b)) + 1) if possible(size))
    streams = [EventStream(t, [0] * len(t), end=12.0) for t in (a, b)]
    assert event_score(streams[:1], streams[1:], tolerance).matched == largest


def test_count_error() -> None:
    result = count_error(TRUTH, IMPUTED)
    assert (result.bias, result.mean_absolute) == (0.5, 0.5)
    assert result.mean_absolute_by_type == [0.0, 0.5]


def test_coverage_of_calibrated_intervals() -> None:
    """Truth and particles from one distribution: the 80 % interval of 60 particles holds 80 % of truths.

    300 streams: the share found is within four standard errors (0.1) of 0.8; false alarms below 1e-4.
    """
    rng = np.random.default_rng(0)
    draw = [[EventStream([t], [0], end=100.0) for t in rng.normal(50, 2, 61)] for _ in range(300)]
    imputed = [consensus(streams[1:], None, 50.0, level=0.8).stream for streams in draw]
    truth = [streams[0] for streams in draw]
    result = interval_coverage(truth, imputed, 50.0)
    assert result.aligned == 300
    assert abs(result.covered - 0.8) < 0.1
    assert result.mean_width == pytest.approx(2 * 1.2816 * 2, rel=0.1)


def test_stream_sets_are_paired_by_id_and_type_name() -> None:
    truth = StreamSet(TRUTH, types=["x", "y"])
    swapped = StreamSet(
        [EventStream(s.times, 1 - s.types, end=9.0, id=s.id) for s in reversed(IMPUTED)], types=["y", "x"]
    )
    by_list, by_id = transport_score(TRUTH, IMPUTED, 1.0), transport_score(truth, swapped, 1.0)
    assert np.array_equal(by_list.distance, by_id.distance)


def test_streams_in_which_nothing_was_hidden_are_fine() -> None:
    """A table of hidden events has no row of such a stream: what is imputed there is too much, and nothing is right."""
    lacking = transport_score(StreamSet(TRUTH[:1], ["x", "y"]), StreamSet(IMPUTED, ["x", "y"]), 1.0)
    assert lacking.distance_by_stream.tolist() == transport_score(TRUTH, IMPUTED, 1.0).distance_by_stream.tolist()
    assert lacking.missing.sum() == 3
    nothing = [EventStream([], [], end=9.0, id=s.id) for s in TRUTH]
    assert transport_score(StreamSet(nothing[:1], ["x"]), StreamSet(nothing, ["x"]), 1.0).distance.sum() == 0


def test_files_that_count_from_other_days_in_other_units_are_compared_in_time() -> None:
    hour = 3_600_000_000_000
    days = StreamSet(TRUTH, ["x", "y"], axis=TimeAxis("day", origin=48 * hour))
    same = StreamSet(
        [
            EventStream(t, s.types, 24.0, 24 * 9.0 + 24, s.id, {"earliest": t - 1, "latest": t + 0.5})
            for s, t in ((s, 24 * s.times + 24) for s in TRUTH)
        ],
        ["x", "y"],
        axis=TimeAxis("hour", origin=24 * hour),
    )
    assert transport_score(days, same, 1.0).distance.sum() == pytest.approx(0.0, abs=1e-9)
    covered = interval_coverage(days, same, 1.0)
    assert (covered.covered, covered.aligned) == (1.0, 3)
    assert covered.mean_width == pytest.approx(1.5 / 24)


def test_everything_at_once_is_plain_json() -> None:
    imputed = [consensus([s], None, 1.0).stream for s in IMPUTED]
    report = score(TRUTH, imputed, costs=[0.1, (1.0, 2.0)], tolerance=0.3).to_dict()
    again = json.loads(json.dumps(report, allow_nan=True))
    assert [row["delete_cost"] for row in again["transport"]] == [0.1, 2.0]
    assert again["transport"][1]["distance"] == pytest.approx(0.75 + 1 * 1.0 + 2 * 2.0)
    assert set(again["transport"][0]["by_type"]) == {"0", "1"}
    assert again["events"]["f1"] == pytest.approx(2 / 7)
    assert again["coverage"]["aligned"] == 0
    assert (again["coverage"]["cost"], again["coverage"]["nominal"]) == ([0.1, 0.1], 0.9)
    assert again["transport"][1]["nothing_per_event"] == 1.0
    assert score(TRUTH, IMPUTED, [1.0], 0.3).coverage is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: transport_score(TRUTH, IMPUTED[:1], 1.0), "2 true streams but 1"),
        (lambda: transport_score([], [], 1.0), "no streams"),
        (lambda: score(TRUTH, IMPUTED, [], 0.1), "no costs"),
        (lambda: event_score(TRUTH, IMPUTED, -1.0), "tolerance is -1.0"),
        (lambda: interval_coverage(TRUTH, IMPUTED, 1.0), "no column 'earliest'"),
        (lambda: transport_score(StreamSet(TRUTH), StreamSet(IMPUTED[:1]), 1.0), "'b': the truth has this stream"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(call, message) -> None:
    with pytest.raises(DataError, match=message) as error:
        call()
    assert "Remedy" in str(error.value)
