"""The parts of all chunks as one output, in the order of the input, in bounded memory; the bytes hang on no chunk.

Each row of a part knows beside which row of the input it stands. Where streams lie one after the other in the input, so
do the parts. Otherwise the rows of all parts are merged, a window of the input's rows at a time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file, check_new_folder, sync_tree
from retrodict.events.io.files import packed
from retrodict.events.io.text_columns import to_lines
from retrodict.jobs.complete import NAME
from retrodict.jobs.work import ANCHOR

_GROUP = 1 << 20  # rows of a row group, as Parquet files that are written at once have
_WINDOW = 1 << 17  # rows of the input that are merged at once
_PIECE = 1 << 20
Progress = Callable[[int], None]


def assemble(parts: Sequence[Path], form: str, contiguous: bool, output: Path, progress: Progress) -> None:
    """Write the output, all of it or nothing; ``progress`` is called with the number of rows (or bytes) written."""
    if form == "folder":
        return move_folder(parts, output)
    with atomic_file(output) as file:
        if form == "jsonl":
            with packed(file, output) as out:
                _copy(parts, out, progress)
            return
        tables = _in_order(parts) if contiguous else _merged(parts)
        if form == "csv":
            with packed(file, output) as out:
                _write_csv(tables, out, progress)
        else:
            _write_parquet(tables, file, output, progress)


def move_folder(parts: Sequence[Path], output: Path) -> None:
    """The folder of parts takes the place of the output, which must be new or empty."""
    check_new_folder(output)
    folder = parts[0].parent
    for path in folder.iterdir():
        if path not in set(parts) and path.name != NAME:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    sync_tree(folder)
    if output.is_dir():
        output.rmdir()
    folder.rename(output)


def _copy(parts: Sequence[Path], out: BinaryIO, progress: Progress) -> None:
    done = 0
    for path in parts:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                out.write(piece)
                done += len(piece)
                progress(done)


def _write_csv(tables: Iterator[pa.Table], out: BinaryIO, progress: Progress) -> None:
    done = 0
    for table in tables:
        out.write(to_lines(table, header=not done))
        done += table.num_rows
        progress(done)


def _write_parquet(tables: Iterator[pa.Table], file: BinaryIO, target: Path, progress: Progress) -> None:
    """Row groups of ``_GROUP`` rows each, whatever the tables are."""
    writer: pq.ParquetWriter | None = None
    held: list[pa.Table] = []
    done = 0
    try:
        for table in tables:
            writer = writer or pq.ParquetWriter(file, table.schema)
            held.append(table)
            while sum(each.num_rows for each in held) >= _GROUP:
                whole = pa.concat_tables(held)
                writer.write_table(_whole(whole.slice(0, _GROUP)), _GROUP)
                held, done = [whole.slice(_GROUP)], done + _GROUP
                progress(done)
        if writer is not None:
            rest = pa.concat_tables(held)
            if rest.num_rows:
                writer.write_table(_whole(rest), _GROUP)
            writer.close()
    except (pa.ArrowException, ValueError) as error:
        remedy = "give all columns one type each"
        raise DataError(f"the parts do not fit together: {error}", file=target, remedy=remedy) from error


def _whole(table: pa.Table) -> pa.Table:
    return table.unify_dictionaries().combine_chunks()


def _in_order(parts: Sequence[Path]) -> Iterator[pa.Table]:
    for path in parts:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield pa.Table.from_batches([reader.get_batch(number)]).drop_columns([ANCHOR])


def _merged(parts: Sequence[Path]) -> Iterator[pa.Table]:
    """The rows of all parts in the order of the rows beside which they stand; those of one row keep their order."""
    most = _most_open()
    cursors = [_Cursor(path, stays_open=number < most) for number, path in enumerate(parts)]
    try:
        while live := [cursor for cursor in cursors if cursor.next is not None]:
            until = min(cursor.next for cursor in live if cursor.next is not None) + _WINDOW
            pieces = [piece for cursor in live for piece in cursor.take(until)]
            anchors = np.concatenate([piece[ANCHOR].to_numpy() for piece in pieces])
            table = pa.concat_tables(pieces).unify_dictionaries()
            yield table.take(pa.array(np.argsort(anchors, kind="stable"))).drop_columns([ANCHOR])
    finally:
        for cursor in cursors:
            cursor.close()


def _most_open() -> int:
    """Parts that may stay open: half of the files that this process may have open."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return 1 << 20 if soft == resource.RLIM_INFINITY else soft // 2
    return 200  # Windows


class _Cursor:
    """Where in a part we are; ``next`` is beside which row its next row stands, None at its end.

    There may be more parts than a process may have files open: some are opened whenever they are looked at.
    """

    def __init__(self, path: Path, stays_open: bool) -> None:
        self.path, self.stays_open = path, stays_open
        self.opened: tuple[pa.MemoryMappedFile, pa.RecordBatchFileReader] | None = None
        self.batch, self.row = 0, 0
        self.next: int | None = None
        with self._reader() as reader:
            self._look(reader)

    def take(self, until: int) -> list[pa.Table]:
        """The rows that stand beside rows before ``until``."""
        taken: list[pa.Table] = []
        if self.next is None or self.next >= until:
            return taken
        with self._reader() as reader:
            while self.next is not None and self.next < until:
                batch = reader.get_batch(self.batch)
                stop = int(np.searchsorted(batch[ANCHOR].to_numpy(), until))
                taken.append(pa.Table.from_batches([batch.slice(self.row, stop - self.row)]))
                self.row = stop
                self._look(reader)
        return taken

    def close(self) -> None:
        """Close the file; rows that were taken stay what they are."""
        if self.opened is not None:
            self.opened[0].close()
            self.opened = None

    @contextmanager
    def _reader(self) -> Iterator[pa.RecordBatchFileReader]:
        if self.opened is None:
            file = pa.memory_map(str(self.path))
            self.opened = file, pa.ipc.open_file(file)
        yield self.opened[1]
        if not self.stays_open:
            self.close()

    def _look(self, reader: pa.RecordBatchFileReader) -> None:
        while self.batch < reader.num_record_batches:
            batch = reader.get_batch(self.batch)
            if self.row < len(batch):
                self.next = int(batch[ANCHOR][self.row].as_py())
                return
            self.batch, self.row = self.batch + 1, 0
        self.next = None
