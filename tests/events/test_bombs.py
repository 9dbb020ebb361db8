"""Small files that ask for much: refused in words, in little time and memory; limits can be raised by name."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retrodict as rd
from retrodict.errors import DataError, LimitError, ModelError
from retrodict.events.io.pickles import load_plain


def packed(path, head: bytes, line: bytes, size: int) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        block = line * ((1 << 20) // len(line))
        for _ in range(size >> 20):
            file.write(block)


def rows(path) -> None:
    """200 million rows in a small file: one value, repeated."""
    part = pa.table({name: pa.array(np.zeros(10**6, np.int64)) for name in ("stream", "time", "type")})
    with pq.ParquetWriter(path, part.schema, compression="zstd") as writer:
        for _ in range(120):
            writer.write_table(part)


def text(path) -> None:
    """One long text, a million times: some kilobytes for 100 GB."""
    names = pa.DictionaryArray.from_arrays(np.zeros(10**6, np.int32), ["x" * 100_000])
    columns = {"stream": names.cast(pa.dictionary(pa.int32(), pa.string())), "time": pa.array(np.zeros(10**6))}
    pq.write_table(pa.table(columns), path, store_schema=False)


BOMBS = {
    "a.csv.gz": lambda path: packed(path, b"stream,time,type\n", b"a,1.0,b\n", 1 << 30),
    "a.jsonl.gz": lambda path: packed(path, b'{"id": 1, "times": [', b"1,", 1 << 30),
    "a.json.gz": lambda path: packed(path, b'[{"time_since_start": [', b"1,", 1 << 30),
    "a.pkl.gz": lambda path: packed(path, b"\x80\x04", b"]", 1 << 30),
    "a.xes.gz": lambda path: packed(path, b"<log><trace>", b"<event></event>", 1 << 30),
    "laughs.xes": lambda path: path.write_text(
        '<?xml version="1.0"?><!DOCTYPE log [<!ENTITY a "ha">'
        + "".join(f'<!ENTITY {b} "{f"&{a};" * 9}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
        + ']><log><trace><string key="concept:name" value="&i;"/></trace></log>'
    ),
    "file.xes": lambda path: path.write_text(
        '<!DOCTYPE log [<!ENTITY x SYSTEM "file:///etc/passwd">]><log><trace><event>&x;</event></trace></log>'
    ),
    "deep.xes": lambda path: path.write_text("<log><trace>" + '<string key="a" value="b">' * 400_000),
    "rows.parquet": rows,
    "text.parquet": text,
    "a.yaml": lambda path: path.write_text(
        "a: &a [1,1,1,1,1,1,1,1,1]\n"
        + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    ),
    "types.yaml": lambda path: path.write_text("mechanism: contextual\ntypes: 1000000000\nscales: [1]\n"),
}
CHILD = """
import os, sys, time
import retrodict as rd
from tests.fuzz import peak_memory
from retrodict.events.io import csv_file, easytpp, jsonl, meds, parquet_file, pickles, xes
before, began = peak_memory(), time.time()
try:
    rd.read_missing(sys.argv[1]) if sys.argv[1].endswith("yaml") else rd.read_events(sys.argv[1])
except rd.DataError as error:
    print(f"{time.time() - began:.2f} {peak_memory() - before} {error}", flush=True)
    os._exit(0)  # Arrow's threads sometimes abort while the interpreter is torn down
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_words(name, tmp_path):
    BOMBS[name](tmp_path / name)
    assert os.path.getsize(tmp_path / name) < 12_000_000
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert child.returncode == 0, child.stderr
    seconds, megabytes, message = child.stdout.split(maxsplit=2)
    assert "Remedy: " in message
    assert "this is not" not in message  # it is what it claims to be, and too much
    assert (float(seconds) < 10, int(megabytes) < 300) == (True, True), child.stdout  # 2 s on an idle machine


