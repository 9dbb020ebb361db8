"""XES event logs: what was read is written again letter by letter, with zones, nesting and empty traces."""

from __future__ import annotations

import gzip
import re
import time
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.errors import DataError, DataNotice
from tests.events.test_round_trips import stream_sets

LOG = """<?xml version="1.0" encoding="UTF-8" ?>
<!-- This is how logs of other tools look. -->
<log xes.version="1.0" xes.features="nested-attributes" xmlns="http://www.xes-standard.org/">
\t<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
\t<global scope="event"><string key="concept:name" value="__INVALID__"/></global>
\t<classifier name="Activity" keys="concept:name"/>
\t<string key="creator" value="A &amp; B"/>
\t<trace>
\t\t<string key="concept:name" value="3"/>
\t\t<int key="amount" value="7"/>
\t\t<event>
\t\t\t<string key="org:resource" value="P&#233;te"><string key="role" value="clerk"/></string>
\t\t\t<date key="time:timestamp" value="2010-12-30T14:32:00.000+01:00"/>
\t\t\t<string key="concept:name" value="register"/>
\t\t\t<float key="costs" value="50.5"/>
\t\t</event>
\t\t<event>
\t\t\t<date key="time:timestamp" value="2010-12-30T15:06:00.000+01:00"/>
\t\t\t<string key="concept:name" value="check"/>
\t\t\t<string key="lifecycle:transition" value="start"/>
\t\t</event>
\t\t<event>
\t\t\t<date key="time:timestamp" value="2010-12-30T16:06:00.000+01:00"/>
\t\t\t<string key="concept:name" value="check"/>
\t\t\t<string key="lifecycle:transition" value="COMPLETE"/>
\t\t\t<boolean key="ok" value="true"/>
\t\t</event>
\t</trace>
\t<trace>
\t\t<string key="concept:name" value="empty"/>
\t</trace>
\t<trace/>
</log>
"""
DAYS = {"start": "2010-12-30T00:00+01:00", "end": "2011-01-01T00:00+01:00"}


def read(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNotice)
        return rd.read_events(*arguments, **options)


