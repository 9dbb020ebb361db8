"""What ``import retrodict`` promises, and what it does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import retrodict as rd


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
