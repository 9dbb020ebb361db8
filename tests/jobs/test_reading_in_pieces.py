"""Inputs of any size: what is too large at once is read in pieces, and what is wrong is said before the work."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retrodict as rd
from retrodict.errors import DataError, LimitError
from retrodict.events.io import pieces
from retrodict.jobs.folder import JobFolder
from retrodict.jobs.identity import Input
from retrodict.jobs.plan import make_plan
from retrodict.jobs.spread import ROW, bucket_file, read_bucket, spread_table
from tests.cli.test_long_steps import run

MODEL = rd.Hawkes([0.5, 0.3], [[0.3, 0.2], [0.1, 0.2]], 1.5)
OBSERVED, _ = rd.ByType(0.5).censor(rd.simulate(MODEL, 24, end=5.0, seed=0), seed=1)
OPTIONS = ["-m", "0.5", "--particles", "6"]


@pytest.fixture
def folder(tmp_path):
    rd.save_model(MODEL, tmp_path / "model")
    return tmp_path


def impute(folder, name: str, *more: str, output: str | None = None) -> str:
    return run(
        "impute",
        str(folder / "model"),
        str(folder / name),
        "-o",
        str(folder / (output or f"out-{name}")),
        *OPTIONS,
        *more,
    )


def test_what_the_limits_refuse_at_once_is_imputed_in_chunks(folder):
    rd.write_events(OBSERVED, folder / "a.parquet")
    impute(folder, "a.parquet", output="whole.parquet")
    rows = OBSERVED.num_events
    with rd.limits(rows=rows // 2), pytest.raises(LimitError):
        rd.read_events(folder / "a.parquet")
    with rd.limits(rows=rows // 2):
        with pytest.raises(LimitError):
            impute(folder, "a.parquet", "--chunk-streams", "0")
        impute(folder, "a.parquet")
    assert (folder / "out-a.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()


@pytest.mark.parametrize("option", [["--report", "page.html"], ["--sensitivity"]])
def test_what_needs_all_streams_at_once_is_refused_with_a_remedy(folder, option):
    rd.write_events(OBSERVED, folder / "a.parquet")
    with pytest.raises(DataError, match=rf"{option[0]} needs all streams at once.*--chunk-streams 0"):
        impute(folder, "a.parquet", "--chunk-streams", "5", *option)


@pytest.mark.parametrize(("name", "output"), [("a.csv", "b.parquet"), ("a.jsonl", "b.csv"), ("a.parquet", "b.xes")])
def test_formats_that_chunks_cannot_be_written_in_are_refused_with_a_remedy(folder, name, output):
    rd.write_events(OBSERVED, folder / name)
    with pytest.raises(DataError, match=r"in chunks, .* is written as .*--chunk-streams 0"):
        impute(folder, name, "--chunk-streams", "5", output=output)
    assert not list(folder.glob("*.unfinished"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": np.nan}, r"stream 20, row \d+: the row has a type but no time"),
        ({"end": 1e-9}, r"stream 20, row \d+"),
        ({"stream": None}, r"row \d+: column 'stream': the stream id is missing"),
    ],
)
def test_what_is_wrong_in_a_late_row_is_said_with_its_row_before_any_work(folder, change, message):
    frame = OBSERVED.to_frame()
    frame["type"] = frame["type"].astype(object)
    frame["stream"] = frame["stream"].astype(object)
    at = int(np.flatnonzero(frame["stream"] == 20)[0])
    for name, value in change.items():
        frame.loc[at, name] = value
    frame.to_csv(folder / "a.csv", index=False)
    with pytest.raises(DataError, match=message) as error:
        impute(folder, "a.csv", "--chunk-streams", "5")
    assert error.value.row in (at + 1, at + 2)
    assert not list(folder.glob("*.unfinished")), "nothing is left of a run that did not begin"


def test_a_row_with_too_many_fields_is_named(folder):
    OBSERVED.to_frame().to_csv(folder / "a.csv", index=False)
    lines = (folder / "a.csv").read_text().splitlines()
    lines[50] += ",x"
    (folder / "a.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match="6 fields, but the header has 5"):
        impute(folder, "a.csv", "--chunk-streams", "5")


def test_an_id_that_two_lines_have_is_refused_across_chunks(folder):
    line = {"id": "a", "horizon": [0, 5], "times": [1.0], "types": [0]}
    lines = [{**line, "id": f"s{i}"} for i in range(20)]
    lines[18]["id"] = "s2"
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(DataError, match="stream 's2': the id was used already"):
        impute(folder, "a.jsonl", "--chunk-streams", "5")


def test_files_of_a_folder_must_have_the_same_columns(folder):
    (folder / "in").mkdir()
    rd.write_events(OBSERVED[:12], folder / "in" / "a.parquet")
    table = pq.read_table(folder / "in" / "a.parquet")
    pq.write_table(table.drop_columns(["end"]), folder / "in" / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: its columns .* are not those of a\.parquet"):
        impute(folder, "in", output="out")


def test_a_folder_of_tables_is_read_as_one_table(tmp_path):
    for part, some in enumerate((OBSERVED[:10], OBSERVED[10:])):
        (tmp_path / "in" / f"part={part}").mkdir(parents=True)
        rd.write_events(some, tmp_path / "in" / f"part={part}" / "x.parquet")
    streams = rd.read_events(tmp_path / "in")
    assert streams.ids == OBSERVED.ids
    assert np.array_equal(streams.event_times, OBSERVED.event_times)
    assert set(streams.columns["part"]) == {"0", "1"}


@pytest.mark.parametrize("parts", [1, 3])
def test_gzip_is_expanded_as_it_is_read(tmp_path, parts):
    text = b"".join(b"line %d\n" % i for i in range(100_000))
    cut = len(text) // parts
    data = b"".join(gzip.compress(text[i * cut : (i + 1) * cut if i < parts - 1 else None]) for i in range(parts))
    (tmp_path / "a.txt.gz").write_bytes(data + b"\0" * 100)
    with pieces.open_text(tmp_path / "a.txt.gz") as file:
        assert file.read(11) + file.read() == text
    (tmp_path / "b.txt.gz").write_bytes(data[: len(data) // 2])
    with pieces.open_text(tmp_path / "b.txt.gz") as file, pytest.raises(DataError, match=r"cut off|damaged"):
        file.read()


def test_a_gzip_bomb_is_refused(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"stream,time,type\n" + b"0" * (64 << 20), 9))
    with pytest.raises(LimitError, match="times its size"):
        pieces.count_rows(tmp_path / "a.csv.gz", "csv", 1000)


@pytest.mark.parametrize("order", ["contiguous", "interleaved"])
def test_every_row_of_a_stream_is_in_one_bucket(tmp_path, order):
    generator = np.random.default_rng(0)
    ids = np.repeat(np.arange(300), generator.integers(1, 9, 300))
    if order == "interleaved":
        generator.shuffle(ids)
    table = pa.table({"stream": [f"s{i}" for i in ids], "x": ids})
    found = spread_table(
        [table.slice(i, 100) for i in range(0, len(ids), 100)], "stream", tmp_path, 10, 1 << 40, tmp_path, False
    )
    assert found.contiguous == (order == "contiguous")
    assert found.rows == len(ids)
    seen: dict[int, int] = {}
    rows = []
    for number, bucket in enumerate(found.buckets):
        held = pa.concat_tables(read_bucket(bucket_file(tmp_path, number)))
        assert held.num_rows == bucket.rows
        assert len(set(held["x"].to_pylist())) == bucket.streams <= 10
        assert all(seen.setdefault(stream, number) == number for stream in held["x"].to_pylist())
        assert np.array_equal(ids[held[ROW].to_numpy()], held["x"].to_numpy())
        rows += held[ROW].to_pylist()
    assert sorted(rows) == list(range(len(ids)))


def test_chunks_have_no_more_streams_or_rows_than_asked(tmp_path):
    rd.write_events(OBSERVED, tmp_path / "a.parquet")
    job = JobFolder(tmp_path / "job")
    for streams, rows in ((5, 1 << 40), (1000, 20)):
        job.path.mkdir(exist_ok=True)
        job.make()
        plan = make_plan(job, Input(tmp_path / "a.parquet", "parquet", {}, streams, rows), lambda _: None)
        assert plan.num_streams == len(OBSERVED)
        assert max(chunk.streams for chunk in plan.chunks) <= streams
        longest = int(OBSERVED.lengths.max())
        assert max(chunk.rows for chunk in plan.chunks) <= max(rows, rows + longest)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_streams(tmp_path):
    """Four times as many streams take at most an eighth more memory."""
    rd.save_model(rd.Poisson([0.5, 0.3]), tmp_path / "model")
    peaks = []
    for number in (500, 2000):
        generator = np.random.default_rng(0)
        frame = pd.DataFrame({"stream": np.repeat(np.arange(number), 6), "time": generator.random(6 * number) * 5})
        frame["type"], frame["end"] = generator.integers(0, 2, 6 * number), 5.0
        frame.to_csv(tmp_path / "a.csv", index=False)
        code = (
            "import resource, sys\nfrom retrodict.cli import main\n"
            "try: main()\nfinally: print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        words = ["impute", str(tmp_path / "model"), str(tmp_path / "a.csv"), "-o", str(tmp_path / f"{number}.csv")]
        words += [*OPTIONS, "--chunk-streams", "250", "--no-draws", "--cost", "1"]
        said = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False).stdout
        peaks.append(int(said.split("peak ")[1]))
    assert peaks[1] < 1.125 * peaks[0], peaks


@pytest.mark.parametrize("text", [b"", b"\xff\xfe\x00", b"stream:time:type\n1:2:3\n", b"stream,time,type\n1,2,3,4\n"])
def test_a_small_file_that_is_no_table_is_refused_as_ever(folder, text):
    (folder / "a.csv").write_bytes(text)
    with pytest.raises(DataError) as ever:
        rd.read_events(folder / "a.csv")
    with pytest.raises(DataError) as now:
        impute(folder, "a.csv")
    assert str(now.value) == str(ever.value)
