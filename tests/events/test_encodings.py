"""CSV that is not UTF-8, as Excel on Windows saves it: read where its encoding is named, and written in the same."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.cli.common import in_options

TEXT = (
    "Straße;Zeit;Art;Preis\n"
    "Müllerstraße;21.05.2024 04:13;Öffnen;3 €\n"
    'Müllerstraße;21.05.2024 05:00;schließen;"5 €; bar"\n'
    "Café;22.05.2024 04:00;Öffnen;\n"
)
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")
COLUMNS = {"stream": "Straße", "time": "Zeit", "type": "Art", "dates": "day-first"}
TYPES = ("schließen", "Öffnen")


def command(*words: object) -> str:
    """What a command says, or the error that ends it."""
    done = CliRunner().invoke(app, list(map(str, words)))
    assert (done.exit_code == 0) == (done.exception is None)
    return done.output + str(done.exception or "")


@pytest.fixture
def model(tmp_path):
    model = rd.Poisson([1.0, 0.5])
    model.types = TYPES
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("encoding", ["cp1252", "iso8859-15", "utf-16", "utf-8"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_table_comes_back_in_the_encoding_that_it_was_read_in(tmp_path, encoding, suffix):
    pack = gzip.compress if suffix.endswith("gz") else bytes
    unpack = gzip.decompress if suffix.endswith("gz") else bytes
    (tmp_path / f"in{suffix}").write_bytes(pack(TEXT.encode(encoding)))
    streams = rd.read_events(tmp_path / f"in{suffix}", **COLUMNS, encoding=encoding)
    assert (streams.ids, streams.types) == (("Müllerstraße", "Café"), TYPES)
    rd.write_events(streams, tmp_path / f"out{suffix}")
    assert unpack((tmp_path / f"out{suffix}").read_bytes()).decode(encoding) == TEXT
    filled = rd.fill(streams, streams.keep(np.zeros(3, dtype=bool)))
    rd.write_events(filled[:1], tmp_path / "filled.csv")
    assert (tmp_path / "filled.csv").read_bytes().decode(encoding).startswith("Straße;Zeit;Art;Preis;imputed")
    rd.write_events(streams, tmp_path / "out.parquet")
    assert rd.read_events(tmp_path / "out.parquet", **COLUMNS).types == TYPES
    assert streams.to_table()["Preis"].tolist()[0] == "3 €"


@pytest.mark.parametrize(
    ("data", "encoding", "problem", "remedy"),
    [
        (TEXT.encode("cp1252"), None, "the file is not UTF-8 text", "pass --encoding cp1252 if Excel on Windows saved"),
        (TEXT.encode() + b"a\n\x81", "cp1252", "not cp1252 text (line 6 has the byte 0x81)", "encoding that it has"),
        (b"stream,time\n\x81", "cp1252", "not cp1252 text (line 2 has the byte 0x81)", "or save it as UTF-8"),
        (b"x", "klingon", "'klingon', which is no encoding of text", "such as --encoding cp1252 (Excel on Windows)"),
        (b"x", "zlib", "'zlib', which is no encoding of text", "give a known one"),
        (b"x", "a\0", "which is no encoding of text", "give a known one"),
        (b"x", 5, "5, not a word", ""),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_option_as_the_remedy(tmp_path, data, encoding, problem, remedy):
    (tmp_path / "in.csv").write_bytes(data)
    with pytest.raises(rd.DataError) as refused:
        rd.read_events(tmp_path / "in.csv", encoding=encoding)
    assert problem in str(refused.value)
    assert remedy in in_options(str(refused.value))


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".xes", ".json", "", ".pkl"])
def test_what_is_no_csv_has_no_encoding(model, tmp_path, suffix):
    file = tmp_path / f"in{suffix}"
    file.write_bytes(b"x") if suffix else file.mkdir()
    with pytest.raises(rd.DataError, match=r"encoding= is for CSV files alone.*leave encoding= out"):
        rd.read_events(file, encoding="cp1252")
    for words in ([], ["--chunk-streams", 1]):
        said = command("impute", model, file, "-o", tmp_path / "out.csv", "-m", 0.5, "--encoding", "cp1252", *words)
        assert "for CSV files alone" in said or "only CSV (UTF-8, with commas)" in said


def test_tables_in_memory_have_no_encoding():
    frame = pd.DataFrame({"stream": ["a"], "time": [1.0], "type": ["x"]})
    for table in (frame, [{"time_since_start": [0.0], "type_event": [0]}]):
        with pytest.raises(rd.DataError, match="encoding= is for CSV files alone"):
            rd.read_events(table, encoding="cp1252")


def words_of(folder, text: str = TEXT) -> list[object]:
    (folder / "in.csv").write_bytes(text.encode("cp1252"))
    words = ["-m", "Öffnen=0.5", "--particles", 16, "--filtering", "--encoding", "cp1252"]
    return [*words, *(f"--{name}={value}" for name, value in COLUMNS.items())]


def test_impute_decode_report_and_censor_give_the_encoding_back(model, tmp_path):
    words, out = words_of(tmp_path), tmp_path / "out.csv"
    hidden = TEXT.replace("04:13", "04:31")
    for name, encoding in {"truth.csv": "cp1252", "truth-8.csv": "utf-8"}.items():
        (tmp_path / name).write_bytes(hidden.encode(encoding))
    for truth in ("truth.csv", "truth-8.csv"):
        page = ["--report", tmp_path / "page.html", "--truth", tmp_path / truth, "--end", "23.05.2024"]
        assert "wrote" in command("impute", model, tmp_path / "in.csv", "-o", out, *words, *page)
        assert "wrote" in command("report", f"{out}.draws", "-o", tmp_path / "a.html", "--truth", tmp_path / truth)
    lines = out.read_bytes().decode("cp1252").splitlines()
    assert lines[0].startswith("Straße;Zeit;Art;Preis;")
    assert all(any(line.startswith(row) for line in lines) for row in TEXT.splitlines())
    assert "wrote" in command("decode", f"{out}.draws", "--cost", 0.1, "-o", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes().decode("cp1252").splitlines()[0] == lines[0]
    words = [word for word in words if word not in ("--particles", 16, "--filtering")]
    assert "wrote" in command("censor", tmp_path / "in.csv", "-o", tmp_path / "seen.csv", *words)
    assert "Straße" in (tmp_path / "seen.csv").read_bytes().decode("cp1252")


def test_chunks_are_refused_before_any_work_and_name_the_remedy(model, tmp_path):
    words = words_of(tmp_path, TEXT.replace(";", ","))
    for more in (["--chunk-streams", 1], ["--cluster", "local"]):
        said = command("impute", model, tmp_path / "in.csv", "-o", tmp_path / "out.csv", *words, *more)
        assert "only CSV (UTF-8, with commas)" in said or "needs Ray" in said
    words = [word for word in words if word not in ("--encoding", "cp1252")]
    said = command("impute", model, tmp_path / "in.csv", "-o", tmp_path / "out.csv", *words, "--chunk-streams", 1)
    assert "this is not CSV in UTF-8" in said
    assert "encoding='cp1252' if Excel on Windows" in said
    assert not (tmp_path / "out.csv").exists()


def test_a_type_of_the_model_that_the_encoding_lacks_is_refused_before_any_work(tmp_path):
    model = rd.Poisson([1.0, 0.5, 1.0])
    model.types = (*TYPES, "開く")
    model.save(tmp_path / "model")
    words = words_of(tmp_path)
    said = command("impute", tmp_path / "model", tmp_path / "in.csv", "-o", tmp_path / "out.csv", *words)
    assert "cp1252, as it was read, has no '開' (in '開く'). Remedy: write .parquet" in said
    assert not (tmp_path / "out.csv.draws").exists()
    assert "wrote" in command("impute", tmp_path / "model", tmp_path / "in.csv", "-o", tmp_path / "out.parquet", *words)


def test_a_text_that_the_encoding_lacks_leaves_no_file_behind(tmp_path):
    (tmp_path / "in.csv").write_bytes(TEXT.encode("cp1252"))
    streams = rd.read_events(tmp_path / "in.csv", **COLUMNS, encoding="cp1252").with_types([*TYPES, "開く"])
    last = [rd.EventStream([s.end], [2], start=s.start, end=s.end, id=s.id) for s in streams]
    filled = rd.fill(streams, rd.StreamSet(last, types=streams.types, axis=streams.axis))
    with pytest.raises(rd.DataError, match="cp1252, as it was read, has no '開'"):
        rd.write_events(filled, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
