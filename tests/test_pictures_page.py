"""docs/pictures.md runs as it is written, in an empty directory, and its pictures are small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.report.test_page import read
from tests.test_tutorial import shell

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pictures.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the tests")


@pytest.mark.filterwarnings("ignore::retrodict.errors.SuspicionNotice")
def test_the_page_runs_as_it_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for language, block in re.findall(r"^```(python|bash)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        if language == "python":
            exec(block, {})
            assert [answer["cost"] for answer in read(Path("page.html"))[0]["answers"]] == [0.25, 0.5, 1, 2, 4]
        else:
            said = shell(block, {})
            assert "wrote stream.png: stream N955UW-02" in said
    assert {"stream.png", "tradeoff.png", "tradeoff.pdf", "check.png", "page.html"} <= {
        f.name for f in Path().iterdir()
    }
    assert [answer["cost"] for answer in read(Path("page.html"))[0]["answers"]] == [0.5, 1, 2]


def test_pictures_of_the_docs_are_small():
    for picture in re.findall(r"\((images/[^)]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / picture).stat().st_size < 150_000
