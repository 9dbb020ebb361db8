"""What is written reads back: Parquet exactly and without arguments, the others as far as they can."""

import datetime
import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodict import EventStream, StreamSet
from retrodict.errors import DataError, DataNotice
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
from retrodict.events.time_axis import TimeAxis

DAY = 1356998400 * 10**9
AXES = [
    TimeAxis(),
    TimeAxis("hour"),
    TimeAxis("minute", DAY),
    TimeAxis("second", DAY, "UTC"),
    TimeAxis("hour", DAY + 5, "America/New_York"),
]


@st.composite
def stream_sets(draw: st.DrawFn) -> StreamSet:
    """Streams with ties, empty streams, unused types, ids of either kind and extra columns."""
    names = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=4, unique=True))
    ids = draw(
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4, unique=True)
        | st.lists(st.text(max_size=4), max_size=4, unique=True)
    )
    axis = draw(st.sampled_from(AXES))
    grid = st.integers(0, 9_000).map(lambda n: n / 8)  # whole nanoseconds in every unit
    streams = []
    for name in ids:
        times = sorted(draw(st.lists(grid, max_size=5)))
        n = len(times)
        streams.append(
            EventStream(
                times,
                draw(st.lists(st.integers(0, len(names) - 1), min_size=n, max_size=n)),
                start=min([0.0, *times]),
                end=max([1.0, *times]) + draw(grid),
                id=name,
                columns={
                    "count": np.array(draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n)), np.int64),
                    "score": np.array(draw(st.lists(st.floats(), min_size=n, max_size=n)), np.float64),
                    "note": np.array(draw(st.lists(st.none() | st.text(max_size=3), min_size=n, max_size=n)), object),
                },
            )
        )
    return StreamSet(streams, types=names, axis=axis)


@settings(max_examples=100, deadline=None)
@given(stream_sets())
def test_parquet_is_exact(tmp_path_factory, streams):
    path = tmp_path_factory.mktemp("round") / "a.parquet"
    write_events(streams, path)
    assert read_events(path) == streams


@settings(max_examples=50, deadline=None)
@given(stream_sets())
def test_jsonl_keeps_all_but_unused_types(tmp_path_factory, streams):
    path = tmp_path_factory.mktemp("round") / "a.jsonl.gz"
    finite = StreamSet.trusted(
        streams.event_times, streams.event_types, streams.offsets, streams.starts, streams.ends, streams.ids,
        streams.types, {name: streams.columns[name] for name in streams.columns if name == "count"}, streams.axis,
    )  # fmt: skip
    write_events(finite, path)
    if len(streams):
        assert read_events(path, types=streams.types) == finite
    else:
        with pytest.raises(DataError, match="the file is empty"):
            read_events(path)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@settings(max_examples=40, deadline=None)
@given(streams=stream_sets())
def test_frames_keep_events_and_vocabulary(library, streams):
    if not len(streams):
        return
    again = read_events(streams.to_frame(library), unit=streams.axis.unit)
    assert again.types == streams.types
    assert again.ids == streams.ids
    assert np.array_equal(again.event_types, streams.event_types)
    assert np.array_equal(again.lengths, streams.lengths)
    for name, values in streams.columns.items():
        assert pd.Series(again.columns[name]).equals(pd.Series(values))
    if not streams.axis.is_calendar:
        assert np.array_equal(again.event_times, streams.event_times)
        assert np.array_equal(again.ends, streams.ends)
    else:
        shift = again.axis.origin - streams.axis.origin
        moved = again.event_times + shift / 1e9 / again.axis.scale
        assert np.allclose(moved, streams.event_times, rtol=0, atol=1e-9)
        assert again.axis.timezone == streams.axis.timezone


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0, 1e300), max_size=6).map(sorted),
    st.lists(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=4), min_size=6, max_size=6),
)
def test_csv_keeps_every_digit_and_every_letter(tmp_path_factory, times, notes):
    path = tmp_path_factory.mktemp("round") / "a.csv.gz"
    notes = ["x" + note for note in notes]  # so that no note is a number
    stream = EventStream(times, [0] * len(times), end=1e300, id='é, "q"', columns={"note": notes[: len(times)]})
    write_events(StreamSet([stream], types=["t"]), path)
    again = read_events(path, types=["t"])
    assert again.event_times.tolist() == times
    assert again.ids == ('é, "q"',)
    assert again.columns.get("note", np.zeros(0)).tolist() == notes[: len(times)]


