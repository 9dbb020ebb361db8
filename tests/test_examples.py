"""Every script in examples/ runs in an empty folder and ends in a picture or a table."""

from __future__ import annotations

import io
import re
import runpy
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="no examples beside the tests")


@pytest.mark.filterwarnings("ignore::retrodict.SuspicionNotice")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_example_runs(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    printed = io.StringIO()
    with redirect_stdout(printed):
        runpy.run_path(str(script), run_name="__main__")
    pictures = list(tmp_path.glob("*.png"))
    assert all(picture.stat().st_size > 5_000 for picture in pictures)
    assert pictures or len(re.findall(r"\d", printed.getvalue())) > 20


def test_every_example_is_listed():
    assert all(f"({script.name})" in (FOLDER / "README.md").read_text() for script in SCRIPTS)
