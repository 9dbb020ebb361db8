"""JSON Lines, EasyTPP records and pickles that cannot be read."""

import json
import pickle

import pytest

from retrodict.errors import DataError
from retrodict.events.io.easytpp import from_easytpp
from retrodict.events.io.read import read_events
from tests.events.test_malformed_tables import check

GOOD = '{"id": "a", "horizon": [0, 9], "times": [1, 2], "types": ["x", "y"]}\n'


def line(**changes: object) -> str:
    """The good line under the id "b", with some keys changed, or left out where the change is None."""
    value = json.loads(GOOD) | {"id": "b"} | changes
    return json.dumps({key: content for key, content in value.items() if content is not None})


JSONL = {
    "empty": ("", {}, ["bad.jsonl: the file is empty"]),
    "blank": ("\n \n", {}, ["bad.jsonl: there are no streams"]),
    "not JSON": (GOOD + "\n{nope\n", {}, ["bad.jsonl, row 3: the line is not JSON", "one complete JSON object"]),
    "cut off": (GOOD + GOOD[:30], {}, ["bad.jsonl, row 2: the line is not JSON"]),
    "nested too deep": ("[" * 100_000, {}, ["bad.jsonl, row 1: the line is not JSON"]),
    "a list": (GOOD + "[1, 2]\n", {}, ["bad.jsonl, row 2: the line holds a JSON list, not an object", '{"id"']),
    "null": ("null\n", {}, ["row 1: the line holds a JSON null"]),
    "no times": (GOOD + line(times=None), {}, ["bad.jsonl, stream 'b', row 2: the key 'times' is missing"]),
    "no types": (line(types=None), {}, ["stream 'b', row 1: the key 'types' is missing"]),
    "no horizon": (
        line(horizon=None),
        {},
        ["stream 'b', row 1: the key 'horizon' is missing", "or pass start= and end="],
    ),
    "horizon is a number": (line(horizon=5), {}, ["stream 'b', row 1: the horizon 5 is malformed", "two numbers"]),
    "horizon of three": (line(horizon=[0, 1, 2]), {}, ["stream 'b', row 1: the horizon [0, 1, 2] is malformed"]),
    "horizon of words": (line(horizon=["0", "9"]), {}, ["the horizon ['0', '9'] is malformed"]),
    "horizon backwards": (
        GOOD + line(horizon=[9, 0]),
        {},
        ["stream 'b', row 2: the stream ends at 0, before its start 9"],
    ),
    "horizon not finite": (
        line(horizon=[0, float("inf")]),
        {},
        ["stream 'b', row 1: the interval [0.0, inf] is not finite"],
    ),
    "backwards and empty": (
        GOOD + line(horizon=[9, 0], times=[], types=[]),
        {},
        ["stream 'b', row 2: the stream ends at 0"],
    ),
    "same id": (
        GOOD + "\n" + GOOD,
        {},
        ["bad.jsonl, stream 'a', row 3: the id was used already in row 1", "an id of its own"],
    ),
    "id is a list": (line(id=[1]), {}, ["row 1: the id [1] is not text or an integer"]),
    "times are text": (
        line(times=["1", "2"]),
        {},
        ["stream 'b', row 1: event 1: the time '1' in 'times' is not a number"],
    ),
    "a time is null": (line(times=[1, None]), {}, ["stream 'b', row 1: event 2: the time None"]),
    "a time is NaN": (
        GOOD + line(times=[1, float("nan")]),
        {},
        ["bad.jsonl, stream 'b', row 2: event 2: time is nan", "finite time"],
    ),
    "a time is infinite": (line(times=[1, float("inf")]), {}, ["stream 'b', row 1: event 2: time is inf"]),
    "a time is huge": (line(times=[1, 10**400]), {}, ["stream 'b', row 1: 'times' holds a number that is too large"]),
    "times are nested": (line(times=[[1, 2], [3, 4]]), {}, ["stream 'b', row 1: 'times' is not a flat list"]),
    "times are a number": (line(times=3), {}, ["'times' is not a flat list", "one entry for each event"]),
    "times too few": (line(times=[1]), {}, ["stream 'b', row 1: there are 1 times but 2 types", "exactly one"]),
    "time outside": (line(times=[1, 10]), {}, ["stream 'b', row 1: event 2: time 10 lies after the stream's end 9"]),
    "time outside end=": (line(), {"end": 1.5}, ["stream 'b', row 1: event 2: time 2 lies after the stream's end 1.5"]),
    "types are fractions": (
        line(types=[1, 1.5]),
        {},
        ["stream 'b', row 1: event 2: the type 1.5 in 'types' is not a name or an integer"],
    ),
    "types are null": (line(types=["x", None]), {}, ["event 2: the type None in 'types' is not a name"]),
    "types are mixed": (line(types=["x", 1]), {}, ["event 2: the type 1 in 'types' is not a str like the first"]),
    "types mixed by line": (
        GOOD + line(types=[0, 1]),
        {},
        ["stream 'b', row 2: event 1: some streams give types as names", "pass types="],
    ),
    "negative type": (line(types=[0, -1]), {}, ["stream 'b', row 1: event 2: type -1 is negative"]),
    "unknown name": (line(), {"types": ["x"]}, ["stream 'b', row 1: event 2: unknown type 'y'; known types are 'x'"]),
    "unknown index": (
        line(types=[0, 7]),
        {"types": ["x"]},
        ["stream 'b', row 1: event 2: unknown type 7; known types are 0 to 0"],
    ),
    "column too short": (line(columns={"fare": [1]}), {}, ["stream 'b', row 1: there are 2 times but 1 fare"]),
    "columns are a list": (line(columns=[1, 2]), {}, ["stream 'b', row 1: 'columns' is not an object of lists"]),
    "columns differ": (
        GOOD + line(columns={"fare": [1, 2]}),
        {},
        ["stream 'b', row 2: the extra columns are ['fare'], but [] in row 1"],
    ),
    "axis differs": (GOOD + line(axis={"unit": "hour"}), {}, ["row 2: 'axis' differs from that in row 1"]),
    "axis in no zone": (line(axis={"timezone": "Mars/Olympus"}), {}, ["row 1: 'axis' is malformed"]),
    "axis malformed": (line(axis={"origin": "x"}), {}, ["row 1: 'axis' is malformed"]),
    "unit contradicts": (
        line(axis={"unit": "hour", "origin": 0}),
        {"unit": "day"},
        ["unit= is 'day', but the times are counted in hours"],
    ),
    "column arguments": (GOOD, {"time": "when"}, ["bad.jsonl: time= was given, but JSON Lines has no columns"]),
    "zone": (GOOD, {"timezone": "UTC"}, ["bad.jsonl: timezone= was given, but JSON Lines has plain numbers"]),
    "end is a date": (GOOD, {"end": "2013-01-01"}, ["end= is '2013-01-01', but this format has plain numbers"]),
}


