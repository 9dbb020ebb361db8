"""What a first user saw of their own dated table: it comes back, in its zone, and nothing of theirs is replaced."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

import retrodict as rd
from tests.cli.test_commands import run

NAMES = {"stream": "driver", "time": "when", "type": "what", "start": "shift_start", "end": "shift_end"}
OPTIONS = [word for role, name in NAMES.items() for word in (f"--{role}", name)]
HEADER = "fare,driver,when,what,shift_start,shift_end"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of causes and effects, in minutes."""
    model = rd.Hawkes([0.02, 0.001], [[0.0, 0.9], [0.0, 0.0]], 0.1)
    model.types, model.time_unit = ("cause", "effect"), "minute"
    return str(rd.save_model(model, tmp_path_factory.mktemp("model")))


def rows(offset: str = "-07:00") -> list[str]:
    """Effects of two drivers, latest first, one without a fare."""
    lines = []
    for driver in ("ann", "bob"):
        for hour in (11, 9, 8):
            fare = "" if hour == 9 else f"{hour}.50"
            day = f"2013-07-0{1 if driver == 'ann' else 2}T"
            bounds = f"{day}06:00:00{offset},{day}12:00:00{offset}"
            lines.append(f"{fare},{driver},{day}{hour:02d}:30:00{offset},effect,{bounds}")
    return lines


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "observed.csv"
    file.write_text("\n".join([HEADER, *rows()]) + "\n")
    return file


def impute(model, table, output, *more):
    options = [] if table.suffix == ".jsonl" else OPTIONS
    return run("impute", model, str(table), "-o", str(output), "-m", "cause=1", "--filtering", "--particles", "20",
               *options, *more)  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_minus_seven_hours_came_back_as_utc_and_shift_start_as_start(model, table, tmp_path, suffix):
    output = tmp_path / f"out.{suffix}"
    impute(model, table, output)
    data = output.read_bytes()
    lines = (gzip.decompress(data) if suffix.endswith("gz") else data).decode().splitlines()
    assert lines[0] == HEADER + ",imputed,probability,earliest,latest"
    assert [line.removesuffix(",false,,,") for line in lines[1:] if ",false," in line] == rows()
    new = [line.split(",") for line in lines[1:] if ",true," in line]
    assert new
    assert all(time.endswith("-07:00") for line in new for time in (line[2], *line[-2:]))
    assert all(line[0] == "" for line in new)
    impute(model, table, output)
    assert output.read_bytes() == data
    truth = tmp_path / "hidden.csv"
    truth.write_text("\n".join([HEADER, *(row.replace("effect", "cause") for row in rows())]) + "\n")
    assert "hours hold" not in run("evaluate", str(truth), str(output), *OPTIONS, "--unit", "hour").output


def test_imputed_rows_follow_the_row_of_the_event_before_them(model, table, tmp_path):
    impute(model, table, tmp_path / "out.csv")
    frame = pd.read_csv(tmp_path / "out.csv", parse_dates=["when"])
    for _, own in frame.groupby("driver"):
        times, new = own["when"].to_numpy(), own["imputed"].to_numpy()
        seen = times[~new]
        for i in np.flatnonzero(new):
            earlier = seen[seen <= times[i]]
            if len(earlier):
                assert times[:i][~new[:i]][-1] == earlier.max()
            else:
                assert times[i:][~new[i:]][0] == seen.min()


def test_with_nothing_imputed_the_result_columns_were_absent(model, table, tmp_path):
    for suffix in ("csv", "parquet"):
        impute(model, table, tmp_path / f"out.{suffix}", "--cost", "1e-9")
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert frame.columns.tolist() == [*HEADER.split(","), "imputed", "probability", "earliest", "latest"]
    assert not frame["imputed"].any()
    assert len(frame) == 6
    assert str(frame["earliest"].dtype) == str(frame["when"].dtype)
    assert (tmp_path / "out.csv").read_text().startswith(HEADER + ",imputed,probability,earliest,latest\n")


