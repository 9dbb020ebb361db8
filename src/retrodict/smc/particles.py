"""The particles of many streams: R = B x M rows, row b M + m being particle m of stream b."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from retrodict.missingness.base import History
from retrodict.models.state import put, take


@dataclass
class Particles:
    """What is carried on from round to round.

    ``state`` the model's, after each row's last event; ``now`` [R] how far each row has been looked through;
    ``log_weights`` [R]; ``times`` and ``types`` [R, C] the missing events drawn so far, ``counts`` [R] how many;
    ``open`` [R] whether the row is still short of its segment's end; ``rounds`` [R] numbers its random draws;
    ``window`` [R] how far the next bound should reach; ``history`` the mechanism's summary of each row's events.
    """

    state: Any
    now: Tensor
    log_weights: Tensor
    times: Tensor
    types: Tensor
    counts: Tensor
    open: Tensor
    rounds: Tensor
    window: Tensor
    history: History = ()

    @classmethod
    def begin(cls, state: Any, rows: int, device: torch.device, history: History = ()) -> Particles:
        """M particles for each stream, all empty, at the start."""
        zeros = torch.zeros(rows, dtype=torch.float64, device=device)
        number = torch.zeros(rows, dtype=torch.int64, device=device)
        return cls(
            state=state,
            now=zeros,
            log_weights=zeros.clone(),
            times=torch.zeros(rows, 8, dtype=torch.float64, device=device),
            types=torch.zeros(rows, 8, dtype=torch.int64, device=device),
            counts=number,
            open=torch.ones(rows, dtype=torch.bool, device=device),
            rounds=number.clone(),
            window=torch.full_like(zeros, torch.inf),
            history=history,
        )

    def append(self, rows: Tensor, types: Tensor, times: Tensor, state: Any) -> None:
        """Add an event to each of ``rows``, with the model's state after it; buffers grow as needed."""
        if not len(rows):
            return
        at = self.counts[rows]
        if int(at.max()) >= self.times.shape[1]:
            self.times = torch.cat([self.times, torch.zeros_like(self.times)], 1)
            self.types = torch.cat([self.types, torch.zeros_like(self.types)], 1)
        self.times[rows, at] = times
        self.types[rows, at] = types
        self.counts[rows] += 1
        self.state = put(self.state, rows, state)

    def copy_rows(self, rows: Tensor, parents: Tensor) -> None:
        """Let ``rows`` become copies of ``parents``: history, state and events move together."""
        self.state = put(self.state, rows, take(self.state, parents))
        self.times[rows], self.types[rows] = self.times[parents], self.types[parents]
        self.counts[rows] = self.counts[parents]
        self.window[rows] = self.window[parents]
        for field in self.history:
            field[rows] = field[parents]

    def remember(self, rows: Tensor, history: History) -> None:
        """Replace the summaries of ``rows``."""
        for field, new in zip(self.history, history, strict=True):
            field[rows] = new
