"""Save and load posteriors: Parquet tables and a small JSON file in one folder.

DIR/posterior.json      format, version, number of particles
DIR/observed.parquet    the observed streams
DIR/particles.parquet   one row for each particle: stream, draw, weight, events
DIR/draws.parquet       one row for each event of each particle: stream, draw, time, type (positions and indices)
DIR/streams.parquet     one row for each stream: log evidence and diagnostics
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file, write_json
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
from retrodict.events.lock import lock_folder
from retrodict.events.plain import read_json
from retrodict.events.stream_set import StreamSet
from retrodict.smc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from retrodict.smc.posterior import Posterior

FORMAT, VERSION = "retrodict posterior", 1
_STREAMS = 500  # whose draws are put into a table at once
Numbers: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


def save_posterior(posterior: Posterior, directory: str | os.PathLike[str]) -> Path:
    """Write a posterior into a folder (made if need be); posterior.json comes last, so half a save is not loaded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, (N, M) = Path(directory), posterior.all_weights.shape
    counts = np.diff(posterior.offsets)
    d = posterior.diagnostics
    tables = {
        "particles": {
            "stream": np.repeat(np.arange(N), M),
            "draw": np.tile(np.arange(M), N),
            "weight": posterior.all_weights.reshape(-1),
            "events": counts,
        },
        "draws": {
            "stream": np.repeat(np.arange(N * M) // M, counts),
            "draw": np.repeat(np.arange(N * M) % M, counts),
            "time": posterior.event_times,
            "type": posterior.event_types,
        },
        "streams": {
            "log_evidence": posterior.log_evidence,
            "resamplings": d.resamplings,
            "ess": list(d.ess),
            "ancestors": list(d.ancestors),
            "accepted": d.accepted,
        },
    }
    with lock_folder(path):
        (path / "posterior.json").unlink(missing_ok=True)
        plain = posterior.observed.replace()  # under our own names, not as the user's table
        write_events(plain, path / "observed.parquet")
        for name, columns in tables.items():
            with atomic_file(path / f"{name}.parquet") as file:
                pq.write_table(pa.table(columns), file)
        write_json(path / "posterior.json", {"format": FORMAT, "version": VERSION, "particles": M})
    return path


def write_draws(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write all draws as one Parquet table, some streams at a time: a table of all of them takes much memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def part(first: int) -> pa.Table:
        return pa.Table.from_pandas(posterior.to_frame(first, first + _STREAMS), preserve_index=False)

    with atomic_file(path) as file:
        head = part(0)
        with pq.ParquetWriter(file, head.schema) as writer:
            writer.write_table(head)
            for first in range(_STREAMS, len(posterior), _STREAMS):
                writer.write_table(part(first).cast(head.schema))


def read_posterior(
    directory: str | os.PathLike[str],
) -> tuple[StreamSet, Numbers, Indices, Indices, Numbers, Numbers, Diagnostics]:
    """What ``save_posterior`` wrote, as ``Posterior`` takes it."""
    from retrodict.events.io.parquet_file import read_columns  # loads Arrow

    path = Path(directory)
    try:
        about = read_json(path / "posterior.json")
        if (about["format"], about["version"]) != (FORMAT, VERSION):
            raise ValueError(f"it is not of version {VERSION}")
        M = about["particles"]
        particles, draws, streams = (read_columns(path / f"{n}.parquet") for n in ("particles", "draws", "streams"))
        observed = read_events(path / "observed.parquet")
        N, counts = len(observed), particles["events"].astype(np.int64)
        sizes = {"particles": N * M, "streams": N, "draws": int(counts.sum())}
        found = {"particles": len(counts), "streams": len(streams["ess"]), "draws": len(draws["time"])}
        weights = particles["weight"].astype(np.float64).reshape(N, M)
        types, times = draws["type"].astype(np.int64), draws["time"].astype(np.float64)
        good = type(M) is int and M > 0 and sizes == found and bool((counts >= 0).all())
        good = good and bool(np.isfinite(times).all() and ((types >= 0) & (types < observed.num_types)).all())
        if not (good and np.allclose(weights.sum(1), 1.0) and bool((weights >= 0).all())):
            raise ValueError("its tables do not fit together")
        diagnostics = Diagnostics(
            _stack(streams["ess"], N),
            _stack(streams["ancestors"], N),
            streams["resamplings"].astype(np.int64),
            weights.max(1, initial=0.0),
            streams.get("accepted", np.full(N, np.nan)).astype(np.float64),
        )
        evidence = streams["log_evidence"].astype(np.float64)
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise DataError(
            f"this is not a saved posterior, or it is damaged ({getattr(error, 'strerror', None) or error})"[:300],
            file=path,
            remedy="impute again",
        ) from error
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return observed, times, types, offsets, weights, evidence, diagnostics


def _stack(rows: NDArray[Any], number: int) -> Numbers:
    """One list a stream, all of one length, as an array."""
    return np.array(rows.tolist(), dtype=np.float64).reshape(number, -1)
