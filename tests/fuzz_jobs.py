"""Unfinished and finished jobs for ``tests.fuzz``: whatever is damaged in them, the output is right or refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import retrodict as rd
from retrodict.cli.impute_chunks import show_notes
from retrodict.jobs.complete import is_complete
from retrodict.jobs.folder import JobFolder
from retrodict.jobs.identity import Input, describe_proposal
from retrodict.jobs.run import plan_job, run_job
from retrodict.jobs.work import Work
from retrodict.jobs.workers import Here

FORMS = {"csv": "out.csv", "parquet": "out.parquet", "folder": "out", "jsonl": "out.jsonl"}
SOURCES = {"csv": "job.csv", "parquet": "job.parquet", "folder": "job-tables", "jsonl": "job.jsonl"}
KINDS = {"csv": "csv", "parquet": "parquet", "folder": "parquet", "jsonl": "lines"}
OPTIONS = {"particles": 3, "seed": 0, "engine": "native"}
PROPOSAL = rd.Filtering(rd.Poisson([0.5, 0.5]), rd.ByType(0.5))
MADE = {"the input": "x", "--seed": 0}


class Until(Here):
    """Works until a chunk is to be decoded that is not the first."""

    def each(self, work: Work, method: str, numbers: Iterable[int], *more: Any) -> Iterator[dict[str, Any]]:
        """Do some of the chunks."""
        for number in numbers:
            if method == "decode" and number == 1:
                raise KeyboardInterrupt
            yield getattr(work, method)(number, *more)


@contextmanager
def _silent(_what: str, _total: int | None) -> Iterator[Callable[[int], None]]:
    yield lambda done: None


def _input(form: str, home: Path) -> Input:
    return Input(home / SOURCES[form], KINDS[form], {}, 2, 1000)


def _run(form: str, home: Path, folder: Path, workers: Here) -> None:
    """Do what is missing of the job in ``folder``; its output is written beside it."""
    job = JobFolder(folder / "unfinished")
    plan = plan_job(job, _input(form, home), _silent, str)
    show_notes(plan.notices, len(plan.chunks))
    work = Work(job.path, plan, PROPOSAL, OPTIONS, form, None, {}, job.hold())
    identity = describe_proposal(PROPOSAL, "native")
    finished = run_job(work, identity, MADE, None, folder / FORMS[form], _silent, workers)
    show_notes(finished.notes, finished.chunks)
    "".join(finished.impossible)


def _content(path: Path) -> dict[str, bytes]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: file.read_bytes() for file in files}


def make_jobs(home: Path) -> tuple[list[Path], Path]:
    """An unfinished job for every form of output, and a finished one with its manifest."""
    PROPOSAL.model.types = ("u", "v")
    streams = rd.simulate(PROPOSAL.model, 5, end=4.0, seed=1)
    found = []
    for form, name in SOURCES.items():
        source = home / name
        source.mkdir() if form == "folder" else None
        rd.write_events(streams, source / "0.parquet" if form == "folder" else source)
        whole, cut = home / f"done-{form}", home / f"job-{form}"
        for folder in (whole, cut):
            (folder / "unfinished").mkdir(parents=True)
        _run(form, home, whole, Here())
        shutil.rmtree(whole / "unfinished")
        try:
            _run(form, home, cut, Until())
        except KeyboardInterrupt:
            found.append(cut)
    return found, home / "done-folder"


def use_job(folder: Path, name: str, home: Path) -> object:
    """Go on with a job: its output is that of a run which nothing happened to."""
    if name == "done-folder":
        right = _content(home / name / "out")
        complete = is_complete(folder / "out", MADE)
        parts = [file for file in right if file.endswith(".parquet")]
        damaged = any(not (folder / "out" / file).is_file() for file in parts) or any(
            (folder / "out" / file).read_bytes() != right[file] for file in parts
        )
        assert not (complete and damaged), "a damaged part was taken for a whole one"
        return complete
    form = name.removeprefix("job-")
    _run(form, home, folder, Here())
    right, found = _content(home / f"done-{form}" / FORMS[form]), _content(folder / FORMS[form])
    assert found == right, "the output of a damaged job is another one"
    return found
