"""What is packed into a page is what the posterior says, and no text in it can be anything but text."""

from __future__ import annotations

import base64
import gzip
import json
import re
import string

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrodict as rd
from retrodict.evaluate import score
from retrodict.models.calendar import Calendar
from retrodict.report.page.pack import pack, quantum
from retrodict.report.stream_view import StreamView
from tests.report.examples import HOSTILE, MISSING, MODEL, NEW_YORK, imputed, poisson, streams


def unpack(text: str):
    return json.loads(gzip.decompress(base64.b64decode(text)))


def read(path) -> tuple[dict, list[dict]]:
    """The index of a page and what it says of each stream."""
    parts = dict(re.findall(r'<script type="text/plain" id="([\w-]+)">([^<]*)</script>', path.read_text("utf-8")))
    index = unpack(parts.pop("index"))
    assert len(parts) == len(index["blocks"])
    return index, [row for number in range(len(parts)) for row in unpack(parts[f"block-{number}"])]


@given(st.text() | st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner)))
@settings(max_examples=30, deadline=None)
def test_packed_values_come_back_and_hold_no_mark_of_html(value):
    text = pack(value)
    assert set(text) <= set(string.ascii_letters + string.digits + "+/=")
    assert unpack(text) == value


@pytest.mark.parametrize("axis", [None, NEW_YORK], ids=["numbers", "dates"])
def test_times_come_back_to_a_ten_millionth_of_the_stream(tmp_path, axis):
    made, hidden = imputed(streams(6, axis=axis))
    index, rows = read(made.report(tmp_path / "page.html", costs=[0.5, 2.0], truth=hidden))
    for cost, answer in enumerate((0.5, 2.0)):
        decoded = made.consensus(answer)
        assert index["answers"][cost]["events"] == decoded.lengths.tolist()
        for i, row in enumerate(rows):
            differences, types, chance, before, after = row["a"][cost]
            times = made.observed.starts[i] + np.cumsum(differences) * row["q"]
            np.testing.assert_allclose(times, decoded[i].times, atol=row["q"])
            np.testing.assert_allclose(times - np.array(before) * row["q"], decoded[i].columns["earliest"], atol=2e-6)
            np.testing.assert_allclose(times + np.array(after) * row["q"], decoded[i].columns["latest"], atol=2e-6)
            np.testing.assert_allclose(np.array(chance) / 1000, decoded[i].columns["probability"], atol=6e-4)
            assert types == decoded[i].types.tolist()
    for i, row in enumerate(rows):
        assert row["q"] <= made.observed.durations[i] * 1e-7
        np.testing.assert_allclose(np.cumsum(row["o"][0]) * row["q"], made.observed[i].times, atol=row["q"])
        np.testing.assert_allclose(np.cumsum(row["t"][0]) * row["q"], hidden[i].times, atol=row["q"])
        assert len(row["d"]) == 20
        assert len(row["f"]) == len(made.observed[i]) + 1
        assert row["e"]["0"] == pytest.approx(made.expected_count(0)[i], abs=1e-3)


@pytest.mark.parametrize("axis", [None, NEW_YORK], ids=["numbers", "dates"])
def test_the_windows_of_each_stream_are_where_its_mechanism_says(tmp_path, axis):
    """One for all streams, one of a stream's own and one every six hours, of single types; and what is kept is read."""
    complete = streams(3, axis=axis)
    every = {} if axis is None else {"every": "6 hours", "clock": "stream"}
    missing = (
        rd.Windows([(2.0, 3.5)], [0], inside=0.9, outside=0.1)
        * rd.Windows(by_stream={"cab-1": [(8.0, None)]})
        * (rd.Windows([("5 hours", "7 hours")], [1], **every) if every else rd.ByType([0.2, 0.0]))
    )
    model = rd.Hawkes([0.5, 0.1], [[0.0, 0.8], [0.0, 0.0]], 2.0)
    model.time_unit = complete.axis.unit
    made = rd.impute(missing.censor(complete)[0], rd.Filtering(model, missing.on(complete)), particles=20)
    made.save(tmp_path / "draws")
    for posterior in (made, rd.load_posterior(tmp_path / "draws")):
        _, rows = read(posterior.report(tmp_path / "page.html", cost=1.0))
        for i, row in enumerate(rows):
            found = [(round(a * row["q"], 6), round(b * row["q"], 6), types) for a, b, types in row["w"]]
            own = [(8.0, 10.0, [0, 1])] if i == 1 else []
            recurring = [] if axis is None else [(0.0, 1.0, [1]), (5.0, 7.0, [1])]
            assert found == [(2.0, 3.5, [0]), *own, *recurring]
    made.about["windows"] = [{"mechanism": "windows", "windows": "x"}]  # damaged: none is shown
    assert all(row["w"] == [] for row in read(made.report(tmp_path / "page.html", cost=1.0))[1])


