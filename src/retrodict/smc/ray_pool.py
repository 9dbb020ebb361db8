"""Workers of a Ray cluster: each loads what they share once, then does one item at a time.

Work that its worker's or node's death cut short is done again by another: whatever is given to a pool must come to the
same when it is done twice. No worker has more than one item on its way, so that nothing piles up.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from retrodict._version import __version__
from retrodict.errors import ModelError, RetrodictError

LOCAL = "local"
_PATIENCE = 300.0  # seconds without any worker
_MOST_TRIES = 25  # deaths of workers that did the same item


@dataclass(frozen=True)
class RayPool:
    """A cluster by its address ("local" starts one on this machine, "auto" finds the one that runs here).

    ``workers`` is how many processes work, by default one for each CPU, or each GPU where ``device`` is "cuda".
    """

    address: str = LOCAL
    workers: int | None = None
    device: str = "cpu"

    @contextmanager
    def open(self, shared: Any, prepare: Callable[[Any, str], Any]) -> Iterator[Session]:
        """Workers that have each loaded ``prepare(shared, device)``, until the block ends."""
        with self.connect() as session:
            session.share(shared, prepare)
            yield session

    @contextmanager
    def connect(self) -> Iterator[Session]:
        """Workers that are still to be told what they share, until the block ends."""
        session = Session(_connect(self.address, self.workers), self)
        try:
            yield session
        finally:
            session.stop()
            if _OWN["started"]:
                session.ray.shutdown()
                _OWN["started"] = False


_OWN = {"started": False}  # whether the cluster is one that we started


def load_ray() -> Any:
    """Ray; an error in words where it is not installed."""
    try:
        import ray
    except ImportError as error:
        what = "Ray is not installed, which clusters need. Install it: pip install 'retrodict[ray]'."
        raise ModelError(what) from error
    return ray


def _connect(address: str, workers: int | None) -> Any:
    """Ray, connected to the cluster."""
    ray = load_ray()
    if ray.is_initialized():
        return ray
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address == LOCAL:
            ray.init(LOCAL, num_cpus=workers or os.cpu_count(), include_dashboard=False, **quiet)
            _OWN["started"] = True
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"cannot reach a Ray cluster at {address!r} ({reason}). Start one with 'ray start --head', or give "
            "cluster='local'."
        ) from error
    return ray


class _Worker:
    """A process of the cluster."""

    def __init__(self) -> None:
        self.shared: Any = None

    def warm(self, call: Callable[[], None]) -> None:
        """Import what the call needs."""
        call()

    def ready(self, shared: Any, prepare: Callable[[Any, str], Any], device: str, version: str) -> None:
        """Load what is shared; an error where this machine has another version."""
        if version != __version__:
            raise ModelError(
                f"a worker has retrodict {__version__}, and the driver {version}. Install the same on all."
            )
        self.shared = prepare(shared, device)

    def do(self, call: Callable[[Any, Any], Any], item: Any) -> Any:
        """One item."""
        return call(self.shared, item)


class Session:
    """Workers, and what they share."""

    def __init__(self, ray: Any, pool: RayPool) -> None:
        self.ray, self.pool = ray, pool
        names = ("RayActorError", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError")
        self.died = tuple(getattr(ray.exceptions, name) for name in names)  # of a worker that Ray ended for memory, too
        gpus = 1 if pool.device.startswith("cuda") else 0
        self.kind = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0)(_Worker)
        self.most = max(1, pool.workers or int(ray.cluster_resources().get("GPU" if gpus else "CPU", 1)))
        self.tries = Counter[Any]()
        self.starting: dict[Any, Any] = {}
        self.busy: dict[Any, tuple[Any, Any]] = {}
        self.idle: list[Any] = []
        self.warmed: list[Any] = []

    def warm(self, call: Callable[[], None]) -> None:
        """Start the workers of a cluster of our own, which import what ``call`` needs while we do something else."""
        if _OWN["started"]:
            self.warmed = [self.kind.remote() for _ in range(self.most)]
            for actor in self.warmed:
                actor.warm.remote(call)

    def share(self, shared: Any, prepare: Callable[[Any, str], Any]) -> None:
        """What each worker is to load, as ``prepare(shared, device)``, before its first item."""
        self.shared, self.prepare = self.ray.put(shared), prepare

    def each(self, call: Callable[[Any, Any], Any], items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Each item with ``call(shared, item)``, in the order in which they are done."""
        waiting = deque(items)
        while waiting or self.busy:
            for _ in range(min(self.most, len(waiting) + len(self.busy)) - len(self._all())):
                self._start()
            while waiting and self.idle:
                item, actor = waiting.popleft(), self.idle.pop()
                self.busy[actor.do.remote(call, item)] = item, actor
            done, _ = self.ray.wait([*self.busy, *self.starting], num_returns=1, timeout=_PATIENCE)
            if not done and not self.busy:
                what = "GPUs" if self.pool.device.startswith("cuda") else "CPUs"
                raise ModelError(f"no worker has started in {_PATIENCE:.0f} s. Does 'ray status' show free {what}?")
            for future in done:
                if future in self.starting:
                    self._greet(future)
                else:
                    yield from self._collect(future, waiting)

    def stop(self) -> None:
        """End the workers."""
        for actor in [*self._all(), *self.warmed]:
            self.ray.kill(actor)

    def _all(self) -> list[Any]:
        return [*self.idle, *self.starting.values(), *(actor for _, actor in self.busy.values())]

    def _start(self) -> None:
        actor = self.warmed.pop() if self.warmed else self.kind.remote()  # Ray sets OMP_NUM_THREADS to its one CPU
        self.starting[actor.ready.remote(self.shared, self.prepare, self.pool.device, __version__)] = actor

    def _greet(self, future: Any) -> None:
        actor = self.starting.pop(future)
        try:
            self._get(future)
        except self.died as error:
            self._count("its start", error)
        else:
            self.tries["its start"] = 0
            self.idle.append(actor)

    def _collect(self, future: Any, waiting: deque[Any]) -> Iterator[tuple[Any, Any]]:
        item, actor = self.busy.pop(future)
        try:
            result = self._get(future)
        except self.died as error:
            self._count(item, error)
            waiting.appendleft(item)
        except BaseException:
            self.idle.append(actor)
            raise
        else:
            self.idle.append(actor)
            yield item, result

    def _count(self, item: Any, error: Exception) -> None:
        self.tries[item] += 1
        if self.tries[item] >= _MOST_TRIES:
            raise ModelError(
                f"{self.tries[item]} workers died of {item} ({str(error).splitlines()[0][:200]}). If memory is short, "
                "use smaller chunks or fewer particles."
            ) from error

    def _get(self, future: Any) -> Any:
        """The result; an error in the work is raised as if it had happened here."""
        try:
            return self.ray.get(future)
        except self.ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, RetrodictError | OSError | MemoryError) else error) from error
