"""Online runs: created, fed, asked and closed over HTTP, and kept in a folder if there is one.

A feed is written to the folder before it is taken in and answered: what was answered with 200 is there after a crash,
and what could not be written was not taken.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from retrodict.errors import DataError, RetrodictError
from retrodict.events.atomic import make_folder
from retrodict.events.time_axis import TimeAxis
from retrodict.missingness.words import in_words
from retrodict.serve.answers import dump, plain
from retrodict.serve.kept import KeptRun, is_kept, tidy
from retrodict.serve.limits import RefusalError, ServeLimits, too_much
from retrodict.serve.models import Models
from retrodict.serve.online_limits import check_ask, check_feed, memory
from retrodict.serve.online_schemas import AskRequest, CloseRequest, FeedRequest, OnlineRequest
from retrodict.smc.online.arrivals import Arrival, Name
from retrodict.smc.online.online import Online, load_online
from retrodict.smc.posterior import Posterior

log = logging.getLogger("retrodict.serve")
NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"  # of a run, and of its folder
_RUNS = 1_000  # at once


@dataclass(eq=False)
class OnlineRun:
    """One run, and where it is kept."""

    name: str
    online: Online
    rate: float  # events per unit of time that the model expects
    kept: KeptRun | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)  # of one who feeds, asks or closes
    streams: int = 0  # that it has, or will have when what is fed now is taken in; so too
    events: int = 0  # that are kept of the last lag of all streams
    bytes: int = 0

    def count(self) -> None:
        """What it has, after something was done."""
        self.streams, self.bytes = len(self.online), memory(self.online, self.events)

    def kept_of(self, names: Iterable[Name]) -> int:
        """Events that are kept of some streams, as far as they are known."""
        return sum(len(line.times) for name in names if (line := self.online._lines.get(name)))


class Runs:
    """All online runs of a server."""

    def __init__(self, models: Models, limits: ServeLimits, folder: Path | None) -> None:
        self.models, self.limits, self.folder = models, limits, folder
        self._runs: dict[str, OnlineRun] = {}
        self._unusable: dict[str, KeptRun] = {}
        self._coming: dict[str, int] = {}  # runs that are made just now, and their bytes
        self._lock = threading.Lock()  # of the three
        if folder is not None:
            make_folder(folder)
            tidy(folder)
            for path in sorted(folder.iterdir()):
                if re.fullmatch(NAME, path.name) and is_kept(path):
                    self._load(KeptRun(path))
                elif path.is_dir():
                    log.warning("%s is no online run: passed over", path)

    @property
    def num_streams(self) -> int:
        """Streams of all runs."""
        return sum(run.streams for run in list(self._runs.values()))

    @property
    def num_bytes(self) -> int:
        """Bytes of the particles and events of all runs."""
        return sum(run.bytes for run in list(self._runs.values())) + sum(list(self._coming.values()))

    @property
    def num_unusable(self) -> int:
        """Runs that are kept and cannot be gone on with."""
        return len(self._unusable)

    @property
    def names(self) -> list[str]:
        """All runs, in the order in which they came; then those that cannot be gone on with."""
        return [*list(self._runs), *list(self._unusable)]

    def create(self, name: str, asked: OnlineRequest) -> bytes:
        """Begin a run."""
        with self._lock:
            if name in self._runs or name in self._unusable or name in self._coming:
                raise RefusalError(409, "exists", f"there is a run {name!r} already. Delete it, or name another.")
            if len(self._runs) + len(self._unusable) + len(self._coming) >= _RUNS:
                raise RefusalError(429, "busy", f"there are {_RUNS:,} runs already. Delete some.", retry_after=60)
            self._coming[name] = 0
        try:
            if asked.particles > self.limits.particles:
                raise too_much("particles", asked.particles, self.limits.particles, "ask for fewer")
            run = self._make(name, asked, None)
            if asked.lag * run.rate > self.limits.steps:
                raise too_much("events in a lag, about", asked.lag * run.rate, self.limits.steps, "give a shorter lag")
            with self._lock:
                self._check_memory(memory(run.online, 0, new=1))
                self._coming[name] = run.bytes
            if self.folder is not None:
                folder = self.folder / name
                run.kept = _written(lambda: KeptRun.create(folder, asked, run.online))
            with self._lock:
                self._runs[name] = run
        finally:
            with self._lock:
                del self._coming[name]
        return dump(_about(run))

    def about(self, name: str) -> bytes:
        """What a run is, and up to when its streams are known."""
        return dump(_about(self._find(name)))

    def feed(self, name: str, asked: FeedRequest) -> bytes:
        """Keep what was observed, and take it in; answers up to when the streams are known that were told of."""
        run = self._find(name)

        def keep(arrivals: list[Arrival]) -> None:
            kept = run.kept
            if kept is not None:
                _written(lambda: kept.add(asked, arrivals))

        with run.lock:
            try:
                names = self._make_room(run, check_feed(run.online, run.rate, asked, self.limits))
                before = run.kept_of(names)
                run.online._take(asked.events, asked.until, asked.start, keep)
                run.events += run.kept_of(names) - before
            finally:
                run.count()
            if run.kept is not None:
                run.kept.renew(run.online)
            return dump(_about(run, names))

    def ask(self, name: str, asked: AskRequest) -> bytes:
        """Answer questions about the last lag, and the future."""
        run = self._find(name)
        with run.lock:
            return self._answer(run.online, run.rate, asked)

    def _answer(self, online: Online, rate: float, asked: AskRequest) -> bytes:
        names = online.names if asked.streams is None else asked.streams
        check_ask(online, rate, names, asked, self.limits)
        posterior = online.posterior(names)
        result: dict[str, Any] = {
            "ids": names,
            "now": [online.now(stream) for stream in names],
            "log_evidence": plain(posterior.log_evidence),
            "answers": [
                {"probability": plain(posterior.probability(*own)), "expected": plain(posterior.expected_count(*own))}
                for own in ((question.type, question.start, question.end) for question in asked.questions)
            ],
        }
        if asked.cost is not None:
            result["imputed"] = _lines(posterior, asked.cost)
        if asked.ahead is not None:
            future = online.forecast(asked.ahead, names)
            types = posterior.observed.types
            parts = {part: _by_type(getattr(future, part), types) for part in ("complete", "observed")}
            result["forecast"] = {"types": list(types), **parts}
        return dump(result)

    def close(self, name: str, asked: CloseRequest) -> bytes:
        """Forget streams that have ended."""
        run = self._find(name)
        names, kept = list(dict.fromkeys(asked.streams)), run.kept
        with run.lock:
            run.online._asked(names)  # refuses those that are not known, before anything is written
            if kept is not None:
                _written(lambda: kept.add(CloseRequest(streams=names)))
            run.events -= run.kept_of(names)
            run.online.close(names)
            run.count()
            return dump(_about(run))

    def delete(self, name: str) -> bytes:
        """Forget a run, and what is kept of it."""
        run, kept = self._runs.get(name), self._unusable.get(name)
        kept = run.kept if run is not None else kept
        if run is None and kept is None:
            raise _unknown(name)
        if kept is not None:
            _written(kept.remove)
        with self._lock:
            if self._runs.get(name) is run:
                self._runs.pop(name, None)
            if self._unusable.get(name) is kept:
                self._unusable.pop(name, None)
        return b""

    def _find(self, name: str) -> OnlineRun:
        run = self._runs.get(name)
        if run is None and name in self._unusable:
            message = f"the run {name!r} is kept, but cannot be gone on with; the server's log says why. "
            raise RefusalError(
                500, "storage", f"{message}Start the server anew when that is mended, or delete the run."
            )
        if run is None:
            raise _unknown(name)
        return run

    def _make_room(self, run: OnlineRun, arrivals: list[Arrival]) -> list[Name]:
        """Count what a feed brings, before it is worked out; refuse it if it is too much. Returns its streams."""
        new = sum(arrival.name not in run.online for arrival in arrivals)
        need = memory(run.online, run.events + sum(len(arrival.times) for arrival in arrivals), new)
        with self._lock:
            count, most = self.num_streams + new, self.limits.online_streams
            if count > most:
                raise too_much("online streams", count, most, "close streams that have ended")
            self._check_memory(need - run.bytes)
            run.streams, run.bytes = run.streams + new, need
        return [arrival.name for arrival in arrivals]

    def _check_memory(self, more: int) -> None:
        """Refuse what would make all runs together too large."""
        need, most = self.num_bytes + more, self.limits.online_memory
        if more > 0 and need > most:
            remedy = "close streams, delete runs, or begin runs with fewer particles"
            raise too_much("bytes of online streams", need, most, remedy)

    def _make(self, name: str, asked: OnlineRequest, saved: Path | None) -> OnlineRun:
        """A run as it was asked for, empty or as it was saved."""
        served = self.models.find(asked.model)
        try:
            axis = TimeAxis.from_dict(asked.axis or {})
        except ValueError as error:
            raise DataError("'axis' is malformed", remedy="give it only unit, origin and timezone") from error
        proposal = served.proposal(asked.missing, asked.smoother, asked.filtering, axis.timezone)
        if saved is not None:
            online = load_online(saved, proposal)
        else:
            most = self.limits.missing
            online = Online(proposal, asked.lag, asked.particles, asked.seed, axis=axis, max_events=most)
        run = OnlineRun(name, online, float(served.rates.sum()))
        run.count()
        return run

    def _load(self, kept: KeptRun) -> None:
        """A run that was kept; one that cannot be gone on with does not keep the others from being served."""
        name = kept.folder.name
        try:
            run = self._make(name, kept.asked(), kept.find_state())
            kept.replay(run.online)
        except Exception as error:
            log.error("the online run in %s cannot be gone on with: %s", kept.folder, str(error)[:1000])
            self._unusable[name] = kept
        else:
            run.kept, run.events = kept, run.kept_of(run.online)
            run.count()
            self._runs[name] = run


def _unknown(name: str) -> RefusalError:
    return RefusalError(404, "run", f"there is no run {name[:80]!r}. Create it first.")


def _written(write: Callable[[], Any]) -> Any:
    """What some writing gives; that it failed goes to the log, as answers name no folders."""
    try:
        return write()
    except RetrodictError:
        log.exception("an online run cannot be kept")
        raise


def _about(run: OnlineRun, names: Iterable[Name] | None = None) -> dict[str, Any]:
    """What a run is, and up to when some of its streams, or all, are known."""
    online = run.online
    lines = list(online._lines.items()) if names is None else [(name, online._lines[name]) for name in names]
    return {
        "name": run.name,
        "model": online.proposal.model.digest(),
        "missing": in_words(online.proposal.missingness),
        "lag": online.lag,
        "particles": online.particles,
        "seed": online.seed,
        "now": {str(name): line.start + line.until for name, line in lines},
    }


def _by_type(part: Posterior, types: tuple[str, ...]) -> dict[str, Any]:
    """Probability and expected number of each type, by stream."""
    return {
        "probability": plain(np.stack([part.probability(name) for name in types], 1)),
        "expected": plain(np.stack([part.expected_count(name) for name in types], 1)),
    }


def _lines(posterior: Posterior, cost: float) -> list[dict[str, Any]]:
    """The imputed events of the last lag, stream by stream, as JSON Lines have them."""
    imputed = posterior.consensus(cost)
    return [
        {
            "id": str(stream.id),
            "horizon": [stream.start, stream.end],
            "times": stream.times.tolist(),
            "types": [imputed.types[kind] for kind in stream.types],
            "columns": {name: plain(values.astype(np.float64)) for name, values in stream.columns.items()},
        }
        for stream in imputed
    ]
