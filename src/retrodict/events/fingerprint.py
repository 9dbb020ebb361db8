"""A digest of a table's events, by which a model knows the streams it was fitted to."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import coarse_lattice


def fingerprint(streams: StreamSet) -> str:
    """The same for the same events in the same order, whatever types are known besides those that occur."""
    used = np.unique(streams.event_types)
    names = [str(streams.types[k]) for k in used]
    place = np.argsort(np.argsort(names))
    digest = hashlib.blake2b("\0".join(sorted(names)).encode("utf-8", "replace"), digest_size=8)
    for array in (place[np.searchsorted(used, streams.event_types)], streams.event_times, streams.offsets):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(np.ascontiguousarray(streams.id_keys).tobytes())
    return digest.hexdigest()


def fitted_to(streams: StreamSet) -> dict[str, Any]:
    """What a model keeps of the table it is fitted to: its digest, the form of its dates, a coarse lattice of times."""
    dates = None if streams.source is None else streams.source.names.get("dates")
    lattice = coarse_lattice(streams)
    known = {"dates": dates, "lattice": None if lattice is None else lattice.name}
    return {"table": fingerprint(streams)} | {name: value for name, value in known.items() if value is not None}
