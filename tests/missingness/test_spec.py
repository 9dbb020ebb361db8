"""Mechanisms from YAML files and from the command line's words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import retrodict as rd
from retrodict.errors import DataError
from retrodict.missingness import After, ByType, Either, ReportingDelay, TimeVarying, Windows
from retrodict.missingness.spec import parse_missing, read_missing

DOCS = Path(__file__).resolve().parents[2] / "docs" / "missing"
TYPES = ["door:a", "call", "case", "death", "crash", "message:x"]


has_docs = pytest.mark.skipif(not DOCS.exists(), reason="no docs beside the tests")


@pytest.mark.parametrize("file", sorted(DOCS.glob("*.yaml")), ids=lambda f: f.name)
def test_the_examples_of_the_docs_are_mechanisms(file):
    mechanism = rd.read_missing(file).bind(TYPES, "hour")
    stream = rd.EventStream(np.arange(6.0), np.arange(6), end=7.0, id="north-7")
    rates = mechanism.event_rates(rd.StreamSet([stream], types=TYPES))
    assert ((rates >= 0) & (rates <= 1)).all()


@has_docs
def test_files_say_what_python_would():
    kinds = {file.stem: type(read_missing(file)) for file in DOCS.glob("*.yaml")}
    assert kinds == {
        "shares": ByType,
        "outages": Windows,
        "nights": Either,
        "time-of-day": TimeVarying,
        "delays": Either,
        "after-a-crash": Either,
    }
    outages = read_missing(DOCS / "outages.yaml")
    assert outages.windows == [["2024-03-01T08:00", "2024-03-01T10:00"]]
    assert list(outages.by_stream) == ["north-7"]
    lost, crash = read_missing(DOCS / "after-a-crash.yaml").parts
    assert isinstance(lost, ByType)
    assert isinstance(crash, After)
    assert crash.bind(TYPES, "hour").reach == 0.5
    case, death = read_missing(DOCS / "delays.yaml").parts
    assert isinstance(case, ReportingDelay)
    assert death.bind(TYPES, "hour").config()["median"] == {"death": pytest.approx(120.0)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rates: 0.5", "the key 'mechanism' is missing. Remedy: write 'mechanism: NAME' with one of by_type, windows"),
        ("", "the key 'mechanism' is missing"),
        ("- 0.5", "entry 1, the key 'mechanism' is missing"),
        ("mechanism: window", "key 'mechanism': there is no mechanism 'window'"),
        ("mechanism: custom", "there is no mechanism 'custom'"),
        (
            "mechanism: windows\nwindow: [[1, 2]]",
            "key 'window': windows takes no such argument. Remedy: use some of wind",
        ),
        ("mechanism: by_type", "key 'rates' is missing"),
        ("mechanism: after\ntrigger: a", "key 'within' is missing"),
        ("- mechanism: by_type\n  rates: {a: 2}", "entry 1, mechanism 'by_type': the missing rate of 'a' is 2"),
        ("mechanism: windows\nwindows: [[8, half]]", "mechanism 'windows': a window is 'half', which is no time"),
        ("mechanism: windows\nwindows: 5", "mechanism 'windows': the windows are 5. Give a list of pairs"),
        ("mechanism: [", "this is no YAML, line 1"),
        ("mechanism: !!python/object/apply:os.getcwd []", "this is no YAML"),
        ("mechanism: by_type\nrates: {lunch: 0.5}", "no event type 'lunch' to give a missing rate to"),
        ("mechanism: windows\nwindows: [[08:00, 09:00]]\nevery: day", "not known in which unit the streams' times are"),
    ],
)
def test_errors_name_the_file_and_the_key(text, message, tmp_path):
    file = tmp_path / "missing.yaml"
    file.write_text(text)
    with pytest.raises(DataError) as refused:
        parse_missing([str(file)], TYPES)
    assert str(refused.value).startswith(str(file))
    assert message in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.yaml: cannot be read: No such file or directory"):
        parse_missing([str(tmp_path / "nowhere.yaml")], TYPES)


def test_rates_and_files_work_together(tmp_path):
    file = tmp_path / "night.yml"
    file.write_text("mechanism: windows\nwindows: [[22:00, 6:00]]\nevery: day\ntypes: call")
    both = parse_missing(["0.1", str(file), "call=0.5"], TYPES, "hour")
    assert isinstance(both, Either)
    assert both.parts[0].vector.tolist() == [0.1, 0.5, 0.1, 0.1, 0.1, 0.1]
    assert both.parts[1].bounds.tolist() == [[[22.0, 24.0], [0.0, 6.0]]]
