"""What one sees while training: a bar on a terminal, one line an epoch elsewhere."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class EpochProgress(pl.Callback):
    """Shows epochs, log-likelihood per event on train and dev, and speed."""

    def __init__(self, epochs: int, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.bar = Progress(
            TextColumn("[bold]fit[/]"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("epochs"),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("starting", total=epochs)

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Start the bar at the epoch a resumed run stands at."""
        self.bar.start()
        self.bar.update(self.task, completed=trainer.current_epoch)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """One epoch more."""
        row = pl_module.history[-1]
        best = min(pl_module.history, key=lambda r: r["dev_loss"])
        text = (
            f"nats per event: train {-row['train_loss']:.4f}, dev {-row['dev_loss']:.4f} "
            f"(best {-best['dev_loss']:.4f}, epoch {int(best['epoch']) + 1}); "
            f"{row['events_per_second']:,.0f} events/s"
        )
        self.bar.update(self.task, completed=trainer.current_epoch + 1, description=text)
        if not self.console.is_terminal:
            self.console.print(f"epoch {trainer.current_epoch + 1}: {text}", soft_wrap=True, highlight=False)

    def teardown(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        """Leave the last line standing."""
        self.bar.stop()
