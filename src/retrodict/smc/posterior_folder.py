"""Save and load posteriors: Parquet tables and a small JSON file in one folder.

DIR/posterior.json      format, version, number of particles, the unit of costs, and facts about table.parquet
DIR/observed.parquet    the observed streams
DIR/table.parquet       the table they were read from, as it was, and DIR/rows.parquet what its rows are, if any
DIR/particles.parquet   one row for each particle: stream and draw by number, weight, number of events
DIR/draws.parquet       one row for each event of each particle, for anybody to read: stream, draw, weight, time, type;
                        ``position`` is the time as a number on the axis of dates, and ``code`` the number of the type
DIR/streams.parquet     one row for each stream: log evidence and diagnostics
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file, write_json
from retrodict.events.io.read import read_events
from retrodict.events.lock import lock_folder
from retrodict.events.plain import read_json
from retrodict.events.stream_set import StreamSet
from retrodict.smc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from retrodict.smc.posterior import Posterior

FORMAT, VERSION = "retrodict posterior", 2
_READABLE = (1, 2)  # in version 1 draws.parquet has numbers alone: time for position, type for code
FILES = tuple(f"{n}.parquet" for n in ("observed", "table", "rows", "particles", "draws", "streams"))
_STREAMS = 500  # whose draws are put into a table at once
Numbers: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


def save_posterior(
    posterior: Posterior,
    directory: str | os.PathLike[str],
    unit: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Write a posterior into a folder (made if need be), all of it or nothing.

    ``unit`` is the one that costs of decoding are given in. ``progress`` is called with the number of streams written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from retrodict.events.io.kept_table import ROWS, TABLE, keep_table  # loads Arrow
    from retrodict.events.io.parquet_file import write_parquet

    path, (N, M) = Path(directory), posterior.all_weights.shape
    d = posterior.diagnostics
    kept = keep_table(posterior.observed)
    particles = {
        "stream": np.repeat(np.arange(N), M),
        "draw": np.tile(np.arange(M), N),
        "weight": posterior.all_weights.reshape(-1),
        "events": np.diff(posterior.offsets),
    }
    streams = {
        "log_evidence": posterior.log_evidence,
        "resamplings": d.resamplings,
        "ess": list(d.ess),
        "ancestors": list(d.ancestors),
        "accepted": d.accepted,
    }
    about = {"format": FORMAT, "version": VERSION, "particles": M, "unit": unit}
    if kept is not None:
        about, streams = about | {"table": kept.facts}, streams | {"place": kept.places}
    tables = {"particles.parquet": pa.table(particles), "streams.parquet": pa.table(streams)}
    tables |= {} if kept is None else {TABLE: kept.table, ROWS: kept.rows}
    with lock_folder(path):
        with ExitStack() as files:  # all are written to the side before the first is moved into place

            def new(name: str) -> BinaryIO:
                return files.enter_context(atomic_file(path / name))

            plain = posterior.observed.replace()  # under our own names, not as the user's table
            write_parquet(plain, new("observed.parquet"), path / "observed.parquet", {})
            for name, table in tables.items():
                pq.write_table(table, new(name))
            write_draws(posterior, new("draws.parquet"), progress)
            (path / "posterior.json").unlink(missing_ok=True)
        if kept is None:  # that of another posterior
            for name in (TABLE, ROWS):
                (path / name).unlink(missing_ok=True)
        write_json(path / "posterior.json", about)
    return path


def write_draws(posterior: Posterior, file: BinaryIO, progress: Callable[[int], None] | None = None) -> None:
    """Write all draws as one Parquet table, some streams at a time: a table of all of them takes much memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def part(first: int) -> pa.Table:
        frame = posterior.to_frame(first, first + _STREAMS)
        last = min(first + _STREAMS, len(posterior))
        events = slice(*posterior.offsets[[first * posterior.num_particles, last * posterior.num_particles]])
        if posterior.observed.axis.is_calendar:
            frame["position"] = posterior.event_times[events]
        frame["code"] = posterior.event_types[events]
        return pa.Table.from_pandas(frame, preserve_index=False)

    head = part(0)
    with pq.ParquetWriter(file, head.schema) as writer:
        for first in range(0, max(len(posterior), 1), _STREAMS):
            writer.write_table(part(first).cast(head.schema) if first else head)
            if progress is not None:
                progress(min(first + _STREAMS, len(posterior)))


def read_posterior(
    directory: str | os.PathLike[str],
) -> tuple[StreamSet, Numbers, Indices, Indices, Numbers, Numbers, Diagnostics]:
    """What ``save_posterior`` wrote, as ``Posterior`` takes it."""
    from retrodict.events.io.kept_table import give_back  # loads Arrow
    from retrodict.events.io.parquet_file import read_columns

    path = Path(directory)
    try:
        about = read_json(path / "posterior.json")
        if about["format"] != FORMAT or about["version"] not in _READABLE:
            raise ValueError(f"it is not of version {VERSION}")
        M = about["particles"]
        particles, streams = (read_columns(path / f"{n}.parquet") for n in ("particles", "streams"))
        observed = read_events(path / "observed.parquet").replace()  # which is not the user's table
        if about.get("table") is not None:
            observed = give_back(observed, path, about["table"], streams["place"].astype(np.int64))
        place = "position" if about["version"] > 1 and observed.axis.is_calendar else "time"
        code = "type" if about["version"] == 1 else "code"
        draws = read_columns(path / "draws.parquet", (place, code))
        N, counts = len(observed), particles["events"].astype(np.int64)
        sizes = {"particles": N * M, "streams": N, "draws": int(counts.sum())}
        found = {"particles": len(counts), "streams": len(streams["ess"]), "draws": len(draws[place])}
        weights = particles["weight"].astype(np.float64).reshape(N, M)
        types, times = draws[code].astype(np.int64), draws[place].astype(np.float64)
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


def read_unit(directory: str | os.PathLike[str]) -> str | None:
    """The unit of costs that was saved with a posterior, if any."""
    found = read_json(Path(directory) / "posterior.json").get("unit")
    return found if isinstance(found, str) else None


def _stack(rows: NDArray[Any], number: int) -> Numbers:
    """One list a stream, all of one length, as an array."""
    return np.array(rows.tolist(), dtype=np.float64).reshape(number, -1)
