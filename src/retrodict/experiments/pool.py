"""Run jobs in the order of their needs, by several processes; an interrupt ends them all and loses nothing done."""

from __future__ import annotations

import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from retrodict.experiments.jobs import Job, run_job
from retrodict.experiments.place import Place
from retrodict.experiments.scale import Scale

GRACE = 5.0  # seconds that a process has to end by itself
Report = Callable[[Job, float, str | None], None]


@dataclass
class Outcome:
    """What was done now, what failed and why, and what could not be started (a need failed, or time was up)."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def run_jobs(
    jobs: Sequence[Job], place: Place, *, workers: int, device: str, seconds: float | None = None, report: Report
) -> Outcome:
    """Do all jobs that are not done yet, earlier ones first; ``report`` is told of each that ends.

    After ``seconds`` nothing more is started and what still runs is ended: the same call goes on from there later.
    """
    todo = [job for job in jobs if not job.is_done(place)]
    waiting = {job.name for job in todo}
    until = None if seconds is None else time.monotonic() + seconds
    if workers == 1 and until is None:
        return _run_here(todo, waiting, place, device, report)
    crew = _Crew(place, device)
    outcome = Outcome()
    try:
        while todo or crew.busy:
            _start(todo, waiting, crew, workers, outcome)
            if not crew.busy:
                break
            rest = None if until is None else until - time.monotonic()
            if rest is not None and rest <= 0:
                break
            for job, took, error in crew.finished(rest):
                _note(job, took, error, waiting, outcome, report)
    finally:
        outcome.left += [job.name for job in todo] + [job.name for job in crew.busy]
        crew.end()
    return outcome


def _run_here(todo: list[Job], waiting: set[str], place: Place, device: str, report: Report) -> Outcome:
    outcome = Outcome()
    for job in sorted(todo, key=lambda job: job.alone):
        if any(need in waiting for need in job.needs):
            outcome.left.append(job.name)
            continue
        error, took = None, 0.0
        try:
            took = run_job(job, place, device)
        except Exception:
            error = traceback.format_exc()
        _note(job, took, error, waiting, outcome, report)
    return outcome


def _note(job: Job, took: float, error: str | None, waiting: set[str], outcome: Outcome, report: Report) -> None:
    if error is None:
        waiting.discard(job.name)
        outcome.done.append(job.name)
    else:
        outcome.failed[job.name] = error
    report(job, took, error)


def _start(todo: list[Job], waiting: set[str], crew: _Crew, workers: int, outcome: Outcome) -> None:
    """Give every free worker the first job that can be done; jobs that measure time come last, one by one."""
    if any(job.alone for job in crew.busy):
        return
    ready = [job for job in todo if not any(need in waiting for need in job.needs)]
    chosen = [job for job in ready if not job.alone][: workers - len(crew.busy)]
    if not chosen and not crew.busy:
        chosen = ready[:1]
    for job in chosen:
        todo.remove(job)
        crew.give(job)
    if not crew.busy and todo:  # whatever is left needs something that failed
        outcome.left += [job.name for job in todo]
        todo.clear()


class _Crew:
    """Worker processes, each with one job at a time; started when first needed, and kept."""

    def __init__(self, place: Place, device: str) -> None:
        self.place, self.device = place, device
        self.context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
        self.idle: list[tuple[BaseProcess, Connection]] = []
        self.working: dict[Connection, tuple[BaseProcess, Job]] = {}

    @property
    def busy(self) -> list[Job]:
        return [job for _, job in self.working.values()]

    def give(self, job: Job) -> None:
        process, pipe = self.idle.pop() if self.idle else self._hire()
        pipe.send(job)
        self.working[pipe] = process, job

    def finished(self, seconds: float | None) -> list[tuple[Job, float, str | None]]:
        """Wait for at least one job to end: each with its time and, where it failed, the error."""
        ended = []
        for pipe in wait(list(self.working), seconds):
            assert isinstance(pipe, Connection)
            process, job = self.working.pop(pipe)
            try:
                took, error = pipe.recv()
                self.idle.append((process, pipe))
            except EOFError:
                process.join()
                took, error = 0.0, f"its process ended with exit code {process.exitcode}"
            ended.append((job, took, error))
        return ended

    def end(self) -> None:
        """End all processes, at once."""
        everyone = [process for process, _ in self.idle] + [process for process, _ in self.working.values()]
        for process in everyone:
            process.terminate()
        for process in everyone:
            process.join(GRACE)
            process.kill()
        self.idle.clear()
        self.working.clear()

    def _hire(self) -> tuple[BaseProcess, Connection]:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=_serve, args=(theirs, self.place.folder, self.place.scale, self.device), daemon=True
        )
        process.start()
        theirs.close()
        return process, ours


def _serve(pipe: Connection, folder: Path, scale: Scale, device: str) -> None:
    """A worker: do jobs until there are no more."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    torch.set_num_threads(1)
    place = Place(folder, scale)
    while True:
        try:
            job: Any = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((run_job(job, place, device), None))
        except KeyboardInterrupt:  # what training makes of the parent's signal
            return
        except Exception:
            pipe.send((0.0, traceback.format_exc()))
