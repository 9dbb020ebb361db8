"""The user's table comes back: every row, column, name, dtype and zone, with the imputed events among them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retrodict as rd
from retrodict.events.io.tables_out import polars_frame
from retrodict.events.results import RESULTS, marks
from tests.events.random_tables import Table, as_csv, csv_text, random_table

FORMS = ["pandas", "polars", "arrow", "csv", "csv.gz", "parquet"]
WIDER = {"bool": "boolean", "int64": "Int64", "int16": "Int16", "uint8": "UInt8"}


def read(source: Any, arguments: dict[str, Any]) -> rd.StreamSet:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.DataNotice)
        return rd.read_events(source, **arguments)


def impute(streams: rd.StreamSet, rng: np.random.Generator, most: int) -> rd.StreamSet:
    """Up to ``most`` events a stream, anywhere in it, some of a type never seen, often in a model's own unit."""
    guesses, names = [], streams.types
    if "True" not in names and rng.random() < 0.5:
        names = (*names, str(len(names)) if "0" in names else "never seen")
    for stream in streams:
        n = int(rng.integers(0, most + 1))
        times = np.sort(rng.uniform(stream.start, stream.end, n))
        columns = {"probability": rng.random(n), "earliest": times, "latest": times}
        types = rng.integers(0, len(names), n)
        guesses.append(rd.EventStream(times, types, stream.start, stream.end, stream.id, columns))
    imputed = rd.StreamSet(guesses, types=names, axis=streams.axis)
    return imputed.with_unit("minute") if streams.axis.unit is not None and rng.random() < 0.5 else imputed


def check_pandas(table: Table, back: pd.DataFrame, arguments: dict[str, Any]) -> None:
    frame, added = table.frame, bool(back["imputed"].any())
    assert back.columns.tolist() == [*frame.columns, *RESULTS]
    kept = back[~back["imputed"].astype(bool)][frame.columns]
    for name in frame.columns:
        before, after = frame[name], kept[name]
        if added and name == arguments["time"] and pd.api.types.is_integer_dtype(before.dtype):
            assert after.astype(before.dtype).tolist() == before.tolist()
            continue
        has_values = name in [arguments.get(role) for role in ("stream", "time", "type", "start", "end")]
        steady = not has_values and is_steady(frame, name, arguments)
        if steady and arguments.get("stream"):
            values = back[name].astype(object).where(back[name].notna(), None)
            assert values.groupby(back[arguments["stream"]].astype(str)).nunique(dropna=False).max() == 1, name
        wider = WIDER.get(str(before.dtype)) if added and not has_values and not steady else None
        assert str(after.dtype) == (wider or str(before.dtype)), name
        pd.testing.assert_series_equal(after.reset_index(drop=True), before.astype(after.dtype).reset_index(drop=True))
    if not isinstance(frame.index, pd.RangeIndex):
        assert kept.index.tolist() == frame.index.tolist()


def is_steady(frame: pd.DataFrame, name: str, arguments: dict[str, Any]) -> bool:
    """Whether a column has one value in the events of each stream, and some stream has two events."""
    events = frame[frame[arguments["time"]].notna()]
    stream = events[arguments["stream"]].tolist() if arguments.get("stream") else [0] * len(events)
    found: dict[Any, set[str]] = {}
    for key, value in zip(stream, events[name].tolist(), strict=True):
        found.setdefault(key, set()).add(repr(value))
    return len(stream) > len(found) and all(len(values) == 1 for values in found.values())


