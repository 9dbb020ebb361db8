"""docs/architecture.md and its picture name files and functions that are there, and few enough of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "retrodict"
PAGE = ROOT / "docs" / "architecture.md"
SCRIPT = ROOT / "scripts" / "draw_architecture.py"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the tests")


def rows(section: str) -> list[list[str]]:
    """The cells of a table that follows ``section``, without its head."""
    text = PAGE.read_text(encoding="utf-8").split(section)[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.group().splitlines()[2:]]


def test_every_file_named_is_there():
    named = re.findall(r"`([a-z_]+/[\w/]+\.py)`", PAGE.read_text(encoding="utf-8"))
    drawn = re.findall(r"(?<=[n\"])[a-z_]+/[\w/]+\.py", SCRIPT.read_text(encoding="utf-8"))
    assert len(named) > 40
    assert len(drawn) > 15
    for path in {*named, *drawn}:
        assert (SOURCE / path).exists(), path


def test_every_function_named_is_in_its_file():
    table = rows("## Where is equation X?")
    assert len(table) > 30
    for what, _, file, functions in table:
        source = (SOURCE / file.strip("`")).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", functions):
            assert re.search(rf"^\s*(def|class) {name}\b", source, re.MULTILINE), f"{what}: no {name} in {file}"


@pytest.mark.parametrize(
    ("task", "most"), [("**What `posterior.consensus`", 6), ("**How `rd.fit` trains", 6), ("**What `rd.impute`", 10)]
)
def test_few_files_explain_each_task(task, most):
    assert 1 < len(rows(task)) <= most
