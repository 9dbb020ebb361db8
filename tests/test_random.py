"""Counter-based random numbers: uniform, independent, and a function of seed, id and counter alone."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats

from retrodict.random import split, stream_keys, uniform


def test_numbers_are_uniform_and_uncorrelated_across_counters_and_streams():
    keys = stream_keys(0, range(200))
    numbers = uniform(keys[:, None], torch.arange(500)).numpy()
    assert 0 < numbers.min() < numbers.max() < 1
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.012
    assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.012
    pairs, _, _ = np.histogram2d(numbers[:, ::2].ravel(), numbers[:, 1::2].ravel(), bins=16)
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-3


def test_branches_are_independent():
    keys = stream_keys(3, ["a"])
    counter = torch.arange(20_000)
    first, second = (uniform(split(keys, b), counter).numpy() for b in (0, 1))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.025
    assert stats.kstest(first, "uniform").pvalue > 1e-3


def test_keys_follow_seed_and_id_not_position():
    assert torch.equal(stream_keys(1, ["x", "y"]).flip(0), stream_keys(1, ["y", "x"]))
    assert len({int(k) for seed in range(50) for k in stream_keys(seed, range(50))}) == 2500


def test_numbers_are_splitmix64():
    """The published generator in plain integers, started from the stream's key."""
    mask = (1 << 64) - 1
    keys = stream_keys(0, ["taxi-7"])
    state, expected = int(keys[0]) & mask, []
    for _ in range(3):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        expected.append((((z ^ (z >> 31)) >> 12) + 0.5) * 2.0**-52)
    assert uniform(keys, torch.arange(3)).tolist() == expected
    # Streams must come out the same in later versions too.
    np.testing.assert_allclose(expected, [0.6808875584913945, 0.827782097582487, 0.06785961448410621])