@pytest.mark.parametrize("name", ["imputed", "probability", "earliest", "latest"])
def test_a_column_imputed_of_ones_own_was_overwritten(model, tmp_path, name, monkeypatch):
    monkeypatch.setattr("retrodict.smc.impute.choose", None)  # refused before anything is sampled
    table = tmp_path / "own.csv"
    table.write_text("\n".join([HEADER.replace("fare", name), *rows()]) + "\n")
    with pytest.raises(rd.DataError, match=f"the table has a column '{name}' of its own.*rename"):
        impute(model, table, tmp_path / "out.csv")
    with pytest.warns(rd.DataNotice, match="time order"):
        observed = rd.read_events(table, **NAMES)
    with pytest.raises(rd.DataError, match=f"'{name}'"):
        rd.impute(observed, rd.Filtering(rd.load_model(model), rd.ByType({"cause": 1.0})))
    assert not (tmp_path / "out.csv").exists()


def test_earliest_and_latest_were_minutes_since_midnight(model, table, tmp_path):
    impute(model, table, tmp_path / "out.csv")
    frame = pd.read_csv(tmp_path / "out.csv").query("imputed")
    when, earliest, latest = (pd.to_datetime(frame[name]) for name in ("when", "earliest", "latest"))
    assert ((earliest <= when) & (when <= latest)).all()
    with pytest.warns(rd.DataNotice, match="time order"):
        again = rd.read_events(tmp_path / "out.csv", **NAMES)
    new = again.columns["imputed"].astype(bool)
    assert (again.columns["earliest"][new] <= again.event_times[new]).all()
    hours = again.with_unit("hour")
    assert np.allclose(hours.columns["latest"][new] * 60, again.with_unit("minute").columns["latest"][new])


def test_output_equal_to_the_input_overwrote_it(model, table, tmp_path):
    before = table.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for output, more in ((table, ()), (link, ()), (tmp_path / "out.csv", ("--draws", str(table)))):
        with pytest.raises(rd.DataError, match="would replace this file, which is read"):
            impute(model, table, output, *more)
    with pytest.raises(rd.DataError, match="--draws would replace this file, which --output writes"):
        impute(model, table, tmp_path / "a.parquet", "--draws", str(tmp_path / "a.parquet"))
    with pytest.raises(rd.DataError, match="--output would replace"):
        run("censor", str(table), *OPTIONS, "-m", "effect=0.5", "-o", str(table))
    with pytest.raises(rd.DataError, match="--output would replace"):
        run("evaluate", str(table), str(table), *OPTIONS, "-o", str(table))
    assert table.read_bytes() == before


@pytest.mark.parametrize("name", ["observed.parquet", "draws.parquet", "table.parquet"])
def test_a_folder_of_draws_replaced_the_input(model, table, tmp_path, name):
    frame = pd.read_csv(table, dtype=str)
    frame.to_parquet(tmp_path / name)
    before = (tmp_path / name).read_bytes()
    with pytest.raises(rd.DataError, match="--draws would replace this file, which is read"):
        impute(model, tmp_path / name, tmp_path / "out.csv", "--draws", str(tmp_path))
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize(("suffix", "output"), [("csv", "csv"), ("csv", "parquet"), ("jsonl", "jsonl.gz")])
def test_draws_that_were_decoded_again_came_back_under_our_names_and_in_utc(model, table, tmp_path, suffix, output):
    """The unit of --cost stays the one that impute was given, and no row or column is lost."""
    first, again, loaded = (tmp_path / f"{name}.{output}" for name in ("first", "again", "loaded"))
    more = ["--unit", "hour", "--cost", "0.25"]
    if suffix == "jsonl":
        lines = [{"id": name, "horizon": [0, 6], "times": times, "types": ["effect"] * len(times), "note": name * 3}
                 for name, times in (("zoe", [5.5, 2.5]), ("ann", []), ("bob", [3.0]))]  # fmt: skip
        table = tmp_path / "observed.jsonl"
        table.write_text("".join(json.dumps(line) + "\n" for line in lines))
    impute(model, table, first, *more)
    said = run("decode", f"{first}.draws", "-o", str(again), "--cost", "0.25").output
    assert "cost 0.25 hours" in said
    assert again.read_bytes() == first.read_bytes()
    run("decode", f"{first}.draws", "-o", str(loaded), "--cost", "15", "--unit", "minute")
    assert loaded.read_bytes() == first.read_bytes()
    posterior = rd.load_posterior(f"{first}.draws")
    posterior.save(tmp_path / "twice")
    rd.write_events(rd.fill(rd.load_posterior(tmp_path / "twice").observed, posterior.consensus(15.0)), loaded)
    assert loaded.read_bytes() == first.read_bytes()


