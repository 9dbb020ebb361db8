"""docs/formats.md runs as it is written, in an empty directory, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "formats.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the tests")


def test_every_block_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    pytest.importorskip("polars")
    pytest.importorskip("arviz")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    printed, shown = "", 0
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        if language == "python":
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as out:
                warnings.simplefilter("ignore")
                exec(block, names)
            printed = out.getvalue()
        else:
            assert printed == block
            shown += 1
    assert shown == 6
