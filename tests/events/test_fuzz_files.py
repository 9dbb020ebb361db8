"""Whatever lies in a file, reading it gives streams or a DataError, and never another exception."""

import contextlib
import gzip
import json
import pickle
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retrodict import EventStream, StreamSet
from retrodict.errors import DataError, DataNotice
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
from retrodict.events.time_axis import TimeAxis

STREAMS = StreamSet(
    [EventStream([1, 2.5], [0, 1], end=3, id="a", columns={"n": [1, 2]}), EventStream([], [], end=1, id="b")],
    types=["u", "v"],
    axis=TimeAxis("hour", 1356998400 * 10**9, "UTC"),
)
SUFFIXES = ["csv", "csv.gz", "parquet", "jsonl", "json", "pkl"]


def try_to_read(path) -> None:
    with warnings.catch_warnings(), contextlib.suppress(DataError):
        warnings.simplefilter("ignore", DataNotice)
        read_events(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    for suffix in ("csv", "csv.gz", "parquet", "jsonl", "json"):
        write_events(STREAMS, folder / f"good.{suffix}")
    events = [[{"time_since_start": 1.0, "type_event": 0}]]
    (folder / "good.pkl").write_bytes(pickle.dumps({"seqs": events, "total_num": 2}, 2))
    return folder


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=60))
def test_any_bytes(suffix, folder, data):
    (folder / f"bad.{suffix}").write_bytes(data)
    try_to_read(folder / f"bad.{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=80, deadline=None)
@given(place=st.floats(0, 1), change=st.binary(max_size=3), cut=st.integers(0, 4))
def test_good_files_gone_bad(suffix, folder, place, change, cut):
    good = (folder / f"good.{suffix}").read_bytes()
    at = round(place * len(good))
    (folder / f"bad.{suffix}").write_bytes(good[:at] + change + good[at + cut :])
    try_to_read(folder / f"bad.{suffix}")


fields = st.sampled_from(
    [
        "",
        "a",
        "1",
        "-1",
        "1.5",
        "nan",
        "inf",
        "2013-01-01",
        "2013-01-01T01:00Z",
        "2013-01-01T01:00+05",
        '""',
        "x y",
        "0",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(fields, fields, fields, fields), min_size=1, max_size=5))
def test_any_table(folder, rows):
    text = "stream,time,type,end\n" + "".join(",".join(row) + "\n" for row in rows)
    (folder / "bad.csv").write_text(text)
    try_to_read(folder / "bad.csv")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
keys = ["id", "horizon", "times", "types", "columns", "axis"]
keys += ["time_since_start", "type_event", "dim_process", "seq_len", "seq_idx"]


@settings(max_examples=150, deadline=None)
@example({"dim_process": 10**12})
@example({"horizon": [0, 10**400]})
@example({"times": [1, 10**400], "types": [0, 10**400], "time_since_start": [1, 10**400]})
@example({"id": 10**400, "seq_idx": 10**400, "seq_len": 10**400, "dim_process": 10**400, "type_event": [0, 10**400]})
@given(st.dictionaries(st.sampled_from(keys), values))
def test_any_json(folder, changes):
    for base in (
        {"id": "a", "horizon": [0, 9], "times": [1, 2], "types": [0, 1]},
        {"time_since_start": [1, 2], "type_event": [0, 1]},
    ):
        text = json.dumps(base | changes)
        (folder / "bad.jsonl").write_text(text)
        try_to_read(folder / "bad.jsonl")
        (folder / "bad.json.gz").write_bytes(gzip.compress(f"[{text}]".encode()))
        try_to_read(folder / "bad.json.gz")
