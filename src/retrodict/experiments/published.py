"""Distances on taxi streams that others measured: mean per stream, all pick-ups hidden, at costs 0.02 to 1 hour."""

from __future__ import annotations

from collections.abc import Mapping

# By the number of test streams, from the first; the smoother is the code that came with the paper in 2019.
TAXI: Mapping[int, Mapping[str, tuple[float, ...]]] = {
    60: {
        "predict nothing": (0.310, 0.774, 1.548, 3.097, 7.742, 15.48),
        "best median ride": (0.495, 0.929, 1.328, 1.888, 2.981, 4.617),
        "2019 smoother": (0.436, 0.913, 1.378, 1.890, 2.747, 4.032),
    },
    30: {
        "2019 smoother": (0.448, 0.919, 1.382, 1.842, 2.575, 3.584),
        "its p and q, mended, 20 points, near-optimal decode, M = 50": (0.339, 0.744, 1.117, 1.497, 2.134, 3.080),
        "the same, M = 500": (0.307, 0.655, 1.025, 1.345, 1.900, 2.761),
    },
}
