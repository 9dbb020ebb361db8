"""A data set in a folder: what is written is read back, all of it or none."""

from __future__ import annotations

import pytest

from retrodict.datasets import DATASETS, elevator, load, read_splits, write_splits
from retrodict.datasets.folder import SUFFIXES
from retrodict.errors import DataError
from retrodict.events.io.write import write_events
from retrodict.events.stream_set import Splits


@pytest.fixture(scope="module")
def splits() -> Splits:
    return elevator(0, (2, 1, 1))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back(splits, tmp_path, suffix):
    paths = write_splits(splits, tmp_path / "new", suffix)
    assert [path.name for path in paths] == [name + suffix for name in ("train", "dev", "test")]
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    again = read_splits(tmp_path / "new")
    for ours, theirs in zip(splits, again, strict=True):
        frame = theirs.with_types(splits.train.types).to_frame()
        assert frame["time"].tolist() == ours.to_frame()["time"].tolist()
        assert frame["type"].tolist() == ours.to_frame()["type"].tolist()
        assert theirs.ends.tolist() == ours.ends.tolist()


def test_a_data_set_is_never_overwritten(splits, tmp_path):
    (tmp_path / "dev.csv").write_text("precious")
    with pytest.raises(DataError, match=r"dev\.csv: there is a data set in this folder already.*another folder"):
        write_splits(splits, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dev.csv"]
    assert (tmp_path / "dev.csv").read_text() == "precious"


def test_a_failure_leaves_nothing_behind(splits, tmp_path, monkeypatch):
    def fail_at_test(streams, path):
        if path.stem == "test":
            raise DataError("the disk is full")
        write_events(streams, path)

    monkeypatch.setattr("retrodict.datasets.folder.write_events", fail_at_test)
    with pytest.raises(DataError, match="the disk is full"):
        write_splits(splits, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_training_streams_may_come_in_parts(splits, tmp_path):
    for name, streams in {"first": splits.train[:1], "second": splits.train[1:], "dev": splits.dev}.items():
        write_events(streams, tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match="no file of test streams"):
        read_splits(tmp_path, ("first", "second"))
    write_events(splits.test, tmp_path / "test.parquet")
    assert read_splits(tmp_path, ("first", "second", "absent")) == splits
    with pytest.raises(DataError, match="no file of train streams"):
        read_splits(tmp_path)


def test_data_sets_are_known_by_name(splits):
    assert list(DATASETS) == ["synthetic", "elevator", "taxi", "flights"]
    assert load("elevator", seed=0, sizes=(2, 1, 1)) == splits
    with pytest.raises(DataError, match=r"no data set 'lifts'.*synthetic, elevator, taxi, flights"):
        load("lifts")
