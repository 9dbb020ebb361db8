"""What every kind of fit is asked for: refused in words or settled before any work."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrodict.errors import DataError, ModelError
from retrodict.events.lock import lock_folder
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Missingness

_BATCH, _STEPS, _EVENTS = 50, 20, 1000  # streams a step; steps an epoch and events a step that are enough


def check_settings(**counts: int | None) -> None:
    """Refuse counts below one; None stands for a default."""
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ModelError(f"{name} must be at least 1, but is {value}.")


def check_training(learning_rate: float | None, seconds: float | None) -> None:
    """Refuse a learning rate or a time limit that is not a positive number."""
    for name, value in (("learning_rate", learning_rate), ("seconds", seconds)):
        if value is not None and not 0 < value < float("inf"):
            raise ModelError(f"{name} must be a positive number, but is {value}.")


def check_data(train: StreamSet, dev: StreamSet | None, seed: int) -> tuple[StreamSet, StreamSet]:
    """Training and dev streams, some of the former set aside where there are none of the latter."""
    if train.num_events == 0:
        raise DataError("there are no events to train on", remedy="give streams with at least one event")
    if dev is None:
        if len(train) < 2:
            raise DataError(
                "one stream is not enough to train on and to stop early by",
                remedy="give at least two streams, or pass dev=",
            )
        share = max(0.1, 1 / len(train))
        train, dev, _ = train.split(train=1 - share, dev=share, seed=seed)
    elif len(dev) == 0:
        raise DataError("there are no dev streams", remedy="give some, or leave dev out to set a tenth aside")
    return train, dev


def streams_a_step(train: StreamSet, processes: int = 1) -> int:
    """How many streams make a step: 50 a process, or fewer where an epoch then has few steps, each of many events."""
    fewest = max(len(train) / _STEPS, _EVENTS * len(train) / max(train.num_events, 1))
    return int(min(_BATCH * processes, max(processes, round(fewest))))


@contextlib.contextmanager
def folder_of_run(directory: str | os.PathLike[str] | None) -> Iterator[Path]:
    """The directory, locked; a temporary one for None."""
    with contextlib.ExitStack() as stack:
        folder = Path(directory or stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(lock_folder(folder))
        yield folder


def mechanism_config(missing: Missingness) -> dict[str, Any]:
    """A mechanism for a run's identity; empty for one that cannot be saved."""
    try:
        return missing.config()
    except ModelError:
        return {}


def rounded(value: Any) -> Any:
    """Numbers as they survive a round trip through text, so that a run is recognised again."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
