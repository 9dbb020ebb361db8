"""Which of New York's five boroughs a point lies in.

>>> BOROUGHS[borough_of([-73.9857], [40.7484])[0]]  # the Empire State Building
'Manhattan'

Borders are lines of a few points that neighbours share (``boroughs.csv``, from north to south or from west to east),
drawn from well-known places: in the middle of the rivers, so that a taxi on a quay is still in its borough, and along
the main bends of the land borders, where a line may be some hundred metres off. A point of New Jersey, Westchester,
Nassau or the open sea is in no borough.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

BOROUGHS = ("Manhattan", "Brooklyn", "Queens", "Bronx", "Staten Island")
OUTSIDE = -1
_BORDERS = {
    "Manhattan": ("Lower Hudson", "East River", "Hell Gate", "Harlem River"),
    "Brooklyn": ("East River", "Narrows", "Atlantic", "Brooklyn and Queens"),
    "Queens": ("Hell Gate", "Brooklyn and Queens", "Rockaways", "Nassau", "Long Island Sound"),
    "Bronx": ("Upper Hudson", "Harlem River", "Long Island Sound", "Westchester"),
    "Staten Island": ("Narrows", "New Jersey"),
}


def _polygons() -> dict[str, NDArray[np.float64]]:
    """The corners [V, 2] of each borough, longitude and latitude: its borders, each walked in whichever way fits."""
    with (files("retrodict.datasets") / "boroughs.csv").open() as file:
        points = pd.read_csv(file).groupby("line")[["longitude", "latitude"]]
    lines = {name: line.to_numpy().tolist() for name, line in points}
    polygons = {}
    for borough, borders in _BORDERS.items():
        corners = list(lines[borders[0]])
        for border in borders[1:]:
            corners += lines[border] if lines[border][0] == corners[-1] else lines[border][::-1]
        polygons[borough] = np.array(corners)
    return polygons


POLYGONS = _polygons()


def borough_of(longitude: ArrayLike, latitude: ArrayLike) -> NDArray[np.int8]:
    """The index into BOROUGHS of each point [N], or OUTSIDE where it lies in none of them or is no number."""
    x, y = np.asarray(longitude, dtype=np.float64), np.asarray(latitude, dtype=np.float64)
    found = np.full(x.shape, OUTSIDE, dtype=np.int8)
    left = np.arange(len(x))
    for index, name in enumerate(BOROUGHS):
        inside = _inside(x[left], y[left], POLYGONS[name])
        found[left[inside]] = index
        left = left[~inside]
    return found


def _inside(x: NDArray[np.float64], y: NDArray[np.float64], polygon: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each point [N] is inside: a ray from it eastwards crosses the border an odd number of times."""
    low, high = polygon.min(0), polygon.max(0)
    near = np.flatnonzero((x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1]))
    px, py = x[near], y[near]
    odd = np.zeros(len(near), dtype=bool)
    for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if y1 != y2:
            odd ^= ((y1 <= py) != (y2 <= py)) & (px < x1 + (py - y1) * (x2 - x1) / (y2 - y1))
    inside = np.zeros(len(x), dtype=bool)
    inside[near] = odd
    return inside