def test_limits_are_raised_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("stream,time,type,end\n" + "a,1,x,2\n" * 50)
    with rd.limits(rows=20):
        with pytest.raises(LimitError, match=r"has 52 lines, and the limit is 20.*raise the limit: limits\(rows=52\)"):
            rd.read_events(path)
        with rd.limits(rows=52):
            assert rd.read_events(path).num_events == 50
    with rd.limits(bytes=100), pytest.raises(LimitError, match=r"the file has 421 bytes.*limits\(bytes=430\)"):
        rd.read_events(path)
    with pytest.raises(ModelError, match="there is no limit 'row'"), rd.limits(row=3):
        pass
    with pytest.raises(ModelError, match="must be a number of at least 1"), rd.limits(rows=float("nan")):
        pass


def test_the_wrong_column_as_type_is_found(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("stream,time,type,end\n" + "".join(f"a,{i},t{i},99\n" for i in range(50)))
    with (
        rd.limits(types=20),
        pytest.raises(LimitError, match=r"50 different types.*give the column that holds the types"),
    ):
        rd.read_events(path)


def test_streams_are_bounded(tmp_path):
    lines = [json.dumps({"id": i, "horizon": [0, 1], "times": [], "types": []}) for i in range(30)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with rd.limits(streams=20), pytest.raises(LimitError, match="there are 30 streams"):
        rd.read_events(tmp_path / "a.jsonl")


def test_a_table_that_does_not_fit_is_refused_before_it_is_read(tmp_path):
    rd.write_events(rd.StreamSet([rd.EventStream([1.0], [0], end=2.0)] * 1), tmp_path / "a.parquet")
    with (
        rd.limits(memory=10),
        pytest.raises(LimitError, match=r"would need about .* of memory, and 10 bytes may be used"),
    ):
        rd.read_events(tmp_path / "a.parquet")
    with rd.limits(memory=10), pytest.raises(LimitError, match="reading this pickle"):
        load_plain(b"N." * 100)


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 100_000, '"\\ud800"'])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_that_cannot_be_worked_with(name, value, tmp_path):
    record = '{"id": "x", "horizon": [0, 9], "times": [1], "types": [%s], "time_since_start": [1], "type_event": [%s]}'
    (tmp_path / name).write_text(record % (value, value))
    with pytest.raises(DataError, match=r"too many digits|nested too deeply|half of a character"):
        rd.read_events(tmp_path / name)


def test_seq_len_as_an_array():
    records = [{"time_since_start": [1.0], "type_event": [0], "seq_len": np.array([1, 2])}]
    with pytest.raises(DataError, match="seq_len is array"):
        rd.read_events(records)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(DataError, match="not a regular file"):
        rd.read_events(tmp_path / "a.csv")


def test_dates_far_away(tmp_path):
    far = pa.array([10**17], pa.timestamp("us"))
    pq.write_table(
        pa.table({"stream": ["a"], "time": [1.0], "type": ["x"], "end": [2.0], "when": far}), tmp_path / "a.parquet"
    )
    frame = rd.read_events(tmp_path / "a.parquet").to_frame()
    assert str(frame["when"][0]).startswith("5138")
    pq.write_table(
        pa.table(
            {"stream": ["a"], "time": [1.0], "type": ["x"], "end": [2.0], "when": far.cast(pa.timestamp("us", "UTC"))}
        ),
        tmp_path / "a.parquet",
    )
    assert rd.read_events(tmp_path / "a.parquet").num_events == 1
    days = pa.array([5_000_000], pa.date32())
    pq.write_table(pa.table({"stream": ["a"], "time": days, "type": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"15659-07-15 .* lies outside the years 1678 to 2261"):
        rd.read_events(tmp_path / "a.parquet")
    late = pa.array([10**18], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"stream": ["a"], "time": [1.0], "type": ["x"], "when": late}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="holds values beyond what Python knows"):
        rd.read_events(tmp_path / "a.parquet")
