"""Keys that were seen, each with a number: however many there are, some more are added at little cost.

They are kept in sorted runs. A run that is no shorter than half of the one before it is merged with it, so that there
are few, and each key is moved a few times only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]


class Known:
    """Distinct keys with their numbers: 12 bytes each."""

    def __init__(self) -> None:
        self.runs: list[tuple[Keys, NDArray[np.int32]]] = []

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self.runs)

    def find(self, keys: Keys) -> Keys:
        """The number of each key, -1 where it is not known."""
        order, found = np.argsort(keys), np.full(len(keys), -1, np.int64)
        ordered = keys[order]  # neighbours are looked for near one another in memory
        for own, numbers in self.runs:
            place = np.searchsorted(own, ordered).clip(max=len(own) - 1)
            is_here = own[place] == ordered
            found[order[is_here]] = numbers[place[is_here]]
        return found

    def add(self, keys: Keys, numbers: Keys) -> None:
        """Take up keys that are not known yet."""
        if not len(keys):
            return
        self.runs.append(_sorted(keys, numbers.astype(np.int32)))
        while len(self.runs) > 1 and 2 * len(self.runs[-1][0]) >= len(self.runs[-2][0]):
            (one, of_one), (other, of_other) = self.runs[-2:]
            self.runs[-2:] = [_sorted(np.concatenate([one, other]), np.concatenate([of_one, of_other]))]


def _sorted(keys: Keys, numbers: NDArray[np.int32]) -> tuple[Keys, NDArray[np.int32]]:
    order = np.argsort(keys, kind="stable")
    return keys[order], numbers[order]
