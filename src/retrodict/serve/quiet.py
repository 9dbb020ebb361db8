"""No notices on the server's terminal: what is worth one stands in answers."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from retrodict.errors import DataNotice, EngineNotice, SuspicionNotice

_lock = threading.Lock()
_within: list[Any] = []  # the filters as they were, and one entry for each thread that is quiet


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore the package's notices while any thread is in such a block: filters belong to the whole process."""
    with _lock:
        if not _within:
            before = warnings.catch_warnings()
            before.__enter__()
            _within.append(before)
            for notice in (DataNotice, SuspicionNotice, EngineNotice):
                warnings.simplefilter("ignore", notice)
        _within.append(None)
    try:
        yield
    finally:
        with _lock:
            _within.pop()
            if len(_within) == 1:
                _within.pop().__exit__(None, None, None)
