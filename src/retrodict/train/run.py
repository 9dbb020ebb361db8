"""A training run's directory: what is being fitted, its metrics, its checkpoints, its result."""

from __future__ import annotations

import csv
import io
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint

from retrodict.errors import TrainingError
from retrodict.events.atomic import make_folder, write_json, write_text
from retrodict.events.plain import read_json
from retrodict.train.module import Settings, TrainingModule
from retrodict.train.objective import Objective

CANDIDATES, SCORES = "candidates", "auto.json"  # of a choice among several models, in the folder of the best
RUN = "run.json"  # of the fit of one


class Run:
    """The files of one fit; the same call finds them again and goes on."""

    def __init__(self, folder: Path, objective: Objective, settings: Settings, about: dict[str, Any]) -> None:
        self.folder = folder
        self.identity = {
            **about,
            "settings": asdict(settings),
            "objective": objective.options(),
            "data": objective.fingerprint(),
        }
        self.checkpoints = folder / "checkpoints"
        self.last = self.checkpoints / "last.safetensors"  # to resume from
        self.best = self.checkpoints / "best.safetensors"  # did best on dev

    def is_finished(self, epochs: int) -> bool:
        """Whether this very fit came to its end here before: it stopped early, or after as many epochs."""
        found = self._read()
        if found is None or self._differences(found):
            return False
        return bool(found.get("stopped_early")) or found.get("epochs", 0) >= epochs

    def begin(self, resume: bool) -> Path | None:
        """Claim the folder; returns the checkpoint to resume from, if there is one."""
        if (self.folder / SCORES).exists():
            if resume:
                raise TrainingError(
                    f"{self.folder} holds the best of several models, and this would replace it by another. Choose "
                    "another folder, repeat the call as it was, or start anew with resume=False."
                )
            (self.folder / SCORES).unlink()
            shutil.rmtree(self.folder / CANDIDATES, ignore_errors=True)
        found = self._read()
        if found is not None and resume and (self.last.exists() or found.get("epochs") == 0):
            differs = self._differences(found)
            if differs:
                raise TrainingError(
                    f"{self.folder} holds a run with another {', '.join(differs)}. Fit into another "
                    "directory, repeat the call as it was to resume, or start anew with resume=False."
                )
            if self.last.exists():
                return self.last
        make_folder(self.checkpoints)
        for file in (self.last, self.best):
            file.unlink(missing_ok=True)
        self._write({})
        return None

    def finish(self, epochs: int, stopped_early: bool) -> None:
        """Note that the run came to its end."""
        self._write({"epochs": epochs, "stopped_early": stopped_early})

    def callback(self) -> pl.Callback:
        """Keeps the metrics table and the checkpoints after every epoch."""
        return _AfterEpoch(self)

    def _differences(self, found: dict[str, Any]) -> list[str]:
        """In what a run found here is another one; what earlier versions did not write is not held against them."""
        later = {"objective", "model and mechanism"}
        return [k for k, v in self.identity.items() if found.get(k) != v and (k in found or k not in later)]

    def _read(self) -> dict[str, Any] | None:
        try:
            content = read_json(self.folder / RUN)
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def _write(self, end: dict[str, Any]) -> None:
        make_folder(self.folder)
        write_json(self.folder / RUN, {**self.identity, **end})


class _AfterEpoch(Checkpoint):
    """After every epoch: the metrics, a checkpoint if this is the best epoch, then the one to resume from.

    The table is written whole, so that a resumed run leaves no gap; which epoch is best follows from the history
    alone, so that a run that was moved or resumed agrees with itself.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Save; a kill in between only means that this epoch is done again. One process of several writes."""
        assert isinstance(pl_module, TrainingModule)
        if trainer.is_global_zero:
            table = io.StringIO()
            writer = csv.DictWriter(table, fieldnames=list(pl_module.history[0]))
            writer.writeheader()
            writer.writerows(pl_module.history)
            write_text(self.run.folder / "metrics.csv", table.getvalue())
        losses = [row["dev_loss"] for row in pl_module.history]
        if losses[-1] < min(losses[:-1], default=float("inf")):
            trainer.save_checkpoint(self.run.best)
        trainer.save_checkpoint(self.run.last)
