"""What is kept of a MEDS data set may come from a stranger: nothing is written elsewhere, and nothing explodes."""

from __future__ import annotations

import base64
import json
import warnings
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retrodict as rd
from retrodict.errors import DataError, DataNotice
from retrodict.events.io import meds_kept
from tests.events.test_meds import FIRST, SECOND, folder  # noqa: F401

KEY = b"retrodict.meds"


def read(source, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNotice)
        return rd.read_events(source, **options)


def hostile(names=("0.parquet",), files=None, rows=None):
    """A table in memory that says where its rows came from."""
    schema = base64.b64encode(FIRST.schema.serialize().to_pybytes()).decode()
    number = FIRST.num_rows // len(names) if rows is None else rows
    facts = {"root": "data", "shards": [[name, number, schema] for name in names], "files": files or {}}
    return FIRST.replace_schema_metadata({KEY: json.dumps(facts).encode()})


EVIL = ["a\n/../../../../evil.txt", "C:evil", "a/../../../evil", "/evil", "a\\..\\evil", "a\x1b[2J", "a//b", "", "a/.b"]


@pytest.mark.parametrize("name", EVIL)
def test_no_name_leaves_the_folder(name, tmp_path):
    deep = tmp_path / "1/2/3/4"
    deep.mkdir(parents=True)
    for number, table in enumerate((hostile([name]), hostile(files={name: ""}))):
        rd.write_events(read(table), deep / f"out{number}")
        written = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
        assert written == {f"1/2/3/4/out{n}/data/0.parquet" for n in range(number + 1)}
    with pytest.raises(DataError, match="outside of the folder"):
        meds_kept.inside(tmp_path, name)


def test_a_name_in_a_folder_of_draws_leaves_no_folder_either(tmp_path):
    from retrodict.events.io.kept_table import ROWS, TABLE, give_back, keep_table

    streams = read(hostile())
    kept = keep_table(streams)
    pq.write_table(hostile([EVIL[0]]), tmp_path / TABLE)
    pq.write_table(kept.rows, tmp_path / ROWS)
    again = give_back(streams, tmp_path, kept.facts, kept.places)
    (tmp_path / "1/2").mkdir(parents=True)
    rd.write_events(again, tmp_path / "1/2/out")
    assert not list(tmp_path.rglob("evil*"))


def packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (packed(b"no zlib"), "damaged"),
        (packed(zlib.compress(b"hello")[:-3]), "cut off"),
        ("%%%", "cut off|damaged"),
        (7, "damaged"),
        (packed(zlib.compress(bytes(1 << 20))), "more than the"),
    ],
)
def test_files_that_are_damaged_or_too_large_are_refused_in_words(content, words, tmp_path, monkeypatch):
    monkeypatch.setattr(meds_kept, "_MOST_METADATA", 1 << 16)
    with pytest.raises(DataError, match=words):
        rd.write_events(read(hostile(files={"a.json": content})), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_rows_that_are_no_longer_those_of_the_shards_become_one_shard(tmp_path, folder):  # noqa: F811
    for number, rows in enumerate((-4, 1, 10**15)):
        rd.write_events(read(hostile(["a.parquet", "b.parquet"], rows=rows)), tmp_path / f"{number}")
        assert [p.name for p in (tmp_path / f"{number}").rglob("*.parquet")] == ["0.parquet"]
    whole = read(folder).to_table("arrow")
    rd.write_events(read(pa.concat_tables([whole, whole[-1:]])), tmp_path / "more")
    assert pq.read_table(tmp_path / "more/data/0.parquet").num_rows == FIRST.num_rows + SECOND.num_rows + 1
    with pytest.raises(DataError, match="what was kept of the MEDS shards is damaged"):
        rd.write_events(read(FIRST.replace_schema_metadata({KEY: b'{"root": "", "shards": [7]}'})), tmp_path / "bad")


@pytest.mark.parametrize("link", ["data/tuning/1.parquet", "data/held", "data"])
def test_links_in_a_data_set_are_refused(link, folder, tmp_path):  # noqa: F811
    pq.write_table(SECOND, tmp_path / "secret.parquet")
    if link == "data":
        (folder / "data").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(exist_ok=True)
    (folder / link).symlink_to(tmp_path / ("secret.parquet" if link.endswith(".parquet") else "elsewhere"))
    with pytest.raises(DataError, match=rf"{link}: this is a link\. Remedy: .* not followed"):
        read(folder)
