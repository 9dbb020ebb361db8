"""The paired permutation test is exact where it can be, and valid everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.errors import DataError
from retrodict.evaluate import paired_permutation_test


def test_small_samples_are_enumerated() -> None:
    result = paired_permutation_test([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert result == (2.0, 2 / 8, 8, True)
    assert paired_permutation_test([1.0, 2.0, 3.0], [0.0] * 3, alternative="greater").p_value == 1 / 8
    assert paired_permutation_test([1.0, 2.0, 3.0], [0.0] * 3, alternative="less").p_value == 1.0
    assert paired_permutation_test([1.0, 2.0], [1.0, 2.0]).p_value == 1.0


def test_random_flips_agree_with_all_flips() -> None:
    """14 pairs, 16,384 flips against 5,000 random ones: within five standard errors."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, 14), rng.normal(0, 1, 14)
    exact = paired_permutation_test(a, b)
    sampled = paired_permutation_test(a, b, permutations=5000, seed=1)
    assert exact.exact
    assert not sampled.exact
    spread = np.sqrt(exact.p_value * (1 - exact.p_value) / 5000)
    assert abs(exact.p_value - sampled.p_value) < 5 * spread + 1e-3
    assert sampled == paired_permutation_test(a, b, permutations=5000, seed=1)


def test_p_values_are_uniform_when_nothing_differs() -> None:
    """200 null experiments: at most 10 % at the 5 % level (expected 10, five standard deviations 25)."""
    rng = np.random.default_rng(1)
    p = [paired_permutation_test(*rng.normal(size=(2, 30)), permutations=400, seed=s).p_value for s in range(200)]
    assert np.mean(np.array(p) <= 0.05) < 0.125
    assert 0.4 < np.mean(p) < 0.6


def test_a_clear_difference_is_found() -> None:
    rng = np.random.default_rng(2)
    base = rng.normal(10, 3, 100)
    result = paired_permutation_test(base - 0.5 + rng.normal(0, 0.5, 100), base, alternative="less")
    assert result.difference < 0
    assert result.p_value == pytest.approx(1 / 20_001)


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        ([1.0], [1.0, 2.0], {}),
        ([], [], {}),
        ([float("nan")], [1.0], {}),
        ([1.0], [1.0], {"alternative": "up"}),
        ([1.0], [1.0], {"permutations": 0}),
    ],
)
def test_bad_input_is_refused_with_a_remedy(a, b, options) -> None:
    with pytest.raises(DataError, match="Remedy"):
        paired_permutation_test(a, b, **options)


def test_many_pairs_can_be_compared():
    generator = np.random.default_rng(0)
    ours = generator.normal(size=5000)
    result = paired_permutation_test(
        ours, ours + 0.1 + generator.normal(size=5000), permutations=200, alternative="less"
    )
    assert result.p_value < 0.02
