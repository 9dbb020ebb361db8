"""The rows of a table, put into files by stream in one pass and bounded memory, however they are ordered.

A stream belongs to the bucket that was open when its first row came. A bucket is closed to new streams once it has its
number of streams or rows; rows of its streams still find it. In memory are a piece of the table, at most ``_WAITING``
bytes of rows on their way, and 12 bytes for each stream. Rows keep their number in a column ``ROW``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.errors import DataError, WriteError
from retrodict.events.io.arrow_columns import flatten
from retrodict.events.io.text_columns import written_as
from retrodict.events.io.time_column import decoded
from retrodict.jobs.known import Known
from retrodict.random import stream_keys

ROW = "__retrodict_row"
_WAITING = 64 << 20


@dataclass
class Bucket:
    """Some streams that came one after the other."""

    streams: int = 0
    rows: int = 0
    waiting: list[pa.Table] = field(default_factory=list)


@dataclass
class Spread:
    """What came of it: buckets, and of text what each column is written as."""

    buckets: list[Bucket]
    rows: int
    contiguous: bool  # whether buckets follow one another in the table
    kinds: dict[str, set[str]]


def bucket_file(folder: Path, number: int) -> Path:
    """Where a bucket is."""
    return folder / f"{number:06d}.arrow"


def spread_table(
    pieces: Iterable[pa.Table], stream: str, folder: Path, streams: int, rows: int, file: Path, text: bool
) -> Spread:
    """Put the rows of all pieces into buckets of at most ``streams`` streams and about ``rows`` rows."""
    work = _Spreading(stream, folder, streams, rows, file)
    kinds: dict[str, set[str]] = {}
    for table in pieces:
        if ROW in table.column_names:
            raise DataError(f"there is a column {ROW!r}", file=file, remedy="rename it")
        if text:
            for name in table.column_names:
                fits = written_as(table[name])
                kinds[name] = kinds.get(name, fits) & fits  # "nothing" stays only where no piece has a value
        work.add(table)
    work.flush()
    return Spread(work.buckets, work.seen, work.contiguous, kinds)


def read_bucket(path: Path) -> Iterator[pa.Table]:
    """The rows of a bucket, as they were put there."""
    with open(path, "rb") as file:
        while file.peek(1):
            yield pa.ipc.open_stream(file).read_all()


def cannot_write(path: Path, error: OSError) -> WriteError:
    """The error for a bucket that cannot be written."""
    return WriteError(f"cannot write: {error.strerror or error}", file=path, remedy="make space on the disk")


class _Spreading:
    def __init__(self, stream: str, folder: Path, streams: int, rows: int, file: Path) -> None:
        self.stream, self.folder, self.most_streams, self.most_rows, self.file = stream, folder, streams, rows, file
        self.buckets: list[Bucket] = []
        self.known = Known()  # the bucket of each stream, by its key
        self.seen, self.waiting, self.last, self.contiguous = 0, 0, 0, True

    def add(self, table: pa.Table) -> None:
        """Put the rows of one piece on their way."""
        if not table.num_rows:
            return
        numbers = np.arange(self.seen, self.seen + table.num_rows)
        buckets = self._buckets(table[self.stream])
        self.seen += table.num_rows
        self.contiguous = self.contiguous and buckets[0] >= self.last and bool((np.diff(buckets) >= 0).all())
        self.last = max(self.last, int(buckets.max()))
        table = table.append_column(ROW, pa.array(numbers))
        if (np.diff(buckets) < 0).any():
            order = np.argsort(buckets, kind="stable")
            table, buckets = table.take(pa.array(order)), buckets[order]
        edges = np.concatenate([[0], np.flatnonzero(np.diff(buckets)) + 1, [len(buckets)]])
        for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            bucket = self.buckets[buckets[first]]
            bucket.waiting.append(table.slice(first, stop - first))
        self.waiting += table.nbytes
        if self.waiting > _WAITING:
            self.flush()

    def _buckets(self, column: Any) -> NDArray[np.int64]:
        """The bucket of each row [R]; new streams get one."""
        column = decoded(flatten(column))
        if column.null_count:
            row = self.seen + int(pc.index(column.is_null(), True).as_py()) + 1
            remedy = "say which stream the row belongs to, or drop the row"
            raise DataError(f"column {self.stream!r}: the stream id is missing", file=self.file, row=row, remedy=remedy)
        if pa.types.is_floating(column.type):
            remedy = "make the ids integers or text"
            raise DataError(
                f"column {self.stream!r} holds floating-point numbers as ids", file=self.file, remedy=remedy
            )
        encoded = column.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        keys = stream_keys(0, encoded.dictionary.to_pylist()).numpy()
        counts = np.bincount(codes, minlength=len(keys))
        bucket = self.known.find(keys)
        known = bucket >= 0
        for number, more in zip(bucket[known].tolist(), counts[known].tolist(), strict=True):
            self.buckets[number].rows += more
        new = np.flatnonzero(~known)
        bucket[new] = [self._assign(more) for more in counts[new].tolist()]
        total = len(self.known) + len(new)
        _limits.check("streams", total, f"there are {total:,} streams or more", file=self.file)
        self.known.add(keys[new], bucket[new])
        return bucket[codes]

    def _assign(self, rows: int) -> int:
        """The bucket of a stream that was not seen before."""
        last = self.buckets[-1] if self.buckets else None
        if last is None or last.streams >= self.most_streams or last.rows >= self.most_rows:
            last = Bucket()
            self.buckets.append(last)
        last.streams += 1
        last.rows += rows
        return len(self.buckets) - 1

    def flush(self) -> None:
        """Write the rows that wait."""
        for number, bucket in enumerate(self.buckets):
            if bucket.waiting:
                table = pa.concat_tables(bucket.waiting)
                bucket.waiting = []
                self._append(number, table)
        self.waiting = 0

    def _append(self, number: int, table: pa.Table) -> None:
        path = bucket_file(self.folder, number)
        try:
            with open(path, "ab") as file, pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table.unify_dictionaries().combine_chunks())
        except OSError as error:
            raise cannot_write(path, error) from error