def test_a_table_that_does_not_fit_its_draws_is_refused(model, table, tmp_path):
    impute(model, table, tmp_path / "out.csv")
    draws = tmp_path / "out.csv.draws"
    rows = pd.read_parquet(draws / "rows.parquet")
    for wrong in (rows.assign(event=99), rows.assign(stream=-1), rows[:-1], rows.assign(event=0), rows[["stream"]]):
        wrong.to_parquet(draws / "rows.parquet", index=False)
        with pytest.raises(rd.DataError, match="this is not a saved posterior, or it is damaged"):
            rd.load_posterior(draws)


def test_draws_of_two_outputs_collided(model, table, tmp_path):
    for name in ("E_50.0.1.csv", "E_50.1.csv", "E_50.1.parquet"):
        impute(model, table, tmp_path / name)
        assert (tmp_path / f"{name}.draws" / "draws.parquet").exists()


def test_unit_hour_and_cost_20_meant_20_minutes(model, table, tmp_path):
    """The model counts minutes: 20 hours for an event and 1200 minutes are one cost, and all commands say so."""
    files = [tmp_path / name for name in ("hours.csv", "minutes.csv")]
    hours = impute(model, table, files[0], "--unit", "hour", "--cost", "0.25").output
    minutes = impute(model, table, files[1], "--unit", "minute", "--cost", "15").output
    assert "cost 0.25 hours" in hours
    assert "cost 15 minutes" in minutes
    assert files[0].read_bytes() == files[1].read_bytes()
    default = impute(model, table, files[0], "--unit", "hour").output
    cost = float(default.split("; cost ")[1].split()[0])
    assert 0.05 < cost < 1.5  # half a gap
    truth = tmp_path / "hidden.csv"
    truth.write_text("\n".join([HEADER, *(row.replace("effect", "cause") for row in rows())]) + "\n")
    scored = run("evaluate", str(truth), str(files[0]), *OPTIONS, "--unit", "hour", "--cost", "0.25").output
    assert "at cost 0.25 hours" in scored


def test_evaluate_compared_dates_counted_from_different_days(tmp_path):
    """The truth begins a day after the imputed table does, and its gaps are in another unit."""
    truth, guess = tmp_path / "truth.csv", tmp_path / "guess.csv"
    truth.write_text(
        "stream,time,type,start,end\n"
        + "".join(f"a,2013-07-02T{h}:00Z,x,2013-07-02,2013-07-03\n" for h in ("01", "05"))
    )
    guess.write_text(
        "stream,time,type,start,end\n"
        + "".join(f"a,2013-07-02T0{h}:0{m}Z,x,2013-07-01,2013-07-03\n" for h, m in ((1, 0), (1, 1), (1, 2), (5, 0)))
    )
    for path in (truth, guess):
        text = (
            path.read_text().replace("2013-07-01,", "2013-07-01T00:00Z,").replace("2013-07-02,", "2013-07-02T00:00Z,")
        )
        path.write_text(text.replace("2013-07-03\n", "2013-07-03T00:00Z\n"))
    scores = rd.score(rd.read_events(truth), rd.read_events(guess), [1.0], 0.1)
    assert (scores.events.matched, scores.events.imputed) == (2, 4)


