"""What finished tasks found, read back: parts put together, and nothing where a part is absent."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.plan import chunks, result_of
from experiments.store import Run, read_json, record_of

NOTHING, MEDIAN, MOST_PROBABLE = "nothing", "median-rule", "most-probable"


class Decoded:
    """The distance of one method's decodes to the truth: terms by cost and stream, [C, N] each."""

    def __init__(self, costs: tuple[float, ...], missing: Any, edits: Any, moved: Any) -> None:
        self.costs, self.missing = np.array(costs), np.array(missing)
        self.edits, self.moved = np.array(edits, dtype=float), np.array(moved, dtype=float)

    @property
    def distance(self) -> NDArray[np.float64]:
        """By cost and stream, [C, N]."""
        return self.costs[:, None] * self.edits + self.moved

    @property
    def edits_per_event(self) -> NDArray[np.float64]:
        """Insertions and deletions over missing events, [C]: the x-axis of the paper's figure."""
        return self.edits.sum(1) / max(self.missing.sum(), 1)

    @property
    def moved_per_event(self) -> NDArray[np.float64]:
        """Time moved over missing events, [C]: the y-axis."""
        return self.moved.sum(1) / max(self.missing.sum(), 1)


class Findings:
    """All results in a run's folder."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.decoded = cache(self._decoded)
        self.parts = cache(self._parts)

    def result(self, name: str) -> dict[str, Any] | None:
        """What a measurement found, or None if it has not been made."""
        file = self.run.result(name)
        return read_json(file) if file.exists() else None

    def record(self, dataset: str, name: str | None = None) -> dict[str, Any] | None:
        """The record of a data set, or of one of its models."""
        file = record_of(self.run.data(dataset) if name is None else self.run.model(dataset, name))
        return read_json(file) if file.exists() else None

    def _parts(self, dataset: str, setting: str, method: str, particles: int) -> list[dict[str, Any]]:
        """The results of all chunks of a method, or nothing if one of them is absent."""
        if method == MEDIAN:
            files = [result_of(self.run, dataset, setting, MEDIAN, 0, 0)]
        else:
            starts = [first for first, _ in chunks(self.run, dataset, particles)]
            files = [result_of(self.run, dataset, setting, method, particles, first) for first in starts]
        if not all(file.exists() for file in files):
            return []
        return [part for part in map(read_json, files) if len(part["missing"])]

    def _decoded(self, dataset: str, setting: str, method: str, particles: int) -> Decoded | None:
        """What a method's decodes are worth."""
        own = {MOST_PROBABLE: "smoothing", NOTHING: "filtering"}.get(method, method)
        parts = self.parts(dataset, setting, own, particles)
        if not parts:
            return None
        costs = self.run.kind(dataset).costs
        missing = np.concatenate([part["missing"] for part in parts])
        if method == NOTHING:
            every = np.tile(missing, (len(costs), 1))
            return Decoded(costs, missing, every, np.zeros(every.shape))
        key = "most_probable" if method == MOST_PROBABLE else "consensus"
        terms = (np.concatenate([part[key][term] for part in parts], 1) for term in ("edits", "moved"))
        return Decoded(costs, missing, *terms)

    def mean(self, dataset: str, setting: str, method: str, particles: int, name: str) -> float | None:
        """The mean over streams of what particles say of themselves."""
        parts = self.parts(dataset, setting, method, particles)
        return float(np.concatenate([part[name] for part in parts]).mean()) if parts else None
