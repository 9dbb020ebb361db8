"""EasyTPP's layouts, in memory and in files, and the old pickles, read as data."""

import copyreg
import json
import os
import pickle

import numpy as np
import pytest

from retrodict import EventStream, StreamSet
from retrodict.errors import DataError, DataNotice
from retrodict.events.io.easytpp import from_easytpp
from retrodict.events.io.pickles import load_plain
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events

RECORDS = [
    {
        "dim_process": 3, "seq_idx": i, "seq_len": 2, "time_since_start": [0.0, 1.5 + i],
        "time_since_last_event": [0.0, 1.5 + i], "type_event": [2, 0],
    }
    for i in range(2)
]  # fmt: skip
EVENTS = [
    [
        {"time_since_start": t, "time_since_last_event": t, "type_event": k}
        for t, k in zip(record["time_since_start"], record["type_event"], strict=True)
    ]
    for record in RECORDS
]
EXPECTED = StreamSet(
    [EventStream([0, 1.5], [2, 0], end=1.5, id=0), EventStream([0, 2.5], [2, 0], end=2.5, id=1)],
    types=["0", "1", "2"],
)


def read(*arguments, **options):
    with pytest.warns(DataNotice, match="taken to end at its last event"):
        return read_events(*arguments, **options)


def test_layouts_in_memory():
    columns = {key: [record[key] for record in RECORDS] for key in RECORDS[0]}
    for records in (RECORDS, columns, {"dim_process": 3, "train": EVENTS}, tuple(RECORDS), iter(RECORDS)):
        with pytest.warns(DataNotice, match="taken to end at its last event"):
            assert from_easytpp(records) == EXPECTED
    assert read(RECORDS) == EXPECTED
    assert read(columns | {"dim_process": 3}) == EXPECTED
    assert read(RECORDS[0]) == EXPECTED[:1]
    arrays = [record | {"time_since_start": np.array(record["time_since_start"])} for record in RECORDS]
    assert read(arrays) == EXPECTED


def test_layouts_in_files(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(RECORDS))
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    (tmp_path / "c.json").write_bytes((tmp_path / "b.jsonl").read_bytes())
    (tmp_path / "d.json").write_text(json.dumps({"dim_process": 3, "train": EVENTS, "dev": []}))
    for path in sorted(tmp_path.iterdir()):
        assert read(path) == EXPECTED


def test_bounds_and_names():
    streams = from_easytpp(RECORDS, start=-1, end=9, types=["x", "y", "z"], unit="hour")
    assert streams.durations.tolist() == [10, 10]
    assert streams.types == ("x", "y", "z")
    assert streams.axis.unit == "hour"


def test_written_records_are_easytpps(tmp_path):
    assert EXPECTED.to_easytpp() == RECORDS
    write_events(EXPECTED, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == RECORDS
    write_events(EXPECTED, tmp_path / "a.jsonl.gz", format="easytpp")
    assert read(tmp_path / "a.jsonl.gz") == EXPECTED
    assert read(tmp_path / "a.json") == EXPECTED


def test_times_count_from_the_start():
    late = StreamSet([EventStream([5.5, 7], [0, 0], start=5, end=9)])
    record = late.to_easytpp()[0]
    assert record["time_since_start"] == [0.5, 2.0]
    assert record["time_since_last_event"] == [0.5, 1.5]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_old_pickles(protocol, tmp_path):
    scalars = [
        [{"time_since_start": np.float64(e["time_since_start"]), "type_event": np.int64(e["type_event"])} for e in s]
        for s in EVENTS
    ]
    content = {"seqs": scalars, "total_num": np.int64(3), "extra": np.arange(3.0), "unit": b"h", "used": {1, 2}}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(content, protocol))
    assert read(tmp_path / "a.pkl") == EXPECTED


def test_a_pickle_of_python_2(tmp_path):
    """Protocol 0 with its str (latin-1) and long, as the 2017 code wrote it."""
    text = (
        b"(dp0\nS'dim_process'\np1\nL3L\nsS'note'\nS'caf\\xe9'\nsS'train'\np2\n(lp3\n(lp4\n(dp5\n"
        b"S'time_since_start'\nF0.5\nsS'type_event'\nI2\nsaas."
    )
    (tmp_path / "a.pkl").write_bytes(text)
    assert list(read(tmp_path / "a.pkl")[0]) == [(0.5, 2)]


def test_split_is_chosen(tmp_path):
    content = {"dim_process": 3, "args": None, "index": [1, 2], "train": EVENTS, "dev": EVENTS[:1], "test": []}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(content))
    assert read(tmp_path / "a.pkl", split="dev") == EXPECTED[:1]
    assert read(tmp_path / "a.pkl", split="train") == EXPECTED


def test_boundary_events_become_the_interval(tmp_path):
    """BOS and EOS of the 2019 code, types K and K + 1, are where a stream starts and ends."""
    bos = {"time_since_start": 0.0, "type_event": 3}
    eos = {"time_since_start": 9.0, "type_event": 4}
    stream = [bos, {"time_since_start": 4.0, "type_event": 1}, eos]
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"seqs": [stream, [bos, eos]], "total_num": 3}))
    streams = read_events(tmp_path / "a.pkl")
    assert list(streams[0]) == [(4.0, 1)]
    assert streams.ends.tolist() == [9.0, 9.0]
    assert streams.lengths.tolist() == [1, 0]


class Call:
    """Something that runs a function when it is unpickled."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def forbidden(tmp_path):
    target = str(tmp_path / "harm")
    return {
        f"{os.system.__module__}.system": Call(os.system, f"touch {target}"),
        "builtins.eval": Call(eval, f"open({target!r}, 'w')"),
        f"{open.__module__}.open": Call(open, target, "w"),
        "builtins.getattr": Call(getattr, dict, "fromkeys"),
        "numpy.load": Call(np.load, target),
        "numpy.fromfile": Call(np.fromfile, target),
        "copyreg._reconstructor": Call(copyreg._reconstructor, Call, object, None),
        f"{__name__}.Call": Call,
    }


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_pickle_is_run(protocol, tmp_path):
    for name, harm in forbidden(tmp_path).items():
        (tmp_path / "a.pkl").write_bytes(pickle.dumps({"seqs": [[harm]]}, protocol))
        with pytest.raises(DataError) as error:
            read_events(tmp_path / "a.pkl")
        asked = str(error.value).replace("__builtin__", "builtins").replace("copy_reg", "copyreg")
        assert f"a.pkl: the pickle asks for {name}, which is not plain data; it was not loaded" in asked
        assert "Remedy: convert the file" in asked
    assert not (tmp_path / "harm").exists()


def test_a_small_pickle_cannot_ask_for_all_memory():
    """An entry far out in the memo costs nothing (Python's unpickler in C would take 16 GiB here)."""
    assert load_plain(b"\x80\x02]r\x00\x00\x00\x40.") == []


def test_plain_arrays_pass():
    arrays = [np.arange(6).reshape(2, 3), np.array(["a", "b"]), np.array([1.5], ">f4"), np.array(["a", "b"], "S")]
    arrays.append(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for array in arrays:
            again = load_plain(pickle.dumps(array, protocol))
            assert np.array_equal(again, array)
            assert again.dtype == array.dtype