def test_json_lines_come_back_with_every_key(model, tmp_path):
    """Keys nobody asked about, integers and the order of the lines stay; new events are put in."""
    table = tmp_path / "a.jsonl"
    first = '{"note": "kept", "types": ["effect", "effect"], "id": "b", "times": [300, 60.5], "horizon": [0, 360]'
    table.write_text(
        first + ', "columns": {"n": [1, null]}}\n{"id": 7, "horizon": [0, 360], "times": [], "types": []}\n'
    )
    with pytest.warns(rd.DataNotice, match="time order"):
        observed = rd.read_events(table, types=["cause", "effect"], unit="hour")
    times = np.array([1.0, 100.0])
    columns = {"probability": [0.5, 0.9], "earliest": times - 0.5, "latest": times + 0.5}
    guesses = [rd.EventStream(times, [0, 0], 0, 360, name, columns) for name in observed.ids]
    filled = rd.fill(observed, rd.StreamSet(guesses, types=observed.types, axis=observed.axis))
    for name in ("out.jsonl", "out.jsonl.gz"):
        rd.write_events(filled, tmp_path / name)
    one, two = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert list(one) == ["note", "types", "id", "times", "horizon", "columns"]
    assert (one["note"], one["id"], two["id"]) == ("kept", "b", 7)
    assert one["times"] == [300, 1.0, 60.5, 100.0]
    assert one["types"] == ["effect", "cause", "effect", "cause"]
    assert one["columns"]["n"] == [1, None, None, None]
    assert one["columns"]["imputed"] == [False, True, False, True]
    assert one["columns"]["earliest"] == [None, 0.5, None, 99.5]
    assert two["times"] == [1.0, 100.0]
    with pytest.warns(rd.DataNotice, match="time order"):
        assert rd.read_events(tmp_path / "out.jsonl.gz", types=observed.types).num_events == 6


@pytest.mark.parametrize("zone", ["-07:00", None])
def test_questions_with_dates_on_the_command_line(model, tmp_path, zone):
    table = tmp_path / "observed.csv"
    table.write_text("\n".join([HEADER, *rows(zone or "")]) + "\n")
    impute(model, table, tmp_path / "out.csv")
    draws, answer = tmp_path / "out.csv.draws", tmp_path / "answer.csv"
    stretch = ["--start", "2013-07-01T08:00", "--end", "2013-07-01T09:00"]
    assert "ann" in run("ask", str(draws), "--type", "cause", *stretch, "-o", str(answer)).output
    found = pd.read_csv(answer)
    frame = pd.read_parquet(draws / "draws.parquet")
    local = frame["time"] if zone is None else frame["time"].dt.tz_convert("Etc/GMT+7").dt.tz_localize(None)
    inside = frame[local.between("2013-07-01T08:00", "2013-07-01T09:00")]
    assert found["stream"].tolist() == ["ann"]
    assert found["expected"].iloc[0] == pytest.approx(inside["weight"].sum())
    assert found["probability"].iloc[0] == pytest.approx(inside.drop_duplicates("draw")["weight"].sum())
    with pytest.raises(rd.DataError, match="no draw has a type 'lunch'"):
        run("ask", str(draws), "--type", "lunch")
    rd.write_events(rd.simulate(rd.Poisson([1.0]), 1, end=1.0), tmp_path / "x.parquet")
    with pytest.raises(rd.DataError, match="these are no draws"):
        run("ask", str(tmp_path / "x.parquet"))


def test_evaluate_raised_a_type_error_where_nothing_was_imputed(model, table, tmp_path):
    hidden = tmp_path / "hidden.csv"
    hidden.write_text("\n".join([HEADER, rows()[0].replace("effect", "cause")]) + "\n")
    impute(model, table, tmp_path / "out.csv", "--cost", "0.001")
    assert ",true," not in (tmp_path / "out.csv").read_text()
    result = run("evaluate", str(hidden), str(tmp_path / "out.csv"), *OPTIONS, "--cost", "1")
    assert result.exit_code == 0
    assert "recall 0.000" in result.output
