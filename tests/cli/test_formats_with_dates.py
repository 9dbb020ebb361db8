"""Formats that have dates are refused for plain numbers before any work is done, not after all of it."""

from __future__ import annotations

import pytest

import retrodict as rd
from retrodict.errors import DataError
from tests.cli.test_commands import run


@pytest.mark.parametrize(("name", "words"), [("imputed", r"without a suffix.*\.csv"), ("a.xes", "XES has dates")])
def test_impute_and_decode_refuse_plain_numbers_at_once(name, words, tmp_path, monkeypatch):
    model = rd.Hawkes([0.1, 0.1], [[0.0, 0.5], [0.0, 0.0]], 1.0)
    model.types = ("a", "b")
    rd.save_model(model, tmp_path / "model")
    streams = rd.StreamSet([rd.EventStream([1.0, 2.0], [0, 1], end=3.0, id="s")], types=["a", "b"])
    rd.write_events(streams, tmp_path / "seen.parquet")
    imputing = ["impute", str(tmp_path / "model"), str(tmp_path / "seen.parquet"), "-m", "a=0.5", "--filtering"]
    run(*imputing, "--particles", "4", "-o", str(tmp_path / "right.csv"))
    monkeypatch.setattr("retrodict.cli.impute.run", None)
    monkeypatch.setattr("retrodict.cli.decode.write_answer", None)
    before = sorted(tmp_path.rglob("*"))
    for command in (imputing, ["decode", str(tmp_path / "right.csv.draws")]):
        with pytest.raises(DataError, match="plain numbers.*" + words):
            run(*command, "-o", str(tmp_path / name))
    assert sorted(tmp_path.rglob("*")) == before
