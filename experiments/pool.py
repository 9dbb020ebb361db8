"""Do tasks whose result is absent, several at a time, each in a process with one thread."""

from __future__ import annotations

import multiprocessing
import os
import platform
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, NamedTuple

import torch

from experiments.plan import Task
from experiments.store import Run, write_json
from experiments.training import fit_smoother
from retrodict.errors import DataNotice, EngineNotice

SAY = partial(print, flush=True)
LEAST = 15.0  # seconds that must be left for a task to be started


class Outcome(NamedTuple):
    """The tasks that failed, and those that are left: time was up, or something they need is not there."""

    failed: list[str]
    left: list[str]

    @property
    def is_incomplete(self) -> bool:
        """Whether anything is not done."""
        return bool(self.failed or self.left)

    def __add__(self, other: Outcome) -> Outcome:  # type: ignore[override]
        return Outcome(self.failed + other.failed, self.left + other.left)


def run_tasks(
    run: Run,
    tasks: Iterable[Task],
    *,
    workers: int,
    until: float | None = None,
    each: float | None = None,
    say: Callable[[str], None] = SAY,
) -> Outcome:
    """Do what is not done yet, earlier tasks first, each once all it needs is there.

    After ``until`` (as ``time.time`` counts) nothing is started and fits end by themselves; smoothers end after
    ``each`` seconds.
    """
    todo = [task for task in tasks if not task.is_done()]
    waiting, failed, ended = list(todo), [], 0
    running: dict[Future[float], Task] = {}
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    with ProcessPoolExecutor(workers, context, initializer=_settle) as pool:
        while True:
            late = until is not None and time.time() > until - LEAST
            ready = [] if late else [task for task in waiting if task.is_ready()]
            for task in ready[: workers - len(running)]:
                waiting.remove(task)
                running[pool.submit(_work, run, task, until, each)] = task
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                ended += 1
                try:
                    took = f"{future.result():.1f} s"
                except BrokenProcessPool:
                    raise
                except Exception:
                    took = "FAILED\n" + traceback.format_exc()
                    failed.append(task.name)
                say(f"[{ended}/{len(todo)}] {task.name}: {took}")
    return Outcome(failed, [task.name for task in todo if task.name not in failed and not task.is_done()])


def _settle() -> None:
    """In each process: one thread, and none of the notices that are meant for interactive work."""
    torch.set_num_threads(1)
    for notice in (DataNotice, EngineNotice):
        warnings.simplefilter("ignore", notice)


def _work(run: Run, task: Task, until: float | None, each: float | None) -> float:
    """Do a task and write what it found; returns the seconds it took."""
    arguments: dict[str, Any] = dict(task.arguments)
    if task.limited:
        most = each if task.function is fit_smoother else None  # without p no smoother could begin
        limits = [most, None if until is None else max(1.0, until - time.time())]
        arguments["seconds"] = min((limit for limit in limits if limit is not None), default=None)
    began = time.perf_counter()
    result = task.function(run, **arguments)
    took = time.perf_counter() - began
    if result is not None:
        about = {"machine": machine(arguments.get("device", "cpu")), "of": task.versions(), "seconds": took}
        write_json(task.target, about | result)
    return took


def machine(device: str) -> str:
    """What a task ran on, in words."""
    name = torch.cuda.get_device_name() if device == "cuda" else _processor()
    return f"{name}, {os.cpu_count()} cores, torch {torch.__version__}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()
