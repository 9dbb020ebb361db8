"""Save and load posteriors: Parquet tables and a small JSON file in one folder.

DIR/posterior.json          format, version, numbers of particles and islands, unit of costs, facts about table.parquet,
                            how it was made (model, mechanism, seed, versions, the model's check)
DIR/observed.parquet        the observed streams
DIR/table.parquet           the table they were read from, as it was, and DIR/rows.parquet what its rows are, if any
DIR/full.parquet            one row for each particle, stream by stream: weight, number of events
DIR/full_events.parquet     one row for each event of each particle, guess by guess: time and type as numbers
DIR/lagged.parquet and DIR/lagged_events.parquet    the same for the lagged ensemble
DIR/draws.parquet           the events of the chosen ensemble for anybody to read: stream, draw, weight, time, type;
                            not where only the package itself will read the folder
DIR/streams.parquet         one row for each stream: log evidence, diagnostics, families (island by island)
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file, write_json
from retrodict.events.io.read import read_events
from retrodict.events.lock import lock_folder
from retrodict.events.plain import read_json
from retrodict.events.stream_set import StreamSet
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.guesses import Guesses

if TYPE_CHECKING:
    import pyarrow as pa

    from retrodict.smc.posterior import Posterior

FORMAT, VERSION = "retrodict posterior", 2
_ENSEMBLES = ("full", "lagged")
_GUESSES = tuple(name + what for name in _ENSEMBLES for what in ("", "_events"))
FILES = tuple(f"{name}.parquet" for name in ("observed", "table", "rows", *_GUESSES, "draws", "streams"))
_ROWS = 500_000  # of draws that are put into a table at once: small enough for memory to be used again


def save_posterior(
    posterior: Posterior,
    directory: str | os.PathLike[str],
    unit: str | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    readable: bool = True,
) -> Path:
    """Write a posterior into a folder (made if need be), all of it or nothing.

    ``unit`` is the one that costs of decoding are given in. ``progress`` is called with the number of streams written.
    Without ``readable`` there is no draws.parquet, which is not needed to load the folder.
    """
    import pyarrow as pa

    from retrodict.events.io.kept_table import ROWS, TABLE, keep_table  # loads Arrow
    from retrodict.events.io.parquet_file import write_parquet

    path, d = Path(directory), posterior.diagnostics
    kept = keep_table(posterior.observed)
    streams: dict[str, Any] = {"log_evidence": posterior.log_evidence, "resamplings": d.resamplings}
    streams |= {"ess": list(d.ess), "ahead": list(d.ahead)}
    tables: dict[str, Callable[[], pa.Table]] = {}  # each is made when it is written: together they take much memory
    for name in _ENSEMBLES:
        guesses: Guesses = getattr(posterior, name)
        streams[f"{name}_families"] = list(
            guesses.families.reshape(len(posterior), math.prod(guesses.families.shape[1:]))
        )
        tables[f"{name}.parquet"] = partial(_guess_table, guesses)
        tables[f"{name}_events.parquet"] = partial(pa.table, {"time": guesses.event_times, "type": guesses.event_types})
    about = {"format": FORMAT, "version": VERSION, "particles": posterior.num_particles, "unit": unit}
    about |= {"islands": posterior.full.islands, "about": posterior.about}
    if kept is not None:
        about, streams = about | {"table": kept.facts}, streams | {"place": kept.places}
        tables |= {TABLE: lambda: kept.table, ROWS: lambda: kept.rows}
    tables["streams.parquet"] = partial(pa.table, streams)
    with lock_folder(path):
        with ExitStack() as files:  # all are written to the side before the first is moved into place

            def new(name: str) -> BinaryIO:
                return files.enter_context(atomic_file(path / name))

            plain = posterior.observed.replace()  # under our own names, not as the user's table
            write_parquet(plain, new("observed.parquet"), path / "observed.parquet", {})
            with ThreadPoolExecutor(max(1, min(torch.get_num_threads(), len(tables)))) as pool:
                written = [pool.submit(_write, table, new(name)) for name, table in tables.items()]
                if readable:
                    write_draws(posterior, new("draws.parquet"), progress)
                for one in written:
                    one.result()
            (path / "posterior.json").unlink(missing_ok=True)
        unwritten = [*([TABLE, ROWS] if kept is None else []), *([] if readable else ["draws.parquet"])]
        for name in unwritten:  # those of another posterior
            (path / name).unlink(missing_ok=True)
        write_json(path / "posterior.json", about)
    return path


def _guess_table(guesses: Guesses) -> pa.Table:
    import pyarrow as pa

    return pa.table({"weight": guesses.weights.reshape(-1), "events": np.diff(guesses.offsets)})


def _encoding(table: pa.Table) -> dict[str, Any]:
    """How Parquet holds columns: numbers that hardly repeat as they are, since looking for repeats takes longest."""
    numbers = [field.name for field in table.schema if field.name in ("time", "weight")]
    others = [name for name in table.column_names if name not in numbers]
    return {"use_dictionary": others, "write_statistics": others}


def _write(make: Callable[[], pa.Table], file: BinaryIO) -> None:
    import pyarrow.parquet as pq

    table = make()
    pq.write_table(table, file, **_encoding(table))


def write_draws(posterior: Posterior, file: BinaryIO, progress: Callable[[int], None] | None = None) -> None:
    """Write all draws as one Parquet table, whole streams at a time: a table of all of them takes much memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    o = posterior.observed
    ids, types = pa.array(o.ids), pa.array(o.types)

    before = posterior.chosen.offsets[:: posterior.num_particles]  # rows before each stream
    edges = np.searchsorted(before, np.arange(0, before[-1] + _ROWS, _ROWS)).clip(max=len(posterior))
    edges = np.unique(np.append(edges, len(posterior)))

    def part(first: int, stop: int) -> pa.Table:
        rows: dict[str, Any] = posterior.rows(first, stop)
        rows["stream"] = ids.take(pa.array(rows["stream"]))
        rows["type"] = pa.DictionaryArray.from_arrays(rows["type"].astype(np.int32), types)
        if o.axis.is_calendar:
            rows["time"] = pa.array(rows["time"]).cast(pa.timestamp("ns", o.axis.timezone))
        return pa.table(rows)

    empty = part(0, 0)
    with pq.ParquetWriter(file, empty.schema, **_encoding(empty)) as writer:
        for first, stop in pairwise(edges.tolist()):
            writer.write_table(part(first, stop))
            if progress is not None:
                progress(stop)


