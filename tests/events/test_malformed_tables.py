"""Tables that cannot be read: each error says where it is, what is wrong and what to do."""

import datetime
import gzip
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retrodict.errors import DataError
from retrodict.events.io.read import read_events

HEADER = "stream,time,type\n"

# name: (contents, arguments, pieces of the message in order)
CSV = {
    "zero bytes": ("", {}, ["bad.csv: the file is empty", "Remedy: give a file"]),
    "header only": (HEADER, {}, ["bad.csv: there are no rows", "Remedy: give a table with at least one event"]),
    "blank lines only": ("\n\n\n", {}, ["bad.csv: the file is empty"]),
    "no stream column": (
        "who,time,type\na,1,x\n",
        {},
        [
            "bad.csv: there is no column 'stream'; the columns are 'who', 'time', 'type'",
            'pass stream="..."',
            "stream=False",
        ],
    ),
    "no time column": (
        "stream,type\na,x\n",
        {},
        ["no column 'time'; the columns are 'stream', 'type'", 'pass time="..."'],
    ),
    "no type column": ("stream,time\na,1\n", {}, ["no column 'type'", 'pass type="..."', "says what happened"]),
    "named column absent": (HEADER + "a,1,x\n", {"time": "when"}, ["no column 'when' (time=); the columns are"]),
    "end column absent": (
        HEADER + "a,1,x\n",
        {"end": "finish"},
        ["no column 'finish' (end=)", "a number or a datetime"],
    ),
    "two columns of one name": ("stream,time,time\na,1,2\n", {}, ["two columns are named 'time'", "a name of its own"]),
    "semicolons": (
        "stream;time;type\na;1;x;y\n",
        {},
        ["4 fields, but the header has 3", "fields that hold semicolons"],
    ),
    "too few fields": (HEADER + "a,1,x\nb,2\n", {}, ["bad.csv, row 2: the row has 2 fields, but the header has 3"]),
    "too many fields": (
        HEADER + "a,1,x\nb,2,y\nc,1,2,3\n",
        {},
        ["bad.csv, row 3: the row has 4 fields", "double quotes"],
    ),
    "missing id": (HEADER + "a,1,x\n,2,x\n", {}, ["bad.csv, row 2: column 'stream': the stream id is missing"]),
    "missing time": (
        HEADER + "a,1,x\nb,1,x\na,,y\n",
        {},
        ["bad.csv, stream 'a', row 3: the row has a type but no time", "fill in the time or drop the row"],
    ),
    "NaN time": (
        HEADER + "a,1,x\na,NaN,y\n",
        {},
        ["bad.csv, stream 'a', row 2: ", "no time (column 'time' is empty or NaN)"],
    ),
    "missing type": (
        HEADER + "a,1,x\na,2,\n",
        {},
        ["stream 'a', row 2: the row has a time but no type", "fill in the type"],
    ),
    "infinite time": (HEADER + "b,0,x\na,inf,x\n", {}, ["bad.csv, stream 'a', row 2: time is inf", "finite time"]),
    "minus infinity": (HEADER + "a,-inf,x\n", {}, ["stream 'a', row 1: time is -inf"]),
    "time is a word": (
        HEADER + "b,0,x\na,1,x\na,soon,x\n",
        {},
        ["stream 'a', row 3: column 'time': cannot read 'soon' as a time", "ISO 8601"],
    ),
    "time is NA": (HEADER + "a,1,x\na,NA,x\n", {}, ["stream 'a', row 2: column 'time': cannot read 'NA' as a time"]),
    "date that is none": (
        HEADER + "a,2013-02-28,x\na,2013-02-30,x\n",
        {},
        ["stream 'a', row 2", "cannot read '2013-02-30' as a time"],
    ),
    "American date": (
        HEADER + "a,12/31/2013 10:00,x\n",
        {},
        ["cannot read '12/31/2013 10:00' as a time", "pass dates='day-first' if days come first", "ISO 8601"],
    ),
    "word among zoned dates": (
        HEADER + "a,2013-01-01T00:00Z,x\na,later,x\n",
        {},
        ["row 2: column 'time': cannot read 'later'"],
    ),
    "number among dates": (HEADER + "a,2013-01-01,x\na,5,x\n", {}, ["row 2: column 'time': cannot read '5'"]),
    "year out of range": (HEADER + "a,3013-01-01,x\n", {}, ["row 1: column 'time': cannot read '3013-01-01'"]),
    "naive and aware": (
        HEADER + "a,2013-01-01T00:00:00Z,x\nb,2013-01-01T00:00:00,x\n",
        {},
        [
            "bad.csv, stream 'b', row 2: column 'time' mixes times in UTC with times in no time zone",
            'timezone="UTC"',
        ],
    ),
    "two offsets": (
        HEADER + "a,2013-01-01T00:00:00+01:00,x\na,2013-07-01T00:00:00+02:00,x\n",
        {},
        ["stream 'a', row 2: column 'time' mixes times in +01:00 with times in +02:00", 'timezone="UTC"'],
    ),
    "hour that happened twice": (
        HEADER + "a,2013-11-03T00:30,x\na,2013-11-03T01:30,x\n",
        {"timezone": "America/New_York"},
        ["stream 'a', row 2: column 'time': 2013-11-03 01:30:00 happened twice in America/New_York", "offset"],
    ),
    "hour that never was": (
        HEADER + "a,2013-03-10T02:30,x\n",
        {"timezone": "America/New_York"},
        ["stream 'a', row 1: column 'time': 2013-03-10 02:30:00 never happened in America/New_York"],
    ),
    "unknown zone": (
        HEADER + "a,2013-03-10,x\n",
        {"timezone": "Mars/Olympus"},
        ["bad.csv: timezone= is 'Mars/Olympus'", '"Europe/Berlin"'],
    ),
    "zone for numbers": (
        HEADER + "a,1,x\n",
        {"timezone": "UTC"},
        ["bad.csv: timezone= was given, but column 'time' holds numbers"],
    ),
    "zone is no text": (HEADER + "a,1,x\n", {"timezone": 1}, ["timezone= is 1"]),
    "unit that dates cannot have": (
        HEADER + "a,2013-03-10,x\n",
        {"unit": "fortnight"},
        ["unit 'fortnight'", "use one of", "hour"],
    ),
    "before the default start": (
        HEADER + "a,1,x\nb,-1,x\n",
        {},
        ["bad.csv, stream 'b', row 2: time -1 lies before the stream's start 0 (start was taken as 0)", "pass start="],
    ),
    "after the end column": (
        "stream,time,type,end\nb,1,x,2\na,3,x,2\n",
        {},
        ["bad.csv, stream 'a', row 2: time 3 lies after the stream's end 2.", "pass end="],
    ),
    "after the end given": (
        HEADER + "a,1,x\na,3,x\n",
        {"end": 2},
        ["stream 'a', row 2: time 3 lies after the stream's end 2"],
    ),
    "before the start given": (
        HEADER + "a,1,x\n",
        {"start": 1.5, "end": 2},
        ["row 1: time 1 lies before the stream's start 1.5"],
    ),
    "date before start": (
        HEADER + "a,2013-01-01,x\n",
        {"start": datetime.datetime(2013, 1, 2)},
        ["row 1: time 2013-01-01 00:00:00 lies before the stream's start 2013-01-02 00:00:00"],
    ),
    "end before start": (
        "stream,time,type,start,end\na,1,x,0,2\nb,1,x,3,0.5\n",
        {},
        ["bad.csv, stream 'b', row 2: the stream ends at 0.5, before its start 3", "swap or correct"],
    ),
    "end is NaN": (HEADER + "a,1,x\n", {"end": float("nan")}, ["the interval [0.0, nan] is not finite"]),
    "end is infinite": (
        HEADER + "a,1,x\n",
        {"end": float("inf")},
        ["stream 'a', row 1: the interval [0.0, inf] is not finite"],
    ),
    "end is a boolean": (HEADER + "a,1,x\n", {"end": True}, ["end= is True, which is neither a column nor a time"]),
    "end is nonsense": (HEADER + "a,1,x\n", {"end": "5 o'clock"}, ['end=: cannot read "5 o\'clock" as a time']),
    "end differs": (
        "stream,time,type,end\na,1,x,2\nb,1,x,4\na,1,x,3\n",
        {},
        [
            "bad.csv, stream 'a', row 3: column 'end' differs from its value in row 1",
            "one value for each stream",
            "table['stream'].astype(str) + ' ' + table['end'].astype(str)",
        ],
    ),
    "end empty": ("stream,time,type,end\na,1,x,2\na,1,x,\n", {}, ["stream 'a', row 2: column 'end' is empty"]),
    "end is a word": (
        "stream,time,type,end\na,1,x,2\na,1,x,x\n",
        {},
        ["stream 'a', row 2: column 'end': cannot read 'x' as a time"],
    ),
    "dates and a number": (
        HEADER + "a,2013-01-01,x\n",
        {"start": 0},
        ["column 'time' holds datetimes, but start= holds numbers"],
    ),
    "numbers and a date": (
        HEADER + "a,1,x\n",
        {"end": "2013-01-01"},
        ["column 'time' holds numbers, but end= holds datetimes"],
    ),
    "naive dates, aware end": (
        HEADER + "a,2013-01-01,x\n",
        {"end": datetime.datetime(2014, 1, 1, tzinfo=datetime.UTC)},
        ["column 'time' has times in no time zone, but end= has times in UTC", 'timezone="UTC"'],
    ),
    "empty stream without end": (
        HEADER + "a,1,x\nb,,\n",
        {},
        ["bad.csv, stream 'b', row 2: the row declares an empty stream", "pass end="],
    ),
    "empty row in a full stream": (
        "stream,time,type,end\na,1,x,3\na,,,3\n",
        {},
        ["stream 'a', row 2: the row has neither time nor type"],
    ),
    "unknown type": (
        HEADER + "a,1,up\na,2,sideways\n",
        {"types": ["up", "down"]},
        ["bad.csv, stream 'a', row 2: unknown type 'sideways'; known types are 'up', 'down'", "add it to types="],
    ),
    "index past the vocabulary": (
        HEADER + "a,1,0\na,2,2\n",
        {"types": ["up", "down"]},
        ["stream 'a', row 2: unknown type 2; known types are 0 to 1 ('up', 'down')"],
    ),
    "negative type": (HEADER + "a,1,0\na,2,-1\n", {}, ["stream 'a', row 2: type -1 is negative", "count from 0"]),
    "fractional type": (HEADER + "a,1,0\na,2,1.5\n", {}, ["stream 'a', row 2: type 1.5 is not a whole number"]),
    "vocabulary is a word": (HEADER + "a,1,x\n", {"types": "xyz"}, ["types= is 'xyz', not a list of names"]),
    "vocabulary repeats": (HEADER + "a,1,x\n", {"types": ["x", "x"]}, ["types= lists 'x' twice"]),
}


