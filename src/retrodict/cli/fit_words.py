"""What a fit says before and after: what was read, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrodict.cli import common
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import TIME_WAS_UP


def say_read(file: Path, train: StreamSet, dev: StreamSet | None, seed: int, held: StreamSet | None = None) -> None:
    """Say what was read, and what of it is set aside or held out."""
    from retrodict.train.asked import check_data

    parts = [] if held is None else [f"{len(held):,} held out"]
    parts += [f"{len(check_data(train, None, seed)[1]):,} set aside as dev"] if dev is None else []
    aside = f" ({', '.join(parts)})" if parts else ""
    whole = [each for each in (train, held) if each is not None]
    streams, events = sum(map(len, whole)), sum(each.num_events for each in whole)
    common.err.print(
        f"read {file.name}: {streams:,} streams{aside}, {events:,} events, {train.num_types:,} types",
        soft_wrap=True, highlight=False, markup=False,
    )  # fmt: skip


def say_next(
    output: Path,
    held_out: Path | None,
    columns: common.Columns,
    missing: Sequence[str] | None,
    fitted: Sequence[Any],
) -> None:
    """Say what to type next: the same again where a limit of time stopped a training, and a check."""
    given = [word for name, value in columns.items() for word in _typed(name, value)]
    what = [] if missing else ["-m", "NAME=RATE"]
    by = "HELD-OUT" if held_out is None else shlex.quote(str(held_out))
    command = f"retrodict check {shlex.join([str(output)])} {by} {shlex.join(given)}".rstrip()
    stopped = any(each.training_record.get("ended") == TIME_WAS_UP for each in fitted)
    again = "the same command again trains on; then " if stopped else ""
    said = f"next: {again}{' '.join([command, *what])}"
    common.err.print(said, soft_wrap=True, highlight=False, markup=False)


def _typed(name: str, value: Any) -> list[str]:
    """An option as it is typed, once for each value that it has."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [word for each in values for word in (f"--{name}", str(each))]
