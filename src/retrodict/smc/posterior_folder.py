"""Save and load posteriors: Parquet tables and a small JSON file in one folder.

DIR/posterior.json          format, version, numbers of particles and islands
DIR/observed.parquet        the observed streams
DIR/full.parquet            one row for each particle: stream, draw, weight, events
DIR/full_events.parquet     one row for each event of each particle: stream, draw, time, type (positions and indices)
DIR/lagged.parquet and DIR/lagged_events.parquet    the same for the lagged ensemble
DIR/streams.parquet         one row for each stream: log evidence, diagnostics, families (island by island)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from retrodict.smc.guesses import Guesses

if TYPE_CHECKING:
    from retrodict.smc.posterior import Posterior

FORMAT, VERSION = "retrodict posterior", 2
_STREAMS = 500  # whose draws are put into a table at once


def save_posterior(posterior: Posterior, directory: str | os.PathLike[str]) -> Path:
    """Write a posterior into a folder (made if need be); posterior.json comes last, so half a save is not loaded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, d, ensembles = Path(directory), posterior.diagnostics, {"full": posterior.full, "lagged": posterior.lagged}
    streams: dict[str, Any] = {"log_evidence": posterior.log_evidence, "resamplings": d.resamplings}
    streams |= {"ess": list(d.ess), "ahead": list(d.ahead)}
    tables: dict[str, dict[str, Any]] = {"streams": streams}
    for name, guesses in ensembles.items():
        streams[f"{name}_families"] = list(guesses.families.reshape(len(posterior), -1))
        tables |= {name: _guess_table(guesses), f"{name}_events": _event_table(guesses)}
    about = {"format": FORMAT, "version": VERSION, "particles": posterior.num_particles}
    about["islands"] = posterior.full.islands
    with lock_folder(path):
        (path / "posterior.json").unlink(missing_ok=True)
        write_events(posterior.observed, path / "observed.parquet")
        for name, columns in tables.items():
            with atomic_file(path / f"{name}.parquet") as file:
                pq.write_table(pa.table(columns), file)
        write_json(path / "posterior.json", about)
    return path


def _guess_table(guesses: Guesses) -> dict[str, Any]:
    N, M = guesses.weights.shape
    stream, draw = np.repeat(np.arange(N), M), np.tile(np.arange(M), N)
    return {"stream": stream, "draw": draw, "weight": guesses.weights.reshape(-1), "events": np.diff(guesses.offsets)}


def _event_table(guesses: Guesses) -> dict[str, Any]:
    stream, draw = np.divmod(guesses.guess_of_event(), guesses.weights.shape[1])
    return {"stream": stream, "draw": draw, "time": guesses.event_times, "type": guesses.event_types}


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
) -> tuple[StreamSet, Guesses, Guesses, NDArray[np.float64], Diagnostics]:
    """What ``save_posterior`` wrote, as ``Posterior`` takes it."""
    from retrodict.events.io.parquet_file import read_columns  # loads Arrow

    path = Path(directory)
    try:
        about = read_json(path / "posterior.json")
        if (about["format"], about["version"]) != (FORMAT, VERSION):
            raise ValueError(f"it is not of version {VERSION}")
        sizes = about["particles"], about["islands"]
        if not all(type(size) is int and size > 0 for size in sizes) or sizes[0] % sizes[1]:
            raise ValueError("its numbers of particles and islands do not fit together")
        streams, observed = read_columns(path / "streams.parquet"), read_events(path / "observed.parquet")
        N = len(observed)
        if len(streams["ess"]) != N:
            raise ValueError("its tables do not fit together")
        full, lagged = (
            _read_guesses(
                read_columns(path / f"{name}.parquet"),
                read_columns(path / f"{name}_events.parquet"),
                _stack(streams[f"{name}_families"], N).reshape(N, sizes[1], -1),
                observed,
                sizes[0],
            )
            for name in ("full", "lagged")
        )
        diagnostics = Diagnostics(
            _stack(streams["ess"], N),
            _stack(streams["ahead"], N).astype(np.int64),
            streams["resamplings"].astype(np.int64),
        )
        evidence = streams["log_evidence"].astype(np.float64)
        shapes = {diagnostics.ess.shape[1], diagnostics.ahead.shape[1], *(g.families.shape[2] for g in (full, lagged))}
        if N and shapes != {int(observed.lengths.max()) + 1}:
            raise ValueError("its tables do not fit together")
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise DataError(
            f"this is not a saved posterior, or it is damaged ({getattr(error, 'strerror', None) or error})"[:300],
            file=path,
            remedy="impute again",
        ) from error
    return observed, full, lagged, evidence, diagnostics


def _read_guesses(
    guesses: dict[str, Any], events: dict[str, Any], families: NDArray[np.float64], observed: StreamSet, M: int
) -> Guesses:
    """One ensemble; ValueError if its two tables do not fit together."""
    counts, weights = guesses["events"].astype(np.int64), guesses["weight"].astype(np.float64)
    times, types = events["time"].astype(np.float64), events["type"].astype(np.int64)
    good = len(counts) == len(observed) * M and bool((counts >= 0).all()) and int(counts.sum()) == len(times)
    good = good and bool(np.isfinite(times).all() and ((types >= 0) & (types < observed.num_types)).all())
    good = good and bool((weights >= 0).all()) and np.allclose(weights.reshape(-1, M).sum(1), 1.0)
    if not good:
        raise ValueError("its tables do not fit together")
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Guesses(times, types, offsets, weights.reshape(-1, M), families)


def _stack(rows: NDArray[Any], number: int) -> NDArray[np.float64]:
    """One list a stream, all of one length, as an array."""
    return np.array(rows.tolist(), dtype=np.float64).reshape(number, -1)
