"""A file appears whole or not at all, and a folder has one writer."""

import os
import re
import socket
import stat
import subprocess
import sys

import pytest

from retrodict import EventStream, StreamSet
from retrodict.errors import BusyError, DataError, WriteError
from retrodict.events import lock
from retrodict.events.atomic import atomic_file, atomic_folder, own_folder
from retrodict.events.io.write import write_events
from retrodict.events.lock import lock_folder

STREAMS = StreamSet([EventStream([1.0], [0], end=2.0)])


def test_the_file_takes_its_place(tmp_path):
    target = tmp_path / "a.txt"
    with atomic_file(target) as file:
        file.write(b"new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_no_trace(error, tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail() -> None:
        with atomic_file(target) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.jsonl", "a.json"])
def test_a_full_disk_leaves_the_old_file(name, tmp_path, monkeypatch):
    write_events(STREAMS, tmp_path / name)
    before = (tmp_path / name).read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left on device; the file that was there before is as it was"):
        write_events(STREAMS, tmp_path / name)
    assert (tmp_path / name).read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_permissions_and_links(tmp_path):
    old = os.umask(0o027)
    try:
        write_events(STREAMS, tmp_path / "a.csv")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o640
    (tmp_path / "a.csv").chmod(0o604)
    (tmp_path / "link.csv").symlink_to("a.csv")
    write_events(STREAMS, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o604


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="Remedy: give a path in a folder that exists"):
        write_events(STREAMS, tmp_path / "none" / "a.csv")
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(DataError, match="this is a folder"):
        write_events(STREAMS, tmp_path / "a.csv")


HOLD = """
import sys, time
from retrodict.events.atomic import atomic_file, atomic_folder
from retrodict.events.lock import lock_folder
with lock_folder(sys.argv[1]), atomic_file(sys.argv[1] + "/a.txt") as file:
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds a folder and is writing a file in it."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def test_two_writers_on_one_folder(tmp_path, holder):
    with pytest.raises(BusyError, match=rf"in use by process {holder.pid} on .* since "), lock_folder(tmp_path):
        pass
    holder.kill()
    holder.wait()
    with lock_folder(tmp_path), lock_folder(tmp_path):  # the lock ended with its holder; and may be held twice
        assert re.match(rf"process {os.getpid()} on ", (tmp_path / ".lock").read_text())
    assert not (tmp_path / ".lock").exists()


def test_what_a_killed_writer_left_behind_goes(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert any(name.endswith(".tmp") for name in os.listdir(tmp_path))
    mine = tmp_path / f".a.txt.elsewhere.{os.getpid()}.0123456789ab.tmp"
    mine.touch()  # of another machine: perhaps still being written
    with atomic_file(tmp_path / "a.txt") as file:
        file.write(b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([".lock", mine.name, "a.txt"])


def test_a_writer_at_work_is_left_alone(tmp_path, holder):
    with atomic_file(tmp_path / "a.txt") as file:
        file.write(b"new")
    assert any(name.endswith(".tmp") for name in os.listdir(tmp_path))


def write_folder(target):
    with atomic_folder(target) as folder:
        (folder / "a.txt").write_text("new")


def test_a_folder_takes_its_place_where_syncing_and_replacing_are_stricter(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    sync, replace = os.fsync, os.replace

    def strict_sync(descriptor: int) -> None:  # as on Windows
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode) and not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_RDWR:
            raise OSError(9, "Bad file descriptor")
        sync(descriptor)

    def strict_replace(source: str, target: str) -> None:
        if os.path.isdir(target):
            raise PermissionError(13, "Access is denied")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", strict_sync)
    monkeypatch.setattr(os, "replace", strict_replace)
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        write_folder(tmp_path / name)
        assert os.listdir(tmp_path / name) == ["a.txt"]
    assert sorted(os.listdir(tmp_path)) == ["empty", "new"]


def test_an_empty_folder_is_still_there_after_a_failure(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    (tmp_path / "a").mkdir()
    with pytest.raises(WriteError, match="No space left"):
        write_folder(tmp_path / "a")
    assert os.listdir(tmp_path) == ["a"]


def test_folders_that_a_killed_writer_left_behind_go(tmp_path):
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    for pid in (ended.pid, os.getpid()):
        (tmp_path / f".a.{host}.{pid}.0123456789ab.tmp").mkdir()
        (tmp_path / f".a.{host}.{pid}.0123456789ab.tmp" / "half").touch()
    write_folder(tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == [f".a.{host}.{os.getpid()}.0123456789ab.tmp", "a"]


def test_of_two_that_write_a_folder_at_once_the_last_leaves_a_whole_one(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / f"old-{name}").touch()
        with own_folder(tmp_path / "folder") as one, own_folder(tmp_path / "folder") as other:
            for folder, text in ((one, "one"), (other, "other")):
                (folder / "first").write_text(text)
                (folder / "second").write_text(text)
        assert {path.name: path.read_text() for path in (tmp_path / "folder").iterdir()} == {
            "first": "one",
            "second": "one",
        }
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(FileNotFoundError), own_folder(tmp_path / "gone" / "folder"):
        pass


def test_a_folder_that_is_removed_while_it_is_being_locked_is_made_again_and_held(tmp_path, monkeypatch):
    """As a run that ends removes it just when the next one has opened the file of its lock."""
    folder, opened, removed = tmp_path / "job", os.open, []

    def open_and_remove(path, *given, **more):
        descriptor = opened(path, *given, **more)
        if str(path).endswith(".lock") and not removed:
            removed.append(path)
            path.unlink()
            folder.rmdir()
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_and_remove)
        with lock_folder(folder):
            assert removed
            other = [sys.executable, "-c", f"from {lock.__name__} import *\nwith lock_folder({str(folder)!r}): pass"]
            assert b"BusyError" in subprocess.run(other, capture_output=True, check=False).stderr
