"""A file appears whole or not at all."""

import os
import stat

import pytest

from retrodict import EventStream, StreamSet
from retrodict.errors import DataError
from retrodict.events.atomic import atomic_path
from retrodict.events.io import jsonl
from retrodict.events.io.write import write_events

STREAMS = StreamSet([EventStream([1.0], [0], end=2.0)])


def test_the_file_takes_its_place(tmp_path):
    target = tmp_path / "a.txt"
    with atomic_path(target) as path:
        assert path.parent == tmp_path
        path.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_no_trace(error, tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail() -> None:
        with atomic_path(target) as path:
            path.write_text("half")
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
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        write_events(STREAMS, tmp_path / name)
    assert (tmp_path / name).read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_a_writer_that_fails_half_way(tmp_path, monkeypatch):
    def half(text, path, target):
        path.write_text(text[:10])
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(jsonl, "write_text", half)
    with pytest.raises(DataError, match="Input/output error"):
        write_events(STREAMS, tmp_path / "a.jsonl")
    assert os.listdir(tmp_path) == []


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