def check_form(form: str, table: Table, rng: np.random.Generator, folder: Path) -> int:
    """Put the table in, in one form, and compare what comes back; the number of imputed events."""
    arguments, most = dict(table.arguments), int(rng.choice([0, 2]))
    frame = table.frame
    if form == "pandas":
        if rng.random() < 0.3:
            table.frame = frame = frame.set_axis(pd.Index(rng.permutation(len(frame)) + 5), axis=0)
        streams = read(frame, arguments)
        filled = rd.fill(streams, impute(streams, rng, most))
        check_pandas(table, filled.to_table(), arguments)
    elif form == "polars":
        source = polars_frame(arrow_of(frame))
        streams = read(source, arguments)
        filled = rd.fill(streams, impute(streams, rng, most))
        back = filled.to_table()
        assert back.columns == [*source.columns, *RESULTS]
        kept = back.filter(~pl.col("imputed")).select(source.columns)
        widened = arguments["time"] if source[arguments["time"]].dtype.is_integer() and most else ""
        assert {n: t for n, t in kept.schema.items() if n != widened} == {
            n: t for n, t in source.schema.items() if n != widened
        }
        assert kept.with_columns(pl.col(widened).cast(pl.Int64) if widened else []).equals(source)
    elif form in ("arrow", "parquet"):
        source = arrow_of(frame)
        path = folder / "in.parquet"
        if form == "parquet":
            pq.write_table(source, path)
            source = pq.read_table(path)
        streams = read(source if form == "arrow" else path, arguments)
        filled = rd.fill(streams, impute(streams, rng, most))
        back = filled.to_table("arrow")
        if form == "parquet":
            rd.write_events(filled, folder / "out.parquet")
            back = pq.read_table(folder / "out.parquet")
        assert back.column_names == [*source.column_names, *RESULTS]
        kept = back.filter(pa.array(~back["imputed"].to_numpy())).select(source.column_names)
        for name in source.column_names:
            same = kept[name].type == source[name].type
            assert same or (name == arguments["time"] and pa.types.is_integer(source[name].type)), name
            assert kept[name].to_pylist() == source[name].to_pylist()
    else:
        rows = as_csv(frame)
        path, out = folder / "in.csv", folder / f"out.{form}"
        path.write_bytes(csv_text(rows).encode())
        arguments |= {} if table.zone is None else {"timezone": table.zone}
        streams = read(path, arguments)
        filled = rd.fill(streams, impute(streams, rng, most))
        rd.write_events(filled, out)
        again = read(out, arguments).source.data
        assert again.column_names == [*rows[0], *RESULTS]
        kept = again.filter(pa.array(np.array(again["imputed"].to_pylist()) == "false")).select(rows[0])
        assert [list(row.values()) for row in kept.to_pylist()] == rows[1:]
        first = out.read_bytes()
        rd.write_events(filled, out)
        assert out.read_bytes() == first
    check_again(form, filled, streams, arguments, folder)
    return filled.num_events - streams.num_events


def check_again(
    form: str, filled: rd.StreamSet, streams: rd.StreamSet, arguments: dict[str, Any], folder: Path
) -> None:
    """What came back is read with the same arguments, into the same events."""
    out = {"csv": "out.csv", "csv.gz": "out.csv.gz", "parquet": "out.parquet"}
    again = read(
        folder / out[form] if form in out else filled.to_table(),
        arguments | {"types": filled.types, "unit": filled.axis.unit},
    )
    assert again.ids == streams.ids
    new = marks(again.columns["imputed"])
    assert np.array_equal(again.keep(~new).event_times, streams.with_axis(again.axis).event_times)
    assert np.array_equal(
        again.with_types(filled.types).event_types[~new], streams.with_types(filled.types).event_types
    )
    assert new.sum() == filled.num_events - streams.num_events


