"""What a table says, a stream set holds: types, order, intervals, extra columns."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from retrodict import StreamSet
from retrodict.errors import DataNotice
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events


def frame(**columns: object) -> pd.DataFrame:
    table = {"stream": ["a", "a", "b"], "time": [1.0, 2.0, 3.0], "type": ["x", "y", "x"], "end": [5.0, 5.0, 6.0]}
    return pd.DataFrame(table | columns)


def test_names_and_defaults():
    table = pd.DataFrame({"driver": [7, 8, 7], "when": [1, 2, 3], "what": ["up", "down", "up"]})
    with pytest.warns(
        DataNotice, match="taken to end at its last event, and nothing is imputed beyond; pass end="
    ) as notices:
        streams = read_events(table, stream="driver", time="when", type="what")
    assert len(notices) == 1
    assert streams.ids == (7, 8)
    assert streams.types == ("down", "up")
    assert streams.starts.tolist() == [0, 0]
    assert streams.ends.tolist() == [3, 2]
    assert list(streams[0]) == [(1.0, 1), (3.0, 1)]
    assert streams.axis.unit is None


@pytest.mark.parametrize("library", ["pandas", "polars", "lazy", "pyarrow"])
def test_every_library_reads_alike(library):
    table = frame(fare=[1.5, 2.5, 3.5])
    convert = {
        "pandas": lambda f: f,
        "polars": pl.from_pandas,
        "lazy": lambda f: pl.from_pandas(f).lazy(),
        "pyarrow": pa.Table.from_pandas,
    }
    assert read_events(convert[library](table)) == read_events(table)


def test_rows_need_not_be_grouped_or_sorted():
    table = frame(stream=["b", "a", "b"], time=[3.0, 1.0, 2.0], type=["x", "y", "z"], end=[9.0, 9.0, 9.0], n=[0, 1, 2])
    with pytest.warns(DataNotice, match="the events of 1 stream were not in time order; sorted"):
        streams = read_events(table)
    assert streams.ids == ("b", "a")
    assert streams.event_times.tolist() == [2, 3, 1]
    assert [streams.types[k] for k in streams.event_types] == ["z", "x", "y"]
    assert streams.columns["n"].tolist() == [2, 0, 1]


def test_ties_keep_the_order_of_rows():
    table = pd.DataFrame({"stream": [0] * 6, "time": [2, 1, 1, 2, 1, 1], "type": list("fbdgac"), "end": 3})
    with pytest.warns(DataNotice, match="sorted"):
        streams = read_events(table)
    assert "".join(streams.types[k] for k in streams.event_types) == "bdacfg"


def test_one_table_one_stream():
    streams = read_events(frame().drop(columns="stream"), stream=False, end=9.0)
    assert streams.ids == (0,)
    assert streams.lengths.tolist() == [3]


TYPES = {
    "names are sorted": (["b", "a", "b"], None, ("a", "b"), [1, 0, 1]),
    "names by vocabulary": (["b", "a", "b"], ["b", "z", "a"], ("b", "z", "a"), [0, 2, 0]),
    "integers are indices": ([3, 0, 3], None, ("0", "1", "2", "3"), [3, 0, 3]),
    "integers into a vocabulary": ([1, 0, 1], ["x", "y", "z"], ("x", "y", "z"), [1, 0, 1]),
    "whole floats": ([3.0, 0.0, 3.0], None, ("0", "1", "2", "3"), [3, 0, 3]),
    "nullable integers": (pd.array([1, 0, 1], "Int8"), None, ("0", "1"), [1, 0, 1]),
    "booleans": ([True, True, True], None, ("False", "True"), [1, 1, 1]),
    "categories": (pd.Categorical(["b", "a", "b"], ["z", "b", "a"]), None, ("z", "b", "a"), [1, 2, 1]),
    "categories of integers": (pd.Categorical([5, 2, 5], [5, 2]), None, ("5", "2"), [0, 1, 0]),
    "categories by vocabulary": (pd.Categorical(["b", "a", "b"]), ["b", "a"], ("b", "a"), [0, 1, 0]),
    "number names in order": (["10", "9", "10"], None, ("9", "10"), [1, 0, 1]),
    "string dtype": (pd.array(["b", "a", "b"], "string"), None, ("a", "b"), [1, 0, 1]),
    "objects": (np.array(["b", "a", "b"], dtype=object), None, ("a", "b"), [1, 0, 1]),
}


@pytest.mark.parametrize("name", TYPES)
def test_types(name):
    values, types, names, codes = TYPES[name]
    streams = read_events(frame(type=values), types=types)
    assert streams.types == names
    assert streams.event_types.tolist() == codes


def test_sparse_integers_are_names():
    with pytest.warns(DataNotice, match="3 integer types go up to 94110, too sparse for indices"):
        streams = read_events(frame(type=[94110, 2139, 10001]))
    assert streams.types == ("2139", "10001", "94110")
    assert streams.event_types.tolist() == [2, 0, 1]
    dense = read_events(frame(type=[63, 0, 1]))
    assert dense.num_types == 64


def test_polars_enum_is_the_vocabulary():
    table = pl.DataFrame({"stream": [1, 1], "time": [1, 2], "type": ["b", "a"], "end": [3, 3]})
    table = table.with_columns(pl.col("type").cast(pl.Enum(["c", "b", "a"])))
    streams = read_events(table)
    assert streams.types == ("c", "b", "a")
    assert streams.event_types.tolist() == [1, 2]


def test_start_and_end():
    assert read_events(frame(), start=0.5).starts.tolist() == [0.5, 0.5]
    later = read_events(frame(), end=7)
    assert later.ends.tolist() == [7, 7]
    assert later.columns["end_"].tolist() == [5, 5, 6]
    assert read_events(frame(begin=[1, 1, 2]), start="begin").starts.tolist() == [1, 2]
    assert read_events(frame(), end="12.5").ends.tolist() == [12.5, 12.5]
    assert read_events(frame(start=[1, 1, 3]))[1].start == 3
    touching = read_events(frame(start=[1, 1, 3], end=[2, 2, 3]))
    assert touching.durations.tolist() == [1, 0]


def test_a_start_of_zero_for_epoch_times_is_noticed():
    with pytest.warns(DataNotice, match="first event of all is at 1600000001; pass start="):
        read_events(frame(time=[1600000001, 1600000002, 1600000003], end=1600000009))


def test_an_empty_row_declares_an_empty_stream():
    table = frame(time=[1.0, 2.0, None], type=["x", "y", None], start=[0.5, 0.5, 2.0])
    streams = read_events(table)
    assert streams.lengths.tolist() == [2, 0]
    assert (streams[1].id, streams[1].start, streams[1].end) == ("b", 2.0, 6.0)


def test_only_empty_streams():
    table = pd.DataFrame({"stream": ["a", "b"], "time": [None, None], "type": [None, None], "end": [1.0, 2.0]})
    streams = read_events(table, types=["x"])
    assert (len(streams), streams.num_events, streams.types) == (2, 0, ("x",))
    dates = read_events(table.assign(start=pd.Timestamp("2013-01-01"), end=pd.Timestamp("2013-01-02")))
    assert dates.axis.is_calendar
    assert dates.durations.tolist() == [1.0, 1.0]
    assert dates.axis.unit == "day"


def test_extra_columns_are_kept():
    zoned = pd.to_datetime(["2013-01-01", "2013-01-02", "2013-01-03"]).tz_localize("Europe/Berlin")
    table = frame(
        integer=[1, 2, 3], small=np.array([1, 2, 3], np.int8), holes=[1.0, None, 3.0], text=["p", None, "r"],
        flag=[True, False, True], date=pd.to_datetime(["2013-01-01"] * 3), zoned=zoned, lists=[[1], [], [2, 3]],
        things=pd.Series([{1}, None, {2}], dtype=object), nullable=pd.array([1, None, 3], "Int64"),
        period=pd.period_range("2013", periods=3, freq="D"),
    )  # fmt: skip
    columns = read_events(table).columns
    assert columns["integer"].dtype == np.int64
    assert columns["small"].dtype == np.int8
    assert np.isnan(columns["holes"][1])
    assert columns["text"].tolist() == ["p", None, "r"]
    assert columns["flag"].dtype == bool
    assert columns["date"].dtype.kind == "M"
    assert columns["zoned"][0] == datetime.datetime(2012, 12, 31, 23, tzinfo=datetime.UTC)
    assert columns["things"][2] == {2}
    assert columns["nullable"].tolist() == [1, None, 3]
    assert columns["period"][0] == pd.Period("2013-01-01")
    assert list(columns["lists"][2]) == [2, 3]


def test_an_extra_column_with_a_name_of_ours_is_renamed():
    with pytest.warns(DataNotice, match="column 'time' is kept as the extra column 'time_'"):
        streams = read_events(frame(when=[1, 2, 3]), time="when")
    assert streams.columns["time_"].tolist() == [1, 2, 3]
    assert "time_" in streams.to_frame()


def test_ids_are_kept_as_they_are():
    assert read_events(frame(stream=[7, 7, 8])).ids == (7, 8)
    assert read_events(frame(stream=["7", "7", "08"])).ids == ("7", "08")
    assert read_events(frame(stream=[7.0, 7.0, 8.0])).ids == (7, 8)
    assert all(type(name) is int for name in read_events(frame(stream=[7.0, 7.0, 8.0])).ids)
    assert read_events(frame(stream=pd.Categorical(["q", "q", "p"], ["p", "q"]))).ids == ("q", "p")


def test_csv_reads_what_is_written(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        '\ufeffstream,time,type,end,zip,note,ok,score\n'
        '007,1.5,"a, b",5,010,"two\nlines",true,1\n\n'
        "007,2,c,5,020,,false,2.5\n"
    )  # fmt: skip
    streams = read_events(path)
    assert streams.ids == ("007",)
    assert streams.types == ("a, b", "c")
    assert streams.columns["zip"].tolist() == ["010", "020"]
    assert streams.columns["note"].tolist() == ["two\nlines", None]
    assert streams.columns["ok"].tolist() == [True, False]
    assert streams.columns["score"].tolist() == [1.0, 2.5]


def test_csv_digits_that_are_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("stream,time,type,end\n1,1,1,5\n1,2,0,5\n")
    assert read_events(path).event_types.tolist() == [1, 0]
    assert read_events(path, types=["1", "0"]).event_types.tolist() == [0, 1]
    assert read_events(path, types=["up", "down"]).event_types.tolist() == [1, 0]
    path.write_text("stream,time,type,end\n1,1,1.0,5\n1,2,0.0,5\n")
    assert read_events(path).types == ("0", "1")


def test_notices_name_the_caller(tmp_path):
    (tmp_path / "a.csv").write_text("stream,time,type\na,1,x\n")
    with pytest.warns(DataNotice, match=r"a\.csv: each stream was taken") as notices:
        read_events(tmp_path / "a.csv")
    assert notices[0].filename == __file__


def test_unit_of_numbers_is_only_recorded():
    streams = read_events(frame(), unit="fortnight")
    assert streams.axis.unit == "fortnight"
    assert streams.event_times.tolist() == [1, 2, 3]


def test_result_is_a_stream_set_that_passes_its_own_checks():
    streams = read_events(frame(n=[1, 2, 3]))
    assert StreamSet(list(streams), types=streams.types) == streams


@pytest.mark.parametrize("name", ["code", "concept:name"])
def test_a_column_that_other_layouts_have_too_does_not_lose_the_vocabulary(name, tmp_path):
    times = pd.to_datetime(["2020-01-01", "2020-01-02"])
    frame = pd.DataFrame({"stream": ["a", "a"], "time": times, name: ["x", "y"]})
    columns, bounds = {"stream": "stream", "time": "time", "type": name}, {"start": "2020-01-01", "end": "2020-01-03"}
    streams = read_events(frame, **columns, types=["z", "y", "x"], unit="hour", **bounds)
    write_events(streams, tmp_path / "a.parquet")
    again = read_events(tmp_path / "a.parquet", **columns, **bounds)
    assert (again.types, again.axis) == (("z", "y", "x"), streams.axis)
