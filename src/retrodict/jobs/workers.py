"""Who works a stage off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from retrodict.errors import DataError
from retrodict.jobs.work import Work
from retrodict.smc.afford import Means, means_of
from retrodict.smc.options import Options
from retrodict.smc.ray_pool import RayPool, Session


class Workers(Protocol):
    """Does a stage of chunks, in any order, and gives the entries of the manifest as they come."""

    def begin(self) -> None:
        """Start what takes a while to start, before the work is known."""
        ...

    def means(self, work: Work, options: Options) -> Means:
        """What the engine is able to do where the work is done."""
        ...

    def each(self, work: Work, method: str, numbers: Iterable[int], *more: Any) -> Iterator[dict[str, Any]]:
        """``getattr(work, method)(number, *more)`` for each of the chunks."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


class Here:
    """This process, one chunk after the other; engines use its threads."""

    def begin(self) -> None:
        """There is nothing to start."""

    def means(self, work: Work, options: Options) -> Means:
        """What it is able to do."""
        return means_of(work.options["engine"], work.proposal, options)

    def each(self, work: Work, method: str, numbers: Iterable[int], *more: Any) -> Iterator[dict[str, Any]]:
        """Do the chunks in their order."""
        for number in numbers:
            yield getattr(work, method)(number, *more)

    def close(self) -> None:
        """Nothing was started."""


class OnCluster:
    """The workers of a Ray cluster, each with one chunk at a time; all see the job's folder."""

    def __init__(self, pool: RayPool) -> None:
        self.pool, self.stack = pool, ExitStack()
        self.session: Session | None = None
        self.shares = False

    def begin(self) -> None:
        """Connect; workers of a cluster of our own import what they need while the input is read."""
        self._connected().warm(_import)

    def means(self, work: Work, options: Options) -> Means:
        """What this process is able to do, or, on GPUs, which it need not have, a worker."""
        if self.pool.device == "cpu":
            return means_of(work.options["engine"], work.proposal, options)
        ((_, found),) = self._open(work).each(_means, [(work.options["engine"], options)])
        return cast(Means, found)

    def each(self, work: Work, method: str, numbers: Iterable[int], *more: Any) -> Iterator[dict[str, Any]]:
        """Do the chunks in any order; a chunk whose worker died is done again."""
        items = [_Item(method, number, more, tuple(work.options.items())) for number in numbers]
        for _, entry in self._open(work).each(_do, items) if items else ():
            yield entry

    def _open(self, work: Work) -> Session:
        session = self._connected()
        if not self.shares:  # once for all stages: a worker loads the model once
            session.share(work, _prepare)
            self.shares = True
        return session

    def _connected(self) -> Session:
        if self.session is None:
            self.session = self.stack.enter_context(self.pool.connect())
        return self.session

    def close(self) -> None:
        """End the workers."""
        self.stack.close()


def _import() -> None:
    """What chunks are worked on with: a worker that calls this has imported this module, and with it nearly all."""
    import retrodict.smc.decision  # noqa: F401


def _prepare(work: Work, device: str) -> Work:
    """The work, its model on the device of the worker."""
    if not (work.folder / "plan.json").is_file():
        raise DataError(
            "a worker of the cluster does not see this folder",
            file=work.folder,
            remedy="write the output to a filesystem that all nodes share, under the same path",
        )
    return replace(work, proposal=work.proposal.to(device))


def _means(work: Work, given: tuple[str, Options]) -> Means:
    engine, options = given
    return means_of(engine, work.proposal, options)


@dataclass(frozen=True)
class _Item:
    """A chunk, what is to be done with it, and the options that were settled since the workers began."""

    method: str
    number: int
    more: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return f"chunk {self.number}"


def _do(work: Work, item: _Item) -> dict[str, Any]:
    own = replace(work, options=dict(item.options))
    entry: dict[str, Any] = getattr(own, item.method)(item.number, *item.more)
    return entry
