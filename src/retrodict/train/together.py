"""Several processes that train together, on the devices of one machine or of several: one leads, the others follow.

    model = rd.fit(rd.NeuralHawkes, train, dev, devices=2)

The leader does everything that one process does. What takes epochs it sends to the others, and Lightning's
``DDPStrategy`` trains it: each process takes its share of the streams of every step, and all add up their gradients,
so that all have the same weights. Scores are of all dev streams; files and messages are the leader's.

On one machine the leader starts the others when there is something to train. On several ``torchrun`` starts all of
them: each then makes the same call, and the followers return what the leader has fitted.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, cast

import torch
import torch.distributed as dist

from retrodict.errors import ModelError, RetrodictError, TrainingError
from retrodict.models.base import Model
from retrodict.proposals.base import Proposal

P = ParamSpec("P")
T = TypeVar("T")
_IDLE = timedelta(days=30)  # that followers wait for something to train
_HERE, _POLL = "127.0.0.1", 0.05
_current: Team | None = None  # the one that this process is in, while it trains


@dataclass(frozen=True)
class _End:
    """Tells followers that there is nothing more to train, and what came of it."""

    result: Any = None
    refused: RetrodictError | None = None


def trains_together(work: Callable[P, T]) -> Callable[P, T]:
    """A function with arguments ``devices`` and ``num_nodes``, led by one process and followed by the others.

    Within another such function it is a part of that one's work.
    """

    @functools.wraps(work)
    def run(*args: P.args, **options: P.kwargs) -> T:
        devices, num_nodes = cast("int", options.get("devices", 1)), cast("int", options.get("num_nodes", 1))
        if _current is not None or (devices, num_nodes) == (1, 1):
            return work(*args, **options)
        with _team(devices, num_nodes) as team:
            if team.rank == 0:
                return team.lead(lambda: work(*args, **options))
            result = team.follow()
            given = args[0] if args else options.get("model")
            if isinstance(given, Model | Proposal):  # what is given is fitted in place
                vars(given).update(vars(result))
                result = given
            return cast("T", result)

    return run


def team() -> Team | None:
    """The processes that this one leads, if it does."""
    return _current


def gather(value: T) -> list[T]:
    """What each process that trains has here, by number: the same list in all of them."""
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


@contextmanager
def _team(devices: int, num_nodes: int) -> Iterator[Team]:
    global _current
    made = Team(devices, num_nodes)
    _current = made
    try:
        yield made
    finally:
        _current = None
        made.close()


class Team:
    """``devices`` processes on each of ``num_nodes`` machines; this one has number ``rank``, and 0 leads."""

    def __init__(self, devices: int, num_nodes: int, rank: int = 0) -> None:
        for name, value in (("devices", devices), ("num_nodes", num_nodes)):
            if not (isinstance(value, int) and value >= 1):
                raise ModelError(f"{name} must be a whole number of at least 1, but is {value!r}.")
        self.devices, self.num_nodes, self.size, self.rank = devices, num_nodes, devices * num_nodes, rank
        self.by_torchrun = dist.is_torchelastic_launched()
        self._group: dist.ProcessGroup | None = None  # in which followers wait
        self._store: dist.Store | None = None  # of processes that the leader starts
        self._started: list[Any] = []
        if self.by_torchrun:
            self._check_torchrun()
            self.rank = int(os.environ["RANK"])
            self._join()
        elif num_nodes > 1:
            raise ModelError(
                "on several machines torchrun starts the processes. On each of them: torchrun --nnodes "
                f"{num_nodes} --nproc-per-node {devices} --rdzv-backend c10d --rdzv-endpoint HOST:29500 SCRIPT."
            )
        elif dist.is_initialized():
            raise ModelError("this process is in a process group of torch.distributed already: let torchrun start it.")

    def _check_torchrun(self) -> None:
        here, all_of_them = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
        if (here, all_of_them) != (self.devices, self.size):
            raise ModelError(
                f"torchrun started {here} processes on this machine and {all_of_them} in all, but devices is "
                f"{self.devices} and num_nodes is {self.num_nodes}: give what torchrun was given."
            )

    def _join(self) -> None:
        """Meet the others; each process has a way to talk to the others from its kind of device."""
        if not dist.is_initialized():  # torchrun's processes stay together from one fit to the next
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            by_store = {"store": self._store, "rank": self.rank, "world_size": self.size}
            about: dict[str, Any] = {} if self._store is None else by_store
            dist.init_process_group(backend, **about)
        self._group = dist.new_group(backend="gloo", timeout=_IDLE)

    def pack(self, job: Callable[[Team], Any]) -> bytes:
        """What followers are to do, as it is sent to them."""
        try:
            return pickle.dumps(job)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ModelError(
                f"what is trained on several devices is sent to other processes, and this cannot be ({error}). "
                "Define classes and functions at the top of a module, or train on one device."
            ) from error

    @contextmanager
    def at_work(self, packed: bytes) -> Iterator[None]:
        """Have followers do what was packed, while the leader does the same in this block."""
        threads, given = torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")
        try:
            if self._group is None:
                self._start(max(1, threads // self.devices))
            if not self.by_torchrun:
                torch.set_num_threads(max(1, threads // self.devices))
            self._send(packed)
            yield
        except TrainingError:  # all processes have agreed on it, and wait for more
            raise
        except BaseException as error:
            failed = self._failure()
            self.close(broken=True)
            if failed is not None and isinstance(error, RuntimeError):
                raise TrainingError(f"a process that trained along failed: {failed}") from error
            raise
        finally:
            torch.set_num_threads(threads)
            if given is None:  # Lightning sets it for its own processes
                os.environ.pop("OMP_NUM_THREADS", None)

    def lead(self, work: Callable[[], T]) -> T:
        """Do the work, and let the followers go: those of torchrun with what came of it."""
        try:
            result = work()
        except RetrodictError as error:
            self._end(_End(refused=error))
            raise
        except BaseException:
            self.close(broken=True)
            raise
        self._end(_End(result if self.by_torchrun else None))
        return result

    def _end(self, end: _End) -> None:
        if self._group is not None:
            self._send(pickle.dumps(end))

    def follow(self) -> Any:
        """Do what the leader sends, until it ends; what it fitted."""
        while True:
            job, problem = None, None
            try:
                job = pickle.loads(self._receive())
            except (AttributeError, ImportError, TypeError, pickle.UnpicklingError) as error:
                problem = f"{type(error).__name__}: {error}"
            if any(self._acknowledge(problem)):
                continue
            if isinstance(job, _End):
                if job.refused is not None:
                    raise job.refused
                return job.result
            assert job is not None
            with warnings.catch_warnings(), suppress(TrainingError):  # what the leader says, too
                warnings.simplefilter("ignore")
                job(self)

    def close(self, broken: bool = False) -> None:
        """Stop the processes that the leader started; a later job starts others.

        Those of torchrun stay, unless they are ``broken``: then they learn that the leader is gone.
        """
        for process in self._started:
            process.join(0 if broken else 5)
            process.terminate()
        if self._group is not None:
            with suppress(RuntimeError):
                dist.destroy_process_group(self._group if self.by_torchrun and not broken else None)
        self._group, self._store, self._started = None, None, []

    def _start(self, threads: int) -> None:
        """Start the others on this machine, and meet them."""
        self._store = dist.TCPStore(_HERE, 0, self.size, is_master=True, wait_for_workers=False)
        context = multiprocessing.get_context("spawn")
        for rank in range(1, self.size):
            about = rank, self.size, self._store.port, threads
            self._started.append(context.Process(target=_follow, args=about, daemon=True))
            self._started[-1].start()
        while not self._store.check([f"here {rank}" for rank in range(1, self.size)]):
            if any(process.exitcode is not None for process in self._started):
                raise ModelError(
                    "a process for another device ended before it began. In a script, what trains on several devices "
                    "has to stand under: if __name__ == '__main__':"
                )
            time.sleep(_POLL)
        self._join()

    def _send(self, packed: bytes) -> None:
        dist.broadcast_object_list([packed], src=0, group=self._group)
        problem = next((problem for problem in self._acknowledge(None) if problem), None)
        if problem is not None:
            raise ModelError(
                f"another process could not read what is to be trained ({problem}). Define classes and functions in a "
                "module that it can import, or train on one device."
            )

    def _receive(self) -> bytes:
        box: list[Any] = [None]
        dist.broadcast_object_list(box, src=0, group=self._group)
        return bytes(box[0])

    def _acknowledge(self, problem: str | None) -> list[str | None]:
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, problem, group=self._group)
        return found

    def _failure(self) -> str | None:
        """What a process that the leader started died of."""
        if self._store is None:
            return None
        with suppress(RuntimeError):
            if self._store.check(["failed"]):
                return self._store.get("failed").decode()
        return None


def _follow(rank: int, size: int, port: int, threads: int) -> None:
    """A process that a leader on the same machine started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the leader, which ends this one
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    store = dist.TCPStore(_HERE, port, size, is_master=False)
    try:
        made = Team(size, 1, rank)
        made._store = store
        store.set(f"here {rank}", "")
        made._join()
        made.follow()
        dist.destroy_process_group()  # whose threads would not survive the end of Python
    except Exception as error:
        with suppress(RuntimeError):
            store.set("failed", f"{type(error).__name__}: {error}"[:1000])
        os._exit(1)
