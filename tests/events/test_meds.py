"""MEDS data sets: shards come back as they were, births and deaths are no events, and codes can be chosen."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.errors import DataError, DataNotice, LimitError, WriteError
from tests.events.test_round_trips import stream_sets

SCHEMA = pa.schema(
    [
        ("subject_id", pa.int64()),
        ("time", pa.timestamp("us")),
        ("code", pa.string()),
        ("numeric_value", pa.float32()),
        ("text_value", pa.large_string()),
    ]
)
NOON = datetime.datetime(2020, 1, 1, 12)
HOUR = datetime.timedelta(hours=1)


def shard(rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 5
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


FIRST = shard(
    [
        (1, None, "GENDER//F", None, None),
        (1, datetime.datetime(1950, 3, 1), "MEDS_BIRTH", None, None),
        (1, NOON, "ADMISSION//ER", None, "by car"),
        (1, NOON, "LAB//K//mmol/L", 4.5, None),
        (1, NOON + 3 * HOUR, "LAB//Na//mmol/L", 140.0, None),
        (1, NOON + 5 * HOUR, "MEDS_DEATH//HOSPITAL", None, None),
        (1, NOON + 9 * HOUR, "BILLING", None, None),
        (2, None, "GENDER//M", None, None),
    ]
)
SECOND = shard([(7, NOON, "LAB//K//mmol/L", 1.0, None), (7, NOON + HOUR, "LAB//K//mmol/L", 2.0, None)])


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "meds"
    for name, table in (("train/0", FIRST), ("tuning/0", SECOND)):
        (root / "data" / name).parent.mkdir(parents=True)
        pq.write_table(table, root / "data" / f"{name}.parquet")
    (root / "metadata").mkdir()
    (root / "metadata" / "dataset.json").write_text('{"dataset_name": "toy"}')
    return root


def read(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNotice)
        return rd.read_events(*arguments, **options)


def tables(root):
    return {p.relative_to(root).as_posix(): pq.read_table(p) for p in sorted((root / "data").rglob("*.parquet"))}


def put_in(streams, hours, kind):
    """An imputed event of a type in each stream that is long enough."""
    made = []
    for stream in streams:
        times = [stream.start + hours] if stream.start + hours < stream.end else []
        made.append(rd.EventStream(times, [kind] * len(times), start=stream.start, end=stream.end, id=stream.id))
    return rd.fill(streams, rd.StreamSet(made, types=streams.types, axis=streams.axis))


def test_births_deaths_and_static_rows_are_no_events(folder):
    with pytest.warns(DataNotice) as notices:
        streams = rd.read_events(folder)
    said = " ".join(str(notice.message) for notice in notices)
    assert "to end at its death, else at its last dated row" in said
    assert "1 row after the death of 1 subject" in said
    assert "1 stream has no dated event" in said
    assert streams.ids == (1, 2, 7)
    assert streams.types == ("ADMISSION//ER", "LAB//K//mmol/L", "LAB//Na//mmol/L")
    assert streams.lengths.tolist() == [3, 0, 2]
    assert streams.durations.tolist() == [5, 0, 1]  # hours from admission to death, though the bill came later
    assert read(folder, start="MEDS_BIRTH").durations[0] > 69 * 365 * 24


def test_a_given_end_does_not_outlive_a_subject(folder):
    streams = read(folder, start="2020-01-01", end="2020-01-03")
    assert streams.ends.tolist() == [17, 48, 48]
    assert streams.durations[1] == 48  # watched, and nothing happened


def test_codes_are_chosen_by_depth_or_by_name(folder):
    assert read(folder, codes=1).types == ("ADMISSION", "LAB")
    assert read(folder, codes=2).types == ("ADMISSION//ER", "LAB//K", "LAB//Na")
    some = read(folder, codes={"LAB//*": "lab"})
    assert (some.types, some.lengths.tolist(), some.durations.tolist()) == (("lab",), [2, 0, 2], [5, 0, 1])
    assert read(folder, codes={"LAB//K*": "K", "MEDS_DEATH*": "death"}).types == ("K", "death")
    with pytest.raises(DataError, match="codes= chooses none of the codes, such as 'GENDER//F'"):
        read(folder, codes={"HR": "heart rate"})
    with pytest.raises(DataError, match="codes= is 0"):
        read(folder, codes=0)
    with pytest.raises(DataError, match="codes= is for MEDS tables alone"):
        read(pa.table({"stream": [1], "time": [1.0], "type": ["a"]}), codes=1)


def test_shards_and_metadata_come_back_as_they_were(folder, tmp_path):
    rd.write_events(read(folder), tmp_path / "again")
    assert tables(tmp_path / "again") == tables(folder)
    assert (tmp_path / "again/metadata/dataset.json").read_text() == '{"dataset_name": "toy"}'
    for source in (folder / "data", folder / "data/train", folder / "data/train/0.parquet"):
        rd.write_events(read(source), tmp_path / f"of {source.name}")
    assert sorted(p.name for p in (tmp_path / "of data").iterdir()) == ["train", "tuning"]
    assert pq.read_table(tmp_path / "of 0.parquet").equals(FIRST)


def test_imputed_rows_stand_in_time_order_in_the_shard_of_their_subject(folder, tmp_path):
    streams = read(folder, codes={"LAB//K*": "lab"}, end="2020-01-02")  # sodium is set aside
    rd.write_events(put_in(streams, 4, 0), tmp_path / "filled")
    found = tables(tmp_path / "filled")
    whole = found["data/train/0.parquet"]
    assert whole.filter(pa.compute.invert(whole["imputed"])).select(SCHEMA.names).equals(FIRST)
    assert whole.schema.field("numeric_value").type == pa.float32()
    times = whole["time"].to_pylist()[2:-1]
    assert times == sorted(times)
    assert whole["code"].to_pylist()[5] == "lab"
    assert found["data/tuning/0.parquet"]["imputed"].to_pylist() == [False, False, True]
    assert whole.column_names[-4:] == ["imputed", "probability", "earliest", "latest"]
    again = read(tmp_path / "filled", codes={"LAB//K*": "lab"}, end="2020-01-02")
    assert again.types == ("lab",)  # an imputed event has its type for a code
    assert again.num_events == streams.num_events + 2


def test_some_subjects_are_written_with_all_of_their_rows(folder, tmp_path):
    rd.write_events(read(folder)[:1], tmp_path / "one")
    assert tables(tmp_path / "one")["data/train/0.parquet"].equals(FIRST[:7])
    assert len(tables(tmp_path / "one")) == 1


def test_frames_of_meds_are_known_by_their_columns(folder):
    for frame in (FIRST, FIRST.to_pandas(), pytest.importorskip("polars").from_arrow(FIRST)):
        streams = read(frame, codes=1)
        assert streams.types == ("ADMISSION", "LAB")
        back = streams.to_table()
        assert type(back) is type(frame)
        assert back.equals(frame)


def test_a_folder_is_never_replaced(folder, tmp_path):
    streams = read(folder)
    with pytest.raises(WriteError, match=r"this folder is not empty.*new folder"):
        rd.write_events(streams, folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="a file has its name"):
        rd.write_events(streams, tmp_path / "file")
    assert tables(folder)["data/train/0.parquet"].equals(FIRST)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(1, NOON, None, None, None)], r"0\.parquet, stream 1, row 1: .*time but no type"),
        ([(None, NOON, "HR", None, None)], r"0\.parquet, row 1: .*stream id is missing"),
    ],
)
def test_an_error_names_the_shard_and_its_row(folder, rows, words):
    pq.write_table(shard(rows), folder / "data/tuning/0.parquet")
    with pytest.raises(DataError, match="tuning/" + words):
        read(folder)


def test_what_is_no_shard_is_refused(folder, tmp_path):
    pq.write_table(pa.table({"subject_id": [1], "time": [1.0]}), folder / "data/tuning/0.parquet")
    with pytest.raises(DataError, match="this is no MEDS shard: there is no column 'code'"):
        read(folder)
    (folder / "data/tuning/0.parquet").write_bytes(b"PAR1 hello")
    with pytest.raises(DataError, match=r"tuning/0\.parquet: this is not a Parquet file"):
        read(folder)
    with pytest.raises(DataError, match="there is no such folder"):
        read(tmp_path / "nowhere.meds")
    numbers = rd.StreamSet([rd.EventStream([1.0], [0], end=2.0)])
    with pytest.raises(DataError, match=r"plain numbers.*MEDS has dates"):
        rd.write_events(numbers, tmp_path / "numbers")


def test_rows_are_counted_over_all_shards(folder):
    with rd.limits(rows=9), pytest.raises(LimitError, match=r"the shards have 10 rows or more.*limits\(rows=10\)"):
        read(folder)


def test_a_name_from_a_damaged_file_cannot_leave_the_folder(folder, tmp_path):
    streams = read(folder)
    metadata = streams.source.data.schema.metadata
    worse = {b"retrodict.meds": metadata[b"retrodict.meds"].replace(b"train/0.parquet", b"../../harm.parquet")}
    object.__setattr__(streams.source, "data", streams.source.data.replace_schema_metadata(worse))
    rd.write_events(streams, tmp_path / "a" if (tmp_path / "a").mkdir() else tmp_path / "a" / "b")
    assert not list(tmp_path.glob("harm*"))
    assert [p.name for p in (tmp_path / "a/b").rglob("*.parquet")] == ["0.parquet"]


@settings(max_examples=40, deadline=None)
@given(stream_sets(), st.booleans())
def test_any_dated_streams_go_through_a_data_set(tmp_path_factory, streams, numbered):
    if not streams.axis.is_calendar or not len(streams) or not streams.num_events:
        return
    if (streams.axis.origin or 0) % 1000:  # MEDS has microseconds
        return
    if numbered:
        streams = streams.replace(ids=range(len(streams)))
    path = tmp_path_factory.mktemp("round") / "meds"
    rd.write_events(streams, path)
    again = read(path)
    assert (again.types, again.axis) == (streams.types, streams.axis)
    for name in ("event_times", "event_types", "offsets", "starts", "ends"):
        assert np.array_equal(getattr(again, name), getattr(streams, name)), name
    assert np.array_equal(again.columns["count"], streams.columns["count"])
    if not all(isinstance(name, str) for name in streams.ids):
        assert again.ids == streams.ids
    rd.write_events(again, path.with_name("again"))
    assert tables(path.with_name("again")) == tables(path)


def test_the_commands_read_and_write_data_sets(folder, tmp_path):
    run = CliRunner()
    done = run.invoke(app, ["describe", str(folder), "--codes", "LAB//*=lab", "--end", "2020-01-02"])
    assert done.exit_code == 0, done.output
    assert "lab" in done.output
    words = ["censor", str(folder), "--codes", "1", "-m", "LAB=0.9", "-o", str(tmp_path / "seen"), "--hidden",
             str(tmp_path / "hidden.parquet")]  # fmt: skip
    done = run.invoke(app, words)
    assert done.exit_code == 0, done.output
    seen = tables(tmp_path / "seen")
    assert seen["data/train/0.parquet"]["code"].to_pylist()[:2] == ["GENDER//F", "MEDS_BIRTH"]
    assert read(tmp_path / "seen", codes=1).durations.tolist() == [5, 0, 1]  # as they were when all was seen
    done = run.invoke(app, words)
    assert done.exit_code != 0
    assert "not empty" in str(done.exception) + done.output


def test_a_table_with_other_times_is_written_with_the_columns_of_meds(tmp_path):
    table = FIRST.filter(FIRST["time"].is_valid()).rename_columns({"time": "when"})
    streams = read(table, stream="subject_id", time="when", type="code")
    rd.write_events(streams, tmp_path / "made")
    again = read(tmp_path / "made")
    assert again.num_events > 0
    assert "time" in tables(tmp_path / "made")["data/0.parquet"].column_names


def test_codes_that_another_program_stored_as_bytes_are_read(tmp_path):
    table = pa.table({"who": [1, 1, 2], "when": [NOON, NOON + HOUR, NOON], "what": ["u", "v", "u"]})
    streams = read(table, stream="who", time="when", type="what")
    rd.write_events(streams, tmp_path / "made")
    file = tmp_path / "made/data/0.parquet"
    written = pq.read_table(file)
    where, codes = written.schema.get_field_index("code"), written["code"].cast(pa.binary())
    pq.write_table(written.set_column(where, pa.field("code", pa.binary()), codes), file)
    again = read(tmp_path / "made")
    assert (again.types, again.num_events) == (streams.types, streams.num_events)
