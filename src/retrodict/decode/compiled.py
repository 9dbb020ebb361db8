"""Compiled entry points whose machine code is kept on disk, and renewed when any kernel in them changes.

Numba looks only at an entry point's own file to decide whether the code on disk is still good, although kernels
from other files are part of it; the stamp that it compares is therefore replaced by one of the whole folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])
_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def entry_point(function: _Function) -> _Function:
    """Compile on first use and keep the result on disk until a file of this folder changes."""
    compiled: Any = njit(cache=True)(function)
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is not None:
        index._source_stamp = _STAMP
    return cast(_Function, compiled)
