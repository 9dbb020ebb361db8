"""What finished jobs found, read back: chunks put together, and nothing where a part is absent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.experiments.place import Place, read_json
from retrodict.experiments.scale import costs_of

NOTHING, MEDIAN, MOST_PROBABLE = "nothing", "median-rule", "most-probable"


class Decoded:
    """The distance of one method's decodes to the truth: terms by cost and stream, [C, N] each."""

    def __init__(self, dataset: str, missing: NDArray[np.int64], parts: dict[str, Any], about: dict[str, Any]) -> None:
        self.costs = np.array(costs_of(dataset))
        self.missing, self.about = missing, about
        self.inserted, self.deleted, self.moved = (np.array(parts[name]) for name in ("inserted", "deleted", "moved"))

    @property
    def distance(self) -> NDArray[np.float64]:
        """By cost and stream, [C, N]."""
        return self.costs[:, None] * (self.inserted + self.deleted) + self.moved

    @property
    def edits_per_event(self) -> NDArray[np.float64]:
        """Insertions and deletions over missing events, [C]: the x-axis of the paper's figure."""
        return (self.inserted + self.deleted).sum(1) / max(self.missing.sum(), 1)

    @property
    def moved_per_event(self) -> NDArray[np.float64]:
        """Time moved over missing events, [C]: the y-axis."""
        return self.moved.sum(1) / max(self.missing.sum(), 1)


class Findings:
    """All results in a run's folder, by the names of their jobs."""

    def __init__(self, place: Place) -> None:
        self.place = place
        root = place.folder / "jobs"
        self.jobs = {
            path.relative_to(root).with_suffix("").as_posix(): read_json(path)
            for path in sorted(root.glob("**/*.json"))
        }

    def result(self, name: str) -> dict[str, Any] | None:
        """What a job found, or None if it has not run."""
        job = self.jobs.get(name)
        return None if job is None else job["result"]

    def under(self, prefix: str) -> dict[str, dict[str, Any]]:
        """The results of all jobs whose names begin so."""
        return {name: job["result"] for name, job in self.jobs.items() if name.startswith(prefix)}

    def test_streams(self, dataset: str) -> int:
        """How many test streams a data set has (0 if it has not been made)."""
        data = self.result(f"data/{dataset}")
        return 0 if data is None else data["streams"][2]

    def decoded(self, dataset: str, setting: str, method: str, particles: int) -> Decoded | None:
        """All chunks of a method together, or None if one of them is absent."""
        if method == NOTHING:
            return self._nothing(dataset, setting, particles)
        key = "most_probable" if method == MOST_PROBABLE else "consensus"
        name = f"decoding/{dataset}.{setting}."
        if method == MEDIAN:
            parts = [found] if (found := self.result(name + MEDIAN)) else []
        else:
            own = "smoothing" if method == MOST_PROBABLE else method
            parts = [part for part in self.under(f"{name}{own}.{particles}.").values() if len(part["missing"])]
        missing = np.concatenate([np.zeros(0, dtype=np.int64), *(np.array(part["missing"]) for part in parts)])
        if not parts or len(missing) != self.test_streams(dataset):
            return None
        terms = {term: np.concatenate([part[key][term] for part in parts], 1) for term in parts[0][key]}
        return Decoded(dataset, missing, terms, _together(parts))

    def _nothing(self, dataset: str, setting: str, particles: int) -> Decoded | None:
        found = self.decoded(dataset, setting, "filtering", particles)
        if found is None:
            return None
        every = np.tile(found.missing, (len(found.costs), 1))
        zero = np.zeros_like(every)
        return Decoded(dataset, found.missing, {"inserted": every, "deleted": zero, "moved": zero.astype(float)}, {})


def _together(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Diagnostics by stream, and the times added up."""
    joined: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            if isinstance(value, float | int):
                joined[name] = joined.get(name, 0.0) + value
            elif name not in ("consensus", "most_probable", "missing", "rules"):
                joined[name] = np.concatenate([joined.get(name, []), np.array(value, dtype=float)])
    return joined
