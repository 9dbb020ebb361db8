"""In chunks of any size the answer is the same as all at once, byte by byte, whatever the table and its order."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import retrodict as rd
from retrodict.events.combine import join
from tests.cli.test_long_steps import run
from tests.jobs.test_nothing_lost import stop_after

MODEL = rd.Hawkes([0.05, 0.02], [[0.1, 0.6], [0.0, 0.1]], 0.1)
MODEL.types, MODEL.time_unit = ("cause", "effect"), "minute"
NUMBER = 40
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")
MANY = ["--chunk-streams", "7"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(rd.save_model(MODEL, tmp_path_factory.mktemp("model")))


def events(dated: bool = True, order: str = "stream") -> pd.DataFrame:
    """A table of 40 streams with extra columns that are sometimes empty, ordered by stream, by time or not at all."""
    complete = rd.simulate(MODEL, NUMBER, end=240.0, seed=3)
    observed, _ = rd.ByType({"cause": 0.6}).censor(complete, seed=4)
    frame = observed.to_frame()[["stream", "time", "type", "end"]]
    frame["type"] = frame["type"].astype(object)
    frame["stream"] = "s" + frame["stream"].astype(str)
    frame["fare"] = np.where(np.arange(len(frame)) % 3 > 0, np.arange(len(frame)) * 0.5, np.nan)
    frame["note"] = np.where(np.arange(len(frame)) > len(frame) // 2, "a, b", None)
    if dated:
        start = pd.Timestamp("2024-03-30 20:00", tz="UTC")  # the clocks change on the way
        for name in ("time", "end"):
            frame[name] = (start + pd.to_timedelta(frame[name].round(3), unit="min")).dt.floor("us")
        frame["begin"] = start
    if order == "time":
        frame = frame.sort_values("time", kind="stable")
    elif order == "none":
        frame = frame.sample(frac=1.0, random_state=0)
    return frame.reset_index(drop=True)


def write(frame: pd.DataFrame, path: Path) -> Path:
    """The table as CSV, dates with offsets, or as Parquet."""
    if ".csv" in path.suffixes:
        dates = frame.select_dtypes("datetimetz")
        text = frame.assign(**{name: dates[name].map(lambda t: t.isoformat()) for name in dates})
        text.to_csv(path, index=False)
    else:
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=50)
    return path


def impute(model: str, file: Path, output: Path, *more: str, dated: bool = True, code: int = 0) -> str:
    start = ["--start", "begin"] if dated and ".jsonl" not in file.suffixes else []
    words = ["-m", "cause=0.6", "--filtering", "--particles", "8", *start, *more]
    return run("impute", model, str(file), "-o", str(output), *words, code=code)


@pytest.mark.parametrize(
    ("order", "names", "dated"),
    [
        ("stream", ("a.csv", "b.csv"), True),
        ("stream", ("a.parquet", "b.parquet"), False),
        ("time", ("a.csv.gz", "b.csv.gz"), True),
        ("time", ("a.parquet", "b.parquet"), True),
        ("none", ("a.csv", "b.csv"), False),
        ("none", ("a.parquet", "b.csv"), True),
    ],
)
def test_a_table_in_chunks_is_the_same_as_at_once(model, tmp_path, order, names, dated):
    file = write(events(dated, order), tmp_path / names[0])
    whole, parts = tmp_path / names[1].replace("b", "whole", 1), tmp_path / names[1].replace("b", "parts", 1)
    impute(model, file, whole, dated=dated)
    impute(model, file, parts, *MANY, dated=dated)
    assert parts.read_bytes() == whole.read_bytes()
    assert len(rd.read_events(whole, start="begin" if dated else None)) == NUMBER
    assert (
        rd.read_events(whole, start="begin" if dated else None).columns["imputed"].astype(str).tolist().count("True")
        > 5
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [names[0], whole.name, parts.name, f"{whole.name}.draws", f"{parts.name}.draws"]
    )


@pytest.mark.parametrize("size", [2, 1000])
def test_the_size_of_chunks_does_not_matter(model, tmp_path, size):
    file = write(events(order="time"), tmp_path / "a.parquet")
    impute(model, file, tmp_path / "whole.parquet", "--no-draws", "--cost", "5")
    impute(model, file, tmp_path / "parts.parquet", "--no-draws", "--cost", "5", "--chunk-streams", str(size))
    assert (tmp_path / "parts.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert not list(tmp_path.glob("*.draws"))


def test_text_dates_with_nanoseconds_and_integer_types_are_settled_for_all_chunks(tmp_path):
    """The last stream alone has nanoseconds, the highest type and a word among numbers."""
    MODEL = rd.Poisson([1e-3] * 4)
    folder = rd.save_model(MODEL, tmp_path / "model")
    lines = ["stream,time,type,end,code"]
    for i in range(30):
        fine = ".123456789" if i == 29 else ""
        for hour in range(3 + i % 3):
            code, kind = ("x7" if i == 29 else str(hour)), 3 if i == 29 else hour % 2
            lines.append(f"{i},2024-01-01 0{hour}:00:00{fine},{kind},2024-01-02 00:00:00,{code}")
    file = tmp_path / "a.csv"
    file.write_text("\n".join(lines) + "\n")
    for name, more in (("whole", []), ("parts", ["--chunk-streams", "4"])):
        run("impute", str(folder), str(file), "-o", str(tmp_path / f"{name}.csv"), "-m", "0.9", "--unit", "minute",
            "--particles", "8", *more)  # fmt: skip
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert b",,true," in (tmp_path / "whole.csv").read_bytes(), "nothing was imputed, so nothing was tested"


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_json_lines(model, tmp_path, suffix):
    complete = rd.simulate(MODEL, NUMBER, end=240.0, seed=3)
    observed, _ = rd.ByType({"cause": 0.6}).censor(complete, seed=4)
    rd.write_events(observed, tmp_path / f"a{suffix}")
    impute(model, tmp_path / f"a{suffix}", tmp_path / f"whole{suffix}")
    impute(model, tmp_path / f"a{suffix}", tmp_path / f"parts{suffix}", *MANY)
    assert (tmp_path / f"parts{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


def test_json_lines_without_an_event_take_the_types_of_the_others(tmp_path):
    folder = rd.save_model(rd.Poisson([0.5, 0.5]), tmp_path / "model")
    lines = [
        {"id": i, "horizon": [0, 9.0], "times": [1.0] if i > 20 else [], "types": [1] if i > 20 else []}
        for i in range(30)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    for name, more in (("whole", []), ("parts", ["--chunk-streams", "4"])):
        run("impute", str(folder), str(tmp_path / "a.jsonl"), "-o", str(tmp_path / f"{name}.jsonl"), "-m", "0.9",
            "--cost", "3", "--particles", "8", *more)  # fmt: skip
    whole = (tmp_path / "whole.jsonl").read_bytes()
    assert (tmp_path / "parts.jsonl").read_bytes() == whole
    assert json.loads(whole.splitlines()[0])["types"], "nothing was imputed, so nothing was tested"


def test_a_folder_of_parquet_files_becomes_one(model, tmp_path):
    """Partitioned by hour, so that streams lie in several files; all rows of a stream end in one part."""
    frame = events(order="time")
    for number, (hour, rows) in enumerate(frame.groupby(frame["time"].dt.hour, sort=False)):
        folder = tmp_path / "in" / f"hour={hour:02d}"
        folder.mkdir(parents=True)
        write(rows.reset_index(drop=True), folder / f"part-{number}.parquet")
    (tmp_path / "in" / "_SUCCESS").touch()
    impute(model, tmp_path / "in", tmp_path / "out", *MANY)
    impute(model, tmp_path / "in", tmp_path / "whole.parquet")
    impute(model, tmp_path / "in", tmp_path / "parts.parquet", *MANY)
    assert (tmp_path / "parts.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    parts = [pq.read_table(path).to_pandas() for path in sorted((tmp_path / "out").glob("*.parquet"))]
    assert len(parts) > 3
    owners = [set(part["stream"]) for part in parts]
    assert sum(map(len, owners)) == len(set.union(*owners)) == frame["stream"].nunique()
    by = ["stream", "time", "imputed", "type"]
    whole = pq.read_table(tmp_path / "whole.parquet").to_pandas().sort_values(by, ignore_index=True)
    pd.testing.assert_frame_equal(pd.concat(parts).sort_values(by, ignore_index=True), whole)
    assert "hour" in whole


def test_streams_that_end_at_different_dates_have_one_axis_and_one_unit():
    """The unit of time is the same as for the whole, whichever streams a chunk has."""
    from retrodict.events.io.survey import _Spread

    generator = np.random.default_rng(0)
    for _ in range(300):
        gaps = (10 ** generator.uniform(9, 14.5, generator.integers(1, 9))).astype(np.int64)
        gaps = np.concatenate([gaps, generator.choice([60, 3600, 86400, 0], generator.integers(0, 4)) * 10**9])
        seen = _Spread()
        for part in np.array_split(gaps, 3):
            seen.add(part)
        for seconds in (60, 3600, 86400):
            assert (np.median(seen.middle()) >= seconds * 1e9) == (np.median(gaps[gaps > 0]) >= seconds * 1e9)


def test_draws_of_a_chunk_can_be_asked(model, tmp_path):
    file = write(events(), tmp_path / "a.parquet")
    impute(model, file, tmp_path / "out.parquet", *MANY)
    folders = sorted((tmp_path / "out.parquet.draws").iterdir())
    said = run("ask", str(folders[1]), "--type", "cause")
    assert "s7" in said or "s8" in said
    assert sum(len(rd.load_posterior(folder)) for folder in folders) == NUMBER


def test_one_long_stream_settles_the_particles_of_all_chunks(tmp_path, monkeypatch):
    """Memory is short for the longest stream alone; a run that goes on keeps what it began with."""
    model = rd.save_model(rd.Poisson([0.5, 0.5]), tmp_path / "model")
    short = rd.simulate(rd.Poisson([0.5, 0.5]), 12, end=8.0, seed=0)
    long = rd.simulate(rd.Poisson([0.5, 0.5]), 1, end=900.0, seed=1)
    rd.write_events(join([short, long], [*range(13)]), tmp_path / "in.parquet")
    given = ["impute", model, tmp_path / "in.parquet", "-m", "0.3"]
    run("--limit", "memory=100000000", *given, "-o", tmp_path / "whole.parquet", "--chunk-streams", "0")
    parts = [*given, "-o", tmp_path / "parts.parquet", "--chunk-streams", "4"]
    with monkeypatch.context() as patch:
        done = stop_after(patch, 2, "sample")
        run("--limit", "memory=100000000", *parts, code=130)
    assert len(done) == 2
    run("--limit", "memory=50000000", *parts, "--resume")
    assert (tmp_path / "parts.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    folders = [tmp_path / "whole.parquet.draws", *(tmp_path / "parts.parquet.draws").iterdir()]
    (particles,) = {rd.load_posterior(folder).num_particles for folder in folders}
    assert 50 < particles < 200
