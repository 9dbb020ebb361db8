"""Full disks, lost folders, signals and two writers: ordinary errors, and nothing that was there is lost."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import retrodict as rd
from retrodict.cli import app
from retrodict.datasets.folder import write_splits
from retrodict.errors import BusyError, RetrodictError, WriteError
from retrodict.evaluate import check
from retrodict.events import atomic
from retrodict.events.stream_set import Splits
from retrodict.missingness.spec import write_missing
from retrodict.report import check_picture
from retrodict.report.style import Picture, new_picture

MODEL = rd.Hawkes([0.5, 0.3], [[0.3, 0.2], [0.1, 0.2]], 1.5)
STREAMS = rd.simulate(MODEL, 30, end=5.0, seed=0)
OBSERVED, HIDDEN = rd.ByType(0.5).censor(STREAMS, seed=1)
FEW = STREAMS[:8]
POSTERIOR = rd.impute(OBSERVED, rd.Filtering(MODEL, rd.ByType(0.5)), 5)


class Disk:
    """A disk on which the ``fails``-th call that writes finds no space."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.fails = 0, 0
        self.written: list[_File | None] = []  # by each call: the file that a piece was written to
        open_new = atomic.open_new
        monkeypatch.setattr(Picture, "draw", lambda self, renderer: None)  # blank ones are written just so
        monkeypatch.setattr(atomic, "_sync_folder", lambda path: None)  # after the file is safe, and may fail
        monkeypatch.setattr(atomic, "open_new", lambda path: _File(open_new(self.step(path)), self))
        fsync, replace = os.fsync, os.replace
        self.whole: set[tuple[str, bytes]] = set()  # every file that was moved into place

        def move(source: Any, target: Any) -> None:
            replace(*self.step((source, target)))
            self.whole.add((Path(target).name, Path(target).read_bytes()))

        monkeypatch.setattr(os, "fsync", lambda *given: fsync(*self.step(given)))
        monkeypatch.setattr(os, "replace", move)

    def step(self, given: Any, file: _File | None = None) -> Any:
        self.calls += 1
        self.written.append(file)
        if self.calls == self.fails:
            raise OSError(28, "No space left on device")
        return given

    def ends(self) -> list[int]:
        """Calls by number, without those that write neither the first nor the last piece of a file."""
        around = zip([None, *self.written], self.written, [*self.written[1:], None], strict=False)
        return [n for n, (a, b, c) in enumerate(around, 1) if b is None or not a is b is c]