def arrow_of(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("part", range(8))
def test_2000_random_tables_come_back_with_every_row_as_it_was(part, tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)  # many small files
    rng = np.random.default_rng([19, part])
    imputed = 0
    for number in range(250):
        table = random_table(rng)
        form = FORMS[number % len(FORMS)]
        try:
            imputed += check_form(form, table, rng, tmp_path)
        except Exception as error:
            error.add_note(f"{form}, {table.arguments}\n{table.frame}\n{table.frame.dtypes}")
            raise
    assert imputed > 200


def two_each(observed: rd.StreamSet, types: tuple[str, ...]) -> rd.StreamSet:
    """Two events in each stream: one of the first type, one of the last."""
    guesses = []
    for s in observed:
        times = s.start + s.duration * np.array([0.3, 0.31])
        columns = {"probability": [0.5, 0.6], "earliest": times, "latest": times}
        guesses.append(rd.EventStream(times, [0, len(types) - 1], s.start, s.end, s.id, columns))
    return rd.StreamSet(guesses, types=types, axis=observed.axis)


def test_an_enum_gains_a_type_and_a_lazy_frame_comes_back_as_a_frame():
    kind = pl.Enum(["x", "y", "z"])
    frame = pl.DataFrame({"stream": "a", "time": [1.0, 2.0], "type": pl.Series(["x", "y"], dtype=kind), "end": 5})
    observed = rd.read_events(frame.lazy())
    back = rd.fill(observed, two_each(observed, ("x", "y", "z", "new"))).to_table()
    assert back.schema["type"] == pl.Enum(["x", "y", "z", "new"])
    assert back["type"].to_list() == ["x", "x", "new", "y"]
    assert back.filter(~pl.col("imputed"))["end"].to_list() == [5, 5]


def test_python_objects_periods_and_intervals_come_back():
    frame = pd.DataFrame({
        "stream": 1, "time": [1.0, 2.0], "type": [True, False], "end": 5, "things": [[1], {"k": 2}], "c": [1j, 2j],
        "p": pd.period_range("2013", periods=2), "i": pd.interval_range(0, 2),
    })  # fmt: skip
    observed = rd.read_events(frame)
    back = rd.fill(observed, two_each(observed, observed.types)).to_table()
    assert back["type"].tolist() == [True, False, True, False]
    kept = back[~back["imputed"]].reset_index(drop=True)
    for name in frame.columns:
        assert kept[name].tolist() == frame[name].tolist(), name
    with pytest.raises(rd.DataError, match="column 'type' holds booleans, which cannot say all types"):
        rd.fill(observed, two_each(observed, ("False", "True", "maybe"))).to_table()


def test_an_hour_that_comes_twice_is_written_with_its_offset(tmp_path):
    table, zone = tmp_path / "a.csv", "America/New_York"
    table.write_text("stream,time,type\na,2013-11-03 00:30,x\na,2013-11-03 02:00,y\n")
    observed = read(table, {"timezone": zone})
    rd.write_events(rd.fill(observed, two_each(observed, observed.types)), tmp_path / "b.csv")
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == [
        "2013-11-03 00:30", "2013-11-03 01:15-04:00", "2013-11-03 01:16-04:00", "2013-11-03 02:00",
    ]  # fmt: skip
    again = read(tmp_path / "b.csv", {"timezone": zone})
    assert again.event_times.tolist() == pytest.approx([4.5 * 60, 5.25 * 60, 76 + 4 * 60, 7 * 60])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_events_are_put_into_a_stream_of_which_nothing_was_observed(suffix, tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("stream,time,type,start,end\na,,,2013-11-03T00:00-07:00,2013-11-04T00:00-07:00\n")
    observed = read(table, {"types": ["x"]})
    out = tmp_path / f"b.{suffix}"
    rd.write_events(rd.fill(observed, two_each(observed, observed.types)), out)
    assert read(out, {}).num_events == 2
    if suffix == "csv":
        lines = out.read_text().splitlines()
        assert lines[1] == "a,,,2013-11-03T00:00-07:00,2013-11-04T00:00-07:00,false,,,"
        assert lines[2].startswith("a,2013-11-03T07:12:00-07:00,x,2013-11-03T00:00-07:00,")


def test_a_table_without_start_and_end_gains_them_only_when_events_are_left_out():
    frame = pd.DataFrame({"stream": ["a", "a", "b"], "time": [1.0, 2.0, 3.0], "type": ["x", "y", "x"]})
    streams = read(frame, {})
    assert streams.to_table().equals(frame)
    assert streams[[1]].to_table().equals(frame.iloc[2:].reset_index(drop=True))
    observed, hidden = rd.ByType({"x": 1.0}).censor(streams)
    assert observed.to_table().columns.tolist() == ["stream", "time", "type", "start", "end"]
    assert observed.to_table()["stream"].tolist() == ["a", "b"]
    assert observed.to_table()["end"].tolist() == [2.0, 3.0]
    assert hidden.to_table()["time"].tolist() == [1.0, 3.0]
    assert read(observed.to_table(), {"types": streams.types}) == observed
    assert rd.combine(observed, hidden)[0].to_table().equals(frame)
