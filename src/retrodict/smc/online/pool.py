"""The particles of many streams in few large tensors, of which any streams are taken out and put back.

A stream has a slot: I islands of M particles each. Taking and putting cost what is moved, whatever else is there.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from retrodict import _limits
from retrodict.missingness.base import Missingness
from retrodict.models.base import Model
from retrodict.smc.particles import Particles

_FIRST = 16  # slots to begin with


class Pool:
    """Particles at one mark of every stream."""

    def __init__(self, model: Model, mechanism: Missingness, islands: int, particles: int) -> None:
        self.islands, self.M = islands, particles
        self.empty = self.flatten(
            Particles.begin(
                islands,
                particles,
                model.initial((islands * particles,)),
                mechanism.initial((islands * particles,), model.device),
                model.device,
            )
        )
        self.make_state: Any = type(model.initial((1,)))
        self.num_state = len(model.initial((1,)))
        self.tensors = {name: value[:0].clone() for name, value in self.empty.items()}

    @property
    def slots(self) -> int:
        """How many streams there is room for."""
        return len(self.tensors["log_evidence"]) // self.islands

    def grow(self, slots: int) -> None:
        """Make room for at least this many streams."""
        if slots <= self.slots:
            return
        wanted = self._wanted(slots)
        need = self._each * wanted
        _limits.ask_memory(need, f"the particles of {wanted:,} streams", "close streams, or use fewer particles")
        for name, value in self.tensors.items():
            own = self.empty[name]
            new = own.new_zeros(wanted * len(own), *own.shape[1:])
            new[: len(value)] = value
            self.tensors[name] = new

    def size(self, slots: int) -> int:
        """Bytes of it once there is room for at least this many streams."""
        return self._each * (1 + max(self.slots, self._wanted(slots) if slots > self.slots else 0))

    @property
    def _each(self) -> int:
        """Bytes of the particles of one stream."""
        return sum(value.nbytes for value in self.empty.values())

    def _wanted(self, slots: int) -> int:
        """How many slots to make where there is no room for this many."""
        return max(_FIRST, 2 * self.slots, slots)

    def begin(self, slots: Tensor) -> None:
        """Empty particles of weight 1 for these slots."""
        rows = self._rows(slots)
        for name, value in self.tensors.items():
            own = self.empty[name]
            value[rows[name == "log_evidence"]] = own.repeat(len(slots), *[1] * (own.dim() - 1))

    def take(self, slots: Tensor, times: Tensor) -> Particles:
        """Copies of the particles of these streams, which stand at ``times`` since their starts."""
        own = self._some(slots)
        fields = list(own.values())
        now = times.repeat_interleave(self.islands * self.M)
        none = torch.zeros_like(own["rounds"])
        return Particles(
            state=self.make_state(*fields[: self.num_state]),
            history=tuple(value for name, value in own.items() if name.startswith("history")),
            drawn=[],
            heads=torch.full_like(none, -1, dtype=torch.int32),
            counts=none,
            lengths=none.clone(),  # streams that go on have no end to be known
            log_weights=own["log_weights"],
            log_evidence=own["log_evidence"],
            now=now,
            since=now.clone(),
            rounds=own["rounds"],
            window=own["window"],
        )

    def part(self, slots: Tensor) -> Pool:
        """Copies of the particles of these streams, which are in slots 0, 1, 2 ... there."""
        other = copy.copy(self)
        other.tensors = self._some(slots)
        return other

    def put(self, slots: Tensor, particles: dict[str, Tensor]) -> None:
        """Replace the particles of these streams."""
        rows = self._rows(slots)
        for name, value in particles.items():
            self.tensors[name][rows[name == "log_evidence"]] = value

    def copy(self, slots: Tensor, other: Pool) -> None:
        """Replace the particles of these streams by those of another pool."""
        self.put(slots, other._some(slots))

    @staticmethod
    def flatten(particles: Particles) -> dict[str, Tensor]:
        """What is kept of particles, by name."""
        state: Any = particles.state
        return {
            **{f"state.{i}": value for i, value in enumerate(state)},
            **{f"history.{i}": value for i, value in enumerate(particles.history)},
            "log_weights": particles.log_weights,
            "rounds": particles.rounds,
            "window": particles.window,
            "log_evidence": particles.log_evidence,
        }

    def _some(self, slots: Tensor) -> dict[str, Tensor]:
        """Copies of what is kept of these slots."""
        rows = self._rows(slots)
        return {name: value[rows[name == "log_evidence"]] for name, value in self.tensors.items()}

    def _rows(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Where these slots are: among particles, and among runs, which have an evidence each."""
        return self._spread(slots, self.islands * self.M), self._spread(slots, self.islands)

    @staticmethod
    def _spread(slots: Tensor, size: int) -> Tensor:
        return (slots[:, None] * size + torch.arange(size, device=slots.device)).reshape(-1)
