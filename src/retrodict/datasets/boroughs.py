"""Which of New York's five boroughs a point lies in.

>>> BOROUGHS[borough_of([-73.9857], [40.7484])[0]]  # the Empire State Building
'Manhattan'

Borders are lines of a few points that neighbours share, drawn from well-known places: in the middle of the rivers, so
that a taxi on a quay is still in its borough, and along the main bends of the land borders, where a line may be some
hundred metres off. A point of New Jersey, Westchester, Nassau or the open sea is in no borough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOROUGHS = ("Manhattan", "Brooklyn", "Queens", "Bronx", "Staten Island")
OUTSIDE = -1

Line = tuple[tuple[float, float], ...]

# All are (longitude, latitude), from north to south or from west to east.
_UPPER_HUDSON: Line = ((-73.9180, 40.9155), (-73.9225, 40.8960), (-73.9290, 40.8785))
_LOWER_HUDSON: Line = (
    (-73.9290, 40.8785),
    (-73.9375, 40.8720),
    (-73.9545, 40.8510),  # George Washington Bridge
    (-73.9660, 40.8250),
    (-73.9740, 40.8100),
    (-73.9885, 40.7920),
    (-73.9995, 40.7760),
    (-74.0120, 40.7610),
    (-74.0165, 40.7450),
    (-74.0190, 40.7300),
    (-74.0255, 40.7130),
    (-74.0300, 40.6950),
    (-74.0300, 40.6800),
)
_HARLEM_RIVER: Line = (
    (-73.9290, 40.8785),
    (-73.9170, 40.8770),
    (-73.9125, 40.8795),  # Marble Hill, north of the river, is Manhattan
    (-73.9070, 40.8765),
    (-73.9080, 40.8725),
    (-73.9153, 40.8628),  # University Heights Bridge
    (-73.9275, 40.8455),  # Washington Bridge
    (-73.9338, 40.8282),  # Macombs Dam Bridge
    (-73.9330, 40.8196),
    (-73.9343, 40.8139),
    (-73.9322, 40.8075),  # Third Avenue Bridge
    (-73.9285, 40.8025),
    (-73.9120, 40.7985),  # the Bronx Kill: Randalls Island is Manhattan
)
_HELL_GATE: Line = (
    (-73.9120, 40.7985),
    (-73.9140, 40.7920),
    (-73.9215, 40.7850),
    (-73.9275, 40.7795),
    (-73.9375, 40.7765),
    (-73.9400, 40.7690),  # the eastern channel: Roosevelt Island is Manhattan
    (-73.9470, 40.7617),
    (-73.9525, 40.7570),
    (-73.9635, 40.7480),
    (-73.9670, 40.7375),
)
_EAST_RIVER: Line = (
    (-73.9670, 40.7375),
    (-73.9675, 40.7290),
    (-73.9690, 40.7200),
    (-73.9722, 40.7135),  # Williamsburg Bridge
    (-73.9755, 40.7085),
    (-73.9905, 40.7075),  # Manhattan Bridge
    (-73.9969, 40.7061),  # Brooklyn Bridge
    (-74.0045, 40.7010),
    (-74.0095, 40.6925),  # Buttermilk Channel: Governors Island is Manhattan
    (-74.0155, 40.6825),
    (-74.0300, 40.6800),
)
_LONG_ISLAND_SOUND: Line = (
    (-73.9120, 40.7985),
    (-73.9040, 40.7915),
    (-73.8930, 40.7855),  # south of Rikers Island, which is the Bronx
    (-73.8700, 40.7890),
    (-73.8500, 40.7975),
    (-73.8290, 40.8015),  # Whitestone Bridge
    (-73.7935, 40.8006),  # Throgs Neck Bridge
    (-73.7700, 40.8080),
)
_WESTCHESTER: Line = (
    (-73.9180, 40.9155),
    (-73.8965, 40.9115),
    (-73.8780, 40.9060),
    (-73.8595, 40.9005),
    (-73.8540, 40.9065),
    (-73.8385, 40.8945),
    (-73.8235, 40.8905),
    (-73.7830, 40.8820),
    (-73.7500, 40.8700),
    (-73.7700, 40.8080),
)
_NASSAU: Line = (
    (-73.7700, 40.8080),
    (-73.7550, 40.7850),  # Little Neck Bay
    (-73.7330, 40.7730),
    (-73.7290, 40.7670),
    (-73.7110, 40.7610),
    (-73.7025, 40.7530),
    (-73.7005, 40.7390),
    (-73.7070, 40.7270),
    (-73.7290, 40.7180),  # Belmont Park is Nassau
    (-73.7260, 40.7000),
    (-73.7260, 40.6520),
    (-73.7410, 40.6460),
    (-73.7430, 40.6370),
    (-73.7660, 40.6250),
    (-73.7670, 40.6140),
    (-73.7450, 40.6110),
    (-73.7380, 40.5940),
    (-73.7380, 40.5850),
)
_BROOKLYN_AND_QUEENS: Line = (
    (-73.9670, 40.7375),
    (-73.9605, 40.7370),  # Newtown Creek
    (-73.9526, 40.7392),  # Pulaski Bridge
    (-73.9408, 40.7339),
    (-73.9365, 40.7290),
    (-73.9290, 40.7275),  # Kosciuszko Bridge
    (-73.9245, 40.7195),
    (-73.9235, 40.7150),
    (-73.9190, 40.7090),
    (-73.9125, 40.7005),
    (-73.9040, 40.6950),
    (-73.8985, 40.6885),
    (-73.8920, 40.6850),
    (-73.8850, 40.6885),  # Highland Park
    (-73.8730, 40.6945),
    (-73.8670, 40.6935),
    (-73.8630, 40.6785),  # Eldert Lane
    (-73.8585, 40.6690),
    (-73.8590, 40.6580),  # Spring Creek
    (-73.8520, 40.6480),
    (-73.8550, 40.6200),  # Jamaica Bay
    (-73.8650, 40.5850),
    (-73.8855, 40.5735),  # Marine Parkway Bridge
    (-73.9450, 40.5640),
    (-73.9450, 40.5380),
)
_NARROWS: Line = (
    (-74.0300, 40.6800),
    (-74.0540, 40.6430),
    (-74.0447, 40.6066),  # Verrazzano-Narrows Bridge
    (-74.0300, 40.5700),
    (-74.0300, 40.5500),
)
_NEW_JERSEY: Line = (
    (-74.0300, 40.6800),
    (-74.0700, 40.6530),
    (-74.0900, 40.6490),
    (-74.1420, 40.6418),  # Bayonne Bridge
    (-74.1600, 40.6450),
    (-74.1850, 40.6460),
    (-74.1985, 40.6352),  # Goethals Bridge
    (-74.2040, 40.5950),
    (-74.2170, 40.5600),
    (-74.2466, 40.5247),  # Outerbridge Crossing
    (-74.2600, 40.4980),
    (-74.2300, 40.4850),
    (-74.1000, 40.5200),
    (-74.0300, 40.5500),
)


def _ring(*lines: Line) -> NDArray[np.float64]:
    """The corners of a polygon [V, 2] from border lines walked one after another, each either way round."""
    corners = list(lines[0])
    for line in lines[1:]:
        corners += line if line[0] == corners[-1] else line[::-1]
    return np.array(corners)


POLYGONS = {
    "Manhattan": _ring(_LOWER_HUDSON, _EAST_RIVER, _HELL_GATE, _HARLEM_RIVER),
    "Brooklyn": _ring(_EAST_RIVER, _NARROWS, ((-74.0300, 40.5500), (-73.9450, 40.5380)), _BROOKLYN_AND_QUEENS),
    "Queens": _ring(
        _HELL_GATE, _BROOKLYN_AND_QUEENS, ((-73.9450, 40.5380), (-73.7380, 40.5850)), _NASSAU, _LONG_ISLAND_SOUND
    ),
    "Bronx": _ring(_UPPER_HUDSON, _HARLEM_RIVER, _LONG_ISLAND_SOUND, _WESTCHESTER),
    "Staten Island": _ring(_NARROWS, _NEW_JERSEY),
}


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
