"""How Lightning trains in each of several processes (``together.py``), which are there before it begins."""

from __future__ import annotations

import signal
import threading

import pytorch_lightning as pl
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import DDPStrategy

from retrodict.train.together import Team


def strategy_of(team: Team) -> DDPStrategy:
    """Lightning's strategy for this process."""
    return DDPStrategy(cluster_environment=_Environment(team.rank % team.devices, team.rank // team.devices))


class PlainSigterm(pl.Callback):
    """SIGTERM does what it did before: Lightning would first tell processes that are not listening, and wait."""

    def __init__(self) -> None:
        self.here = threading.current_thread() is threading.main_thread()
        self.handler = signal.getsignal(signal.SIGTERM) if self.here else None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Lightning has put its own handler there by now."""
        if self.here:
            signal.signal(signal.SIGTERM, self.handler)


class _Environment(LightningEnvironment):
    """Tells Lightning that all processes are there, and which of them this one is."""

    def __init__(self, local: int, node: int) -> None:
        super().__init__()
        self._local, self._node = local, node

    @property
    def creates_processes_externally(self) -> bool:
        """They are there."""
        return True

    def local_rank(self) -> int:
        """Its number on its machine."""
        return self._local

    def node_rank(self) -> int:
        """The number of its machine."""
        return self._node

    def teardown(self) -> None:
        """They stay."""
