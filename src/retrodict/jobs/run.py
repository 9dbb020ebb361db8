"""A job from beginning to end: plan, sample every chunk, decide for all, decode every chunk, put the parts together."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrodict._limits import size
from retrodict.errors import DataError, WriteError
from retrodict.events.atomic import atomic_folder, make_folder, remove_folder, sync_tree
from retrodict.jobs.assemble import assemble
from retrodict.jobs.complete import NAME, write_manifest
from retrodict.jobs.folder import JobFolder, digest_of
from retrodict.jobs.identity import Input, refuse_other
from retrodict.jobs.plan import Plan, is_as_kept, make_plan, read_plan, write_plan
from retrodict.jobs.pooled import Pooled, decide_for_all
from retrodict.jobs.work import Work
from retrodict.jobs.workers import Workers
from retrodict.smc.diagnostics import none_possible
from retrodict.smc.totals import Total

Bar = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True)
class Finished:
    """What a job did: streams, events, notes with the number of chunks that had them."""

    streams: int
    chunks: int
    observed: int
    imputed: int
    pooled: Pooled
    notes: Mapping[str, int]
    impossible: list[str]
    num_impossible: int


def plan_job(job: JobFolder, source: Input, bar: Bar, note: Callable[[str], None]) -> Plan:
    """The plan of an unfinished job, if it is of this input, else a new one."""
    found = job.read("plan.json")
    if found is not None:
        refuse_other(found.get("identity") or {}, source.identity, job.path)
        plan = read_plan(job, found, source)
        if plan is None:
            note(f"the copy of the rows in {job.rows} is damaged: they are read again")
            job.make()
            plan = _read_all(job, source, bar)
            if not is_as_kept(job, plan, source, found):
                note("they are no longer what the chunks were made from: all chunks are done again")
                plan = None
        if plan is not None:
            return plan
    job.clear()
    job.make()
    plan = _read_all(job, source, bar)
    write_plan(job, plan, source)
    return plan


def _read_all(job: JobFolder, source: Input, bar: Bar) -> Plan:
    with bar("read", None) as done:
        return make_plan(job, source, done)


def run_job(
    work: Work,
    identity: Mapping[str, Any],
    made: Mapping[str, Any],
    cost: float | None,
    output: Path,
    bar: Bar,
    workers: Workers,
) -> Finished:
    """Do what is missing of a planned job, and write the output; the job's folder is still there afterwards.

    ``identity`` is what an unfinished job must have in common with this one, ``made`` what a folder of parts keeps.
    """
    job, plan = work.job, work.plan
    found = job.read("job.json")
    if found is None:
        job.write("job.json", identity)
    else:
        refuse_other(found, identity, job.path)
    if (finished := _written(job, plan, output)) is not None:
        return finished
    job.make()
    job.tidy()
    sampled = _stage(work, workers, "sampled", "sample", bar, "impute")
    _refuse_impossible(sampled)
    pooled = decide_for_all(job, plan.judged, cost)
    job.write("pooled.json", pooled._asdict())
    parts = _stage(work, workers, "parts", "decode", bar, "decode", pooled)
    finished = _sum_up(sampled, parts, pooled)
    job.write("finished.json", {**finished.__dict__, "pooled": pooled._asdict()})
    files = [work.files("parts", number)[0] for number in range(len(plan.chunks))]
    rows = sum(entry["rows"] for entry in parts)
    if work.form == "folder":
        write_manifest(job.parts, made, parts)
    with bar("write", rows) as done:
        assemble(files, work.form, plan.contiguous, output, done)
    if output.is_file():
        job.write("written.json", {"digest": digest_of(output)})
    return finished


def _stage(
    work: Work, workers: Workers, stage: str, method: str, bar: Bar, what: str, *more: Any
) -> list[dict[str, Any]]:
    """Do the chunks of a stage that are not done; the entries of all."""
    job, plan = work.job, work.plan
    done = [job.is_done(stage, number, work.files(stage, number)) for number in range(len(plan.chunks))]
    streams = sum(chunk.streams for chunk, is_done in zip(plan.chunks, done, strict=True) if is_done)
    with bar(what, plan.num_streams) as progress:
        progress(streams)
        todo = [number for number, is_done in enumerate(done) if not is_done]
        for left, entry in zip(range(len(todo) - 1, -1, -1), workers.each(work, method, todo, *more), strict=True):
            streams += entry["streams"]
            progress(streams)
            _ask_disk(job, entry, left)
    entries = [job.entry(stage, number) for number in range(len(plan.chunks))]
    lost = [number for number, entry in enumerate(entries) if entry is None]
    if lost:
        problem = f"the manifest has lost chunk {lost[0]}: did another process or person change this folder?"
        raise DataError(problem, file=job.path, remedy="run the same command again with --resume")
    return [entry for entry in entries if entry is not None]


def _ask_disk(job: JobFolder, entry: Mapping[str, Any], left: int) -> None:
    """Raise if the disk will be full before the chunks that are left are sampled, not only when it is."""
    need, free = entry.get("bytes", 0) * left, shutil.disk_usage(job.path).free
    if need > 1.2 * free:
        raise WriteError(
            f"the draws of the other {left:,} chunks will need about {size(need)}, and {size(free)} are free",
            file=job.path,
            remedy="make space on the disk, or begin again with fewer --particles",
        )


def _refuse_impossible(sampled: list[dict[str, Any]]) -> None:
    """Raise if the model gives no stream at all any probability."""
    if any(entry["possible"] for entry in sampled) or not any(entry["streams"] for entry in sampled):
        return
    conflict = next((entry["conflict"] for entry in sampled if entry.get("conflict")), None)
    raise none_possible(conflict)


def _sum_up(sampled: list[dict[str, Any]], parts: list[dict[str, Any]], pooled: Pooled) -> Finished:
    notes: dict[str, int] = {}
    for entry in [*sampled, *parts]:
        for text in entry["notes"]:
            notes[text] = notes.get(text, 0) + 1
    impossible = [name for entry in sampled for name in entry["impossible"]]
    return Finished(
        sum(entry["streams"] for entry in parts),
        len(parts),
        sum(entry["observed"] for entry in parts),
        sum(entry["imputed"] for entry in parts),
        pooled,
        notes,
        impossible[:20],
        sum(entry["streams"] - entry["possible"] for entry in sampled),
    )


def _written(job: JobFolder, plan: Plan, output: Path) -> Finished | None:
    """What a run did that was killed after its output was in place; None where there is more to do."""
    found, written = job.read("finished.json"), job.read("written.json")
    if found is None:
        return None
    if output.is_file():
        if written is None or digest_of(output) != written.get("digest"):
            return None
    elif not output.is_dir() or job.parts.exists() or not _is_moved(job, plan, output):
        return None
    try:
        pooled = Pooled(**{**found["pooled"], "total": Total(*found["pooled"]["total"])})
        return Finished(**{**found, "pooled": pooled})
    except (KeyError, TypeError):
        return None


def _is_moved(job: JobFolder, plan: Plan, output: Path) -> bool:
    """Whether the output is the folder of all parts."""
    for number in range(len(plan.chunks)):
        entry, file = job.entry("parts", number), output / f"{number:05d}.parquet"
        if entry is None or not file.is_file() or digest_of(file) not in entry["files"].values():
            return False
    return (output / NAME).is_file()


def check_draws(draws: Path) -> None:
    """Refuse a folder that holds anything but draws, which would have to be removed."""
    if draws.is_dir() and any(draws.iterdir()):
        old = [draws, *(entry for entry in draws.iterdir() if entry.is_dir())]
        if not any((folder / "posterior.json").is_file() for folder in old):
            remedy = "give another folder with --draws"
            raise DataError("this folder is not empty, and holds no draws", file=draws, remedy=remedy)


def keep_draws(job: JobFolder, draws: Path) -> None:
    """Move the draws of all chunks to where they are wanted, in the place of those of an earlier run."""
    if not job.sampled.exists():
        return
    check_draws(draws)
    draws = Path(os.path.realpath(draws))
    if draws.is_dir():
        shutil.rmtree(draws)
    make_folder(draws.parent)
    job.tidy()
    sync_tree(job.sampled)
    try:
        os.rename(job.sampled, draws)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with atomic_folder(draws) as copy:  # on another disk: at any moment one of the two is whole and in its place
            shutil.copytree(job.sampled, copy, dirs_exist_ok=True)
        remove_folder(job.sampled)
