"""A table with dates of a spreadsheet goes through the commands with one option, in chunks as at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import retrodict as rd
from tests.cli.test_commands import run

COLUMNS = ["--stream", "taxi", "--time", "logged_at", "--type", "what", "--start", "from", "--end", "until"]
STEPS = {"day-first": "%d/%m/%Y %H:%M", "month-first": "%m/%d/%Y %H:%M", "%d.%m.%y %H:%M": "%d.%m.%y %H:%M"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A Poisson model of rides and breaks, in hours."""
    model = rd.Poisson([0.5, 0.2])
    model.types, model.time_unit = ("ride", "break"), "hour"
    return str(rd.save_model(model, tmp_path_factory.mktemp("model")))


def frame() -> pd.DataFrame:
    """Thirty taxis on days of two months, in whole minutes, without order."""
    rng = np.random.default_rng(5)
    taxi = rng.integers(0, 30, 150)
    day = pd.Timestamp("2025-02-25") + pd.to_timedelta(taxi % 40, unit="D")
    when = day + pd.to_timedelta(rng.integers(6 * 60, 18 * 60, 150), unit="min")
    what = np.where(rng.random(150) < 0.7, "ride", "break")
    bounds = {"from": day + pd.Timedelta("6h"), "until": day + pd.Timedelta("18h")}
    return pd.DataFrame({"taxi": [f"t{i}" for i in taxi], "logged_at": when, "what": what, **bounds})


def write(folder, form: str | None):
    """The table as CSV, its dates in a format (or in ISO 8601)."""
    table = frame()
    for name in ("logged_at", "from", "until"):
        table[name] = table[name].dt.strftime(form or "%Y-%m-%dT%H:%M")
    table.to_csv(path := folder / "logged.csv", index=False)
    return path


def impute(model, file, output, *more) -> str:
    words = ["-m", "ride=0.5", "--filtering", "--particles", "16", "--no-draws", "--cost", "20"]
    return run("impute", model, str(file), "-o", str(output), *words, *COLUMNS, *more).output


