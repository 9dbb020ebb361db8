"""What ``import retrodict`` promises, and that it is quick."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import retrodict as rd

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "api.md"


def test_every_promised_name_is_there():
    for name in rd.__all__:
        assert getattr(rd, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'impute_all'"):
        rd.impute_all  # noqa: B018


def test_importing_loads_no_heavy_library():
    heavy = ("pandas", "pyarrow", "pytorch_lightning", "numba")
    code = f"import sys, retrodict; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(not REFERENCE.exists(), reason="no docs beside the tests")
def test_the_reference_has_every_name_once_and_no_other():
    listed = re.findall(r"^::: retrodict\.(\w+)$", REFERENCE.read_text(encoding="utf-8"), re.M)
    assert sorted(listed) == sorted(set(rd.__all__) - {"__version__"})


@pytest.mark.parametrize("name", [name for name in rd.__all__ if name != "__version__"])
def test_every_name_and_every_public_method_says_what_it_does(name):
    thing = getattr(rd, name)
    own = (thing.__doc__ or "").strip()
    assert own
    assert not own.startswith(f"{name}(")  # as that of a dataclass without a docstring
    if inspect.isclass(thing) and not issubclass(thing, BaseException | Warning):
        members = {key: value for key, value in vars(thing).items() if not key.startswith("_")}
        code = {k: v for k, v in members.items() if callable(v) or isinstance(v, property | classmethod | staticmethod)}
        assert [key for key in code if not inspect.getdoc(getattr(thing, key))] == []
