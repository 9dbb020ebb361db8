"""``retrodict impute`` of more streams than fit into the memory, chunk by chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from retrodict import _limits
from retrodict.cli import common
from retrodict.cli.chunk_work import ZONE, Choices, prepare, was_made_so, workers_for
from retrodict.cli.decode import say_cost, say_draws, say_left_out, say_particles, say_replaced
from retrodict.cli.kept_check import repeat_verdict
from retrodict.cli.proposal import say_other_dates
from retrodict.cli.windows_warning import warn_untouched
from retrodict.errors import DataError, LimitError, ModelError, RetrodictError, WriteError
from retrodict.events.atomic import remove_stale
from retrodict.events.io.files import find_format
from retrodict.events.io.pieces import count_rows, is_parquet_folder
from retrodict.events.lock import lock_folder
from retrodict.jobs.complete import NAME
from retrodict.jobs.folder import JobFolder, beside
from retrodict.jobs.identity import Input
from retrodict.jobs.plan import check_columns, kind_of
from retrodict.jobs.run import check_draws, keep_draws, plan_job, run_job
from retrodict.missingness.conflicts import ALWAYS, UNTOUCHED
from retrodict.smc.ray_pool import load_ray

if TYPE_CHECKING:
    from retrodict.events.stream_set import StreamSet

MANY_ROWS, MANY_STREAMS = 1_000_000, 20_000  # beyond which chunks are worked on
STREAMS = 10_000  # of a chunk
_CELLS = 10_000_000  # particles times rows of a chunk
_BYTES = 50  # of memory for a particle at a row, when all is done at once


class Chunking(NamedTuple):
    """What the user said of chunks: streams in each (0: none at all), and to go on with or drop an unfinished run."""

    streams: int | None
    resume: bool | None
    cluster: str | None = None
    workers: int | None = None

    def check(self) -> None:
        """Refuse what cannot be, before anything is read."""
        if self.workers is not None and self.cluster is None:
            raise ModelError("--workers is for --cluster alone. Give both, or leave it out.")
        if self.streams == 0 and self.cluster is not None:
            raise ModelError(
                "--cluster works on chunks, and --chunk-streams 0 says that there are none. Leave one out."
            )
        if self.cluster is not None:
            load_ray()

    def goes_on(self, output: Path) -> bool:
        """Whether there is an unfinished run to go on with, or a finished one that may be this one."""
        return self.resume is True and (JobFolder(beside(output)).exists or (output / NAME).exists())

    def sizes(self, particles: int | str) -> tuple[int, int]:
        """The most streams of a chunk, and about how many rows."""
        most = _limits.current().rows
        if self.streams:
            return self.streams, most
        return STREAMS, min(most, max(1000, _CELLS // (particles if isinstance(particles, int) else 1000)))


def form_of(file: Path, output: Path, kind: str) -> str:
    """How the answer is written, if it can be written in chunks: "csv", "parquet", "folder" or "jsonl"."""
    wanted = "folder" if is_folder_of_tables(file, output) else find_format(output, None, folder=True)
    allowed = {"csv": ("csv",), "parquet": ("parquet", "csv", "folder"), "lines": ("jsonl",)}[kind]
    if wanted in allowed:
        return wanted
    names = {"csv": ".csv", "parquet": ".parquet", "jsonl": ".jsonl", "folder": "a folder"}
    what = {"csv": "CSV", "parquet": "Parquet", "lines": "JSON Lines"}[kind]
    raise DataError(
        f"in chunks, {what} is written as {' or '.join(names[each] for each in allowed)} alone",
        file=output,
        remedy="give such a name, or do it all at once with --chunk-streams 0 if there is memory enough",
    )


def is_folder_of_tables(file: Path, output: Path) -> bool:
    """Whether the output is to be a folder of Parquet files, because the input is one."""
    return find_format(output, None, folder=True) == "meds" and output.suffix != ".meds" and is_parquet_folder(file)


def read_or_chunk(
    file: Path, columns: common.Columns, chunking: Chunking, output: Path, particles: int | None, whole: bool
) -> tuple[str, StreamSet | None]:
    """The streams, where they are few; else how to read them in chunks. ``whole``: rather all at once."""
    kind = kind_of(file, columns.given()) if chunking.streams != 0 else None
    if kind is None:
        if chunking.streams or chunking.cluster or chunking.goes_on(output):
            kinds = "CSV (UTF-8, with commas), JSON Lines and Parquet tables, one row an event"
            problem = f"only {kinds}, can be imputed in chunks"
            raise DataError(problem, file=file, remedy="leave --chunk-streams, --cluster and --resume out")
        return "", columns.read(file)
    if chunking.streams or chunking.cluster or JobFolder(beside(output)).exists or is_folder_of_tables(file, output):
        return kind, None
    if not whole and count_rows(file, kind, MANY_ROWS) > MANY_ROWS:
        return kind, None
    try:
        observed = columns.read(file)
    except LimitError:
        if whole:
            raise
        return kind, None  # what is too large for the memory is not too large for chunks
    return (kind, None) if not whole and are_many(observed, particles) else ("", observed)


def are_many(observed: StreamSet, particles: int | None) -> bool:
    """Whether streams that were read are so many that they are better imputed in chunks."""
    need = float(_BYTES) * (particles or 1000) * (observed.num_events + len(observed))
    most = _limits.current().memory or int(0.8 * _limits.free_memory())
    return len(observed) > MANY_STREAMS or need > most / 2


def refuse_whole(report: Path | None, sensitivity: bool) -> None:
    """Refuse what is only made of all streams at once."""
    for option, given in (("--report", report is not None), ("--sensitivity", sensitivity)):
        if given:
            raise DataError(
                f"{option} needs all streams at once, and these are imputed in chunks",
                remedy=f"leave {option} out (draws of a chunk can be looked at with 'retrodict report'), or give "
                "--chunk-streams 0 if there is memory enough",
            )


@contextmanager
def unfinished(output: Path, chunking: Chunking) -> Iterator[JobFolder]:
    """The folder of the job, held for this process alone; what an error or an interrupt leaves can be gone on with."""
    job = JobFolder(beside(output))
    with lock_folder(job.path):
        remove_stale(job.path)
        new = not job.exists
        if not new and chunking.resume is None:
            raise DataError(
                "a run that was not finished is kept here",
                file=job.path,
                remedy="go on with it by --resume, or drop it and begin again by --restart",
            )
        if chunking.resume is False:
            job.clear()
        kept = f"what is done is kept in {job.path}: go on with --resume"
        try:
            with common.when_interrupted(lambda: kept):
                yield job
        except WriteError as error:
            raise WriteError(error.problem, file=error.file, remedy=f"{error.remedy}; {kept}") from error
        except OSError as error:
            problem = f"cannot write: {error.strerror or error}"
            remedy = f"check that there is space on the disk and that the folder is still there; {kept}"
            raise WriteError(problem, file=error.filename or job.path, remedy=remedy) from error
        except RetrodictError:
            if new and not (job.path / "job.json").exists():  # nothing but a plan that came to nothing
                job.remove()
            raise


def impute_chunks(
    file: Path,
    kind: str,
    columns: common.Columns,
    chunking: Chunking,
    how: Choices,
    output: Path,
    draws: Path | None,
) -> None:
    """Impute chunk by chunk, say what was done, and leave nothing behind but what was asked for."""
    form = form_of(file, output, kind)
    if draws is not None:
        check_draws(draws)
    how.check()
    source = Input(file, kind, columns.given(), *chunking.sizes(how.options["particles"]))
    check_columns(source)
    if chunking.resume and not JobFolder(beside(output)).exists and was_made_so(output, source, how):
        remove_stale(beside(output))  # of a run that was killed while it removed what it no longer needed
        common.note(f"{output} is complete already: nothing was to be done")
        return
    replaced = output.exists()
    with unfinished(output, chunking) as job:
        with closing(workers_for(how)) as workers:
            workers.begin()
            plan = plan_job(job, source, common.bar, common.note)
            show_notes({f"{file}: {text}": number for text, number in plan.notices.items()}, len(plan.chunks))
            work, identity = prepare(plan, columns, how, form, job, workers, draws is not None)
            say_other_dates(work.proposal.model, columns["dates"])
            particles = work.options["particles"]
            given = how.options["particles"] != "auto"
            if draws is None and not given:
                say_particles(particles)
            axis = work.proposal.model.matched(plan.read(0)).axis
            scale = columns.units_in(axis)
            price = None if how.cost is None else how.cost * scale
            made = source.identity | {ZONE: plan.axis.timezone} | identity
            identity |= {"the format of --output": form} | ({} if draws is not None else {"--no-draws": True})
            finished = run_job(work, identity, made, price, output, common.bar, workers)
        repeat_verdict(work.about["check"], work.proposal)
        show_notes(finished.notes, finished.chunks)
        if not any(ALWAYS in text for text in finished.notes):  # else it was said
            name_impossible(finished.impossible, finished.num_impossible)
        if draws is not None:
            keep_draws(job, draws)
            what = say_draws(particles, finished.streams, given)
            common.wrote(draws, f"a folder for each of {finished.chunks:,} chunks, {what}")
        job.remove()
    units = columns.unit_of(axis, work.proposal.model.time_unit)
    if how.cost is None:
        say_cost()
    common.wrote(
        output,
        f"{finished.observed:,} observed and {finished.imputed:,} imputed events "
        f"({finished.pooled.total}; cost {finished.pooled.price / scale:.4g} {units})",
    )
    if replaced:
        say_replaced(output)
    say_left_out(finished.pooled.total.expected, finished.imputed, finished.pooled.price / scale)
    untouched = [text for text, number in finished.notes.items() for _ in range(number) if UNTOUCHED in text]
    if untouched and len(untouched) == finished.chunks:
        warn_untouched(UNTOUCHED)


def name_impossible(names: Sequence[object], number: int) -> None:
    """Say in which streams nothing is imputed: in these, the first of a number of them."""
    if number:
        more = f" and {number - len(names):,} more" if number > len(names) else ""
        listed = ", ".join(repr(name) for name in names) + more
        common.note(f"nothing is imputed in {listed}: the observed events of these streams are written as they are")


def show_notes(notes: Any, chunks: int) -> None:
    """Say what was noticed; of notes that differ in names and numbers alone, the first, and how many chunks had one."""
    alike: dict[str, tuple[str, int]] = {}
    for text, number in notes.items():
        key = re.sub(r"'[^']*'|[\d.,:%]+", "#", text)
        first, before = alike.get(key, (text, 0))
        alike[key] = first, before + number
    for text, number in alike.values():
        common.note(
            common.in_options(text)
            + (f" (the first of {number:,} such notes from {chunks:,} chunks)" if number > 1 else "")
        )
