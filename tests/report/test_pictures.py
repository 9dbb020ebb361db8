"""The picture is a picture: every kind of mark is on it, in the formats a user may ask for."""

from __future__ import annotations

import numpy as np
import pytest
from retrodict.report.picture import draw_imputation

import retrodict as rd


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_drawn(tmp_path, suffix):
    model, mechanism = rd.Hawkes([0.5, 0.1], [[0.0, 0.8], [0.0, 0.0]], 2.0), rd.ByType([1.0, 0.0])
    observed, hidden = mechanism.censor(rd.simulate(model, 3, end=10.0, seed=1))
    posterior = rd.impute(observed, rd.Filtering(model, mechanism), particles=30)
    decoded = posterior.consensus(1.0)
    file = tmp_path / f"picture.{suffix}"
    draw_imputation(posterior, decoded[1], 1, file, truth=hidden[1], title="a stream")
    if suffix == "svg":
        text = file.read_text()
        for mark in ("#5b3a8e", "#1b7f5a", "#c0392b"):
            assert mark in text
    else:
        from matplotlib.image import imread

        pixels = imread(file)[..., :3]
        assert pixels.shape[1] > 1000
        assert np.abs(pixels - 1).sum(-1).max() > 1
