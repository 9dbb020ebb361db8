"""What ``import retrodict`` promises, and that it is quick."""

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


def test_importing_loads_no_heavy_library():
    heavy = ("pandas", "pyarrow", "pytorch_lightning", "numba")
    code = f"import sys, retrodict; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
