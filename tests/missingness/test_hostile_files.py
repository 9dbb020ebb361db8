"""Mechanism files from strangers: a mechanism, or an error that names the file."""

from __future__ import annotations

import os

import pytest

import retrodict as rd
from retrodict.missingness.spec import parse_missing

FILES = {
    "aliases": "mechanism: by_type\nrates: &a {u: 0.5}\nmore: *a\n",
    "a list within itself": "&a [*a]\n",
    "deep lists": "mechanism: by_type\nrates: " + "[" * 3000 + "]" * 3000,
    "deep mappings": "".join(" " * i + "a:\n" for i in range(2000)),
    "5,000 digits": "mechanism: by_type\nrates: " + "9" * 5000,
    "400 digits": "mechanism: by_type\nrates: " + "9" * 400,
    "a code tag": "!!python/object/apply:os.system ['touch harm']\n",
    "a wrong tag": "mechanism: by_type\nrates: !!int x\n",
    "a wrong date": "mechanism: windows\nwindows: [[!!timestamp 99999-99-99, 2]]\n",
    "octal": "mechanism: by_type\nrates: 089\n",
    "a billion types": "mechanism: contextual\ntypes: 1000000000\nscales: [1]\n",
    "a billion units": "mechanism: contextual\ntypes: [u, v]\nscales: [1]\nhidden: 1000000000\n",
    "scales that are no list": "mechanism: contextual\ntypes: [u, v]\nscales: 5\n",
    "windows that are a number": "mechanism: windows\nwindows: 5\n",
    "windows of mappings": "mechanism: windows\nwindows: [{a: 1}]\n",
    "by_stream that is a list": "mechanism: windows\nwindows: [[1, 2]]\nby_stream: [1]\n",
    "delays that are a number": "mechanism: reporting_delay\nfamily: empirical\ndelays: 5\n",
    "delays of lists": "mechanism: reporting_delay\nfamily: empirical\ndelays: [[1]]\n",
    "a mean that is a list": "mechanism: reporting_delay\nmean: [1, 2]\n",
    "an infinite mean": "mechanism: reporting_delay\nmean: {u: .inf}\n",
    "a family that is a list": "mechanism: reporting_delay\nfamily: [gamma]\nmean: 1\n",
    "rates that are a list of lists": "mechanism: by_type\nrates: [[0.5], 0.1]\n",
    "rates of one list": "mechanism: time_varying\ntimes: [1, 2]\nrates: 5\n",
    "a trigger that is a mapping": "mechanism: after\ntrigger: {u: 1}\nwithin: 2\n",
    "a trigger of lists": "mechanism: after\ntrigger: [[u]]\nwithin: 2\n",
    "a mechanism that is a list": "mechanism: [by_type]\nrates: 0.5\n",
    "no mechanism": "5\n",
    "an empty file": "",
    "no text": "\udcff",
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_refused_in_words(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.yaml"
    path.write_bytes(FILES[name].encode("utf-8", "surrogateescape"))
    with pytest.raises(rd.DataError, match=r"bad\.yaml"):
        parse_missing([str(path)], ["u", "v"], "hour")
    assert os.listdir(tmp_path) == ["bad.yaml"]


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(rd.DataError, match=r"a\.yaml: cannot be read: it is not a regular file"):
        rd.read_missing(tmp_path / "a.yaml")


def test_what_recurs_too_often_is_refused():
    missing = rd.Windows([(0, 1e-9)], every=2e-9, clock="stream").bind(["u"])
    model = rd.Poisson([1.0])
    with pytest.raises(rd.ModelError, match=r"recurs .* times between two events"):
        rd.impute(rd.EventStream([], [], end=10.0), rd.Filtering(model, missing), 2, engine="torch")