@pytest.mark.parametrize("dates", STEPS)
def test_describe_and_impute_say_the_same_as_of_dates_in_iso_8601(model, tmp_path, dates):
    (tmp_path / "iso").mkdir()
    file, iso = write(tmp_path, STEPS[dates]), write(tmp_path / "iso", None)
    option = ["--dates", dates]
    said = run("describe", str(file), *COLUMNS, *option).output
    assert said == run("describe", str(iso), *COLUMNS).output.replace(str(iso), str(file))
    impute(model, file, tmp_path / "out.csv", *option)
    impute(model, iso, tmp_path / "iso" / "out.csv")
    found, right = (pd.read_csv(folder / "out.csv", dtype=str) for folder in (tmp_path, tmp_path / "iso"))
    assert (found["imputed"] == "true").sum() > 20
    for name in ("logged_at", "from", "until", "earliest", "latest"):
        moments = pd.to_datetime(right[name], format="ISO8601").dt.strftime(STEPS[dates])
        assert found[name].fillna("").tolist() == moments.fillna("").tolist()
        found[name] = right[name]
    assert found.equals(right)
    known = found[found["imputed"] == "false"]
    assert sorted(known["logged_at"]) == sorted(pd.read_csv(iso, dtype=str)["logged_at"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_in_chunks_the_table_is_the_same_as_at_once(model, tmp_path, suffix):
    text = pd.read_csv(write(tmp_path, "%d/%m/%Y %H:%M"), dtype=str)
    text["logged_at"] = text["logged_at"].str.replace(" 0", " ")  # hours of one digit, which not every chunk has
    file = tmp_path / f"logged.{suffix}"
    text.to_csv(file, index=False) if suffix == "csv" else text.to_parquet(file, index=False)
    option = ["--dates", "day-first"]
    whole, parts = tmp_path / f"whole.{suffix}", tmp_path / f"parts.{suffix}"
    impute(model, file, whole, *option)
    impute(model, file, parts, *option, "--chunk-streams", "4")
    assert parts.read_bytes() == whole.read_bytes()
    table = pd.read_csv(parts, dtype=str) if suffix == "csv" else pd.read_parquet(parts).astype(str)
    new = table.loc[table["imputed"].str.lower() == "true", "logged_at"]
    assert len(new) > 20
    assert new.str.fullmatch(r"\d\d/0\d/2025 [1-9]\d?:\d\d").all()
    again = [] if suffix == "parquet" else option  # which the file tells itself
    assert "30" in run("describe", str(parts), *COLUMNS, *again).output
    with pytest.raises(rd.DataError, match="dates= is 'sideways'"):
        impute(model, file, tmp_path / f"kept.{suffix}", "--dates", "sideways", "--chunk-streams", "4")


def test_a_truth_has_the_form_of_the_table_or_dates_in_iso_8601(model, tmp_path):
    file = write(tmp_path, "%d/%m/%Y %H:%M")
    hidden = pd.read_csv(file, dtype=str).iloc[:20]
    hidden["logged_at"] = hidden["logged_at"].str[:-1] + "7"  # other events than the observed ones
    hidden.to_csv(tmp_path / "hidden.csv", index=False)
    iso = hidden.copy()
    for name in ("logged_at", "from", "until"):
        iso[name] = pd.to_datetime(iso[name], dayfirst=True).dt.strftime("%Y-%m-%d %H:%M")
    iso.to_csv(tmp_path / "iso.csv", index=False)
    words = ["-m", "ride=0.5", "--filtering", "--particles", "16", "--cost", "20", *COLUMNS, "--dates", "day-first"]
    for truth in ("hidden.csv", "iso.csv"):
        page = ["--report", str(tmp_path / "page.html"), "--truth", str(tmp_path / truth)]
        run("impute", model, str(file), "-o", str(tmp_path / "out.csv"), *words, *page)
        draws = ["report", str(tmp_path / "out.csv.draws"), "-o", str(tmp_path / "again.html")]
        run(*draws, "--truth", str(tmp_path / truth))
        scored = ["evaluate", str(tmp_path / truth), str(tmp_path / "out.csv"), *COLUMNS, "--dates", "day-first"]
        assert "recall" in run(*scored).output


def test_decoding_kept_draws_again_writes_the_form_of_the_table(model, tmp_path):
    file = write(tmp_path, "%d/%m/%Y %H:%M")
    words = ["-m", "ride=0.5", "--filtering", "--particles", "16", "--cost", "20", *COLUMNS, "--dates", "day-first"]
    run("impute", model, str(file), "-o", str(tmp_path / "out.csv"), *words)
    run("decode", str(tmp_path / "out.csv.draws"), "-o", str(tmp_path / "again.csv"), "--cost", "20")
    assert (tmp_path / "out.csv").read_text().count(",true,") > 20
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_ask_takes_dates_in_the_form_of_the_table_or_in_iso_8601(model, tmp_path):
    words = ["-m", "ride=0.5", "--filtering", "--particles", "16", "--cost", "20", *COLUMNS]
    for name, form, dates in (("own", "%d.%m.%Y %H:%M", ["--dates", "day-first"]), ("iso", None, [])):
        (tmp_path / name).mkdir()
        file = write(tmp_path / name, form)
        run("impute", model, str(file), "-o", str(tmp_path / f"{name}.csv"), *words, *dates)
    draws, iso = (str(tmp_path / f"{name}.csv.draws") for name in ("own", "iso"))
    stretch = ["--start", "2025-03-01T09:30", "--end", "2025-03-04T12:00"]
    right = run("ask", iso, *stretch).output
    assert "from 2025-03-01 09:30:00 until 2025-03-04 12:00:00" in " ".join(right.split())
    assert run("ask", draws, *stretch).output == right
    assert run("ask", draws, "--start", "01.03.2025 09:30", "--end", "4.3.2025 12:00").output == right
    with pytest.raises(rd.DataError, match=r"--start: cannot read '03/25/2025' as a date with the day first"):
        run("ask", draws, "--start", "03/25/2025")
    with pytest.raises(rd.DataError, match=r"cannot read '09\.12\.2025 09:30' as a time\. .*ISO 8601") as caught:
        run("ask", iso, "--start", "09.12.2025 09:30")
    assert "column" not in str(caught.value)


def test_the_option_is_the_first_remedy(model, tmp_path):
    file = write(tmp_path, "%d/%m/%Y %H:%M")
    for chunks in ([], ["--chunk-streams", "4"]):
        with pytest.raises(
            rd.DataError, match=r"logged.csv, stream 't\d+', row \d+: column 'from'.*dates='day-first' if"
        ):
            impute(model, file, tmp_path / "out.csv", *chunks)


OUTAGE = "mechanism: windows\ninside: 0.9\nwindows: [[04/03/2025 09:00, 07/03/2025 15:30]]\n"
INSIDE = (pd.Timestamp("2025-03-04 09:00"), pd.Timestamp("2025-03-07 15:30"))


def write_outage(folder) -> list[str]:
    (folder / "outage.yaml").write_text(OUTAGE)
    return ["-m", str(folder / "outage.yaml"), *COLUMNS, "--dates", "day-first"]


@pytest.mark.parametrize("chunks", [[], ["--chunk-streams", "4"]])
def test_an_outage_has_dates_of_the_form_of_the_table(model, tmp_path, chunks):
    file, words = write(tmp_path, "%d/%m/%Y %H:%M"), write_outage(tmp_path)
    more = ["--filtering", "--particles", "16", "--no-draws", "--cost", "20", *chunks]
    run("impute", model, str(file), "-o", str(tmp_path / "out.csv"), *words, *more)
    found = pd.read_csv(tmp_path / "out.csv", dtype=str)
    new = pd.to_datetime(found.loc[found["imputed"] == "true", "logged_at"], format="%d/%m/%Y %H:%M")
    assert len(new)
    assert new.between(*INSIDE).all()
    without = [word for word in words if word not in ("--dates", "day-first")]
    write(tmp_path, None)
    with pytest.raises(rd.DataError, match=r"outage.yaml: key 'windows', window 1: cannot read '04/03/2025 09:00'"):
        run("impute", model, str(file), "-o", str(tmp_path / "no.csv"), *without, *more)


def test_every_command_that_takes_an_outage_reads_its_dates_so(model, tmp_path):
    file, words = write(tmp_path, "%d/%m/%Y %H:%M"), write_outage(tmp_path)
    run("censor", str(file), "-o", str(tmp_path / "seen.csv"), "--hidden", str(tmp_path / "hidden.csv"), *words)
    hidden = pd.read_csv(tmp_path / "hidden.csv", dtype=str)["logged_at"].dropna()
    assert 0 < len(hidden) < 30
    assert pd.to_datetime(hidden, format="%d/%m/%Y %H:%M").between(*INSIDE).all()
    run("check", model, str(file), "--filtering", "--particles", "16", "--no-keep", *words)
    quick = ["--epochs", "1", "--batch-size", "30"]
    run("fit", str(file), "--model", "poisson", "-o", str(tmp_path / "fitted"), *quick, *words)
    run("smoother", str(tmp_path / "fitted"), str(file), "--name", "other", *quick, *words)
    for name in ("smoother", "other"):
        kept = rd.read_missing(next((tmp_path / "fitted").rglob(f"*{name}*/missing.yaml")))
        assert kept.windows == [["2025-03-04T09:00:00", "2025-03-07T15:30:00"]]
    with pytest.raises(rd.ModelError, match="there is nothing to learn in a Windows mechanism"):
        run("learn-missing", model, str(tmp_path / "seen.csv"), "-o", str(tmp_path / "learned"), *words)
    run("fit-incomplete", str(file), "--model", "poisson", "-o", str(tmp_path / "em"), *quick, *words)


def dated(folder, name: str, form: str) -> str:
    """Twelve courses of three days of December, as a file."""
    day = pd.to_datetime([f"2025-12-{8 + i % 3:02}" for i in range(12)])
    times = [day + pd.Timedelta(hours=hour, minutes=7 * hour) for hour in (7, 9, 12, 16)]
    table = pd.concat([pd.DataFrame({"taxi": [f"t{i}" for i in range(12)], "logged_at": when}) for when in times])
    table["what"] = np.where(np.arange(len(table)) % 3 == 0, "break", "ride")
    table["logged_at"] = table["logged_at"].dt.strftime(form)
    table.to_csv(path := folder / name, index=False)
    return str(path)


def test_impute_tells_of_another_order_of_days_and_months_than_the_model_was_fitted_with(tmp_path):
    file = dated(tmp_path, "log.csv", "%d.%m.%Y %H:%M")
    folder, names = str(tmp_path / "model"), COLUMNS[:6]
    run("fit", file, "-o", folder, *names, "--dates", "day-first", "--model", "poisson", "--model-only")
    words = ["impute", folder, file, "-o", str(tmp_path / "out.csv"), *names, "-m", "ride=0.5", "--filtering"]
    words += ["--particles", "16", "--no-draws", "--cost", "20"]
    said = "this table is read with --dates month-first, but the model was fitted to one that was read with --dates day"
    assert said not in run(*words, "--dates", "day-first").output
    wrong = run(*words, "--dates", "month-first").output
    assert said in wrong
    assert "they span 62 days, as here ('08.12.2025 07:49' is 12 August 2025), with the day first only 3" in wrong
    assert "If the 3 days are right, pass --dates day-first" in wrong
    assert said in run(*words, "--dates", "month-first", "--chunk-streams", "5").output
