"""CSV with other separators than commas, as spreadsheets of some countries write it: read, and written again so."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app

TEXT = (
    "Schicht;Zeit;Art;Notiz;Preis\n"
    "a;21.05.2024 04:13:25;an;x, y;3,50\n"
    'a;21.05.2024 05:00:00;aus;"zwei; drei";\n'
    'b;22.05.2024 04:00:00;an;"""so""";1,00\n'
    "b;22.05.2024 06:30:00;an;;2\n"
)
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")
COLUMNS = {"stream": "Schicht", "time": "Zeit", "type": "Art", "dates": "day-first"}


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_table_is_written_with_the_separator_that_it_came_with(tmp_path, mark):
    text = TEXT.replace(";", mark) if mark != ";" else TEXT
    (tmp_path / "in.csv").write_text(text)
    streams = rd.read_events(tmp_path / "in.csv", **COLUMNS)
    assert (len(streams), streams.num_events, streams.types) == (2, 4, ("an", "aus"))
    rd.write_events(streams, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == text
    filled = rd.fill(streams, streams.keep(np.zeros(4, dtype=bool)))
    rd.write_events(filled, tmp_path / "filled.csv")
    assert (tmp_path / "filled.csv").read_text().startswith(mark.join(["Schicht", "Zeit", "Art", "Notiz", "Preis", ""]))


def test_the_same_events_as_with_commas(tmp_path):
    (tmp_path / "a.csv").write_text("stream;time;type\na;1.5;u\nb;2;v\n")
    (tmp_path / "b.csv").write_text("stream,time,type\na,1.5,u\nb,2,v\n")
    ours, theirs = (rd.read_events(tmp_path / f"{name}.csv") for name in "ab")
    assert ours.event_times.tolist() == theirs.event_times.tolist()
    assert (ours.ids, ours.types) == (theirs.ids, theirs.types)


def test_a_comma_in_the_header_settles_it(tmp_path):
    (tmp_path / "a.csv").write_text("stream,time,type,a;b\na,1,u,x;y\n")
    assert rd.read_events(tmp_path / "a.csv").columns["a;b"].tolist() == ["x;y"]


def test_impute_gives_semicolons_back_and_takes_all_streams_at_once(tmp_path):
    (tmp_path / "in.csv").write_text(TEXT)
    model = rd.Poisson([1.0, 0.5])
    model.types = ("an", "aus")
    model.save(tmp_path / "model")
    words = ["impute", tmp_path / "model", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "-m", "aus=0.5"]
    words += [f"--{name}={value}" for name, value in COLUMNS.items()]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, (done.output, done.exception)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "Schicht;Zeit;Art;Notiz;Preis;imputed;probability;earliest;latest"
    assert [line for line in lines if ";false;" in line] == [line + ";false;;;" for line in TEXT.splitlines()[1:]]
    refused = CliRunner().invoke(app, [*map(str, words), "--chunk-streams", "1"])
    assert "only CSV (UTF-8, with commas)" in refused.output + str(refused.exception)
    again = ["decode", tmp_path / "out.csv.draws", "--cost", "0.1", "-o", tmp_path / "again.csv"]
    assert CliRunner().invoke(app, list(map(str, again))).exit_code == 0
    assert (tmp_path / "again.csv").read_text().splitlines()[:3] == lines[:1] + [
        line for line in lines[1:] if ";false;" in line
    ][:2]
