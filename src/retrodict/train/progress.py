"""What one sees while training: a bar with the time it took on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

from retrodict._sparing import Sparing


class EpochProgress(pl.Callback):
    """Shows what is trained, epochs, the score per event on train and dev, speed, and the time since it began.

    Training ends when dev has not improved for ``patience`` epochs, so that its end is not known beforehand.
    """

    def __init__(
        self,
        epochs: int,
        seconds: float | None = None,
        sparing: Sparing | None = None,
        console: Console | None = None,
    ) -> None:
        self.console = console or Console(stderr=True)
        self.epochs, self.seconds = epochs, seconds
        self.first, self.began = 0, time.perf_counter()
        self.text, self.line = "starting", ""  # a line that was not said yet
        self.ends_unsaid = sparing is not None  # the steps of a command share their lines, and it says how each ended
        self.sparing = sparing or Sparing(by_share=False)  # a trial of a few seconds has one line, its last
        self.bar = Progress(
            TextColumn("[bold]fit {task.fields[what]}[/]"),
            BarColumn(20),
            MofNCompleteColumn(),
            TextColumn("epochs"),
            TextColumn("{task.description}", table_column=Column()),  # alone wraps where the terminal is narrow
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task(self.text, total=epochs, what="")

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Start the bar at the epoch a resumed run stands at."""
        self.first, self.began = trainer.current_epoch, time.perf_counter()
        self.bar.start()
        self.bar.update(self.task, completed=self.first, what=pl_module.objective.what)

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """A part of an epoch more."""
        if not self.console.is_terminal:
            return
        batches = max(float(trainer.num_training_batches), 1.0)
        self._show(trainer.current_epoch + (batch_idx + 1) / batches)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """One epoch more."""
        row, what = pl_module.history[-1], pl_module.objective
        best = min(pl_module.history, key=lambda r: r["dev_loss"])
        self.text = (
            f"{what.unit}: train {-row['train_loss']:.4f}, dev {-row['dev_loss']:.4f} "
            f"(best {-best['dev_loss']:.4f}, epoch {int(best['epoch']) + 1}); "
            f"{row['events_per_second']:,.0f} events/s{self._end(pl_module)}"
        )
        done = trainer.current_epoch + 1
        self._show(done)
        if not self.console.is_terminal:
            short = f"{-row['dev_loss']:.4f} {what.unit} on dev (best {-best['dev_loss']:.4f})"
            self.line = f"{what.what}, epoch {done}: {short if self.ends_unsaid else self.text}; {self._spent()}"
            if self.sparing.is_due(0.0):
                self._say()

    def teardown(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        """Leave the last line standing."""
        if not self.ends_unsaid:
            self._say()
        self.bar.stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        """The terminal is as it was before."""
        self.bar.stop()

    def _say(self) -> None:
        if self.line:
            self.console.print(self.line, soft_wrap=True, highlight=False)
        self.line = ""

    def _show(self, done: float) -> None:
        self.bar.update(self.task, completed=done, description=f"{self._spent()}; {self.text}")

    def _end(self, fitting: Any) -> str:
        """With which epoch training ends unless dev improves; nothing where it ends before."""
        last = fitting.trainer.current_epoch + 1 + fitting.settings.patience - fitting.waited()
        return f"; ends with epoch {last} unless dev improves" if last <= self.epochs else ""

    def _spent(self) -> str:
        """The time since training began, and the limit where there is one."""
        spent = _clock(time.perf_counter() - self.began)
        return spent if self.seconds is None else f"{spent} of at most {_clock(self.seconds)}"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
