"""Limits on files and jobs, so that a hostile or damaged file is refused before the memory or the disk is full.

>>> import retrodict as rd
>>> with rd.limits(rows=500_000_000):  # doctest: +SKIP
...     streams = rd.read_events("trips.parquet")

On the command line: ``retrodict --limit rows=500000000 describe trips.parquet``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path

from retrodict.errors import LimitError, ModelError

_SPARE = 0.8  # the share of free memory that a job may plan with


@dataclass(frozen=True)
class Limits:
    """The most that is read or asked for; ``rd.limits(name=value)`` raises one by name."""

    bytes: int = 4 << 30  # of a file, once decompressed
    ratio: int = 100  # times that a file may expand, beyond its first 32 MiB
    rows: int = 100_000_000  # rows of a table, or events
    streams: int = 20_000_000
    types: int = 100_000  # different event types
    memory: int = 0  # bytes that reading, fitting or imputing may plan with; 0: four fifths of what is free


_USUAL = Limits()
_current: ContextVar[Limits] = ContextVar("limits", default=_USUAL)


def current() -> Limits:
    """The limits in force."""
    return _current.get()


@contextmanager
def limits(**values: float) -> Iterator[Limits]:
    """Set limits by name within a ``with`` block: bytes, ratio, rows, streams, types, memory."""
    known = [field.name for field in fields(Limits)]
    for name, value in values.items():
        if name not in known:
            raise ModelError(f"there is no limit {name!r}. The limits are {', '.join(known)}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value >= 1):
            raise ModelError(f"the limit {name} must be a number of at least 1, but is {value!r}.")
    token = _current.set(replace(current(), **{name: int(value) for name, value in values.items()}))
    try:
        yield current()
    finally:
        _current.reset(token)


def check(
    name: str, asked: int, problem: str, *, file: object | None = None, row: int | None = None, hint: str = ""
) -> None:
    """Refuse what exceeds the limit ``name``; ``problem`` says what was found, ``hint`` what else may be wrong."""
    most = getattr(current(), name)
    if asked > most:
        raise LimitError(
            f"{problem}, and the limit is {most:,}",
            file=file,
            row=row,
            remedy=f"{hint}if this is right, raise the limit: limits({name}={_round_up(asked)})",
        )


def has_memory(need: float) -> bool:
    """Whether a job that is estimated to ``need`` so many bytes may have them."""
    return need <= (current().memory or int(_SPARE * free_memory()))


def ask_memory(need: float, what: str, remedy: str, *, file: object | None = None) -> None:
    """Refuse a job that is estimated to ``need`` more bytes of memory than it may have."""
    most = current().memory or int(_SPARE * free_memory())
    if need > most:
        raise LimitError(
            f"{what} would need about {size(need)} of memory, and {size(most)} may be used",
            file=file,
            remedy=f"{remedy}; or, if there is enough, raise the limit: limits(memory={_round_up(int(need))})",
        )


def size(number: float) -> str:
    """Bytes as people read them.

    >>> size(3.2e9)
    '3.0 GiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:,.1f} TiB" if number < 1e6 else "more than a million TiB"


def free_memory() -> int:
    """Bytes of memory that this process could still take: of the machine, its container and its own limits."""
    found = [_free_of_machine(), _free_of_container()]
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            found.append(soft - pages * resource.getpagesize())
    return max(0, min((bytes for bytes in found if bytes is not None), default=1 << 62))


def _free_of_machine() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError, OSError, ValueError):  # no /proc: all of the machine's memory
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_of_container() -> int | None:
    folder = Path("/sys/fs/cgroup")
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):
            return int((folder / most).read_text()) - int((folder / used).read_text())
    return None


def _round_up(number: int) -> int:
    """A number to raise a limit to: two digits that are not below ``number``."""
    step = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step
