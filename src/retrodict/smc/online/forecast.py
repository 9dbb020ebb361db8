"""The future of an online run: every particle is simulated on, and the mechanism says what of it will be observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Context
from retrodict.models.simulate import Drawn, simulate_batch
from retrodict.proposals.smoothers import type_names
from retrodict.random import split, stream_keys, uniform
from retrodict.smc.describe import describe_run
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.guesses import Guesses, join
from retrodict.smc.online.arrivals import Line, Name
from retrodict.smc.online.window import Present, keep, look_now
from retrodict.smc.posterior import Posterior

if TYPE_CHECKING:
    from retrodict.smc.online.online import Online

_ONWARDS, _SEEN = 4, 5  # branches of each row's random numbers beside those of thinning


class Forecast(NamedTuple):
    """What will happen in the coming stretch of N streams, by M weighted continuations each.

    Both parts are asked like a posterior (``expected_count``, ``probability``, ``draws`` ...), about all events to come
    and about those of them that will be observed.
    """

    complete: Posterior
    observed: Posterior


class Continued(NamedTuple):
    """Simulated events of some streams, in the order of their guesses, and whether each will be observed."""

    guesses: Guesses
    seen: NDArray[np.bool_]
    log_evidence: NDArray[np.float64]


def look_ahead(
    online: Online, lines: dict[Name, Line], parts: list[dict[Name, Line]], ahead: float, seed: int
) -> Forecast:
    """Simulate every particle on by ``ahead``, some streams at a time."""
    begin = np.array([line.start + line.until for line in lines.values()], dtype=np.float64)
    empty = np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(len(lines) + 1, dtype=np.int64)
    types = type_names(online.proposal.model)
    nothing = StreamSet.trusted(*empty, begin, begin + ahead, list(lines), types, axis=online.axis)
    about = describe_run(online.proposal, online.engine, online.seed, online.resample) | {"ahead": ahead}
    done = [_go_on(online, part, ahead, seed) for part in parts or [lines]]
    evidence = np.concatenate([part.log_evidence for part in done])

    def answer(guesses: list[Guesses]) -> Posterior:
        whole = join(guesses, np.arange(len(lines)))
        sizes = whole.families.sum(1)
        diagnostics = Diagnostics(sizes, np.zeros(sizes.shape, np.int64), np.zeros(len(lines), np.int64))
        return Posterior(nothing, whole, whole, evidence, diagnostics, None, about)

    return Forecast(answer([part.guesses for part in done]), answer([keep(part.guesses, part.seen) for part in done]))


@torch.no_grad()
def _go_on(online: Online, lines: dict[Name, Line], ahead: float, seed: int) -> Continued:
    """Simulate every particle of some streams."""
    present, own = look_now(online, lines), list(lines.values())
    model, M = online.proposal.model, online.particles
    rows = torch.arange(len(own), device=model.device).repeat_interleave(M)
    begin = np.array([line.until for line in own], dtype=np.float64)
    keys = split(split(present.row_keys, _ONWARDS), seed)
    watcher = Watcher(online, lines, present, rows, torch.tensor(begin + ahead, device=model.device)[rows], keys)
    stretch = np.repeat(begin, M), np.repeat(begin + ahead, M), np.full(len(rows), np.inf)
    how = False, online.max_events, watcher
    drawn = simulate_batch(model, present.particles.state, keys, *stretch, *how, starts=watcher.start)
    row, time, kind = (field.cpu().numpy() for field in drawn)
    seen = torch.cat([torch.zeros(0, dtype=torch.bool), *(some.cpu() for some in watcher.seen)]).numpy()
    starts = np.array([line.start for line in own], dtype=np.float64)
    order = np.lexsort((time, row))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows)))]).astype(np.int64)
    times = time[order] + starts[row[order] // M]
    guesses = Guesses(times, kind[order], offsets, present.weights, present.families[:, :, None])
    return Continued(guesses, seen[order], present.log_evidence)


class Watcher:
    """Says of every simulated event whether it will be observed, and remembers it for the mechanism."""

    def __init__(
        self, online: Online, lines: dict[Name, Line], present: Present, rows: Tensor, end: Tensor, keys: Tensor
    ) -> None:
        device = rows.device
        starts = torch.tensor([line.start for line in lines.values()], dtype=torch.float64, device=device)
        self.mechanism, self.history = online.proposal.missingness, present.particles.history
        self.start, self.end = (starts + online.axis.since_1970)[rows], end
        self.stream = stream_keys(0, lines).to(device)[rows]
        self.keys, self.count = split(keys, _SEEN), torch.zeros_like(rows)
        self.seen: list[Tensor] = []

    def __call__(self, drawn: Drawn, state: object) -> None:
        """One event each of some rows, and the model's states before them."""
        row, time, kind = drawn
        history = tuple(field[row] for field in self.history)
        context = Context(self.start[row], self.stream[row], state, self.end[row], history)
        rho = self.mechanism.rates(time, context).gather(-1, kind[:, None])[:, 0]
        self.seen.append(uniform(self.keys[row], self.count[row]) >= rho)
        self.count[row] += 1
        if history:
            for field, new in zip(self.history, self.mechanism.update(history, kind, time), strict=True):
                field[row] = new
