"""The Lightning module: one step, one validation, one learning-rate schedule, for any Objective."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from retrodict.errors import TrainingError
from retrodict.events.batch import Batch
from retrodict.train.objective import Objective, dev_loss
from retrodict.train.together import gather

_NOTHING = object()  # the batch of a process without a stream in a step; Lightning leaves None out
_READ_EVERY = 16  # steps of which a GPU's losses are read together: each reading waits for it


@dataclass(frozen=True)
class Settings:
    """How to train; the part of a run's identity that is not data or model."""

    batch_size: int
    learning_rate: float
    patience: int
    seed: int
    weight_decay: float = 0.0
    averaging: float = 0.995
    clip: float = 10.0


class TrainingModule(pl.LightningModule):
    """Adam on an objective's loss per event; the rate is halved when dev stops improving.

    What is scored on dev and kept is a running average of the weights (Polyak and Juditsky, 1992).
    """

    def __init__(self, objective: Objective, settings: Settings) -> None:
        super().__init__()
        self.objective, self.settings = objective, settings
        self.trained = objective.module
        self.history: list[dict[str, float]] = []
        self._totals = [0.0, 0.0]
        self.read_every = 1
        self._unread: list[tuple[Tensor, Any, int]] = []  # of the last steps: loss and events, batch, its number
        self._refused: tuple[int, str] | None = None  # the batch and why, where other processes are to hear of it
        self._limit = math.inf
        self._clock = time.perf_counter()
        self.plateau: torch.optim.lr_scheduler.ReduceLROnPlateau | None = None
        self._plateau_state: dict[str, Any] | None = None
        self._steps = 0
        self.average = {n: p.detach().clone() for n, p in self.trained.named_parameters() if p.requires_grad}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, as in the paper (weight decay, where asked for, is decoupled)."""
        fused = next(self.trained.parameters()).is_cuda
        optimizer = torch.optim.AdamW(
            (p for p in self.trained.parameters() if p.requires_grad),
            lr=self.settings.learning_rate,
            weight_decay=self.settings.weight_decay,
            fused=fused,
        )
        # Stepped by hand after validation: Lightning would step it after the checkpoint is written.
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=max(1, self.settings.patience // 3), threshold=1e-5
        )
        if self._plateau_state is not None:
            self.plateau.load_state_dict(self._plateau_state)
        return optimizer

    def train_dataloader(self) -> DataLoader[Batch]:
        """This epoch's batches, in an order that depends on seed and epoch only."""
        # A resumed trainer first asks for the epoch that was done last: the next one is meant.
        epoch = max(self.current_epoch, len(self.history))
        groups = self.objective.epoch_batches(self.settings.batch_size, self.settings.seed, epoch)
        return DataLoader(
            [index[self._share] for index in groups],  # type: ignore[arg-type]
            batch_size=None,
            collate_fn=lambda index: self.objective.batch(np.asarray(index), epoch) if len(index) else _NOTHING,
        )

    @property
    def _share(self) -> slice:
        """Which streams of a batch, and which batches of dev, are this process's."""
        return slice(self.trainer.global_rank, None, self.trainer.world_size)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """An objective makes its batches where its module is."""
        return batch

    def on_fit_start(self) -> None:
        """Anything far worse than where training begins has diverged: no later step will make up for it."""
        if self.device.type == "cuda":
            self.read_every = _READ_EVERY
        self.objective.process = self.trainer.global_rank
        if not math.isfinite(self._limit):
            begin = self._dev_loss()
            self._limit = 100 + 20 * abs(begin) if math.isfinite(begin) else math.inf

    def on_train_epoch_start(self) -> None:
        """Start this epoch's clock and sums."""
        self._totals, self._clock, self._unread = [0.0, 0.0], time.perf_counter(), []

    def training_step(self, batch: Any, batch_index: int) -> Tensor:
        """Loss per event; refuses NaN and divergence, naming the batch."""
        if batch is _NOTHING:  # fewer streams than processes are left for this step
            return self._touch_all()
        total, events = self.objective.loss(batch, training=True)
        self._unread.append((torch.stack([total.detach().double(), events.double()]), batch, batch_index))
        if len(self._unread) >= self.read_every:
            self._read_losses()
        # Every stream counts the same, whatever batch it is in: divided by a batch's own number of events, short
        # streams, which are batched together, would count for more than the likelihood gives them.
        usual = min(self.settings.batch_size, len(self.objective.train)) * self.objective.events_per_stream()
        if self.trainer.world_size == 1:
            return total / usual
        return total * (self.trainer.world_size / usual) + self._touch_all()  # the mean of all gradients is taken

    def _touch_all(self) -> Tensor:
        """Zero, as a function of all parameters: processes wait for one another's gradient of each."""
        return 0.0 * torch.stack([p.sum() for p in self.trained.parameters() if p.requires_grad]).sum()

    def _read_losses(self) -> None:
        """Add up the losses of the last steps, which a GPU is let run ahead with, and refuse what is not sound."""
        if not self._unread:
            return
        values = torch.stack([pair for pair, _, _ in self._unread]).tolist()
        for (total, events), (_, batch, batch_index) in zip(values, self._unread, strict=True):
            per_event = total / (events + len(batch.index))
            if not math.isfinite(total):
                self._refuse(batch, batch_index, f"the loss is {total}")
            elif per_event > self._limit:
                self._refuse(batch, batch_index, f"training diverged: the loss is {per_event:.4g} per event")
            self._totals[0] += total
            self._totals[1] += events
        self._unread = []

    def _read_all_losses(self) -> None:
        """Add up the losses of the epoch over all processes, which then refuse alike what one of them found."""
        self._read_losses()
        if self.trainer.world_size > 1:
            found = gather((self._totals, self._refused))
            self._totals = [sum(total for (total, _), _ in found), sum(events for (_, events), _ in found)]
            refused = [why for _, why in found if why is not None]
            if refused:
                raise TrainingError(min(refused)[1])

    def _dev_loss(self) -> float:
        """Loss per event on all dev streams, of which each process scores a share."""
        share = dev_loss(self.objective, self.settings.batch_size, self._share)
        total, count = map(sum, zip(*(gather(share) if self.trainer.world_size > 1 else [share]), strict=True))
        return total / max(count, 1.0)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """Clip the gradient's norm, so that one odd stream cannot throw training off."""
        torch.nn.utils.clip_grad_norm_(self.trained.parameters(), self.settings.clip)

    @torch.no_grad()
    def on_train_batch_end(self, outputs: Any, batch: Any, batch_index: int) -> None:
        """Move the average towards the new weights; early on it forgets faster."""
        self._steps += 1
        share = 1 - min(self.settings.averaging, (1 + self._steps) / (10 + self._steps))
        weights = dict(self.trained.named_parameters())
        self.average = {name: value.to(self.device) for name, value in self.average.items()}
        torch._foreach_lerp_(list(self.average.values()), [weights[name].data for name in self.average], share)

    def on_validation_epoch_end(self) -> None:
        """Score the averaged weights on dev, record the epoch, adjust the learning rate."""
        self._read_all_losses()  # validation comes before the end of the training epoch
        with self.averaged():
            dev = self._dev_loss()
            more = self.objective.metrics()
        if not math.isfinite(dev):
            raise TrainingError(
                f"the dev loss is {dev} after epoch {self.current_epoch}: training diverged. "
                f"Try a learning rate below {self.settings.learning_rate:g}."
            )
        seconds = time.perf_counter() - self._clock
        optimizer = self.optimizers(use_pl_optimizer=False)
        assert isinstance(optimizer, torch.optim.Optimizer)
        row = {
            "epoch": float(self.current_epoch),
            "train_loss": self._totals[0] / max(self._totals[1], 1),
            "dev_loss": dev,
            "learning_rate": float(optimizer.param_groups[0]["lr"]),
            "events_per_second": self._totals[1] / max(seconds, 1e-9),
            **more,
        }
        self.history.append(row)
        assert self.plateau is not None
        self.plateau.step(dev)
        self.trainer.should_stop = self.is_done()

    def is_done(self) -> bool:
        """Whether dev has not improved to speak of for as long as patience lasts (known right after resuming too)."""
        return self.waited() >= self.settings.patience

    def waited(self) -> int:
        """Epochs since dev last improved to speak of."""
        best, waited = math.inf, 0
        for row in self.history:
            best, waited = (row["dev_loss"], 0) if row["dev_loss"] < best - 1e-5 else (best, waited + 1)
        return waited

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside, the trained module holds the averaged weights."""
        weights = dict(self.trained.named_parameters())
        raw = {name: weights[name].data for name in self.average}
        for name, value in self.average.items():
            weights[name].data = value.to(raw[name].device)
        try:
            yield
        finally:
            for name, value in raw.items():
                weights[name].data = value

    def validation_step(self, batch: Any, batch_index: int) -> None:
        """Dev data is scored as a whole in ``on_validation_epoch_end``."""

    def val_dataloader(self) -> DataLoader[int]:
        """One placeholder batch: Lightning validates only if there is a loader."""
        return DataLoader([0])  # type: ignore[arg-type]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the schedule and the history with the weights."""
        assert self.plateau is not None
        checkpoint["plateau"] = {
            k: v for k, v in self.plateau.state_dict().items() if isinstance(v, int | float | str | list)
        }
        checkpoint["history"], checkpoint["limit"] = self.history, self._limit
        checkpoint["average"], checkpoint["steps"] = self.average, self._steps

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on where the checkpoint left off (the optimizer does not exist yet when this is called)."""
        self._plateau_state = checkpoint["plateau"]
        self.history, self._limit = checkpoint["history"], checkpoint["limit"]
        self.average, self._steps = checkpoint["average"], checkpoint["steps"]

    def _refuse(self, batch: Any, batch_index: int, problem: str) -> None:
        """Refuse a batch: at once, or, where other processes would wait for this one, with the end of the epoch."""
        if self._refused is not None:
            return
        ids = [self.objective.name_of(i) for i in batch.index.tolist()]
        shown = ", ".join(repr(i) for i in ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
        longest = float(batch.durations.max()) if len(ids) else 0.0
        why = (
            f"{problem} at epoch {self.current_epoch}, batch {batch_index} (streams {shown}; "
            f"{batch.num_events} events, longest duration {longest:.6g}). Look for odd times in these streams, "
            f"or try a learning rate below {self.settings.learning_rate:g}."
        )
        if self.trainer.world_size == 1:
            raise TrainingError(why)
        self._refused = batch_index, why
