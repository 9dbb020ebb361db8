"""One chunk of the input as a stream set: the same as the whole input would give for these streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from retrodict.errors import DataError
from retrodict.events.io.arrow_columns import flatten
from retrodict.events.io.jsonl import from_objects, use_meta
from retrodict.events.io.long_table import read_table
from retrodict.events.io.parquet_file import use_metadata
from retrodict.events.io.records import parse_lines
from retrodict.events.io.request import Request, check_dates
from retrodict.events.io.survey import Settled, Survey
from retrodict.events.io.text_columns import as_kind
from retrodict.events.io.time_column import decoded
from retrodict.events.stream_set import StreamSet
from retrodict.jobs.spread import ROW, bucket_file, read_bucket


@dataclass(frozen=True)
class Chunk:
    """Buckets ``first`` to ``stop`` of the input; ``line`` and ``position`` are where the first of its lines stood."""

    first: int
    stop: int
    streams: int
    rows: int
    line: int = 1
    position: int = 0


@dataclass(frozen=True)
class Parts:
    """Reads chunks: ``kind`` is "csv", "parquet" or "lines", ``given`` what the user said of columns and times."""

    kind: str
    file: Path  # the user's, for messages
    folder: Path  # of the buckets
    given: Mapping[str, Any]
    kinds: Mapping[str, str]  # of the columns of text
    settled: Settled | None = None

    def request(self, survey: Survey | None = None) -> Request:
        """What the user asked for, for the reader of one part."""
        names = ("stream", "time", "type", "start", "end", "unit", "timezone", "dates")
        check_dates(self.given.get("dates"))
        given: dict[str, Any] = {name: self.given.get(name) for name in names}
        return Request(self.file, **given, survey=survey, settled=None if self.settled is None else self.settled.axis)

    def read(self, chunk: Chunk, survey: Survey | None = None) -> tuple[StreamSet, Request]:
        """The streams of a chunk, and what the reader had to say."""
        request = self.request(survey)
        streams = self._lines(chunk, request) if self.kind == "lines" else self._table(chunk, request)
        if self.settled is None:
            return streams, request
        streams = streams.with_types(self.settled.types)
        assert streams.source is not None
        style: Any = self.settled.first
        if self.kind != "lines":
            column = decoded(flatten(streams.source.data.column(str(streams.source.names["time"])).slice(0, 0)))
            style = self.settled.style(column.type, request.dates)
        source = replace(streams.source, types=self.settled.types, of_streams=self.settled.of_streams, style=style)
        return streams.replace(source=source), request

    def rows(self, chunk: Chunk) -> pa.Table:
        """The rows of a chunk in the order of the input, with their numbers."""
        tables = [
            table
            for number in range(chunk.first, chunk.stop)
            for table in read_bucket(bucket_file(self.folder, number))
        ]
        table = pa.concat_tables(tables).unify_dictionaries()
        numbers = table[ROW].to_numpy()
        return table if (np.diff(numbers) > 0).all() else table.take(pa.array(np.argsort(numbers)))

    def _table(self, chunk: Chunk, request: Request) -> StreamSet:
        table = self.rows(chunk)
        numbers, table = table[ROW].to_numpy(), table.drop_columns([ROW])
        use_metadata(table.schema, request)
        typed = {
            name: as_kind(column, self.kinds.get(name, "text")) if self.kind == "csv" else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        kept = ("csv" if self.kind == "csv" else "arrow", table)
        return read_table(typed, table.num_rows, request, kept, numbers + 1)

    def _lines(self, chunk: Chunk, request: Request) -> StreamSet:
        unit = use_meta(self.file, request)
        text = bucket_file(self.folder, chunk.first).read_bytes()
        try:
            objects = parse_lines(text.decode("utf-8-sig" if chunk.line == 1 else "utf-8"), request, chunk.line)
        except UnicodeDecodeError as error:
            raise DataError("the file is not UTF-8 text", file=self.file, remedy="save it as UTF-8") from error
        return from_objects(objects, request, unit, chunk.position)
