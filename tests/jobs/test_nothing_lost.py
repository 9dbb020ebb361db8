"""Whatever happens to a run in chunks, ``--resume`` ends it as if nothing had happened."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import retrodict as rd
from retrodict.errors import BusyError, DataError, RetrodictError, WriteError
from retrodict.events import atomic
from retrodict.events.lock import lock_folder
from retrodict.jobs import run as jobs_run
from retrodict.jobs.complete import NAME, is_complete
from retrodict.jobs.work import Work
from tests.cli.test_long_steps import run
from tests.test_faults import Disk

MODEL = rd.Hawkes([0.5, 0.3], [[0.3, 0.2], [0.1, 0.2]], 1.5)
OBSERVED, _ = rd.ByType(0.5).censor(rd.simulate(MODEL, 24, end=5.0, seed=0), seed=1)
OPTIONS = ["-m", "0.5", "--particles", "6", "--chunk-streams", "5"]


@pytest.fixture
def folder(tmp_path):
    rd.save_model(MODEL, tmp_path / "model")
    rd.write_events(OBSERVED, tmp_path / "in.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The output of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    rd.save_model(MODEL, folder / "model")
    rd.write_events(OBSERVED, folder / "in.parquet")
    impute(folder)
    return (folder / "out.parquet").read_bytes()


def words(folder: Path, *more: str) -> list[str]:
    return [
        "impute",
        str(folder / "model"),
        str(folder / "in.parquet"),
        "-o",
        str(folder / "out.parquet"),
        *OPTIONS,
        *more,
    ]


def impute(folder: Path, *more: str, code: int = 0) -> str:
    return run(*words(folder, *more), code=code)


def stop_after(monkeypatch: pytest.MonkeyPatch, number: int, method: str = "decode", error: type = KeyboardInterrupt):
    """Let the run be interrupted after this many chunks of a stage; gives the list of chunks that were done."""
    done: list[int] = []
    original = getattr(Work, method)

    def stopping(self, chunk, *more):
        if len(done) == number:
            raise error
        entry = original(self, chunk, *more)
        done.append(chunk)
        return entry

    monkeypatch.setattr(Work, method, stopping)
    return done


def finish(folder: Path, expected: bytes) -> str:
    said = impute(folder, "--resume")
    assert (folder / "out.parquet").read_bytes() == expected
    assert sorted(path.name for path in folder.iterdir()) == ["in.parquet", "model", "out.parquet", "out.parquet.draws"]
    return said


@pytest.mark.parametrize("method", ["sample", "decode"])
def test_an_interrupt_keeps_what_is_done_and_resume_does_only_the_rest(folder, expected, monkeypatch, method):
    with monkeypatch.context() as patch:
        done = stop_after(patch, 2, method)
        said = impute(folder, code=130)
    assert "go on with --resume" in said
    assert len(done) == 2
    assert not (folder / "out.parquet").exists()
    with monkeypatch.context() as patch:
        again = stop_after(patch, 1000, method)
        finish(folder, expected)
    assert set(again) == {0, 1, 2, 3, 4} - set(done)


def test_an_unfinished_run_is_neither_gone_on_with_nor_dropped_unasked(folder, expected, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        impute(folder, code=130)
    with pytest.raises(DataError, match=r"--resume.*--restart"):
        impute(folder)
    impute(folder, "--restart")
    assert (folder / "out.parquet").read_bytes() == expected


@pytest.mark.parametrize(
    ("typo", "said"),
    [
        (["-m", "9=0.5"], "'9'"),
        (["-m", "missing.yaml"], "missing.yaml"),
        (["--smoother", "nonesuch"], "nonesuch"),
        (["--islands", "4"], "islands must divide"),
        (["--time", "wehn"], "wehn"),
        (["--engine", "naitve"], "naitve"),
    ],
)
def test_a_typo_beside_restart_drops_nothing(folder, expected, monkeypatch, typo, said):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        impute(folder, code=130)
    with pytest.raises(RetrodictError, match=said):
        impute(folder, *typo, "--restart")
    with monkeypatch.context() as patch:
        again = stop_after(patch, 1000, "sample")
        finish(folder, expected)
    assert not again


@pytest.mark.parametrize(
    ("what", "harm"),
    [
        ("parts/00001.arrow", "flip"),
        ("parts/00001.arrow", "cut"),
        ("parts/00002.arrow", "remove"),
        ("parts/00001.arrow", "entry"),
        ("sampled/00001/full.parquet", "flip"),
        ("pooled/00001/streams.parquet", "remove"),
        ("rows/000001.arrow", "cut"),
    ],
)
def test_what_was_damaged_meanwhile_is_found_and_done_again(folder, expected, monkeypatch, what, harm):
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        impute(folder, code=130)
    file = folder / "out.parquet.unfinished" / what
    data = bytearray(file.read_bytes())
    if harm == "remove":
        file.unlink()
    elif harm == "entry":
        for entry in (folder / "out.parquet.unfinished" / "done").iterdir():
            entry.write_text("{")
    else:
        data[len(data) // 2] ^= 255
        file.write_bytes(data if harm == "flip" else data[: len(data) // 2])
    finish(folder, expected)


@pytest.mark.parametrize("harm", ["cut", "remove"])
def test_rows_that_were_damaged_are_read_again_and_chunks_that_were_done_stay(folder, expected, monkeypatch, harm):
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        impute(folder, code=130)
    file = folder / "out.parquet.unfinished" / "rows" / "000001.arrow"
    file.write_bytes(file.read_bytes()[:100]) if harm == "cut" else file.unlink()
    with monkeypatch.context() as patch:
        sampled, decoded = stop_after(patch, 1000, "sample"), stop_after(patch, 1000)
        said = finish(folder, expected)
    assert (sampled, decoded) == ([], [3, 4])
    assert "is damaged: they are read again" in said


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("plan.json", "contiguous", False), ("plan.json", "identity", [1]), ("job.json", "--seed", 0.0)],
)
def test_a_plan_that_was_changed_on_the_disk_is_not_believed(folder, monkeypatch, name, key, value):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        impute(folder, code=130)
    file = folder / "out.parquet.unfinished" / name
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(DataError, match=r"damaged \(its content is not what its digest says\).*--restart"):
        impute(folder, "--resume")


def test_an_entry_of_the_manifest_that_was_changed_is_made_again(folder, expected, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        impute(folder, code=130)
    file = folder / "out.parquet.unfinished" / "done" / "parts-00001.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"imputed": 10**6}))
    with monkeypatch.context() as patch:
        again = stop_after(patch, 1000)
        said = finish(folder, expected)
    assert again == [1, 2, 3, 4]
    assert f"{10**6:,}" not in said


@pytest.mark.parametrize(
    "harm",
    [{"made from": [1]}, {"parts": {"9" * 3000: {"digest": "x"}}}, {"parts": {"\0": {"digest": "x"}}}, {"parts": [1]}],
)
def test_a_damaged_manifest_is_an_error_in_words(tmp_path, harm):
    good = {"made from": {"--seed": 0}, "parts": {}}
    (tmp_path / NAME).write_text(json.dumps(good))
    assert is_complete(tmp_path, {"--seed": 0})
    (tmp_path / NAME).write_text(json.dumps(good | harm))
    with pytest.raises(DataError, match=r"manifest.*remove the folder") as caught:
        is_complete(tmp_path, {"--seed": 0})
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--seed", "1"], "--seed (0 then, 1 now)"),
        (["--particles", "7"], "--particles (6 then, 7 now)"),
        (["-m", "0.4"], "what goes missing"),
        (["--cost", "2"], "--cost"),
        (["--chunk-streams", "6"], "--chunk-streams"),
        (["--stream", "type"], "--stream"),
    ],
)
def test_a_run_of_other_options_is_refused_in_words(folder, expected, monkeypatch, change, named):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        impute(folder, code=130)
    for word in change[::2]:  # options that are given twice add up
        at = OPTIONS.index(word) if word in OPTIONS else None
        given = OPTIONS if at is None else [*OPTIONS[:at], *OPTIONS[at + 2 :]]
    with pytest.raises(DataError) as error:
        run(*words(folder, "--resume")[:5], *given, *change, "--resume")
    assert named in str(error.value)
    assert "--restart" in str(error.value)
    finish(folder, expected)


@pytest.mark.parametrize("what", ["the input", "the model"])
def test_a_run_of_other_files_is_refused_in_words(folder, monkeypatch, what):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        impute(folder, code=130)
    if what == "the input":
        rd.write_events(OBSERVED[:23], folder / "in.parquet")
    else:
        rd.save_model(rd.Hawkes([0.5, 0.31], [[0.3, 0.2], [0.1, 0.2]], 1.5), folder / "model")
    with pytest.raises(DataError, match=f"differs from this one in {what}"):
        impute(folder, "--resume")


def test_two_runs_on_one_output_are_refused(folder, expected, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        impute(folder, code=130)
    script = (
        "import sys; from pathlib import Path; from retrodict.events.lock import lock_folder\n"
        "with lock_folder(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(folder / "out.parquet.unfinished")],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert other.stdout is not None
    assert other.stdout.readline()
    with pytest.raises(BusyError, match=f"in use by process {other.pid}"):
        impute(folder, "--resume")
    other.kill()  # which leaves its lock's file, but not its lock
    other.communicate()
    finish(folder, expected)


def test_a_full_disk_is_a_clear_error_and_can_be_gone_on_from(folder, expected, monkeypatch):
    """The disk is full at every tenth step of the run, once."""
    fails, failed = 3, 0
    while True:
        with monkeypatch.context() as patch:
            disk = Disk(patch)
            disk.fails = fails
            try:
                impute(folder, "--resume")
            except WriteError as error:
                said = str(error)
            else:
                break
        failed += 1
        assert "No space left" in said
        assert "--resume" in said
        assert not (folder / "out.parquet").exists() or (folder / "out.parquet").read_bytes() == expected
        fails += 10
    assert failed > 5
    assert (folder / "out.parquet").read_bytes() == expected


@pytest.mark.parametrize("moment", ["assemble", "keep_draws", "remove"])
def test_a_run_that_is_killed_at_its_very_end_loses_nothing(folder, expected, monkeypatch, moment):
    """Right after the output, the draws or nothing at all is in place."""
    from retrodict.cli import impute_chunks
    from retrodict.jobs.folder import JobFolder

    class Killed(BaseException):
        pass

    place = {"assemble": jobs_run, "keep_draws": impute_chunks, "remove": JobFolder}[moment]
    original = getattr(place, moment)

    def then_killed(*given):
        original(*given) if moment != "remove" else None
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(place, moment, then_killed)
        with pytest.raises(Killed):
            impute(folder)
    with monkeypatch.context() as patch:
        again = stop_after(patch, 1000, "sample")
        finish(folder, expected)
    assert not again


def test_a_run_that_is_killed_while_draws_go_to_another_disk_keeps_them(folder, expected, monkeypatch):
    """After the copy, while what was copied is removed."""
    rename, rmtree = os.rename, shutil.rmtree
    unfinished = "out.parquet.unfinished"

    class Killed(BaseException):
        pass

    def on_one_disk(source, target, **more):
        if unfinished in str(source) and unfinished not in str(target):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target, **more)

    def killed_on_the_way(path, *given, **more):
        if "sampled" in str(path) and (folder / "out.parquet").exists():
            rmtree(sorted(Path(path).iterdir())[0])
            raise Killed
        rmtree(path, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", on_one_disk)
        patch.setattr(shutil, "rmtree", killed_on_the_way)
        with pytest.raises(Killed):
            impute(folder)
    finish(folder, expected)
    draws = [rd.load_posterior(path) for path in sorted((folder / "out.parquet.draws").iterdir())]
    assert [len(posterior) for posterior in draws] == [5, 5, 5, 5, 4]


def test_a_folder_that_cannot_hold_the_draws_is_refused_before_any_work(folder, monkeypatch):
    done = stop_after(monkeypatch, 1000, "sample")
    (folder / "photos").mkdir()
    (folder / "photos" / "a.jpg").touch()
    with pytest.raises(DataError, match="holds no draws"):
        impute(folder, "--draws", str(folder / "photos"))
    assert not done
    assert not (folder / "out.parquet.unfinished").exists()


def test_a_folder_that_is_killed_after_it_was_moved_is_known_again(folder, monkeypatch):
    (folder / "tables").mkdir()
    shutil.move(folder / "in.parquet", folder / "tables" / "a.parquet")
    given = ["impute", str(folder / "model"), str(folder / "tables"), "-o", str(folder / "out"), *OPTIONS]
    original = jobs_run.assemble

    class Killed(BaseException):
        pass

    def then_killed(*arguments):
        original(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(jobs_run, "assemble", then_killed)
        with pytest.raises(Killed):
            run(*given)
    parts = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    with monkeypatch.context() as patch:
        again = stop_after(patch, 1000, "sample")
        run(*given, "--resume")
    assert not again
    assert parts == {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    ended = subprocess.Popen([sys.executable, "-c", ""])  # like one that was killed while it removed the job's folder
    ended.wait()
    left = folder / f".out.unfinished.{atomic._HOST}.{ended.pid}.0123456789ab.tmp"
    (left / "rows").mkdir(parents=True)
    assert "complete already" in run(*given, "--resume")
    assert parts == {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert not left.exists()
    with pytest.raises(WriteError, match="not empty"):
        run(*given)
    with pytest.raises(DataError, match=r"--seed \(0 then, 1 now\)"):
        run(*given, "--seed", "1", "--resume")
    (folder / "out" / "00001.parquet").write_bytes(b"")
    with pytest.raises(DataError, match="not what the manifest says"):
        run(*given, "--resume")


@pytest.mark.parametrize("change", ["what goes missing", "the smoother", "the engine", "the version of retrodict"])
def test_a_finished_folder_that_was_made_with_other_files_is_refused_in_words(folder, monkeypatch, change):
    """Under the names that were typed before."""
    (folder / "tables").mkdir()
    shutil.move(folder / "in.parquet", folder / "tables" / "a.parquet")
    spec = folder / "missing.yaml"
    spec.write_text("mechanism: by_type\nrates: {0: 0.5, 1: 0.5}")
    if change == "the smoother":
        torch.manual_seed(0)
        rd.Smoothing(MODEL, rd.ByType(0.5), hidden_size=4).save(folder / "model" / "smoother")
    given = ["impute", folder / "model", folder / "tables", "-o", folder / "out", "-m", spec, *OPTIONS[2:]]
    run(*given)
    assert "complete already" in run(*given, "--resume")
    if change == "what goes missing":
        spec.write_text("mechanism: by_type\nrates: {0: 0.05, 1: 0.5}")
    elif change == "the smoother":
        torch.manual_seed(1)
        rd.Smoothing(MODEL, rd.ByType(0.5), hidden_size=4).save(folder / "model" / "smoother")
    elif change == "the engine":
        if json.loads((folder / "out" / NAME).read_text())["made from"]["the engine"] == "torch":
            pytest.skip("there is no other engine here")
        given += ["--engine", "torch"]
    else:
        monkeypatch.setattr("retrodict.jobs.identity.__version__", "0.0.1")
    with pytest.raises(DataError, match=f"differs from this one in {change}"):
        run(*given, "--resume")


@pytest.mark.parametrize("method", ["sample", "decode"])
def test_work_for_a_run_that_ended_is_not_taken_for_that_of_the_next(folder, expected, monkeypatch, method):
    """Workers of a cluster outlive a driver that is killed for a moment, and may then still be at their chunk."""
    outlived: list[Callable[[], object]] = []
    original = getattr(Work, method)

    def look(self, *given):
        outlived.append(lambda: original(self, *given))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Work, method, look)
        impute(folder, "--seed", "1", code=130)
    with monkeypatch.context() as patch:
        stop_after(patch, 2, "decode")
        impute(folder, "--restart", code=130)
    (work,) = outlived
    with pytest.raises(BusyError, match="not held by the run"):
        work()
    with monkeypatch.context() as patch:
        again = stop_after(patch, 1000, "decode")
        finish(folder, expected)
    assert again == [2, 3, 4]
    with pytest.raises((FileNotFoundError, DataError)):
        work()
    assert not (folder / "out.parquet.unfinished").exists()


@pytest.mark.slow
def test_kill_9_at_random_moments(folder, expected):
    """``benchmarks/faults.py`` does the same with more streams and more often."""
    moments, environment = random.Random(0), os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "retrodict", *words(folder, "--resume")]
    killed = 0
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        job = folder / "out.parquet.unfinished"
        while process.poll() is None and not (job / "job.json").exists():
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed
    finish(folder, expected)


def test_the_folder_is_held_while_it_is_worked_on(folder, monkeypatch):
    held: list[bool] = []
    original = Work.decode

    def look(self, *given):
        with pytest.raises(BusyError):
            subprocess_lock(self.folder)
        held.append(True)
        return original(self, *given)

    def subprocess_lock(path: Path) -> None:
        code = f"from retrodict.events.lock import lock_folder\nwith lock_folder({str(path)!r}): pass"
        if b"BusyError" in subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).stderr:
            raise BusyError

    monkeypatch.setattr(Work, "decode", look)
    impute(folder, "--chunk-streams", "30")
    assert held == [True]
    with lock_folder(folder / "free"):
        pass


def test_without_draws_no_table_of_them_is_written_and_a_run_that_keeps_them_is_another(folder, expected, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 0)
        impute(folder, "--no-draws", code=130)
    sampled = folder / "out.parquet.unfinished" / "sampled"
    assert (sampled / "00000" / "full_events.parquet").exists()
    assert not list(sampled.rglob("draws.parquet"))
    with pytest.raises(DataError, match=r"differs from this one in --no-draws"):
        impute(folder, "--resume")
    impute(folder, "--no-draws", "--resume")
    assert (folder / "out.parquet").read_bytes() == expected
