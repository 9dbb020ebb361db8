"""The chunks of an input, and what holds for all of them: made in two passes, kept on disk, checked when read again.

The first pass spreads the rows into buckets of some streams each (``spread``); the second reads every chunk once, so
that whatever is wrong with the input is said before the long work begins, and settles what only all chunks together
tell (``events/io/survey.py``).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from retrodict import _limits
from retrodict.errors import DataError
from retrodict.events.atomic import make_folder
from retrodict.events.io.csv_file import separator_of
from retrodict.events.io.files import find_format
from retrodict.events.io.known_layouts import recognise
from retrodict.events.io.pieces import is_parquet_folder, open_text, table_pieces
from retrodict.events.io.record_keys import RECORDS
from retrodict.events.io.request import Request
from retrodict.events.io.roles import find_roles, names_of_times
from retrodict.events.io.survey import Settled, Survey
from retrodict.events.io.text_columns import choose_kind
from retrodict.events.results import refuse_results
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import refuse_unix_time
from retrodict.events.time_axis import TimeAxis
from retrodict.jobs.folder import JobFolder, digest_of
from retrodict.jobs.identity import Input
from retrodict.jobs.known import Known
from retrodict.jobs.part import Chunk, Parts
from retrodict.jobs.spread import Bucket, bucket_file, cannot_write, spread_table
from retrodict.smc.choice import JUDGED

VERSION = 2
_FINE = 8  # buckets of a chunk
_LINE = 16  # bytes of a line that count as a row


@dataclass(frozen=True)
class Plan:
    """How to read the input in chunks."""

    parts: Parts
    chunks: tuple[Chunk, ...]
    contiguous: bool
    notices: Mapping[str, int]  # what the readers said, and of how many chunks
    judged: tuple[tuple[int, ...], ...]  # of each chunk, the streams by which the ensemble is chosen
    longest: int  # events of the longest stream

    def read(self, number: int) -> StreamSet:
        """The streams of a chunk."""
        return self.parts.read(self.chunks[number])[0]

    @property
    def num_streams(self) -> int:
        """Streams of all chunks."""
        return sum(chunk.streams for chunk in self.chunks)

    @property
    def axis(self) -> TimeAxis:
        """The time axis of the input."""
        assert self.parts.settled is not None
        return self.parts.settled.axis


def kind_of(file: Path, given: Mapping[str, Any]) -> str | None:
    """How an input can be read in chunks, "csv", "parquet" or "lines"; None if only all at once."""
    if given.get("codes") is not None or given.get("lifecycle") is not None:
        return None
    if given.get("encoding") is not None:  # that of CSV which is written again as it came; of others it is refused
        return None
    if file.is_dir():
        kind = "parquet" if is_parquet_folder(file) else None
    else:
        kind = find_format(file, None, folder=True)
        kind = {"csv": "csv", "parquet": "parquet", "jsonl": "lines"}.get(kind) if file.is_file() else None
    if kind in ("lines", "csv"):
        with open_text(file) as opened:
            beginning = opened.read(1 << 16)
        if kind == "lines":
            return None if b'"time_since_start"' in beginning else "lines"
        kind = "csv" if separator_of(beginning) == "," else None  # others are written again as they came
    if kind is None:
        return None
    try:
        first = next(iter(table_pieces(file, kind)), None)
    except DataError:
        return kind  # what is wrong is said when it is read
    names = [] if first is None else first.column_names
    request = Request(file, given.get("stream"), given.get("time"), given.get("type"))
    recognise(names, request)
    return None if request.layout is not None or RECORDS in names else kind


def check_columns(source: Input) -> None:
    """Refuse a table without the columns that are asked for, by its first rows."""
    first = None if source.kind == "lines" else next(iter(table_pieces(source.file, source.kind)), None)
    if first is not None:
        request = Parts(source.kind, source.file, source.file, dict(source.given), {}).request()
        find_roles(dict.fromkeys(first.column_names), request)


def make_plan(job: JobFolder, source: Input, progress: Callable[[int], None]) -> Plan:
    """Read the input and plan its chunks; ``progress`` is called with the number of streams that were read."""
    shutil.rmtree(job.rows, ignore_errors=True)
    make_folder(job.rows)
    streams, rows = source.streams, source.rows
    parts = Parts(source.kind, source.file, job.rows, dict(source.given), {})
    if source.kind == "lines":
        chunks, contiguous = list(_spread_lines(source.file, job.rows, streams, rows)), True
    else:
        spread = _spread(parts, max(1, streams // _FINE), max(1, rows // _FINE))
        chunks, contiguous = _group(spread.buckets, streams, rows), spread.contiguous
        parts = replace(parts, kinds=_kinds(spread.kinds, parts))
    if not chunks:
        raise DataError("there are no rows", file=source.file, remedy="give a table with at least one event")
    return _survey(parts, chunks, contiguous, progress)


def _spread(parts: Parts, streams: int, rows: int) -> Any:
    pieces = table_pieces(parts.file, parts.kind)
    first = next(pieces, None)
    if first is None:
        raise DataError("there are no rows", file=parts.file, remedy="give a table with at least one event")
    stream = find_roles(dict.fromkeys(first.column_names), parts.request()).stream
    assert stream is not None
    text = parts.kind == "csv"
    return spread_table(chain([first], pieces), stream, parts.folder, streams, rows, parts.file, text)


def _kinds(fits: Mapping[str, set[str]], parts: Parts) -> dict[str, str]:
    """What each column of text is, as for a table that is read at once."""
    request = parts.request()
    names = {"type": request.type or "type", "stream": str(request.stream or "stream")}
    times = names_of_times(request)
    return {name: "text" if name in times else choose_kind(found, name, names) for name, found in fits.items()}


def _group(buckets: list[Bucket], streams: int, rows: int) -> list[Chunk]:
    """Neighbouring buckets as chunks."""
    chunks: list[Chunk] = []
    for number, bucket in enumerate(buckets):
        last = chunks[-1] if chunks else None
        if last is None or last.streams + bucket.streams > streams or last.rows + bucket.rows > rows:
            chunks.append(Chunk(number, number + 1, bucket.streams, bucket.rows))
        else:
            chunks[-1] = Chunk(last.first, number + 1, last.streams + bucket.streams, last.rows + bucket.rows)
    return chunks


def _spread_lines(file: Path, folder: Path, streams: int, rows: int) -> Iterator[Chunk]:
    """The lines of a file, some streams to a bucket."""
    held: list[bytes] = []
    number, line, position, filled, size = 0, 1, 0, 0, 0

    def write() -> Chunk:
        path = bucket_file(folder, number)
        try:
            path.write_bytes(b"".join(held))
        except OSError as error:
            raise cannot_write(path, error) from error
        return Chunk(number, number + 1, filled, size // _LINE, line, position)

    with open_text(file) as opened:
        for text in _lines(opened):
            if filled and text.strip() and (filled >= streams or size // _LINE >= rows):
                yield write()
                number, line, position = number + 1, line + len(held), position + filled
                held, filled, size = [], 0, 0
            held.append(text)
            filled, size = filled + bool(text.strip()), size + len(text)
            _limits.check("bytes", size, f"a line has {size:,} bytes or more", file=file)
    if filled:
        yield write()


def _lines(file: Any) -> Iterator[bytes]:
    """The lines of an open file with their ends."""
    rest = b""
    while piece := file.read(1 << 20):
        *whole, rest = (rest + piece).split(b"\n")
        _limits.check("bytes", 64 * len(rest), f"a line has {len(rest):,} bytes or more")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _survey(parts: Parts, chunks: list[Chunk], contiguous: bool, progress: Callable[[int], None]) -> Plan:
    """Read every chunk once, and settle what holds for all."""
    survey, notices, seen, judged = Survey(), dict[str, int](), Known(), np.zeros((3, 0), np.int64)
    request, longest = parts.request(), 0
    for number, chunk in enumerate(chunks):
        streams, request = parts.read(chunk, survey)
        survey.see_columns(streams)
        refuse_results(streams)
        refuse_unix_time(streams)
        if parts.kind == "lines":
            _refuse_repeated(streams, seen, parts.file)
        chunks[number] = replace(chunk, streams=len(streams))
        longest = max(longest, int(streams.lengths.max(initial=0)))
        own = np.stack([streams.id_keys, np.full(len(streams), number), np.arange(len(streams))])
        judged = np.concatenate([judged, own], 1)
        judged = judged[:, np.sort(np.argsort(judged[0], kind="stable")[:JUDGED])]
        for text in request.notices:
            notices[text] = notices.get(text, 0) + 1
        progress(sum(done.streams for done in chunks[: number + 1]))
    settled = survey.settle(request, lambda text: notices.update({text: 1}))
    of_chunk = tuple(tuple(judged[2, judged[1] == number].tolist()) for number in range(len(chunks)))
    return Plan(replace(parts, settled=settled), tuple(chunks), contiguous, notices, of_chunk, longest)


def _refuse_repeated(streams: StreamSet, seen: Known, file: Path) -> None:
    """Remember the ids of some lines; an id that came before is an error."""
    again = seen.find(streams.id_keys) >= 0
    if again.any():
        name = streams.ids[int(np.argmax(again))]
        raise DataError("the id was used already", file=file, stream=name, remedy="give each stream an id of its own")
    seen.add(streams.id_keys, np.zeros(len(streams), np.int64))


def write_plan(job: JobFolder, plan: Plan, source: Input) -> None:
    """Keep a plan: from now on the buckets are the input."""
    job.write("plan.json", _content(job, plan, source))


def is_as_kept(job: JobFolder, plan: Plan, source: Input, found: Mapping[str, Any]) -> bool:
    """Whether a plan and its buckets are those that were kept."""
    return bool(json.loads(json.dumps(_content(job, plan, source))) == found)


def _content(job: JobFolder, plan: Plan, source: Input) -> dict[str, Any]:
    parts, settled = plan.parts, plan.parts.settled
    assert settled is not None
    buckets = max(chunk.stop for chunk in plan.chunks)
    return {
        "version": VERSION,
        "identity": source.identity,
        "kind": parts.kind,
        "kinds": dict(parts.kinds),
        "settled": settled._asdict() | {"axis": settled.axis.to_dict(), "of_streams": sorted(settled.of_streams)},
        "contiguous": plan.contiguous,
        "chunks": [asdict(chunk) for chunk in plan.chunks],
        "notices": dict(plan.notices),
        "judged": plan.judged,
        "longest": plan.longest,
        "digests": [digest_of(bucket_file(job.rows, number)) for number in range(buckets)],
    }


def read_plan(job: JobFolder, found: Mapping[str, Any], source: Input) -> Plan | None:
    """The plan that was kept, None if the rows that it speaks of are not what they were."""
    if found.get("version") != VERSION:
        problem = "this unfinished run was begun by another version of retrodict"
        raise DataError(problem, file=job.path, remedy="go on with that version, or begin again with --restart")
    try:
        settled = found["settled"]
        axis, types = TimeAxis.from_dict(settled["axis"]), tuple(str(name) for name in settled["types"])
        step = settled["step"]
        of_streams = frozenset(str(name) for name in settled["of_streams"])
        facts = Settled(axis, types, of_streams, settled["first"], None if step is None else int(step))
        parts = Parts(found["kind"], source.file, job.rows, dict(source.given), dict(found["kinds"]), facts)
        chunks = tuple(Chunk(**{name: int(value) for name, value in chunk.items()}) for chunk in found["chunks"])
        digests = list(found["digests"])
        judged = tuple(tuple(int(i) for i in some) for some in found["judged"])
        longest = int(found["longest"])
        plan = Plan(parts, chunks, bool(found["contiguous"]), dict(found["notices"]), judged, longest)
        if len(judged) != len(chunks) or len(digests) != max(c.stop for c in chunks):
            return None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"this file of an unfinished run is damaged ({error})",
            file=job.path / "plan.json",
            remedy="begin again with --restart",
        ) from error
    for number, digest in enumerate(digests):
        path = bucket_file(job.rows, number)
        if not path.is_file() or digest_of(path) != digest:
            return None
    return plan