@pytest.mark.parametrize(("times", "grain"), [(":00", 60_000), (":07", 1000), (":07.25", 0)])
def test_dates_are_shown_as_fine_as_those_of_the_table(tmp_path, times, grain):
    frame = pd.DataFrame({"stream": "a", "time": f"2024-03-01 08:30{times}", "type": "call"}, index=[0])
    seen = rd.read_events(frame, start="2024-03-01 08:00", end="2024-03-01 10:00")
    made = rd.impute(seen, rd.Filtering(rd.Poisson([0.5]), rd.ByType(0.5)), particles=20)
    assert read(made.report(tmp_path / "page.html", cost=1.0))[0]["axis"]["grain"] == grain


@pytest.mark.parametrize("axis", [None, NEW_YORK], ids=["numbers", "dates"])
def test_the_truth_is_scored_as_evaluate_does(tmp_path, axis):
    """One stream lacks its truth, which says that nothing is missing from it."""
    made, hidden = imputed(streams(12, axis=axis))
    truth = hidden[[i for i in range(12) if i != 3]]
    index, _ = read(made.report(tmp_path / "page.html", costs=[0.5, 2.0], truth=truth))
    for cost, answer in zip((0.5, 2.0), index["answers"], strict=True):
        scored = score(truth, made.consensus(cost), [cost], 1.0)
        far, own = scored.transport[0], answer["score"]
        order = [*(i for i in range(12) if i != 3), 3]  # streams that the truth lacks come last there
        np.testing.assert_allclose(np.array(own["distance"])[order], far.distance_by_stream, rtol=1e-3)
        assert np.array(own["missing"])[order].tolist() == far.missing.sum(1).tolist()
        np.testing.assert_allclose(own["distanceByType"], far.distance.sum(0), rtol=1e-3)
        assert sum(own["aligned"]) == scored.coverage.aligned > 0
        assert sum(own["covered"]) / sum(own["aligned"]) == pytest.approx(scored.coverage.covered)
    assert read(made.report(tmp_path / "page.html"))[0]["answers"][0]["score"] is None


@given(st.floats(1e-300, 1e300))
def test_a_quantum_is_a_ten_millionth_or_less_and_not_much_less(span):
    assert 0.99e-8 * span <= quantum(span) <= 1.01e-7 * span


def test_no_name_is_in_the_file_as_it_is(tmp_path):
    made, _ = imputed(streams(len(HOSTILE), ids=list(HOSTILE), types=list(HOSTILE[:2])))
    made.about |= {"command": HOSTILE[0]}
    text = made.report(tmp_path / "page.html", title=HOSTILE[1]).read_text(encoding="utf-8")
    assert "window.hacked" not in text.replace("&lt;img src=x onerror=window.hacked=1&gt;", "")
    assert text.count("<script") == text.count("</script>") == 2 + len(read(tmp_path / "page.html")[0]["blocks"])


@pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")  # what EasyTPP's format does not tell
@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "json", "csv.gz"])
def test_every_format_read_can_be_reported(tmp_path, suffix):
    complete = streams(4, axis=None if suffix == "json" else NEW_YORK)
    rd.write_events(MISSING.censor(complete)[0], tmp_path / f"observed.{suffix}")
    observed = rd.read_events(tmp_path / f"observed.{suffix}")
    types = list(observed.types)
    proposal = rd.Filtering(rd.Poisson([0.4] * len(types)), rd.ByType(0.5))
    index, rows = read(rd.impute(observed, proposal, particles=10).report(tmp_path / "page.html"))
    assert index["types"] == types
    assert index["streams"]["id"] == [str(name) for name in observed.ids]
    assert [len(row["o"][0]) for row in rows] == observed.lengths.tolist()


def test_what_is_saved_says_how_it_was_made(tmp_path):
    made, _ = imputed(streams(3))
    made.save(tmp_path / "draws")
    again = rd.load_posterior(tmp_path / "draws")
    assert again.about == made.about
    index, rows = read(again.report(tmp_path / "again.html"))
    facts = dict(index["facts"])
    assert facts["what goes missing"].startswith("ByType") or "1" in facts["what goes missing"]
    assert (facts["seed"], facts["proposal"]) == ("0", "filtering")
    assert rd.__version__ in facts["versions"]
    assert (index, rows) == read(made.report(tmp_path / "page.html"))