EXAMPLE = StreamSet(
    [
        EventStream([1, 1, 2.5], [0, 2, 1], end=3, id="a", columns={"n": [1, 2, 3], "s": ["x", "", None]}),
        EventStream([], [], start=1, end=2, id="b"),
    ],
    types=["u", "v", "w", "never"],
    axis=TimeAxis("hour"),
)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "pq", "ndjson"])
def test_every_suffix(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    write_events(EXAMPLE, path)
    again = read_events(path, types=EXAMPLE.types, unit="hour")
    assert again == EXAMPLE
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == suffix.endswith("gz")
    first = path.read_bytes()
    write_events(again, path)
    assert path.read_bytes() == first


def test_format_overrides_the_suffix(tmp_path):
    write_events(EXAMPLE, tmp_path / "a.dat", format="jsonl")
    assert read_events(tmp_path / "a.dat", format="jsonl", types=EXAMPLE.types) == EXAMPLE


def test_empty_stream_is_one_row_with_neither_time_nor_type():
    frame = EXAMPLE.to_frame()
    assert frame.columns.tolist() == ["stream", "time", "type", "start", "end", "n", "s"]
    assert frame["stream"].tolist() == ["a", "a", "a", "b"]
    assert frame["time"].isna().tolist() == [False, False, False, True]
    assert frame["type"].cat.categories.tolist() == ["u", "v", "w", "never"]
    assert frame["n"].tolist()[:3] == [1, 2, 3]
    assert str(frame["n"].dtype) == "Int64"
    assert frame["end"].tolist() == [3, 3, 3, 2]


def test_no_streams_at_all(tmp_path):
    nothing = StreamSet([], types=["u"], axis=TimeAxis("hour", DAY, "UTC"))
    write_events(nothing, tmp_path / "a.parquet")
    assert read_events(tmp_path / "a.parquet") == nothing


def test_arguments_beat_the_metadata(tmp_path):
    path = tmp_path / "a.parquet"
    write_events(EXAMPLE, path)
    again = read_events(path, types=["never", "w", "v", "u"], unit="day")
    assert again.event_types.tolist() == [3, 1, 2]
    assert again.axis.unit == "day"
    later = read_events(path, end=50.0)
    assert later.ends.tolist() == [50, 50]
    assert later.columns.keys() == {"n", "s"}


def test_calendar_unit_can_be_changed_on_reading(tmp_path):
    path = tmp_path / "a.parquet"
    write_events(StreamSet([EventStream([12.0], [0], end=24.0)], axis=TimeAxis("hour", DAY)), path)
    again = read_events(path, unit="day")
    assert (again.event_times.tolist(), again.ends.tolist()) == ([0.5], [1.0])


def test_ids_of_other_kinds_are_written_as_text(tmp_path):
    streams = StreamSet([EventStream([], [], end=1, id=(1, 2)), EventStream([], [], end=1, id="x")], types=["u"])
    with pytest.warns(DataNotice, match="written as text"):
        write_events(streams, tmp_path / "a.parquet")
    assert read_events(tmp_path / "a.parquet").ids == ("(1, 2)", "x")
    with pytest.raises(DataError, match="neither text nor an integer"):
        write_events(streams, tmp_path / "a.jsonl")
    clash = StreamSet([EventStream([], [], end=1, id=1), EventStream([], [], end=1, id="1")])
    with pytest.raises(DataError, match="two ids are both written '1'"):
        clash.to_frame()


def test_columns_a_format_cannot_hold(tmp_path):
    def one(column: object) -> StreamSet:
        return StreamSet([EventStream([1], [0], end=2, columns={"c": column})])

    lists = np.empty(1, object)
    lists[0] = [1, 2]
    with pytest.raises(DataError, match=r"a\.csv: CSV cannot hold .* write Parquet"):
        write_events(one(lists), tmp_path / "a.csv")
    write_events(one(lists), tmp_path / "a.parquet")
    things = np.array([object()])
    for name in ("a.parquet", "a.jsonl"):
        with pytest.raises(DataError, match="Remedy: convert"):
            write_events(one(things), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    reserved = StreamSet([EventStream([1], [0], end=2, columns={"time": [1]})])
    with pytest.raises(DataError, match="'time' has the name of one of a table's own columns"):
        reserved.to_frame()


def test_jsonl_writes_dates_and_nan(tmp_path):
    columns = {
        "score": [np.nan, 1.0],
        "when": np.array(["2013-01-01", "NaT"], "M8[D]"),
        "at": np.array([datetime.datetime(2013, 1, 1), None], object),
    }
    write_events(StreamSet([EventStream([1, 2], [0, 0], end=2, columns=columns)]), tmp_path / "a.jsonl")
    line = json.loads((tmp_path / "a.jsonl").read_text())
    assert line["columns"] == {
        "score": [None, 1.0], "when": ["2013-01-01", None], "at": ["2013-01-01T00:00:00", None],
    }  # fmt: skip
    assert line["types"] == ["0", "0"]


def test_unknown_library_and_things_that_are_no_streams(tmp_path):
    with pytest.raises(DataError, match="unknown library 'dask'"):
        EXAMPLE.to_frame("dask")
    with pytest.raises(DataError, match="object of type list"):
        write_events([], tmp_path / "a.csv")
    for name, message in {"a.pkl": "never written", "a.parquet.gz": "compressed already", "a.txt": "'.txt'"}.items():
        with pytest.raises(DataError, match=message):
            write_events(EXAMPLE, tmp_path / name)


def test_compressed_files_hold_no_date(tmp_path):
    write_events(EXAMPLE, tmp_path / "a.csv.gz")
    write_events(EXAMPLE, tmp_path / "b.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"stream,time,")
