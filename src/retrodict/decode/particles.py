"""Checks on a weighted ensemble of particles, and the same ensemble in the form the decoders read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retrodict.decode.ensemble import Candidates, list_candidates
from retrodict.decode.grouped import check_streams
from retrodict.errors import DataError
from retrodict.events.stream import EventStream

NEGLIGIBLE = 2.0**-50


class Particles(NamedTuple):
    """Particles that carry weight, and their candidates; ``weights`` [M] sum to one, ``offsets`` [M+1] bound events.

    They are in an order of their own (by weight, then by their events), so that a decode does not depend on
    the order in which particles were given.
    """

    streams: list[EventStream]
    weights: NDArray[np.float64]
    offsets: NDArray[np.int64]
    candidates: Candidates


def check_weights(weights: ArrayLike | None, count: int) -> NDArray[np.float64]:
    """Weights [M] scaled to sum to one; equal ones for None."""
    if weights is None:
        return np.full(count, 1.0 / count)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (count,):
        raise DataError(
            f"{count} particles but weights of shape {values.shape}",
            remedy="give exactly one weight for each particle",
        )
    if not np.isfinite(values).all():
        place = int(np.argmin(np.isfinite(values)))
        raise DataError(f"weight {place} is {values[place]}", remedy="give finite weights; exponentiate log weights")
    if (values < 0).any():
        place = int(np.argmax(values < 0))
        raise DataError(
            f"weight {place} is negative ({values[place]:g})",
            remedy="give weights of zero or more; exponentiate log weights",
        )
    if not values.max() > 0:
        raise DataError("all weights are zero", remedy="give at least one particle a positive weight")
    values = values / values.max()
    return values / values.sum()


def prepare(particles: object, weights: ArrayLike | None) -> Particles:
    """Validate an ensemble, drop particles of negligible weight, and put the rest in canonical order."""
    streams = check_streams(particles, "particles")
    if not streams:
        raise DataError("there are no particles", remedy="pass at least one particle (it may be empty)")
    w = check_weights(weights, len(streams))
    kept = np.argsort(-w, kind="stable")
    kept = kept[w[kept] >= NEGLIGIBLE].tolist()
    if len(set(w.tolist())) < len(w):
        kept.sort(key=lambda m: (-w[m], streams[m].times.tobytes(), streams[m].types.tobytes()))
    streams, w = [streams[m] for m in kept], w[kept]
    times = [s.times for s in streams]
    offsets = np.array([0, *map(len, times)], dtype=np.int64).cumsum()
    types = np.concatenate([s.types for s in streams])
    return Particles(streams, w / w.sum(), offsets, list_candidates(np.concatenate(times), types, offsets))
