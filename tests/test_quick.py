"""What ``make quick`` leaves out is there, and what it runs covers every folder."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import SLOW

TESTS = Path(__file__).resolve().parent


def test_every_slow_test_is_there():
    for name in SLOW:
        path, _, test = name.partition("::")
        text = (TESTS.parent / path).read_text(encoding="utf-8")
        assert f"def {test}" in text, name


def test_every_folder_has_fast_tests():
    for folder in {path.parent for path in TESTS.rglob("test_*.py")}:
        fast = {path.relative_to(TESTS.parent).as_posix() for path in folder.glob("test_*.py")} - set(SLOW)
        assert fast, folder
