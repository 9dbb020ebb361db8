"""Slips of the hand are named: a folder or a type that is misspelt, swapped arguments, a rate in per cent."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app, common

runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
MODEL = rd.Poisson([1.0, 0.5, 0.3])
MODEL.types = ("blood test", "round", "start")
ROWS = "stream,time,type\ns,1,round\nt,2,round\ns,3,start\ns,4,ruond\n"
LINES = '{"id": "s", "times": [1, 4], "types": ["round", "ruond"], "horizon": [0, 5]}\n'
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("meant")
    MODEL.save(folder / "model")
    rd.write_events(rd.simulate(MODEL, 4, end=5.0, seed=1), folder / "seen.csv")
    (folder / "wrong.csv").write_text(ROWS)
    (folder / "wrong.jsonl").write_text(LINES)
    return folder


@pytest.fixture
def unread(monkeypatch):
    """Nothing is to be read."""

    def read(*_: object, **__: object) -> None:
        raise AssertionError("something was read")

    monkeypatch.setattr(common.Columns, "read", read)
    monkeypatch.setattr("retrodict.cli.impute.read_or_chunk", read)
    monkeypatch.setattr("retrodict.models.model_folder.load_model", read)


def refused(*words: object) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, rd.RetrodictError), result.output
    return common.in_options(str(result.exception))


@pytest.mark.parametrize("command", ["impute", "check", "score", "smoother", "learn-missing"])
def test_swapped_arguments_are_named_before_anything_is_read(command, here, unread):
    more = ["-m", "0.5", "-o", here / "out.csv"] if command in ("impute", "learn-missing") else []
    said = refused(command, here / "seen.csv", here / "model", *more)
    assert said.startswith(f"the arguments seem swapped: {here / 'model'} is the folder of a model, and ")
    assert said.endswith(
        f"The model's folder comes first: retrodict {command} {here / 'model'} {here / 'seen.csv'} ..."
    )
    said = refused(command, here / "seen.csv", here / "seen.csv", *more)
    assert "is a file, not the folder of a model. The model's folder comes first, then the file with events" in said


def test_a_folder_that_is_not_there_is_named_before_anything_is_read(here, unread):
    for words in (["check", here / "modle", here / "seen.csv"], ["simulate", here / "modle", "-o", here / "out.csv"]):
        assert refused(*words) == f"{here / 'modle'}: there is no such folder. Did you mean {here / 'model'}/?"


@pytest.mark.parametrize("more", [[], ["--chunk-streams", 1]])
def test_an_unknown_type_is_named_with_its_file_its_row_and_what_was_meant(more, here, tmp_path):
    said = refused("impute", here / "model", here / "wrong.csv", "-m", 0.5, "-o", tmp_path / "out.csv", *more)
    assert said.startswith(f"{here / 'wrong.csv'}, stream 's', row 4: unknown type 'ruond'; known types are 'blood")
    assert said.endswith("correct the type (did you mean 'round'?), or use a model that was trained with it.")


def test_an_unknown_type_in_a_list_of_events_is_named_by_its_place(here):
    said = refused("score", here / "model", here / "wrong.jsonl")
    assert said.startswith(f"{here / 'wrong.jsonl'}, stream 's': event 2: unknown type 'ruond'; ")


def test_an_example_has_a_type_of_the_model(here, tmp_path):
    words = ["impute", here / "model", here / "seen.csv", "-o", tmp_path / "out.csv"]
    assert "Give --missing, such as --missing 'blood test=0.5', or train" in refused(*words)
    assert "Write NAME=RATE, such as 'blood test=0.5' (not 50%)" in refused(*words, "-m", "half")


def test_a_type_may_have_the_name_of_an_option():
    text = "such as --missing start=0.5, or NAME=RATE, such as end=0.5 (not 50%)"
    assert common.in_options(text) == text
    assert common.in_options("such as timezone='Europe/Berlin'") == "such as --timezone Europe/Berlin"


def test_a_rate_in_per_cent_and_a_misspelt_type_are_told_what_to_write(here, tmp_path):
    words = ["impute", here / "model", here / "seen.csv", "-o", tmp_path / "out.csv", "-m"]
    said = refused(*words, "round=40")
    assert said.startswith("the missing rate of 'round' is 40.0. ")
    assert said.endswith("to 1 (always missing), such as 0.4 for 40 %.")
    assert refused(*words, "ruond=0.4").endswith("Did you mean 'round'?")