def notices(path) -> str:
    """What reading a log says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rd.read_events(path)
    return " ".join(str(notice.message) for notice in caught)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "log.xes").write_text(LOG, encoding="utf-8")
    return tmp_path / "log.xes"


def filled(streams, kind=0):
    """An imputed event at noon of the first day of each stream, with a probability."""
    made = []
    for stream in streams:
        noon = stream.start + 12 * 3600 / streams.axis.scale
        columns = {"probability": [0.5], "earliest": [stream.start], "latest": [stream.end]}
        made.append(rd.EventStream([noon], [kind], start=stream.start, end=stream.end, id=stream.id, columns=columns))
    return rd.fill(streams, rd.StreamSet(made, types=streams.types, axis=streams.axis))


def test_a_log_of_another_tool(path):
    said, streams = notices(path), read(path)
    assert "set aside, and given back, were 1 'start'" in said
    assert "2 streams have no dated event" in said
    assert streams.ids == ("3", "empty", "trace 3")
    assert streams.types == ("check", "register")
    assert streams.lengths.tolist() == [2, 0, 0]
    assert streams.axis.timezone == "+01:00"
    table = streams.to_table("pandas")
    assert table["case:amount"].tolist()[:3] == [7, 7, 7]
    assert table["org:resource"][0] == "Péte"
    assert (table["costs"][0], table["ok"][2]) == (50.5, True)
    assert str(table["time:timestamp"][0]) == "2010-12-30 14:32:00+01:00"


def test_what_was_read_is_written_letter_by_letter(path, tmp_path):
    for lifecycle in (None, "complete", "transition", "all"):
        rd.write_events(read(path, lifecycle=lifecycle), tmp_path / "again.xes")
        assert (tmp_path / "again.xes").read_text(encoding="utf-8") == LOG
    rd.write_events(read(path), tmp_path / "again.xes.gz")
    assert gzip.decompress((tmp_path / "again.xes.gz").read_bytes()).decode() == LOG
    for encoding in ("iso-8859-1", "utf-16"):
        path.write_bytes(LOG.replace("UTF-8", encoding).encode(encoding))
        rd.write_events(read(path), tmp_path / "again.xes")
        assert (tmp_path / "again.xes").read_text(encoding="utf-8") == LOG


def test_the_user_chooses_transitions(path):
    assert read(path, lifecycle="transition").types == ("check+COMPLETE", "check+start", "register+complete")
    assert read(path, lifecycle="all").lengths.tolist() == [3, 0, 0]
    assert read(path, lifecycle="complete").lengths.tolist() == [2, 0, 0]
    with pytest.raises(DataError, match=r"lifecycle= is 'start'.*complete, transition, all"):
        read(path, lifecycle="start")
    path.write_text(LOG.replace("COMPLETE", "abort"), encoding="utf-8")
    assert read(path, lifecycle="complete").types == ("register",)


def test_imputed_events_are_put_in_and_read_again(path, tmp_path):
    for lifecycle, step in (("complete", "complete"), ("transition", "start"), ("all", None)):
        streams = read(path, lifecycle=lifecycle, **DAYS)
        kind = streams.types.index("check+start" if lifecycle == "transition" else "check")
        rd.write_events(filled(streams, kind), tmp_path / "filled.xes")
        text = (tmp_path / "filled.xes").read_text(encoding="utf-8")
        found = re.findall(r"<event>(<string key=\"concept:name\" value=\"check\".*)</event>", text)
        assert len(found) == 3
        assert all(('lifecycle:transition" value="' in event) == (step is not None) for event in found)
        assert all(step is None or f'value="{step}"' in event for event in found)
        assert all('<date key="time:timestamp" value="2010-12-30T12:00:00.000+01:00"/>' in event for event in found)
        without = re.sub(r"\s*<event><string.*</event>|\s*<boolean key=\"retrodict:imputed\".*/>", "", text)
        assert "".join(without.split()) == "".join(LOG.replace("<trace/>", "<trace></trace>").split())
        again = read(tmp_path / "filled.xes", lifecycle=lifecycle, **DAYS)
        assert again.columns["imputed"].tolist().count(True) == 3
        assert again.num_events == streams.num_events + 3
        assert np.nansum(again.columns["probability"].astype(float)) == 1.5
        with pytest.raises(DataError, match="has a column 'imputed' of its own"):
            filled(again)


def test_a_log_into_which_nothing_was_imputed_says_so(path, tmp_path):
    streams = read(path)
    rd.write_events(rd.fill(streams, streams.keep(np.zeros(streams.num_events, bool))), tmp_path / "filled.xes")
    again = read(tmp_path / "filled.xes")
    assert again.columns["imputed"].tolist() == [False, False]
    rd.write_events(again, tmp_path / "again.xes")
    assert (tmp_path / "again.xes").read_bytes() == (tmp_path / "filled.xes").read_bytes()


def test_censored_logs_keep_their_traces_and_how_long_they_were_watched(path, tmp_path):
    streams = read(path, **DAYS)
    observed, _ = rd.ByType(1.0).censor(streams, 0)
    rd.write_events(observed, tmp_path / "seen.xes")
    again = read(tmp_path / "seen.xes")
    assert (again.ids, again.num_events) == (streams.ids, 0)
    assert (again.durations * again.axis.scale).tolist() == [172800.0] * 3
    assert 'key="amount"' in (tmp_path / "seen.xes").read_text()


def test_offsets_that_change_with_the_season(path, tmp_path):
    mixed = LOG.replace("16:06:00.000+01:00", "17:06:00.000+02:00")
    path.write_text(mixed, encoding="utf-8")
    assert "several offsets (+01:00, +02:00)" in notices(path)
    streams = read(path)
    assert streams.axis.timezone == "UTC"
    assert read(path, timezone="Europe/Amsterdam").axis.timezone == "Europe/Amsterdam"
    assert np.array_equal(streams.event_times * streams.axis.scale % 86400, [48720, 54360])
    rd.write_events(streams, tmp_path / "again.xes")
    assert (tmp_path / "again.xes").read_text(encoding="utf-8") == mixed


def test_traces_of_one_name_stay_apart(path, tmp_path):
    path.write_text(LOG.replace('value="empty"', 'value="3"'), encoding="utf-8")
    assert "1 trace has a name that an earlier one has" in notices(path)
    assert read(path).ids == ("3", "3 (2)", "trace 3")
    rd.write_events(read(path), tmp_path / "again.xes")
    assert (tmp_path / "again.xes").read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


def frame() -> pd.DataFrame:
    """Columns as pm4py has them."""
    return pd.DataFrame(
        {
            "case:concept:name": ["1", "1", "2"],
            "case:amount": [5, 5, 6],
            "concept:name": ["a", "b", "a"],
            "time:timestamp": pd.to_datetime(["2020-01-01 10:00", "2020-01-01 11:00", "2020-01-02 09:00"], utc=True),
            "lifecycle:transition": ["start", "complete", "complete"],
            "org:resource": ["x", None, "y"],
        }
    )


def test_frames_of_process_miners_are_known_by_their_columns(tmp_path):
    streams = read(frame())
    assert (streams.ids, streams.types, streams.lengths.tolist()) == (("1", "2"), ("a", "b"), [1, 1])
    pd.testing.assert_frame_equal(streams.to_table(), frame())
    polars = pytest.importorskip("polars").from_pandas(frame())
    assert read(polars).to_table().equals(polars)
    frame().to_csv(tmp_path / "a.csv", index=False)
    assert read(tmp_path / "a.csv", lifecycle="all").num_events == 3
    more = filled(read(frame(), lifecycle="transition", start="2020-01-01", end="2020-01-03", timezone="UTC"), 0)
    table = more.to_table()
    new = table[table["imputed"]]
    assert new[["concept:name", "lifecycle:transition"]].drop_duplicates().to_numpy().tolist() == [["a", "complete"]]
    assert new["case:amount"].tolist() == [5, 6]
    rd.write_events(streams, tmp_path / "a.xes")
    back = read(tmp_path / "a.xes").to_table("pandas")
    assert back["org:resource"].tolist()[::2] == ["x", "y"]
    assert back["case:amount"].tolist() == [5, 5, 6]
    assert (back["time:timestamp"].astype("datetime64[us, UTC]") == frame()["time:timestamp"]).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<!DOCTYPE log []><log><trace/></log>", r"log\.xes: line 1: the log has a document type.*Remedy: remove"),
        ("<log><trace>", "this is not XML, or it is cut off"),
        ("<html/>", "the outermost element is <html>, not <log>"),
        ("<log/>", "the log has no traces"),
        ("<log><list><event/></list></log>", "the log has no traces"),
        ("<log><event/></log>", "an event stands outside of any trace"),
        ('<log><trace><string key="a"/></trace></log>', "<string> has no value"),
        ("<log><trace>" + "<list>" * 70, "nested more than 64 deep"),
        ('<?xml version="1.0" encoding="shift-jis"?><log/>', "the encoding 'shift-jis' is not known"),
        (LOG.replace("2010-12-30T15", "2010-13-30T15"), "stream '3', row 2: attribute 'time:timestamp': cannot read"),
        (LOG.replace('<date key="time:timestamp" value="2010-12-30T14:32:00.000+01:00"/>', ""), "row 1: .*type but no"),
        (LOG.replace("16:06:00.000+01:00", "16:06:00"), "mixes times in"),
        (LOG.replace("14:32:00.000+01:00", "bad\x01"), "this is not XML"),
    ],
)
def test_what_is_wrong_is_said_in_words(path, text, words):
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read(path)


def test_what_xes_cannot_hold_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"plain numbers.*XES has dates"):
        rd.write_events(rd.StreamSet([rd.EventStream([1.0], [0], end=2.0)]), tmp_path / "a.xes")
    bad = frame().assign(**{"concept:name": ["a\x00", "b", "a"]})
    with pytest.raises(DataError, match="XML cannot hold the text"):
        rd.write_events(read(bad), tmp_path / "a.xes")
    with pytest.raises(DataError, match=r"lifecycle= is for event logs \(XES\) alone"):
        read({"time_since_start": [1.0], "type_event": [0]}, lifecycle="all")


def test_rare_attributes_do_not_fill_the_memory(path):
    event = '<event><string key="concept:name" value="a"/><date key="time:timestamp" value="2020-01-01T00:00:00Z"/>'
    events = "".join(f'{event}<int key="k{i}" value="{i}"/></event>' for i in range(5_000))
    path.write_text(f"<log><trace>{events}</trace></log>")
    assert "rare attributes of 5,002 are no columns" in notices(path)
    streams = read(path)
    assert len(streams.columns) < 500
    rd.write_events(streams, path.with_name("again.xes"))
    assert path.with_name("again.xes").read_text() == path.read_text()


def test_the_commands_read_and_write_logs(path, tmp_path):
    done = CliRunner().invoke(app, ["describe", str(path), "--lifecycle", "transition"])
    assert done.exit_code == 0, done.output
    assert "check+start" in done.output
    words = [
        "censor",
        str(path),
        "-m",
        "check=1",
        "-o",
        str(tmp_path / "seen.xes"),
        "--hidden",
        str(tmp_path / "h.csv"),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "register" in (tmp_path / "seen.xes").read_text()
    assert '"COMPLETE"' not in (tmp_path / "seen.xes").read_text()


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=4)


@settings(max_examples=40, deadline=None)
@given(stream_sets())
def test_any_dated_streams_go_through_a_log(tmp_path_factory, streams):
    if not streams.axis.is_calendar or not streams.num_events:
        return
    clean = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
    notes = [note if note is None or not clean.search(note) else "?" for note in streams.columns["note"]]
    if any(clean.search(text) for text in [*streams.types, *map(str, streams.ids)]):
        return
    columns = {"count": streams.columns["count"], "note": np.array([*notes, None], object)[:-1]}
    streams = streams.replace(columns=columns, ids=[str(name) for name in streams.ids])
    path = tmp_path_factory.mktemp("round") / "a.xes"
    rd.write_events(streams, path)
    again = read(path)
    assert (again.ids, again.types, again.axis) == (streams.ids, streams.types, streams.axis)
    for name in ("event_times", "event_types", "offsets", "starts", "ends"):
        assert np.array_equal(getattr(again, name), getattr(streams, name)), name
    assert again.columns["count"].tolist() == streams.columns["count"].tolist()
    assert [n or None for n in again.columns.get("note", notes)] == [n or None for n in notes]
    rd.write_events(again, path.with_name("b.xes"))
    assert path.with_name("b.xes").read_bytes() == path.read_bytes()


def test_many_rare_attributes_are_chosen_from_quickly():
    from retrodict.events.io.request import Request
    from retrodict.events.io.xes_text import Attributes

    level = Attributes()
    for key in range(20_000):
        level.add(key % 200, "int", f"k{key}", "1")
    started = time.perf_counter()
    assert len(level.chosen(200, Request())) == 10_000
    assert time.perf_counter() - started < 1.0  # a hundredth of that, unless each key costs as much as all of them


EVENT = '<event><string key="concept:name" value="a"/><date key="time:timestamp" value="2010-12-30T14:00:00Z"/></event>'
AWKWARD = [
    "<!-- was </trace> --><trace/>",
    "<!-- was </trace> --><trace><!-- </trace> --></trace >",
    "<trace a='>'  />",
    "<trace><!-- </event> --><event/></trace>",
]


@pytest.mark.parametrize("trace", AWKWARD)
@pytest.mark.parametrize("prefix", ["", "x:", "trace:"])
def test_new_events_and_attributes_stand_in_no_comment_and_closing_tags_fit(path, tmp_path, trace, prefix):
    text = f"<log><trace>{EVENT}</trace>{trace.replace('<event/>', EVENT)}</log>"
    if prefix:
        text = re.sub(r"<(/?)(log|trace|event)(?=[ />])", rf"<\1{prefix}\2", text)
    path.write_text(text)
    rd.write_events(read(path), tmp_path / "again.xes")
    assert (tmp_path / "again.xes").read_text() == text
    streams = read(path, start="2010-12-30T00:00Z", end="2011-01-01T00:00Z")
    rd.write_events(filled(streams), tmp_path / "filled.xes")
    again = read(tmp_path / "filled.xes", start="2010-12-30T00:00Z", end="2011-01-01T00:00Z")
    assert again.lengths.tolist() == (streams.lengths + 1).tolist()
    assert again.columns["imputed"].sum() == 2


def test_an_event_that_is_a_single_tag_is_opened_for_its_attributes(path):
    from retrodict.events.io.xes_out import _with

    assert _with("<!-- </e> --><x:event />", ["<a/>"], path) == "<!-- </e> --><x:event><a/></x:event>"


def test_a_trace_in_a_log_with_its_prefix_ends_where_it_ends(path, tmp_path):
    path.write_text(f"<trace:log><trace>{EVENT}</trace><trace/></trace:log>")
    rd.write_events(filled(read(path, start="2010-12-30T00:00Z", end="2011-01-01T00:00Z")), tmp_path / "filled.xes")
    assert (tmp_path / "filled.xes").read_text().endswith("</trace></trace:log>")
    assert read(tmp_path / "filled.xes").num_events == 3


def test_text_that_strangers_kept_is_refused_in_words_or_made_anew(path, tmp_path):
    streams = read(path)
    rd.write_events(read(streams.to_table("arrow")), tmp_path / "new.xes")  # without the text: a new log
    assert read(tmp_path / "new.xes").num_events == streams.num_events
    table = streams.source.data
    for key, value in ((b"retrodict.xes", b"{"), (b"retrodict.xes", b"[]"), (b"retrodict.xes", b'{"head": 1}')):
        with pytest.raises(DataError, match="what was kept of the log's text is damaged"):
            rd.write_events(read(table.replace_schema_metadata({key: value})), tmp_path / "bad.xes")
    at = table.column_names.index("__xes_tail")
    for column in (["no tag"] * table.num_rows, [None] * table.num_rows):
        worse = table.set_column(at, "__xes_tail", pa.array(column, pa.large_string()))
        with pytest.raises(DataError, match="what was kept of the log's text is damaged"):
            rd.write_events(filled(read(worse, **DAYS)), tmp_path / "bad.xes")
