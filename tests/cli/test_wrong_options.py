"""A wrong option of any command is refused with the remedy, before any work begins and before anything is written."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app, common, load
from retrodict.smc.engines import ENGINES

runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
COMMANDS = {name: load(name) for name in typer.main.get_command(app).commands}  # type: ignore[attr-defined]
# Options that cannot be wrong: they are on or off, or any text is right.
FREE = {
    *(
        "unit",
        "resume",
        "title",
        "tradeoff",
        "filtering",
        "sensitivity",
        "learn_missing",
        "types",
        "keep",
        "in_full",
        "help",
    ),
    "access_log",
    "cut",
}


WRITE = {"--output /nowhere/x.csv": "cannot write: No such file", "--output {here}/x.xls": "stands for no known format"}
FOLDER = {"--output {here}/streams.csv": "cannot make this folder"}
MODEL = {"{model}": ("{here}", "is not a saved model: there is no model.json in it")}
FILE = {"{file}": ("{here}/nowhere.csv", "there is no such file. Remedy: check the path")}
MISSING = {
    "-m lunch=0.5": "no event type matches 'lunch'. The types are 'a', 'b'",
    "-m a=2": "A rate is a probability: give a number from 0",
    "-m pick-up=0,4": "cannot understand the missing rate 'pick-up=0,4': it has a comma. Use a point, pick-up=0.4.",
    "-m half": "cannot understand the missing rate 'half'. Write NAME=RATE",
    "-m {here}/nowhere.yaml": "give a YAML file that describes a mechanism",
}
COLUMNS = {
    "--stream taxi": "there is no column 'taxi' (--stream); the columns are",
    "--time when": "there is no column 'when' (--time)",
    "--type what": "there is no column 'what' (--type)",
    "--dates sideways": "--dates is 'sideways', which is no form of dates. Remedy: use day-first, month-first, or a",
    "--encoding klingon": "--encoding is 'klingon', which is no encoding of text. Remedy: give a known one",
    "--start before": "there is no column 'before' (--start)",
    "--end after": "there is no column 'after' (--end)",
    "--timezone Mars/Phobos": "Mars/Phobos",
    "--codes LAB": "cannot understand --codes 'LAB'. Remedy: give a number, PATTERN=TYPE or a .json file",
    "--codes 2": "--codes is for MEDS tables alone",
    "--lifecycle sometimes": "--lifecycle is 'sometimes'. Remedy: use one of complete, transition, all",
}
SEED = {"--seed -1": "Invalid value for '--seed'"}


@pytest.mark.parametrize(
    ("command", "option", "whole"),
    [
        ("decode", "--cost", False),
        ("report", "--cost", False),
        ("evaluate", "--tolerance", False),
        ("impute", "--particles", True),
    ],
)
def test_an_option_that_is_no_number_is_told_what_it_must_be(command, option, whole):
    result = runner.invoke(app, [command, "a", "b", "-o", "c", option, "20min"])
    said = " ".join(result.output.replace("│", " ").split())
    assert result.exit_code == 2
    assert f"'{option}': it must be a {'whole ' if whole else ''}number, such as 20" in said
    assert ("the unit of the table's times, which --unit sets" in said) != whole
    assert "Input should be" not in said


DEVICE = {
    "--device gpu": "unknown device 'gpu'. Choose auto, cpu or cuda",
    "--device cuda": "there is no CUDA device here",
}
TRAINING = {
    "--epochs 0": "Invalid value for '--epochs'",
    "--seconds 0": "--seconds must be a positive number, but is 0",
    "--seconds nan": "--seconds must be a positive number, but is nan",
    "--patience 0": "Invalid value for '--patience'",
    "--batch-size 0": "Invalid value for '--batch-size'",
    "--learning-rate -1": "--learning-rate must be a positive number, but is -1",
    "--dev {here}/nowhere.csv": "there is no such file",
    **DEVICE,
    **SEED,
}
TOGETHER = {
    "--devices 0": "Invalid value for '--devices'",
    "--nodes 0": "Invalid value for '--nodes'",
    "--devices 2 --nodes 3": "torchrun --nnodes 3 --nproc-per-node 2",
}
SMOOTHER = {
    "--mixing -1": "Invalid value for '--mixing'",
    "--mixing 9000000000": "would need",
    "--learn-from nothing": "Invalid value for '--learn-from'",
}
KIND = {
    "--model gpt": "Invalid value for '--model'",
    "--hidden 0": "Invalid value for '--hidden'",
    "--model poisson --hidden 8": "--hidden is for neural models",
}
TRUTH = {
    "--truth {here}/nowhere.csv": "there is no such file",
    "--stream taxi": "--stream is for the table of --truth. Give --truth, too, or leave --stream out",
    **{f"--truth {{file}} {option}": said for option, said in COLUMNS.items()},
}
COST = {"--cost 0": "--cost must be a positive number", "--cost nan": "--cost must be a positive number"}

# Each command with words that are right, and what is wrong with it.
RIGHT: dict[str, str] = {
    "describe": "{file}",
    "fit": "{file} -o {here}/out",
    "smoother": "{model} {file} -m 0.5",
    "fit-incomplete": "{file} -m 0.5 -o {here}/out",
    "learn-missing": "{model} {file} -m 0.5 -o {here}/out",
    "check": "{model} {file} -m 0.5",
    "impute": "{model} {file} -m 0.5 -o {here}/out.csv",
    "report": "{draws} -o {here}/out.html",
    "plot": "{draws} -o {here}/out.png",
    "ask": "{draws}",
    "decode": "{draws} -o {here}/out.csv",
    "score": "{model} {file}",
    "evaluate": "{file} {file}",
    "simulate": "{model} --end 5 -o {here}/out.csv",
    "censor": "{file} -m 0.5 -o {here}/out.csv",
    "data": "elevator -o {here}/out",
    "demo": "-o {here}/out",
    "doctor": "",
    "serve": "{model}",
}
LIMITS = ("bytes", "streams", "events", "particles", "work", "steps", "missing", "online", "online-memory")
TIMES = ("seconds", "patience", "queue", "workers", "batch-wait", "grace")
WRONG: dict[str, dict[str, object]] = {
    "describe": {**FILE, **COLUMNS},
    "fit": {
        **FILE, **FOLDER, **KIND, **TRAINING, **COLUMNS, **MISSING,
        **SMOOTHER, **TOGETHER,
        "--model neural-hawkes --scales auto": "--scales is for Hawkes models",
        "--calendar": "--calendar is for streams with dates", "--model hawkes --scales x": "--scales",
        "--model-only --mixing 8": "--mixing is for the smoother: leave out one of --mixing and --model-only",
        "--model-only --learn-from data": "--learn-from is for the smoother: leave out one of",
        "--model-only -m 0.5": "--missing is for the smoother: leave out one of",
        "--hold-out /nowhere/x.csv": "cannot write: No such file",
        "--hold-out {here}/x.xls": "stands for no known format",
        "--hold-out {here}/x.pkl": "pickles are read but never written",
        "--hold-out {here}/streams.csv": "--hold-out would replace this file, which is read",
        "--hold-out {here}/out": "--hold-out would be in the folder of the model",
        "--hold-out {here}/out/x.csv": "--hold-out would be in the folder of the model",
        "--hold-out {here}/x.csv": "--hold-out needs 8 streams or more, and there are 6. Remedy: give more complete",
    },
    "smoother": {
        **MODEL, **FILE, **TRAINING, **COLUMNS, **MISSING, **SMOOTHER, **TOGETHER,
        "--name ../x": "a smoother cannot be called '../x'. Use letters",
    },
    "fit-incomplete": {
        **FILE, **FOLDER, **KIND, **TRAINING, **COLUMNS, **MISSING,
        "--complete {here}/nowhere.csv": "there is no such file",
        "--learn-missing": "--learn-missing needs --complete",
    },
    "learn-missing": {**MODEL, **FILE, **FOLDER, **COLUMNS, **MISSING, **SEED},
    "impute": {
        **MODEL, **FILE, **WRITE, **COLUMNS, **MISSING, **COST, **DEVICE, **SEED,
        "--smoother best": "has no smoother 'best'; there is none",
        "--particles 0": "Invalid value for '--particles'",
        "--resample often": "often",
        "--islands 7": "islands must divide the 1000 particles evenly",
        "--max-events 0": "Invalid value for '--max-events'",
        "--engine steam": "unknown engine 'steam'. Choose one of auto",
        "--engine triton": "Use --engine auto, which picks one that can",
        "--draws {here}/streams.csv": "--draws would replace this file, which is read. Remedy: give another name",
        "--draws {here}/model/model.json": "cannot make this folder",
        "--report {here}/x.txt": "a page cannot be written as '.txt'. Remedy: give it a name that ends in .html",
        "--report /nowhere/x.html": "cannot write: No such file",
        "--truth {here}/streams.csv": "--truth is shown on the page. Give --report, too",
        "--report {here}/x.html --truth {here}/nowhere.csv": "there is no such file",
        "--draws {here}/d --no-draws": "Give one of the two",
        "--chunk-streams -1": "Invalid value for '--chunk-streams'",
        "--chunk-streams 0 --cluster local": "--chunk-streams 0 says that there are none",
        "--workers 2": "--workers is for --cluster alone",
        "--calibrate": "--calibrate goes by a check, and none is kept with this model",
        "-m a=1 --sensitivity": "all missing rates are 0 or 1, which are the same at any odds",
    },
    "check": {
        **MODEL, **FILE, **COLUMNS, **MISSING, **DEVICE, **SEED,
        "--incomplete {here}/nowhere.csv": "there is no such file",
        "--smoother best": "has no smoother 'best'; there is none",
        "--particles 0": "Invalid value for '--particles'",
        "--cost -1": "costs must be finite and not negative",
        "--seconds -1": "Invalid value for '--seconds'",
        "--engine steam": "unknown engine 'steam'. Choose one of auto",
        "--output /nowhere/x.json": "cannot write: No such file",
        "--output {here}/streams.csv": "--output would replace this file, which is read",
        "--picture {here}/x.xls": "a picture cannot be written as '.xls'. Remedy: use one of .png, .pdf, .svg",
        "--picture /nowhere/x.png": "cannot write: No such file",
    },
    "report": {
        **COST, **TRUTH,
        "{draws}": ("{here}/model", "not a saved posterior"),
        "--check {here}/streams.csv": "this is not a check",
        "--output {here}/x.txt": "a page cannot be written as '.txt'",
        "--output /nowhere/x.html": "cannot write: No such file",
    },
    "plot": {
        **COST, **TRUTH,
        "{draws}": ("{here}/model", "there are neither draws nor the record of a fit here"),
        "--id nobody": "there is no stream 'nobody'; streams are",
        "--output {here}/x.xls": "a picture cannot be written as '.xls'. Remedy: use one of .png, .pdf, .svg",
        "--output /nowhere/x.png": "cannot write: No such file",
    },
    "ask": {
        "{draws}": ("{here}/model", "draws.parquet: there is no such file"),
        "--type lunch": "no draw has a type 'lunch'; types are 'a', 'b'",
        "--start noon": "noon",
        "--end 2024-01-01": "--end is a date, but the streams have plain numbers as times. Remedy: give a number",
        "--output /nowhere/x.csv": "cannot write: No such file",
        "--output {here}/draws/draws.parquet": "--output would replace this file, which is read",
    },
    "decode": {
        **WRITE, **COST, "{draws}": ("{here}", "this is not a saved posterior, or it is damaged"),
        "--output {here}/draws/observed.parquet": "--output would replace this file, which is read",
    },
    "score": {**MODEL, **FILE, **COLUMNS, **DEVICE, "--by-stream /nowhere/x.csv": "cannot write: No such file"},
    "evaluate": {
        **FILE, **COLUMNS, **SEED, "--output /nowhere/x.json": "cannot write: No such file",
        "--cost -1": "costs must be finite and not negative", "--tolerance -1": "tolerance",
        "--against {here}/nowhere.csv": "there is no such file",
    },
    "simulate": {
        **MODEL, **WRITE, **SEED, "--number -1": "Invalid value for '--number'", "--end nan": "--end",
        "--end 5 --start someday": "someday",
        "--events -1": "Invalid value for '--events'", "--max-events 0": "Invalid value for '--max-events'",
    },
    "censor": {
        **FILE, **WRITE, **COLUMNS, **MISSING, **SEED,
        "--hidden /nowhere/x.csv": "cannot write: No such file",
        "--hidden {here}/out.csv": "which --output writes, too. Remedy: give another name",
    },
    "data": {
        **FOLDER, "elevator": ("railway", "railway"), "--from x": "takes no --from. Remedy",
        "--set 3": "takes no --set. Remedy", "--seed -1": "Invalid value for '--seed'",
        "--format xls": "Invalid value for '--format'",
    },
    "demo": {
        **FOLDER, **SEED,
        "--number 0": "Invalid value for '--number'", "--particles 0": "Invalid value for '--particles'",
    },
    "doctor": {},
    "serve": {
        **MODEL, **DEVICE, "--host nowhere.invalid": "cannot listen on nowhere.invalid", "--port 70000": "'--port'",
        "--token-file /nowhere/token": "cannot read the token in /nowhere/token",
        "--online {here}/streams.csv": "cannot make this folder",
        **{f"--{name} 0": f"Invalid value for '--{name}'" for name in (*(f"max-{x}" for x in LIMITS), *TIMES)},
    },
}  # fmt: skip
CASES = [(command, wrong) for command, cases in WRONG.items() for wrong in cases]


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Path:
    """A folder with streams, a model and draws."""
    folder = tmp_path_factory.mktemp("wrong")
    model = rd.Poisson([1.0, 0.5])
    model.types = ("a", "b")
    streams = rd.simulate(model, 6, end=5.0, seed=1)
    model.save(folder / "model")
    rd.write_events(streams, folder / "streams.csv")
    rd.impute(streams, rd.Filtering(model, rd.ByType(0.5)), 3).save(folder / "draws")
    return folder


@pytest.fixture
def no_work(monkeypatch):
    """Training, sampling, drawing and decoding are not to begin."""

    def begin(*_: object, **__: object) -> None:
        raise AssertionError("work began")

    names = ("train.fitting.train_objective", "train.incomplete.train_objective", "models.simulate.simulate_batch")
    for name in names:  # all are loaded before the first is changed: one takes its own from another
        importlib.import_module(f"retrodict.{name.rpartition('.')[0]}")
    importlib.import_module("retrodict.smc.online.forecast")  # it would keep what is put in the place of its import
    for name in names:
        monkeypatch.setattr(f"retrodict.{name}", begin)
    monkeypatch.setattr("retrodict.smc.posterior.Posterior.consensus", begin)
    for engine in ENGINES.values():
        monkeypatch.setattr(type(engine), "run", begin)


def words_of(command: str, wrong: str, here: Path) -> tuple[list[str], str]:
    """The words of a command with a mistake, and what is to be said."""
    right, said = RIGHT[command], WRONG[command][wrong]
    if isinstance(said, tuple):  # a mistake in an argument
        right, said = right.replace(wrong, said[0], 1), said[1]
    else:
        parts = right.split()
        for option in ("-o", "-m"):  # given twice, -o and -m would be read twice
            if option in wrong.split() or (option == "-o" and "--output" in wrong):
                at = parts.index(option) if option in parts else len(parts)
                del parts[at : at + 2]
        right = " ".join([*parts, wrong])
    names = {"here": here, "file": here / "streams.csv", "model": here / "model", "draws": here / "draws"}
    return [command, *(word.format(**names) for word in right.split())], str(said)


@pytest.mark.parametrize(("command", "wrong"), CASES, ids=[f"{command} {wrong}" for command, wrong in CASES])
@pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")
def test_a_wrong_option_fails_before_any_work(command, wrong, here, no_work):
    words, said = words_of(command, wrong, here)
    before, began = sorted(here.rglob("*")), time.process_time()
    result = runner.invoke(app, words)
    assert time.process_time() - began < 5
    if isinstance(result.exception, rd.RetrodictError):
        shown = common.in_options(str(result.exception))
    else:
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == 2
        shown = " ".join(result.output.split())
    assert said in shown
    assert sorted(here.rglob("*")) == before


def test_every_option_of_every_command_is_tried():
    assert set(RIGHT) == set(WRONG) == set(COMMANDS)
    for name, command in COMMANDS.items():
        tried = " ".join([*WRONG[name], *(" -o" for wrong in WRONG[name] if "--output" in wrong)])
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name not in FREE:
                assert any(f"{flag} " in f"{tried} " for flag in parameter.opts), f"{name} {parameter.opts}"


@pytest.mark.parametrize(
    "words", ["fit {file} -m lunch=0.5 -o {here}/out", "impute {model} {file} -m 0.5 -o /nowhere/x.csv"]
)
def test_a_wrong_option_fails_within_five_seconds(words, here):
    """Of the processor's time: other work on the machine does not count."""
    names = {"here": here, "file": here / "streams.csv", "model": here / "model"}
    import resource  # of POSIX

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "retrodict", *words.format(**names).split()]
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 2
    assert done.stderr.startswith(("error:", "note:"))
    assert "Traceback" not in done.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5
