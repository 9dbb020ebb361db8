"""The README's examples run as they are written, and every file that README and docs link to is there."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrodict as rd
from retrodict.events.time_axis import TimeAxis
from tests.conftest import example_model

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="no docs beside the tests")


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_heading_linked_to_is_there(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_the_example_runs_in_an_empty_directory(tmp_path):
    code = python_blocks(ROOT / "README.md")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"time +type +probability +earliest +latest\n.*depart:", done.stdout)
    assert not list(tmp_path.iterdir())


def test_the_example_on_your_own_streams_runs(tmp_path, monkeypatch):
    """With one epoch, on simulated streams in the place of yours."""
    streams = rd.simulate(example_model("poisson"), 20, end=10.0, seed=0)
    fifth = TimeAxis("hour", origin=int(np.datetime64("2013-01-05", "ns").astype(np.int64)))
    named = rd.StreamSet(list(streams), types=["pick-up", "drop-off", "break"], axis=fifth)
    for name in ("trips.csv", "incomplete.csv"):
        columns = {"stream": "driver", "time": "when", "type": "what"}
        named.to_frame().rename(columns=columns).to_csv(tmp_path / name, index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rd, "fit", functools.partial(rd.fit, epochs=1, progress=False), raising=False)
    scope = {"rd": rd}
    exec(python_blocks(ROOT / "README.md")[1], scope)
    probability = scope["posterior"].probability("pick-up", start="2013-01-05 08:00", end="2013-01-05 09:00")
    assert probability.shape == (20,)
    assert 0.05 < probability.mean() < 0.95