def read_posterior(
    directory: str | os.PathLike[str],
) -> tuple[StreamSet, Guesses, Guesses, NDArray[np.float64], Diagnostics, None, dict[str, Any]]:
    """What ``save_posterior`` wrote, as ``Posterior`` takes it."""
    from retrodict.events.io.kept_table import give_back  # loads Arrow
    from retrodict.events.io.parquet_file import read_columns

    path = Path(directory)
    try:
        about = read_json(path / "posterior.json")
        if about["format"] != FORMAT or about["version"] != VERSION:
            raise ValueError(f"it is not of version {VERSION}")
        sizes = about["particles"], about["islands"]
        if not all(type(size) is int and size > 0 for size in sizes) or sizes[0] % sizes[1]:
            raise ValueError("its numbers of particles and islands do not fit together")
        streams = read_columns(path / "streams.parquet")
        observed = read_events(path / "observed.parquet").replace()  # which is not the user's table
        if about.get("table") is not None:
            observed = give_back(observed, path, about["table"], streams["place"].astype(np.int64))
        N = len(observed)
        if len(streams["ess"]) != N:
            raise ValueError("its tables do not fit together")
        full, lagged = (
            _read_guesses(
                read_columns(path / f"{name}.parquet", ["weight", "events"]),
                read_columns(path / f"{name}_events.parquet"),
                _stack(streams[f"{name}_families"], N).reshape(N, sizes[1], int(observed.lengths.max(initial=0)) + 1),
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
        made = about.get("about") or {}
        if not isinstance(made, dict):
            raise ValueError("it does not say how it was made")
        shapes = {diagnostics.ess.shape[1], diagnostics.ahead.shape[1], *(g.families.shape[2] for g in (full, lagged))}
        if N and shapes != {int(observed.lengths.max()) + 1}:
            raise ValueError("its tables do not fit together")
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise DataError(
            f"this is not a saved posterior, or it is damaged ({getattr(error, 'strerror', None) or error})"[:300],
            file=path,
            remedy="impute again",
        ) from error
    return observed, full, lagged, evidence, diagnostics, None, made


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


def update_about(directory: str | os.PathLike[str], about: dict[str, Any]) -> None:
    """Say anew how a saved posterior was made and decoded; its tables stay."""
    path = Path(directory)
    with lock_folder(path):
        write_json(path / "posterior.json", read_json(path / "posterior.json") | {"about": about})


def read_unit(directory: str | os.PathLike[str]) -> str | None:
    """The unit of costs that was saved with a posterior, if any."""
    found = read_json(Path(directory) / "posterior.json").get("unit")
    return found if isinstance(found, str) else None


def _stack(rows: NDArray[Any], number: int) -> NDArray[np.float64]:
    """One list a stream, all of one length, as an array."""
    return np.array(rows.tolist(), dtype=np.float64).reshape(number, -1)
