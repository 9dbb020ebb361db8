"""JSON Lines, the file beside it, and reading without pandas or Arrow."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrodict
from retrodict.events.io.read import read_events
from tests.conftest import shared

LINE = {"id": "a", "horizon": [0.0, 3.0], "times": [1.0, 2.0], "types": [0, 2]}


def write(path, *lines):
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path


def test_integers_and_names(tmp_path):
    path = write(tmp_path / "a.jsonl", LINE)
    assert read_events(path).types == ("0", "1", "2")
    assert read_events(path, types=["x", "y", "z", "w"]).types == ("x", "y", "z", "w")
    write(path, LINE | {"types": ["z", "x"]})
    assert read_events(path).types == ("x", "z")
    assert read_events(path).event_types.tolist() == [1, 0]
    write(path, LINE | {"types": ["z", "x"]}, LINE | {"id": "b"})
    assert read_events(path, types=["x", "y", "z"]).event_types.tolist() == [2, 0, 0, 2]


def test_meta_beside_the_file(tmp_path):
    path = write(tmp_path / "a.jsonl", LINE)
    (tmp_path / "meta.json").write_text('{"type_names": ["x", "y", "z"], "time_unit": "hour", "source": 1}')
    streams = read_events(path)
    assert (streams.types, streams.axis.unit) == (("x", "y", "z"), "hour")
    streams = read_events(path, types=["p", "q", "r"], unit="day")
    assert (streams.types, streams.axis.unit) == (("p", "q", "r"), "day")
    (tmp_path / "meta.json").write_text('{"time_unit": "hour"}')
    assert read_events(path).types == ("0", "1", "2")


def test_blank_lines_ids_and_bounds(tmp_path):
    path = tmp_path / "a.jsonl"
    line = json.dumps({key: LINE[key] for key in ("horizon", "times", "types")})
    path.write_text(f"\n{line}\r\n\n{line}\n")
    streams = read_events(path)
    assert streams.ids == (0, 1)
    streams = read_events(path, start=-1.0, end=9)
    assert (streams.starts.tolist(), streams.ends.tolist()) == ([-1, -1], [9, 9])
    path.write_text(json.dumps({"times": [1.0], "types": [0]}))
    assert read_events(path, end=2.0).durations.tolist() == [2.0]


def test_columns(tmp_path):
    columns = {"n": [1, 2], "x": [1, 2.5], "h": [None, 1.5], "i": [None, 1], "s": ["p", None], "b": [True, False]}
    read = read_events(write(tmp_path / "a.jsonl", LINE | {"columns": columns})).columns
    assert [read[name].dtype.kind for name in columns] == ["i", "f", "f", "O", "O", "b"]
    assert np.isnan(read["h"][0])


def test_jsonl_needs_neither_pandas_nor_arrow(tmp_path):
    path = write(tmp_path / "a.jsonl", LINE)
    program = f"""
import sys, types
for name in ("pandas", "pyarrow", "polars"):
    sys.modules[name] = None
package = sys.modules["retrodict"] = types.ModuleType("retrodict")  # without the rest of the package
package.__path__ = [{str(Path(retrodict.__file__).parent)!r}]
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
streams = read_events({str(path)!r})
write_events(streams, {str(tmp_path / "b.jsonl.gz")!r})
assert read_events({str(tmp_path / "b.jsonl.gz")!r}, types=["0", "1", "2"]) == streams
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "streams", "events", "types"),
    [
        ("nyc_taxi_2013/dev", 500, 15826, 10),
        ("nyc_taxi_2013/test", 500, 15808, 10),
        ("nyc_flights_2013/all", 6000, 115450, 7),
        ("nyc_taxi_raw_newyear2013/all", 6000, 68895, 10),
    ],
)
def test_real_streams(name, streams, events, types):
    path = shared(f"data/{name}.jsonl.gz")
    read = read_events(path)
    assert (len(read), read.num_events, read.num_types) == (streams, events, types)
    assert read.axis.unit == "hour"
    meta = json.loads((path.parent / "meta.json").read_text())
    counts = meta["splits"][path.name.split(".")[0]]["type_counts"]
    assert np.bincount(read.event_types, minlength=types).tolist() == counts
    assert list(read.types) == meta["type_names"]


def test_real_csv():
    path = shared("data/nyc_taxi_raw_newyear2013/raw_sample.csv.gz")
    starts = read_events(
        path, stream="driverId", time="t1", type="action", start="2013-01-01", end="2013-01-01T01:45:05", unit="hour"
    )
    assert set(starts.types) <= {"START", "END"}
    assert "passengers" in starts.columns