@pytest.mark.parametrize("name", JSONL)
def test_jsonl(name, tmp_path, monkeypatch):
    contents, arguments, pieces = JSONL[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text(contents)
    with pytest.raises(DataError) as error:
        read_events("bad.jsonl", **arguments)
    check(error, pieces)


def test_jsonl_that_is_binary(tmp_path):
    (tmp_path / "bad.jsonl").write_bytes(b"{\xff\xfe}")
    with pytest.raises(DataError) as error:
        read_events(tmp_path / "bad.jsonl")
    check(error, ["bad.jsonl: the file is not UTF-8 text (byte 1 is wrong)", "save it as UTF-8"])


META = {
    "not JSON": ("{", ["meta.json: this is not JSON", "repair or remove"]),
    "a list": ("[]", ["meta.json: this is not a JSON object"]),
    "empty": ("", ["meta.json: the file is empty"]),
    "names are a word": ('{"type_names": "xy"}', ["meta.json: 'type_names' is not a list of names"]),
    "names are numbers": ('{"type_names": [1, 2]}', ["meta.json: 'type_names' is not a list of names"]),
    "a name twice": ('{"type_names": ["x", "x"]}', ["meta.json: 'type_names' lists a name twice"]),
    "unit is a number": ('{"time_unit": 60}', ["meta.json: 'time_unit' is not a word"]),
}


@pytest.mark.parametrize("name", META)
def test_meta(name, tmp_path):
    contents, pieces = META[name]
    (tmp_path / "a.jsonl").write_text(GOOD)
    (tmp_path / "meta.json").write_text(contents)
    with pytest.raises(DataError) as error:
        read_events(tmp_path / "a.jsonl")
    check(error, pieces)
    assert read_events(tmp_path / "a.jsonl", types=["x", "y"], unit="hour").num_events == 2


def record(**changes: object) -> dict[str, object]:
    value = {"time_since_start": [0.0, 1.0], "type_event": [0, 1], "dim_process": 2, "seq_len": 2, "seq_idx": 7}
    return {key: content for key, content in (value | changes).items() if content is not None}


EVENT = {"time_since_start": 1.0, "type_event": 0}
EASYTPP = {
    "nothing": ([], {}, ["there are no streams"]),
    "a number": (5, {}, ["an object of type int does not hold EasyTPP records"]),
    "text": ("abc", {}, ["an object of type str does not hold EasyTPP records"]),
    "numbers": ([1, 2], {}, ["row 1: an object of type int is not an EasyTPP record"]),
    "no times": ([record(), record(time_since_start=None)], {}, ["row 2: the key 'time_since_start' is missing"]),
    "no types": ([record(type_event=None)], {}, ["row 1: the key 'type_event' is missing"]),
    "same index": ([record(), record()], {}, ["stream 7, row 2: the id was used already in row 1"]),
    "index is a list": ([record(seq_idx=[1])], {}, ["row 1: seq_idx is [1], not an integer"]),
    "length": ([record(seq_len=3)], {}, ["stream 7, row 1: seq_len is 3, but there are 2 times"]),
    "unequal": ([record(type_event=[0])], {}, ["stream 7, row 1: there are 2 times but 1 types"]),
    "type too high": (
        [record(type_event=[0, 2])],
        {},
        ["stream 7, row 1: event 2: unknown type 2; known types are 0 to 1"],
    ),
    "no dimension": ([record(dim_process="two")], {}, ["row 1: the number of types (dim_process) is 'two'"]),
    "absurd dimension": (
        [record(dim_process=10**12)],
        {},
        ["row 1: the number of types (dim_process) is 1000000000000"],
    ),
    "two dimensions": (
        [record(), record(dim_process=3, seq_idx=8)],
        {},
        ["row 2: the number of types (dim_process) is 3, but 2 before"],
    ),
    "names do not fit": ([record()], {"types": ["x"]}, ["types= has 1 names, but there are 2 types"]),
    "empty, no end": (
        [record(time_since_start=[], type_event=[], seq_len=0)],
        {},
        ["stream 7, row 1: an empty stream needs an end"],
    ),
    "negative time": (
        [record(time_since_start=[-1.0, 1.0])],
        {},
        ["stream 7, row 1: event 1: time -1 lies before the stream's start 0"],
    ),
    "several splits": (
        {"train": [[EVENT]], "dev": [[EVENT]]},
        {},
        ["there are several splits: train, dev", 'split="train"'],
    ),
    "no such split": ({"train": [[EVENT]]}, {"split": "dev"}, ["there is no split 'dev'; there are train"]),
    "no split at all": ({"args": None, "train": []}, {}, ["no streams were found; the keys are 'args', 'train'"]),
    "event without type": (
        {"train": [[EVENT], [EVENT, {"time_since_start": 1.0}]]},
        {},
        ["stream 1, row 2: event 2 has no 'type_event'"],
    ),
    "event is a number": ({"train": [[1.5]]}, {}, ["stream 0, row 1: event 1 has no 'time_since_start'"]),
    "stream is a number": ({"train": [[EVENT], 5]}, {}, ["row 2: an object of type int is not a list of events"]),
    "boundary in the middle": (
        {
            "dim_process": 2,
            "train": [[EVENT, {"time_since_start": 2.0, "type_event": 2}, EVENT | {"time_since_start": 3.0}]],
        },
        {},
        ["stream 0, row 1: event 2: unknown type 2; known types are 0 to 1"],
    ),
}


@pytest.mark.parametrize("name", EASYTPP)
def test_easytpp(name):
    records, arguments, pieces = EASYTPP[name]
    with pytest.raises(DataError) as error:
        from_easytpp(records, **arguments)
    check(error, pieces)


def test_easytpp_file_that_is_not_json(tmp_path):
    (tmp_path / "a.json").write_text("[{")
    with pytest.raises(DataError) as error:
        read_events(tmp_path / "a.json")
    check(error, ["a.json: this is not JSON"])


PICKLES = {
    "truncated": (
        pickle.dumps({"seqs": [[EVENT]]})[:-5],
        ["bad.pkl: this is not a pickle, or it is cut off or damaged"],
    ),
    "junk": (b"\x80\x04junk", ["bad.pkl: this is not a pickle"]),
    "text": (b"hello", ["bad.pkl: this is not a pickle"]),
    "empty": (b"", ["bad.pkl: the file is empty"]),
    "a number": (pickle.dumps(5), ["bad.pkl: an object of type int does not hold EasyTPP records"]),
    "other keys": (pickle.dumps({"a": 1}), ["bad.pkl: no streams were found; the keys are 'a'"]),
}


@pytest.mark.parametrize("name", PICKLES)
def test_pickle(name, tmp_path, monkeypatch):
    contents, pieces = PICKLES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.pkl").write_bytes(contents)
    with pytest.raises(DataError) as error:
        read_events("bad.pkl")
    check(error, pieces)