def check(error: pytest.ExceptionInfo[DataError], pieces: list[str]) -> None:
    text = str(error.value)
    assert re.search(".*".join(map(re.escape, pieces)), text, re.DOTALL), text
    assert "Remedy: " in text
    assert text.endswith(".")


@pytest.mark.parametrize("name", CSV)
def test_csv(name, tmp_path, monkeypatch):
    contents, arguments, pieces = CSV[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text(contents)
    with pytest.raises(DataError) as error:
        read_events("bad.csv", **arguments)
    check(error, pieces)


GOOD = (HEADER + "a,1,x\n" * 200).encode()
GOOD_PARQUET = pa.BufferOutputStream()
pq.write_table(pa.table({"stream": ["a"] * 50, "time": [1.0] * 50, "type": ["x"] * 50}), GOOD_PARQUET)
GOOD_PARQUET = GOOD_PARQUET.getvalue().to_pybytes()

FILES = {
    "not UTF-8": ("a.csv", b"stream,time,type\n\xff\xfe,1,x\n", ["a.csv: the file is not UTF-8 text", "UTF-8"]),
    "binary junk": (
        "a.csv",
        bytes(np.random.default_rng(0).integers(256, size=3000, dtype=np.uint8)),
        ["a.csv: the file is not UTF-8"],
    ),
    "truncated gzip": ("a.csv.gz", gzip.compress(GOOD)[:-20], ["a.csv.gz: the gzip file is cut off", "again"]),
    "not a gzip": ("a.csv.gz", GOOD, ["a.csv.gz: the name ends in .gz, but", "remove .gz"]),
    "damaged gzip": ("a.csv.gz", gzip.compress(GOOD)[:12] + b"\0\xff" * 30, ["a.csv.gz: ", "gzip"]),
    "empty gzip": ("a.csv.gz", b"", ["a.csv.gz: the file is empty"]),
    "gzip of nothing": ("a.csv.gz", gzip.compress(b""), ["a.csv.gz: the file is empty"]),
    "empty parquet": ("a.parquet", b"", ["a.parquet: the file is empty"]),
    "not a parquet": ("a.parquet", GOOD, ["a.parquet: this is not a Parquet file", "or pass format="]),
    "truncated parquet": ("a.parquet", GOOD_PARQUET[:-30], ["a.parquet: this is not a Parquet file, or it is cut off"]),
    "parquet without its head": ("a.parquet", b"PAR1" + GOOD_PARQUET[200:], ["a.parquet: this is not a Parquet file"]),
    "unknown suffix": (
        "a.xlsx",
        GOOD,
        ["a.xlsx: the suffix '.xlsx' stands for no known format", ".parquet", "format="],
    ),
    "no suffix": ("events", GOOD, ["events: the name has no suffix"]),
}


@pytest.mark.parametrize("name", FILES)
def test_file(name, tmp_path):
    file, contents, pieces = FILES[name]
    (tmp_path / file).write_bytes(contents)
    with pytest.raises(DataError) as error:
        read_events(tmp_path / file)
    check(error, [str(tmp_path), *pieces])


def test_paths_that_are_no_files(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    for path in (tmp_path, tmp_path / "folder.parquet"):
        with pytest.raises(DataError) as error:
            read_events(path)
        check(error, [str(path), "this is a folder that holds no Parquet shards", "MEDS"])
    for name in ("none.csv", "none.parquet", "none.jsonl", "none.pkl", "none.json"):
        with pytest.raises(DataError) as error:
            read_events(tmp_path / name)
        check(error, [name, "there is no such file", "check the path"])


def frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"stream": ["a", "b"], "time": [1.0, 2.0], "type": ["x", "y"], "end": [5.0, 5.0]} | columns)


