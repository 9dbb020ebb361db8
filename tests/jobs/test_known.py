"""Keys are found again whatever the order and the size of the pieces in which they came, at little cost for each."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.jobs import known
from retrodict.jobs.known import Known


@pytest.mark.parametrize("sizes", [[1] * 300, [1000, 1, 1, 500, 7, 2000], [5, 50, 500, 5000], [5000, 500, 50, 5]])
def test_every_key_has_its_number_and_no_other_key_has_one(sizes):
    keys = np.random.default_rng(0).permutation(4 * sum(sizes)).astype(np.int64) - 2 * sum(sizes)
    mine, others = keys[: sum(sizes)], keys[sum(sizes) :]
    seen, numbers = Known(), np.arange(sum(sizes))
    assert (seen.find(mine) == -1).all()
    for part in np.split(numbers, np.cumsum(sizes)[:-1]):
        seen.add(mine[part], part)
    assert len(seen) == sum(sizes)
    assert (seen.find(mine) == numbers).all()
    assert (seen.find(others) == -1).all()
    assert (seen.find(keys[:0]) == keys[:0]).all()


def test_a_key_is_moved_a_few_times_however_many_pieces_there_are(monkeypatch):
    """With 1,024 pieces of one size sixteen times at most; a sort of all keys for each piece moves it 512 times."""
    moved, original = [], known._sorted

    def counting(keys, numbers):
        moved.append(len(keys))
        return original(keys, numbers)

    monkeypatch.setattr(known, "_sorted", counting)
    seen = Known()
    for part in np.arange(1024 * 8).reshape(1024, 8):
        seen.add(part, part)
    assert sum(moved) <= 16 * 1024 * 8
    assert len(seen.runs) <= 11
