"""Save and load posteriors: Parquet tables and a small JSON file in one folder.

DIR/posterior.json      format, version, number of particles
DIR/observed.parquet    the observed streams
DIR/particles.parquet   one row for each particle: stream, draw, weight, events
DIR/draws.parquet       one row for each event of each particle: stream, draw, time, type (positions and indices)
DIR/streams.parquet     one row for each stream: log evidence and diagnostics
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from retrodict.errors import DataError
from retrodict.events.atomic import atomic_path, make_folder
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.posterior import Posterior

FORMAT, VERSION = "retrodict posterior", 1


def save_posterior(posterior: Posterior, directory: str | os.PathLike[str]) -> Path:
    """Write a posterior into a folder (made if need be); posterior.json comes last, so half a save is not loaded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = make_folder(directory)
    (path / "posterior.json").unlink(missing_ok=True)
    write_events(posterior.observed, path / "observed.parquet")
    N, M = posterior.all_weights.shape
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
    for name, columns in tables.items():
        with atomic_path(path / f"{name}.parquet") as side:
            pq.write_table(pa.table(columns), side)
    with atomic_path(path / "posterior.json") as side:
        side.write_text(json.dumps({"format": FORMAT, "version": VERSION, "particles": M}) + "\n", encoding="utf-8")
    return path


def load_posterior(directory: str | os.PathLike[str]) -> Posterior:
    """Read a posterior that ``save_posterior`` wrote; it has no model to forecast with until one is set."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(directory)
    try:
        about = json.loads((path / "posterior.json").read_text(encoding="utf-8"))
        if (about["format"], about["version"]) != (FORMAT, VERSION):
            raise ValueError(f"it is not of version {VERSION}")
        M = int(about["particles"])
        particles, draws, streams = (pq.read_table(path / f"{n}.parquet") for n in ("particles", "draws", "streams"))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(
            f"this is not a saved posterior, or it is damaged ({error})", file=path, remedy="impute again"
        ) from error
    weights = particles["weight"].to_numpy().reshape(-1, M).copy()
    stack = lambda name: np.array(streams[name].to_pylist(), dtype=np.float64).reshape(len(weights), -1)  # noqa: E731
    diagnostics = Diagnostics(
        stack("ess"),
        stack("ancestors"),
        streams["resamplings"].to_numpy(),
        weights.max(1, initial=0.0),
        streams["accepted"].to_numpy() if "accepted" in streams.column_names else np.full(len(weights), np.nan),
    )
    return Posterior(
        read_events(path / "observed.parquet"),
        draws["time"].to_numpy().copy(),
        draws["type"].to_numpy().copy(),
        np.concatenate([[0], np.cumsum(particles["events"].to_numpy())]),
        weights,
        streams["log_evidence"].to_numpy().copy(),
        diagnostics,
    )