UTC = datetime.UTC
FRAMES = {
    "durations": (frame(time=pd.to_timedelta([1, 2], "s")), ["column 'time' holds durations", "total_seconds"]),
    "times are booleans": (frame(time=[True, False]), ["column 'time' holds bool values, which cannot be times"]),
    "times are lists": (frame(time=[[1.0], [2.0]]), ["stream 'a', row 1: column 'time': cannot read '[1.0]'"]),
    "times are complex": (frame(time=[1j, 2j]), ["column 'time' holds complex128 values", "convert"]),
    "times are periods": (
        frame(time=pd.period_range("2013", periods=2, freq="D")),
        ["column 'time' holds period[D] values"],
    ),
    "times too long for float64": (
        frame(time=[2**53 + 1, 5]),
        ["stream 'a', row 1: column 'time': 9007199254740993 has more digits"],
    ),
    "ids of two kinds": (frame(stream=["a", 1]), ["column 'stream' holds both str and int values", "astype(str)"]),
    "types of two kinds": (frame(type=["x", 1]), ["column 'type' holds both str and int values"]),
    "types are dates": (
        frame(type=pd.to_datetime(["2013-01-01"] * 2)),
        ["column 'type' holds timestamp[", "values, which cannot be types"],
    ),
    "types are fractions": (frame(type=[1.0, 0.5]), ["stream 'b', row 2: type 0.5 is not a whole number"]),
    "negative types": (frame(type=[1, -3]), ["stream 'b', row 2: type -3 is negative"]),
    "naive and aware objects": (
        frame(time=pd.Series([datetime.datetime(2013, 1, 1, tzinfo=UTC), datetime.datetime(2013, 1, 2)], dtype=object)),
        ["stream 'b', row 2: column 'time' mixes times in UTC with times in no time zone", 'timezone="UTC"'],
    ),
    "ids missing": (frame(stream=["a", None]), ["row 2: column 'stream': the stream id is missing"]),
    "NaN time": (frame(time=[1.0, np.nan]), ["stream 'b', row 2: the row has a type but no time"]),
    "NaT": (
        frame(time=pd.to_datetime(["2013-01-01", None]), end=pd.to_datetime(["2014-01-01"] * 2)),
        ["stream 'b', row 2: the row has a type but no time"],
    ),
    "no rows": (frame().iloc[:0], ["there are no rows"]),
    "dates too far": (
        frame(time=np.array(["2013-01-01", "9999-12-31"], "M8[s]"), end=np.array(["9999-12-31"] * 2, "M8[s]")),
        ["9999-12-31 00:00:00 lies outside the years 1678 to 2261"],
    ),
    "dates too far apart": (
        frame(time=pd.to_datetime(["1700-01-01", "2200-01-01"]), end=pd.to_datetime(["2200-01-01"] * 2)),
        ["spans more than 292 years"],
    ),
    "polars lists": (
        pl.DataFrame({"stream": [[1]], "time": [1.0], "type": ["x"]}),
        ["column 'stream' holds large_list", "cannot be stream ids"],
    ),
    "polars NaN": (
        pl.DataFrame({"stream": [7, 7], "time": [1.0, float("nan")], "type": ["x", "y"]}),
        ["stream 7, row 2: the row has a type but no time"],
    ),
    "polars objects": (
        pl.DataFrame({"stream": [1], "time": [1.0], "type": pl.Series([object()], dtype=pl.Object)}),
        ["column 'type' holds", "cannot be types"],
    ),
    "arrow structs": (
        pa.table({"stream": [1], "time": [{"a": 1}], "type": ["x"]}),
        ["column 'time' holds struct<a: int64> values"],
    ),
    "an array": (np.zeros((2, 3)), ["cannot read events from an object of type ndarray", "give a path"]),
    "a series": (pd.Series([1.0]), ["cannot read events from an object of type Series"]),
    "nothing": (None, ["cannot read events from an object of type NoneType"]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frame(name):
    source, pieces = FRAMES[name]
    with pytest.raises(DataError) as error:
        read_events(source)
    check(error, pieces)


def test_rows_are_those_of_the_source_before_sorting():
    table = frame().iloc[[1, 0, 1, 0]].assign(time=[4.0, 3.0, 1.0, 9.0])
    with pytest.raises(DataError) as error:
        read_events(table)
    check(error, ["stream 'a', row 4: time 9 lies after the stream's end 5"])


def test_format_that_is_unknown(tmp_path):
    with pytest.raises(DataError) as error:
        read_events(tmp_path / "a.csv", format="excel")
    check(error, ["unknown format 'excel'", "csv, parquet, jsonl"])


def test_unknown_zone_in_a_file(tmp_path):
    times = pa.array([0], pa.timestamp("us", "Mars/Olympus"))
    pq.write_table(pa.table({"stream": ["a"], "time": times, "type": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError) as error:
        read_events(tmp_path / "a.parquet")
    check(error, ["a.parquet: the time zone of column 'time' is 'Mars/Olympus', which is not a known time zone"])


def test_text_in_a_file_that_is_not_utf8(tmp_path):
    text = pa.array([b"\xff\xfe"]).view(pa.string())
    pq.write_table(pa.table({"stream": text, "time": [1.0], "type": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError) as error:
        read_events(tmp_path / "a.parquet")
    check(error, ["a.parquet: this is not a Parquet file, or it is cut off or damaged"])


def test_damaged_metadata(tmp_path):
    table = pa.table({"stream": ["a"], "time": [1.0], "type": ["x"], "end": [2.0]})
    for damage in (
        b"{",
        b"[]",
        b'{"types": 1}',
        b'{"types": [], "axis": {"origin": "x"}}',
        b'{"types": [], "axis": {"timezone": "Mars"}}',
    ):
        pq.write_table(table.replace_schema_metadata({b"retrodict": damage}), tmp_path / "a.parquet")
        with pytest.raises(DataError) as error:
            read_events(tmp_path / "a.parquet")
        check(error, ["a.parquet: the 'retrodict' entry of the schema metadata is damaged"])


def test_a_column_of_types_that_is_nearly_empty_is_probably_another():
    table = pd.DataFrame({"stream": ["a"] * 4, "time": [1.0, 2.0, 3.0, 4.0], "type": ["u", None, None, None]})
    with pytest.raises(DataError, match="pass type= with another column: most rows have nothing in this one"):
        read_events(table)
    with pytest.raises(DataError, match="fill in the type or drop the row"):
        read_events(table.assign(type=["u", None, "v", "u"]))