class _File:
    """A file whose writing the disk counts."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self.file, self.disk = file, disk

    def write(self, data: Any) -> Any:
        return self.file.write(self.disk.step(data, self))

    def flush(self) -> None:
        self.file.flush()

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: Any) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def command(*arguments: Any) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


def fit_by_command(folder: Path) -> None:
    rd.write_events(FEW, folder / "streams.csv")
    command("fit", folder / "streams.csv", "--model", "poisson", "--epochs", 1, "-o", folder / "model")


def impute_by_command(folder: Path) -> None:
    MODEL.save(folder / "model")
    rd.write_events(OBSERVED[:8], folder / "in.csv")
    command("impute", folder / "model", folder / "in.csv", "-m", 0.5, "--particles", 3, "-o", folder / "out.csv.gz")


def evaluate_by_command(folder: Path) -> None:
    for name, streams in (("truth", HIDDEN), ("guess", HIDDEN)):
        rd.write_events(streams, folder / f"{name}.parquet")
    command("evaluate", folder / "truth.parquet", folder / "guess.parquet", "-o", folder / "scores.json")


def check_by_command(folder: Path) -> None:
    MODEL.save(folder / "model")
    rd.write_events(FEW, folder / "in.csv")
    where = ("-o", folder / "check.json", "--picture", folder / "check.png")
    command("check", folder / "model", folder / "in.csv", "-m", 0.5, "--particles", 3, *where)


def learn(folder: Path) -> None:
    proposal = rd.Filtering(MODEL, rd.ByType(0.3))
    rd.learn_missing(proposal, OBSERVED, rounds=1, particles=3, directory=folder / "learned")


def data_set(folder: Path) -> None:
    shutil.rmtree(folder / "data", ignore_errors=True)  # a data set is never written over
    write_splits(Splits(STREAMS, STREAMS, STREAMS), folder / "data")


JOBS: dict[str, Callable[[Path], object]] = {
    **{f"streams.{end}": lambda folder, end=end: rd.write_events(STREAMS, folder / f"s.{end}")
       for end in ("csv", "csv.gz", "parquet", "jsonl", "jsonl.gz", "json")},
    "a model": lambda folder: MODEL.save(folder / "model"),
    "a proposal": lambda folder: rd.Filtering(MODEL, rd.ByType(0.5)).save(folder / "proposal"),
    "a posterior": lambda folder: POSTERIOR.save(folder / "posterior"),
    "a mechanism": lambda folder: write_missing(rd.ByType({"0": 0.5}), folder / "missing.yaml"),
    "a picture": lambda folder: POSTERIOR.plot(0, folder / "a.png", truth=HIDDEN),
    "a page": lambda folder: POSTERIOR.report(folder / "a.html"),
    "a fit": lambda folder: rd.fit(rd.Poisson, STREAMS, epochs=2, directory=folder / "fit", progress=False),
    "a learned mechanism": learn,
    "a data set": data_set,
}  # fmt: skip
COMMANDS: dict[str, Callable[[Path], object]] = {  # which write what jobs write, one after the other
    "fit": fit_by_command,
    "impute": impute_by_command,
    "evaluate": evaluate_by_command,
    "check": check_by_command,
}


def contents(folder: Path) -> dict[str, bytes]:
    """All files but those that tell times."""
    untold = ("metrics.csv", "run.json", "model.json", ".png", "last.safetensors", "best.safetensors")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if not path.name.endswith(untold)}


@pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")
@pytest.mark.parametrize("name", JOBS)
def test_a_full_disk_at_every_write_call_in_turn(name, tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    nothing_is_lost(JOBS[name], tmp_path, disk, lambda: list(range(1, disk.calls + 1)))


@pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_at_both_ends_of_every_file_of_a_command(name, tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    if name == "check":  # what is written is the point: it is computed once, and nothing is drawn
        found = functools.cache(lambda run=check.check: run(rd.Filtering(MODEL, rd.ByType(0.5)), FEW, particles=3))
        monkeypatch.setattr(check, "check", lambda *_, **options: found())
        monkeypatch.setattr(check_picture, "draw_check", lambda told: new_picture(1, 1))
    nothing_is_lost(COMMANDS[name], tmp_path, disk, disk.ends)


def nothing_is_lost(job: Callable[[Path], object], tmp_path: Path, disk: Disk, ends: Callable[[], list[int]]) -> None:
    """Run a job, then again with the disk full at each of its ``ends``, and once more with space."""
    (tmp_path / "good").mkdir()
    job(tmp_path / "good")
    numbers, expected, whole = ends(), contents(tmp_path / "good"), set(disk.whole)
    assert len(numbers) >= 3
    for number in numbers:
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "good", folder)
        for fit in (folder / "fit", folder / "model", folder / "learned"):
            for file in ("run.json", "learned.json"):  # so that it is done again
                (fit / file).unlink(missing_ok=True)
        before = contents(folder)
        disk.calls, disk.fails = 0, number
        try:
            job(folder)
        except WriteError as error:
            assert "No space left on device" in str(error)  # noqa: PT017
        else:
            assert disk.calls < number  # Arrow and gzip do not write in the same pieces every time
        disk.fails = 0
        after = contents(folder)
        assert not [file for file in after if file.endswith((".tmp", ".lock"))]
        for file, data in after.items():  # whole files, old or new, or of a round in between
            known = data in (before.get(file), expected.get(file))
            assert known or (Path(file).name, data) in whole, (number, file)
        job(folder)
        assert contents(folder) == expected, number


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a file system of Linux")
@pytest.mark.parametrize("kilobytes", [4, 12, 40])
def test_a_disk_that_is_really_full(kilobytes, tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(tmp_path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        with pytest.raises(RetrodictError, match="No space left on device"):
            [rd.fit(rd.Poisson, STREAMS, epochs=2, directory=tmp_path / str(i), progress=False) for i in range(20)]
        assert not [name for _, _, names in os.walk(tmp_path) for name in names if name.endswith(".tmp")]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_folder_that_is_deleted_while_a_model_is_fitted(tmp_path, monkeypatch):
    from retrodict.train import run

    real = run.write_text

    def lose(path: Path, text: str) -> None:
        shutil.rmtree(tmp_path / "fit")
        real(path, text)

    monkeypatch.setattr(run, "write_text", lose)
    with pytest.raises(WriteError, match=r"metrics\.csv: cannot write: No such file"):
        rd.fit(rd.Poisson, STREAMS, epochs=2, directory=tmp_path / "fit", progress=False)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
def test_a_folder_that_cannot_be_written():
    with pytest.raises(WriteError, match="cannot make this folder"):
        rd.fit(rd.Poisson, STREAMS, epochs=2, directory="/proc/retrodict", progress=False)


def words_of_fit(folder: Path) -> list[str]:
    words = ["fit", str(folder / "streams.csv"), "--model", "hawkes", "--scales", "one", "--epochs", "100000"]
    return [*words, "--patience", "100000", "-o", str(folder / "model")]


def start_fit(folder: Path) -> subprocess.Popen[str]:
    rd.write_events(STREAMS, folder / "streams.csv")
    words = [sys.executable, "-m", "retrodict", *words_of_fit(folder)]

    def listen() -> None:  # what a shell starts in the background is deaf to Ctrl-C, and so are these tests there
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(words, **pipes, text=True, preexec_fn=listen)


def wait_for_epoch(process: subprocess.Popen[str], folder: Path) -> None:
    """Until two epochs are kept."""
    kept = folder / "model" / "metrics.csv"
    for _ in range(1200):
        time.sleep(0.1)
        assert process.poll() is None, "the fit ended before its second epoch"
        if kept.exists() and kept.read_text().count("\n") > 2:
            return
    raise AssertionError("the second epoch took two minutes")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_fit_in_words_and_a_second_writer_is_told_of_the_first(number, tmp_path):
    with start_fit(tmp_path) as process:
        wait_for_epoch(process, tmp_path)
        with pytest.raises(BusyError, match=f"is in use by process {process.pid} on "):
            command(*words_of_fit(tmp_path))
        process.send_signal(number)
        _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    kept = r"interrupted: .*model keeps (\d+) whole epochs: run the same command again to go on"
    found = re.search(kept, message)
    assert found is not None
    assert int(found[1]) >= 2
    assert "Traceback" not in message
    assert (tmp_path / "model" / "checkpoints" / "last.safetensors").exists()


def wait_until_it_listens(pid: int) -> None:
    """Until the process has a handler for SIGTERM."""
    for _ in range(600):
        time.sleep(0.1)
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
        if caught & (1 << (signal.SIGTERM - 1)):
            return
    raise AssertionError("the process never listened to signals")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
def test_a_signal_while_imputing(tmp_path):
    MODEL.save(tmp_path / "model")
    rd.write_events(OBSERVED, tmp_path / "in.csv")
    words = ["impute", "model", "in.csv", "-m", "0.5", "--particles", "20000", "--engine", "torch", "-o", "out.csv"]
    with subprocess.Popen(
        [sys.executable, "-m", "retrodict", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as job:
        wait_until_it_listens(job.pid)
        time.sleep(2)  # until it has read its arguments
        job.send_signal(signal.SIGTERM)
        _, message = job.communicate(timeout=60)
    assert job.returncode == 130, message
    assert "interrupted" in message
    assert "Traceback" not in message
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "model"]
