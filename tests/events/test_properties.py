"""What a table says of whole streams, such as a ward, stands on imputed rows too; what it says of events does not."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retrodict as rd
from retrodict.events.properties import properties
from tests.cli.test_commands import run

pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")
CSV = """bed,at,what,from,to,ward,level,dose,nurse,late
b1,3.0,given,0,10,west,1,5,ann,no
b2,4.0,given,0,10,east,2,,ann,
b1,6.0,given,0,10,west,1,7,bob,no
b3,,,0,10,north,3,,,
"""
NAMES = {"stream": "bed", "time": "at", "type": "what", "start": "from", "end": "to"}
WARDS, LEVELS = {"b1": "west", "b2": "east", "b3": "north"}, {"b1": 1, "b2": 2, "b3": 3}


def source(form: str, folder):
    frame = pd.read_csv(io.StringIO(CSV))
    if form == "pandas":
        return frame
    if form == "polars":
        return pl.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    if form == "arrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    path = folder / f"in.{form}"
    path.write_text(CSV) if form == "csv" else pq.write_table(pa.Table.from_pandas(frame), path)
    return path


def with_one_each(streams: rd.StreamSet) -> rd.StreamSet:
    """An event at 5 put into each stream."""
    return rd.fill(
        streams, rd.StreamSet([rd.EventStream([5.0], [0], 0, 10, id=i) for i in streams.ids], types=["given"])
    )


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "csv", "parquet"])
def test_properties_of_streams_stand_on_imputed_rows_and_measurements_do_not(form, tmp_path):
    filled = with_one_each(rd.read_events(source(form, tmp_path), **NAMES))
    back = pa.Table.from_pandas(filled.to_table("pandas"), preserve_index=False).to_pylist()
    if form in ("csv", "parquet"):
        rd.write_events(filled, tmp_path / f"out.{form}")
        back += (pd.read_csv if form == "csv" else pd.read_parquet)(tmp_path / f"out.{form}").to_dict("records")
    new = [row for row in back if row["imputed"]]
    assert len(new) == (6 if form in ("csv", "parquet") else 3)
    for row in new:
        assert (row["ward"], row["level"]) == (WARDS[row["bed"]], LEVELS[row["bed"]])
        assert pd.isna(row["dose"])
        assert pd.isna(row["nurse"])
        assert row["late"] == "no" if row["bed"] == "b1" else pd.isna(row["late"])
    old = [tuple(row[name] for name in ("bed", "ward", "nurse")) for row in back if not row["imputed"]][:4]
    assert old[:3] == [("b1", "west", "ann"), ("b2", "east", "ann"), ("b1", "west", "bob")]
    assert old[3][:2] == ("b3", "north")


def test_one_event_a_stream_makes_no_column_a_property():
    frame = pd.read_csv(io.StringIO(CSV)).iloc[:2]
    filled = with_one_each(rd.read_events(frame, **NAMES)).to_table()
    assert filled[filled["imputed"]][["ward", "level", "dose", "nurse"]].isna().all(axis=None)


def test_streams_without_a_table_and_their_consensus():
    model = rd.Hawkes([0.5, 0.01], [[0.0, 0.9], [0.0, 0.0]], 1.0)
    streams = [
        rd.EventStream([2.0, 5.0], [1, 1], 0, 8, id=f"d{i}", columns={"depot": [i, i], "fare": [1.0, 2.0]})
        for i in range(3)
    ]
    observed = rd.StreamSet([*streams, rd.EventStream([], [], 0, 8, id="none")], types=["cause", "effect"])
    posterior = rd.impute(observed, rd.Filtering(model, rd.ByType({0: 1.0})), particles=50, seed=1)
    frame = posterior.consensus(cost=2.0).to_frame().dropna(subset="time")
    assert len(frame) > 3
    assert "fare" not in frame
    told = frame[frame["stream"] != "none"]
    assert ("d" + told["depot"].astype(int).astype(str)).tolist() == told["stream"].tolist()
    assert frame[frame["stream"] == "none"]["depot"].isna().all()
    filled = rd.fill(observed, posterior.consensus(cost=2.0))
    assert filled.columns["depot"][filled.stream_of_event == 2].tolist() == [2] * int(filled.lengths[2])
    assert np.isnan(filled.columns["fare"][filled.columns["imputed"]]).all()


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]"])
def test_dates_stay_dates_where_some_events_have_none(kind):
    """Both a date of each event, which imputed ones lack, and one of a whole stream, which an empty stream lacks."""
    day = np.array([17_000, 17_001], dtype=f"{kind.partition('[')[0]}[D]").astype(kind)
    columns = {"own": day, "of_stream": day[[0, 0]]}
    told = rd.EventStream([2.0, 4.0], [0, 0], 0, 10, id="a", columns=columns)
    filled = with_one_each(rd.StreamSet([told, rd.EventStream([], [], 0, 10, id="b")], types=["given"]))
    assert filled.columns["own"].dtype == kind
    assert filled.columns["of_stream"].dtype == kind
    np.testing.assert_array_equal(filled.columns["own"], np.array([*day, "NaT", "NaT"], dtype=kind))
    np.testing.assert_array_equal(filled.columns["of_stream"], np.array([*day[[0, 0, 0]], "NaT"], dtype=kind))


def test_odd_values_are_compared_as_they_are():
    def kept(values) -> bool:
        stream = rd.EventStream([1.0, 2.0], [0, 0], 0, 3, columns={"x": np.array(values)})
        return bool(properties(rd.StreamSet([stream])))

    assert kept([np.nan, np.nan])
    assert kept([None, None])
    assert kept(["a", "a"])
    assert kept(["NaT", "NaT"])
    assert not kept([1.0, np.nan])
    assert not kept(np.array(["a", None], dtype=object))
    assert not kept([1, 2])
    assert not kept(np.array([1, "1"], dtype=object))
    assert not kept(np.array([[1, 2], [1, 2]]))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    model = rd.Hawkes([0.4, 0.01], [[0.0, 0.9], [0.0, 0.0]], 1.0)
    model.types = ("cause", "given")
    return str(rd.save_model(model, tmp_path_factory.mktemp("model")))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_chunks_and_decodes_carry_what_the_whole_table_tells(model, tmp_path, suffix):
    """The dose of the first four streams is constant: only the whole table tells that it is a measurement."""
    rows = [(f"s{i}", hour, "given", 0, 12, f"w{i % 3}", 5 if i < 4 else hour)
            for i in range(8) for hour in ((3, 6) if i != 6 else (4,))]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["stream", "time", "type", "start", "end", "ward", "dose"])
    path, whole, parts, again = (tmp_path / f"{name}.{suffix}" for name in ("in", "whole", "parts", "again"))
    if suffix == "jsonl":
        lines = [
            {"id": name, "horizon": [0, 12], "times": part["time"].tolist(), "types": part["type"].tolist(),
             "columns": {key: part[key].tolist() for key in ("ward", "dose")}}
            for name, part in frame.groupby("stream")
        ]  # fmt: skip
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    words = ["-m", "cause=1", "--filtering", "--particles", "8", "--cost", "3"]
    run("impute", model, str(path), "-o", str(whole), *words)
    run("impute", model, str(path), "-o", str(parts), *words, "--chunk-streams", "2")
    assert whole.read_bytes() == parts.read_bytes()
    run("decode", f"{whole}.draws", "-o", str(again), "--cost", "3")
    assert again.read_bytes() == whole.read_bytes()
    filled = rd.read_events(whole).to_frame()
    new = filled[filled["imputed"].astype(bool)]
    assert len(new) >= 8
    assert new["dose"].isna().all()
    assert new["ward"].tolist() == ["w" + str(int(name[1:]) % 3) for name in new["stream"]]
