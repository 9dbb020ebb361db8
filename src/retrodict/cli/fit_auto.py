"""The best of several models on dev, with a table of all that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from retrodict.cli import common
from retrodict.cli.fit_jobs import STOPPED
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import TIME_WAS_UP, Model


def fit_auto_model(streams: tuple[StreamSet, StreamSet | None], output: Path, settings: Mapping[str, Any]) -> Model:
    """Fit all candidates to complete training streams, with their dev streams, and keep the best in the folder."""
    from retrodict.train.auto import Score, fit_auto

    def say(score: Score) -> None:
        if not common.err.is_terminal:  # the table has it
            return
        found = score.ended if score.dev is None else f"{score.dev:.4f} nats per event on dev"
        common.err.print(f"{score.name}: {found}, {score.seconds:g} s", highlight=False)

    with common.notes():
        model = fit_auto(*streams, directory=output, say=say, **settings)
    record = model.training_record
    common.err.print(_table(record))
    cost = f"{record['all_seconds']:g} s in all"
    cost += f"; {STOPPED}" if record.get("ended") == TIME_WAS_UP else ""
    common.wrote(output, f"{record['chosen']} model ({cost})")
    return model


def _table(record: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model")
    for heading in ("nats per event on dev", "seconds"):
        table.add_column(heading, justify="right")
    table.add_column("ended")
    rows = sorted(record["candidates"], key=lambda row: -1e300 if row["dev"] is None else row["dev"], reverse=True)
    for row in rows:
        dev = "" if row["dev"] is None else f"{row['dev']:.4f}"
        name = f"[bold]{row['name']}[/]" if row["name"] == record["chosen"] else row["name"]
        table.add_row(name, dev, f"{row['seconds']:g}", "stopped" if row["ended"] == TIME_WAS_UP else row["ended"])
    return table
