"""Short names for the arrays that the compiled kernels pass around."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.uint32]  # without a sign, indexing need not look for negative ones
Shorts: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.int8]
Bools: TypeAlias = NDArray[np.bool_]
