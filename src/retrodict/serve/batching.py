"""A bounded queue in front of the engine: requests that wait together and ask for the same thing share a run.

An answer does not hang on what it was run with. Random numbers follow from a stream's seed and id alone, the native
engine computes every stream by itself, and what is pooled over streams (which ensemble to believe, how to decode) is
worked out for each request alone. Other engines round differently in batches of other sizes: they run each request by
itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import torch

from retrodict.errors import RetrodictError
from retrodict.events.combine import join
from retrodict.missingness.conflicts import first_conflict
from retrodict.serve.limits import RefusalError, ServeLimits, refusal_of
from retrodict.serve.metrics import Metrics
from retrodict.serve.quiet import quiet
from retrodict.serve.tasks import Call, Job, Task
from retrodict.smc.impute import impute
from retrodict.smc.posterior import Posterior, part_of

log = logging.getLogger("retrodict.serve")


class Own(NamedTuple):
    """The id of a stream among those of other requests: random numbers and mechanisms see the client's own."""

    id: Any
    request: int

    def __str__(self) -> str:
        return str(self.id)

    def __repr__(self) -> str:
        return repr(self.id)


class _AbandonedError(Exception):
    """Nobody waits for this run any more."""


class Batcher:
    """Worker threads that take jobs from a queue, those of the same key together."""

    def __init__(self, limits: ServeLimits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self._queue: deque[Task] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._running = 0
        self._usual = 0.05  # seconds a request, lately
        self._threads = [
            threading.Thread(target=self._work, name=f"retrodict-{n}", daemon=True) for n in range(limits.workers)
        ]

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> None:
        """End when what was begun is done, or after some seconds; what waits is left undone."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    @property
    def waiting(self) -> int:
        """Jobs in the queue."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Jobs that are run."""
        return self._running

    def submit(self, job: Task) -> Future[bytes]:
        """Put a job into the queue, or refuse it where that is full."""
        with self._changed:
            if len(self._queue) >= self.limits.queue:
                self._queue = deque(waiting for waiting in self._queue if not waiting.is_abandoned)
            if len(self._queue) >= self.limits.queue:
                raise RefusalError(
                    429,
                    "busy",
                    f"{len(self._queue):,} requests wait already. Try again later.",
                    retry_after=self.retry_after(),
                )
            self._queue.append(job)
            self._changed.notify_all()
        return job.future

    def retry_after(self) -> int:
        """Seconds until what waits now will be done, as it looks."""
        return max(1, round(self._usual * len(self._queue) / len(self._threads)))

    def _work(self) -> None:
        torch.set_num_threads(1)  # as many workers as cores, and one core for each
        while (jobs := self._take()) is not None:
            begin = time.monotonic()
            with self._changed:
                self._running += len(jobs)
            try:
                self._run(jobs)
            finally:
                with self._changed:
                    self._running -= len(jobs)
                    self._usual += 0.1 * ((time.monotonic() - begin) / len(jobs) - self._usual)
            del jobs  # nothing is held while this waits

    def _take(self) -> Sequence[Task] | None:
        """The next job, and those that can share its run; None where the server stops."""
        with self._changed:
            while not self._queue and not self._stopping:
                self._changed.wait()
            if self._stopping:
                return None
            first = self._queue.popleft()
            until = first.arrived + self.limits.batch_wait
            while first.shares and not self._stopping and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return [first, *self._others(first)]

    def _others(self, first: Task) -> list[Job]:
        """Take the jobs out of the queue that are put together with the first one."""
        if not isinstance(first, Job) or not first.shares:
            return []
        key, found, streams = first.key, list[Job](), len(first.observed)
        longest = int(first.observed.lengths.max(initial=0)) + 1
        for job in list(self._queue):
            if not isinstance(job, Job) or not job.shares or job.key != key:
                continue
            longest = max(longest, int(job.observed.lengths.max(initial=0)) + 1)
            streams += len(job.observed)
            if streams * longest * first.particles > self.limits.batch_work:
                break
            found.append(job)
        for job in found:
            self._queue.remove(job)
        return found

    def _run(self, tasks: Sequence[Task]) -> None:
        tasks = [task for task in tasks if task.begin()]
        jobs = [task for task in tasks if isinstance(task, Job)]
        for task in tasks:
            if isinstance(task, Call):
                with quiet():
                    _settle(task, task.work)
        if jobs:
            self._run_jobs(jobs)

    def _run_jobs(self, jobs: Sequence[Job]) -> None:
        try:
            begin = time.monotonic()
            with quiet():
                posteriors = _impute(jobs)
            self.metrics.batch.observe(len(jobs))
            self.metrics.run.observe(time.monotonic() - begin)
            self.metrics.streams.inc(sum(len(job.observed) for job in jobs))
        except _AbandonedError:
            _fail(jobs, RefusalError(503, "abandoned", "nobody waits for this answer."))
        except Exception as error:
            if len(jobs) > 1:  # one of them is wrong: each by itself, so that each gets its own answer
                for job in jobs:
                    self._run_jobs([job])
            elif isinstance(error, RetrodictError):
                _fail(jobs, refusal_of(error))
            else:
                log.exception("a run failed")
                _fail(jobs, unexpected())
        else:
            for job, posterior in zip(jobs, posteriors, strict=True):
                self._answer(job, posterior)

    def _answer(self, job: Job, posterior: Posterior) -> None:
        if job.is_abandoned:
            _fail([job], RefusalError(503, "abandoned", "nobody waits for this answer."))
            return
        with self.metrics.answer.time():
            _settle(job, lambda: job.answer(posterior))


def _settle(task: Task, work: Callable[[], bytes]) -> None:
    """Answer a task with what some work gives, or why it gives nothing."""
    try:
        task.future.set_result(work())
    except RefusalError as refusal:
        _fail([task], refusal)
    except RetrodictError as error:
        _fail([task], refusal_of(error))
    except Exception:
        log.exception("an answer failed")
        _fail([task], unexpected())


def unexpected() -> RefusalError:
    """What a client is told of a fault of the server's: nothing but that."""
    return RefusalError(500, "internal", "the server failed on this request; its log says why.")


def _fail(jobs: Sequence[Task], refusal: RefusalError) -> None:
    for job in jobs:
        if not job.future.done():
            job.future.set_exception(refusal)


def _impute(jobs: Sequence[Job]) -> list[Posterior]:
    """The posterior of each job, all of them sampled in one run."""

    def still_wanted(_: int) -> None:
        if all(job.is_abandoned for job in jobs):
            raise _AbandonedError

    first = jobs[0]
    ids = [Own(id, number) for number, job in enumerate(jobs) for id in job.observed.ids]
    joint = impute(
        join([job.observed for job in jobs], ids),
        first.proposal,
        particles=first.particles,
        seed=first.seed,
        max_events=first.max_events,
        cut=first.cut,
        progress=still_wanted,
    )
    edges = np.cumsum([0, *(len(job.observed) for job in jobs)])
    return [_part(joint, job, edges[n]) for n, job in enumerate(jobs)]


def _part(joint: Posterior, job: Job, begin: int) -> Posterior:
    """The posterior of one job's streams, as if they had been run alone."""
    posterior = part_of(joint, np.arange(begin, begin + len(job.observed)), job.observed)
    posterior.about.pop("conflict", None)
    if not posterior.is_possible.all():
        conflict = first_conflict(job.proposal.missingness, job.observed)
        posterior.about |= {} if conflict is None else {"conflict": conflict}
    return posterior