def test_how_it_was_made_says_what_the_model_knows_of_the_clock(tmp_path):
    complete = streams(3, axis=NEW_YORK)
    observed, _ = MISSING.censor(complete)
    told = rd.Hawkes([0.5, 0.1], [[0.0, 0.8], [0.0, 0.0]], 2.0)
    told.time_unit, told.types = "hour", complete.types
    told.calendar = Calendar(2, day=3, week=2, unit="hour", zone="America/New_York")
    for model, words in ((told, "hours of the day and days of the week: 3 harmonics of a day"), (MODEL, "none: ")):
        made = rd.impute(observed, rd.Filtering(model, MISSING), particles=5, seed=0)
        facts = dict(read(made.report(tmp_path / "page.html"))[0]["facts"])
        assert facts["calendar of the model"].startswith(words)
    assert "calendar of the model" not in dict(read(imputed(streams(3))[0].report(tmp_path / "p.html"))[0]["facts"])


def test_a_belief_of_a_ten_thousandth_is_drawn_far_lower_than_one_of_one():
    """Of all heights the highest is that of the highest rate; four times the rate is twice as high."""
    stream = rd.EventStream([5.0], [0], end=16.0)
    nothing = rd.EventStream([], [], end=16.0)

    def heights(expected: np.ndarray) -> np.ndarray:
        rates = expected[:, None] / 0.1
        return StreamView(stream, nothing, [], rates, np.ones(2), 10.0, ("a",), stream_axis, None).heights()[:, 0]

    stream_axis = streams(1).axis
    rare = np.full(160, 1e-4)
    one = rare.copy()
    one[80] = 1.0
    assert heights(one)[80] == 1.0
    assert heights(one)[0] == pytest.approx(0.01)
    assert heights(rare).max() < 0.05
    assert heights(4 * rare)[0] == pytest.approx(2 * heights(rare)[0])
    assert heights(np.zeros(160)).max() == 0.0


def test_a_damaged_check_that_was_kept_is_left_out(tmp_path):
    made, _ = imputed(streams(2))
    made.about["check"] = {"verdict": ["all is well"]}
    assert read(made.report(tmp_path / "page.html"))[0]["check"] is None


@pytest.mark.filterwarnings("ignore::retrodict.errors.SuspicionNotice")
def test_impossible_and_surprising_streams_are_doubted(tmp_path):
    """A type that is always missing was observed; and a stream is nearly empty for a hundred times as long."""
    usual = [rd.EventStream([1.0 + i / 100, 5.0], [1, 1], end=10.0, id=i) for i in range(30)]
    odd = rd.EventStream([400.0], [1], end=1000.0, id="odd")
    never = rd.EventStream([3.0], [0], end=10.0, id="never")
    made = rd.impute(rd.StreamSet([*usual, odd, never], types=["a", "b"]), rd.Filtering(MODEL, MISSING), particles=20)
    index, _ = read(made.report(tmp_path / "page.html"))
    names = [doubt["name"] for doubt in index["doubts"]]
    doubts = dict(zip(index["streams"]["id"], index["streams"]["doubts"], strict=True))
    assert doubts["never"] & 1 << names.index("no probability")
    assert doubts["odd"] & 1 << names.index("surprising")
    assert index["streams"]["surprise"][-1] is None
    assert any("never" in text for text in index["warnings"])


def test_what_cannot_be_reported_is_refused_in_words(tmp_path):
    made, hidden = imputed(streams(3))
    with pytest.raises(rd.DataError, match="no streams to show"):
        poisson([1.0], []).report(tmp_path / "page.html")
    with pytest.raises(rd.ModelError, match="positive"):
        made.report(tmp_path / "page.html", costs=[1.0, -1.0])
    with pytest.raises(rd.DataError, match="dates as times, the imputed streams numbers"):
        made.report(tmp_path / "page.html", truth=hidden.replace(axis=NEW_YORK))
    with pytest.raises(rd.DataError, match="the truth has this stream"):
        made.report(tmp_path / "page.html", truth=streams(4))
    with pytest.raises(rd.DataError, match="check cannot be shown"):
        made.report(tmp_path / "page.html", check={"verdict": "fine"})
    with pytest.raises(rd.WriteError):
        made.report(tmp_path / "nowhere" / "page.html")
    assert not list(tmp_path.iterdir())
