"""``retrodict reproduce``: names, refusals, and an interrupt that loses nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from retrodict.cli import app
from retrodict.errors import DataError
from retrodict.experiments.plan import EXPERIMENTS

runner = CliRunner(env={"COLUMNS": "160", "TERM": "dumb"})


def run(*arguments: str):
    result = runner.invoke(app, ["reproduce", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_without_a_name_the_experiments_are_listed():
    output = run().output
    assert all(f"{name}:" in output for name in EXPERIMENTS)


def test_refusals(tmp_path):
    folder = ("-o", str(tmp_path / "x"))
    with pytest.raises(DataError, match="no experiment 'nothing'"):
        run("nothing", *folder)
    with pytest.raises(DataError, match="both a name and --all"):
        run("log-q", "--all", *folder)
    with pytest.raises(DataError, match="cannot understand --data"):
        run("log-q", "--data", "taxi", *folder)
    with pytest.raises(DataError, match="takes no source"):
        run("log-q", "--data", "elevator=.", *folder)
    with pytest.raises(DataError, match="nothing here"):
        run("log-q", "--data", f"taxi={tmp_path / 'absent'}", *folder)
    with pytest.raises(DataError, match="no data set 'bus'"):
        run("log-q", "--only", "bus", *folder)
    with pytest.raises(DataError, match="no stage"):
        run("log-q", "--until", "never", *folder)


def test_collecting_nothing_makes_a_page(tmp_path):
    result = run("--all", "--quick", "--collect", "-o", str(tmp_path / "x"), "--page", str(tmp_path / "page.md"))
    assert result.exit_code == 0
    assert "not run yet" in (tmp_path / "page.md").read_text(encoding="utf-8")
    with pytest.raises(DataError, match="another"):
        run("--all", "--collect", "-o", str(tmp_path / "x"))


def test_an_interrupt_leaves_whole_files_and_says_how_to_go_on(tmp_path):
    command = [
        sys.executable,
        "-m",
        "retrodict",
        "reproduce",
        "log-q",
        "--quick",
        "-o",
        str(tmp_path),
        "--workers",
        "1",
    ]
    # Whoever runs the tests in the background may ignore interrupts: the command must not inherit that.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("jobs/data/*.json")) and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "repeat the command to go on" in errors
    files = list(tmp_path.glob("jobs/**/*.json"))
    assert files
    assert all(json.loads(file.read_text(encoding="utf-8"))["result"] for file in files)
