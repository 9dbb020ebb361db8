"""The decoders to compare with do what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode import consensus, distances, medoid, most_probable, thresholded
from retrodict.errors import DataError
from tests.decode.examples import of_one_type, posterior_like, stream


def test_most_probable_counts_copies_together() -> None:
    heavy, copied = of_one_type([1.0]), of_one_type([2.0])
    assert most_probable([heavy, copied, copied], [0.4, 0.3, 0.3]) == copied
    assert most_probable([heavy, copied], [0.6, 0.4]) == heavy


def test_medoid_has_the_least_risk_of_all_particles() -> None:
    particles, w = posterior_like(15, 3, 20, 2)
    risks = [w @ distances([p] * 20, particles, 0.7) for p in particles]
    chosen = medoid(particles, w, 0.7)
    assert w @ distances([chosen] * 20, particles, 0.7) == pytest.approx(min(risks))
    assert consensus(particles, w, 0.7).risk <= min(risks)


def test_thresholded_intensity_finds_peaks_of_each_type() -> None:
    particles = [stream([(0, 1.0 + d), (1, 5.0)]) for d in (-0.1, 0.0, 0.1)] + [stream([(0, 8.0)])]
    found = thresholded(particles, None, window=0.5, threshold=0.5)
    assert sorted(found) == [(1.0, 0), (5.0, 1)]
    everything = thresholded(particles, None, window=0.5, threshold=0.2)
    assert sorted(everything) == [(1.0, 0), (5.0, 1), (8.0, 0)]
    assert len(thresholded([of_one_type([])], None, 1.0)) == 0
    twice = thresholded([of_one_type([3.0, 3.0])] * 2, None, 0.5)
    assert np.array_equal(twice.times, [3.0])


def test_bad_thresholds_are_refused() -> None:
    with pytest.raises(DataError, match="Remedy"):
        thresholded([of_one_type([1.0])], None, window=0.0)
