"""What ``import retrodict`` promises, and what it does not load."""

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


HEAVY = {"torch", "pytorch_lightning", "numba", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "numpy"}


def loaded_by(code: str) -> set[str]:
    """The libraries that a new process has loaded once it has run the code."""
    code = f"import sys\ntry:\n    {code}\nfinally:\n    print('\\nloaded', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import retrodict",
        "sys.argv = ['retrodict', '--help']; import retrodict.cli; retrodict.cli.main()",
        "sys.argv = ['retrodict', '--version']; import retrodict.cli; retrodict.cli.main()",
    ],
)
def test_looking_around_loads_no_heavy_library(code):
    loaded = loaded_by(code)
    assert "retrodict" in loaded
    assert not loaded & HEAVY


def test_events_are_read_without_torch(tmp_path):
    (tmp_path / "a.csv").write_text("stream,time,type\n1,0.5,a\n")
    loaded = loaded_by(f"import retrodict as rd; rd.read_events({str(tmp_path / 'a.csv')!r}, end=1.0)")
    assert "pyarrow" in loaded
    assert not loaded & {"torch", "pytorch_lightning", "numba"}


def test_every_name_of_the_package_is_listed():
    assert set(rd.__all__) <= set(dir(rd))


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
