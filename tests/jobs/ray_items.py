"""What the workers of the tests do; they load no more than this."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from retrodict.errors import DataError


def same(shared: Path, device: str) -> Path:
    return shared


def work(folder: Path, item: int) -> int:
    """The square; every third item kills its worker the first time. 100 is refused, and 200 always kills."""
    if item == 100:
        raise DataError("bad row", file="a.csv", row=7, remedy="drop it")
    mark = folder / str(item)
    if item == 200 or (item % 3 == 1 and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def with_gpu(shared: Path, device: str) -> str:
    return device


def own_gpu(device: str, item: int) -> tuple[tuple[str, ...], str]:
    """The GPUs that Ray gave to the worker, and where it was told to put the model."""
    time.sleep(0.3)  # so that all workers come to do some
    return tuple(os.environ["CUDA_VISIBLE_DEVICES"].split(",")), device


def get_up() -> None:
    """Marks this process."""
    os.environ["GOT_UP"] = "yes"


def who(shared: Path, item: int) -> tuple[int, str | None]:
    """The process, and its mark."""
    time.sleep(0.3)  # so that all workers come to do some
    return os.getpid(), os.environ.get("GOT_UP")
