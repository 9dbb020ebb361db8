"""Who works a stage off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Protocol

from retrodict.errors import DataError
from retrodict.jobs.work import Work
from retrodict.smc.ray_pool import RayPool, Session


class Workers(Protocol):
    """Does a stage of chunks, in any order, and gives the entries of the manifest as they come."""

    def each(self, work: Work, method: str, numbers: Iterable[int], *more: Any) -> Iterator[dict[str, Any]]:
        """``getattr(work, method)(number, *more)`` for each of the chunks."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


class Here:
    """This process, one chunk after the other; engines use its threads."""

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

    def each(self, work: Work, method: str, numbers: Iterable[int], *more: Any) -> Iterator[dict[str, Any]]:
        """Do the chunks in any order; a chunk whose worker died is done again."""
        items = [(method, number, more) for number in numbers]
        if items and self.session is None:  # one for all stages: a worker loads the model once
            self.session = self.stack.enter_context(self.pool.open(work, _prepare))
        for _, entry in self.session.each(_do, items) if self.session is not None else ():
            yield entry

    def close(self) -> None:
        """End the workers."""
        self.stack.close()


def _prepare(work: Work, device: str) -> Work:
    """The work, its model on the device of the worker."""
    if not (work.folder / "plan.json").is_file():
        raise DataError(
            "a worker of the cluster does not see this folder",
            file=work.folder,
            remedy="write the output to a filesystem that all nodes share, under the same path",
        )
    return replace(work, proposal=work.proposal.to(device))


def _do(work: Work, item: tuple[str, int, tuple[Any, ...]]) -> dict[str, Any]:
    method, number, more = item
    entry: dict[str, Any] = getattr(work, method)(number, *more)
    return entry
