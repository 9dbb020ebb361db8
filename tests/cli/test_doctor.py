"""``retrodict doctor`` says which engines can run."""

from __future__ import annotations

from typer.testing import CliRunner

from retrodict.cli import app
from retrodict.smc.engines import native


def test_doctor_names_every_engine(monkeypatch):
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert "engine torch" in result.output
    monkeypatch.setattr(native, "native_module", lambda: None)
    result = CliRunner().invoke(app, ["doctor"])
    assert "no C++ compiler" in " ".join(result.output.split())
