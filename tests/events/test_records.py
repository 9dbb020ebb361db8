"""Tables with a record of lists in each row (EasyTPP's, as Hugging Face holds them), in and out; records come back."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import retrodict as rd
from retrodict.errors import DataError, DataNotice
from tests.events.test_round_trips import stream_sets

ROWS = [
    {
        "dim_process": 3, "seq_idx": 10 + i, "seq_len": 2, "time_since_start": [0.0, 1.5 + i],
        "time_since_last_event": [0.0, 1.5 + i], "type_event": [2, 0], "weight": [0.5, None], "source": f"file {i}",
    }
    for i in range(2)
]  # fmt: skip
SCHEMA = pa.schema(
    [
        ("dim_process", pa.int32()), ("seq_idx", pa.int64()), ("seq_len", pa.int64()),
        ("time_since_start", pa.list_(pa.float32())), ("time_since_last_event", pa.list_(pa.float32())),
        ("type_event", pa.list_(pa.int32())), ("weight", pa.list_(pa.float64())), ("source", pa.string()),
    ]
)  # fmt: skip
TABLE = pa.Table.from_pylist(ROWS, SCHEMA)


class Dataset(list):
    """As much of a data set of Hugging Face as is looked at."""

    column_names = tuple(ROWS[0])


Dataset.__module__ = "datasets.arrow_dataset"


def read(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNotice)
        return rd.read_events(*arguments, **options)


def filled(streams):
    made = [rd.EventStream([0.5], [1], end=s.end, id=s.id, columns={"probability": [0.25]}) for s in streams]
    return rd.fill(streams, rd.StreamSet(made, types=streams.types, axis=streams.axis))


def test_the_same_streams_from_every_form(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    columns = {key: [row[key] for row in ROWS] for key in ROWS[0]}
    forms = [ROWS, columns, Dataset(ROWS), {"train": Dataset(ROWS), "test": []}, {"train": ROWS}, TABLE,
             TABLE.to_pandas(), pytest.importorskip("polars").from_arrow(TABLE), tmp_path / "a.parquet",
             tmp_path / "a.jsonl"]  # fmt: skip
    expected = read(ROWS)
    assert (expected.ids, expected.types, list(expected.columns)) == ((10, 11), ("0", "1", "2"), ["weight"])
    for form in forms:
        assert read(form) == expected
    with pytest.raises(DataError, match="there are several splits: train, dev"):
        read({"train": Dataset(ROWS), "dev": Dataset(ROWS)})
    assert read({"train": Dataset(ROWS), "dev": Dataset(ROWS[:1])}, split="dev") == expected[:1]


def test_a_table_comes_back_with_its_types(tmp_path):
    polars = pytest.importorskip("polars")
    assert read(TABLE).to_table().equals(TABLE)
    assert read(polars.from_arrow(TABLE)).to_table().equals(polars.from_arrow(TABLE))
    pd.testing.assert_frame_equal(read(TABLE.to_pandas()).to_table(), TABLE.to_pandas())
    pq.write_table(TABLE, tmp_path / "a.parquet")
    rd.write_events(read(tmp_path / "a.parquet"), tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet").equals(TABLE)


def test_imputed_events_are_entries_of_the_lists(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    rd.write_events(filled(read(tmp_path / "a.parquet")), tmp_path / "b.parquet")
    table = pq.read_table(tmp_path / "b.parquet")
    assert table.schema.names == [*SCHEMA.names, "imputed", "probability", "earliest", "latest"]
    assert table.schema.field("type_event").type == pa.list_(pa.int32())
    row = table.to_pylist()[1]
    assert row["time_since_start"] == [0.0, 0.5, 2.5]
    assert row["time_since_last_event"] == [0.0, 0.5, 2.0]
    assert (row["type_event"], row["seq_len"], row["weight"]) == ([2, 1, 0], 3, [0.5, None, None])
    assert (row["imputed"], row["probability"]) == ([False, True, False], [None, 0.25, None])
    again = read(tmp_path / "b.parquet")
    assert again.columns["imputed"].tolist() == [False, True, False] * 2


def test_records_in_json_keep_their_keys(tmp_path):
    for name in ("a.json", "a.jsonl"):
        text = json.dumps(ROWS) if name == "a.json" else "".join(json.dumps(row) + "\n" for row in ROWS)
        (tmp_path / name).write_text(text)
        rd.write_events(read(tmp_path / name), tmp_path / f"b{name}")
        again = (tmp_path / f"b{name}").read_text()
        found = json.loads(again) if name == "a.json" else [json.loads(line) for line in again.splitlines()]
        assert found == ROWS


def test_wrong_tables_are_refused_in_words(tmp_path):
    with pytest.raises(DataError, match=r"row 1: 'type_event' is not a flat list"):
        read(pa.table({"time_since_start": [[1.0]], "type_event": [[[1]]]}))
    with pytest.raises(DataError, match="the key 'type_event' is missing"):
        read(pd.DataFrame({"time_since_start": [[1.0]]}))
    with pytest.raises(DataError, match="Parquet is compressed already"):
        rd.write_events(read(ROWS), tmp_path / "a.parquet.gz", format="easytpp")


@settings(max_examples=40, deadline=None)
@given(stream_sets())
def test_any_streams_go_through_records(tmp_path_factory, streams):
    """Times count from the start of a stream, so that they come back to the last digit or so."""
    if not streams.num_events:
        return
    folder = tmp_path_factory.mktemp("round")
    streams = streams.replace(columns={"count": streams.columns["count"]}, ids=range(len(streams)))
    for name in ("a.json", "a.jsonl.gz", "a.parquet"):
        rd.write_events(streams, folder / name, format="easytpp")
        again = read(folder / name)
        assert (again.ids, again.types, again.axis) == (streams.ids, streams.types, streams.axis)
        for part in ("event_types", "offsets", "starts", "ends"):
            assert np.array_equal(getattr(again, part), getattr(streams, part)), part
        assert np.allclose(again.event_times, streams.event_times, rtol=1e-15, atol=0)
        assert again.columns["count"].tolist() == streams.columns["count"].tolist()
    assert again.to_easytpp()[0]["seq_len"] == len(streams[0])


def test_no_streams_are_no_records(tmp_path):
    assert read(ROWS)[:0].to_easytpp() == []
    assert read(TABLE)[:0].to_table().equals(TABLE[:0])
    rd.write_events(read(ROWS)[:0], tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == []


def test_a_schema_that_is_damaged_is_refused_in_words():
    streams = read(TABLE)
    names = {**streams.source.names, "schema": "bm8gc2NoZW1h"}
    object.__setattr__(streams.source, "names", names)
    with pytest.raises(DataError, match="the records' table is damaged"):
        streams.to_table("arrow")


def test_a_long_table_may_have_a_column_of_that_name():
    table = pa.table({"stream": ["a", "a"], "time": [1.0, 2.0], "type": ["x", "y"], "time_since_start": [1.0, None]})
    polars = pytest.importorskip("polars").from_arrow(table)
    for frame in (table, table.to_pandas(), table.to_pandas().astype({"time_since_start": object}), polars,
                  table.to_pandas(types_mapper=pd.ArrowDtype)):  # fmt: skip
        streams = read(frame)
        assert (streams.types, streams.num_events) == (("x", "y"), 2)
        assert "time_since_start" in streams.columns
    assert read(TABLE.to_pandas(types_mapper=pd.ArrowDtype)).num_events == read(TABLE).num_events
