"""Online runs: created, fed, asked and closed over HTTP, and kept in a folder if there is one.

A feed is written to the folder before it is answered: what was answered with 200 is there after a crash.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retrodict.errors import DataError, RetrodictError
from retrodict.events.atomic import make_folder, write_text
from retrodict.events.plain import read_json
from retrodict.events.time_axis import TimeAxis
from retrodict.missingness.words import in_words
from retrodict.serve.answers import dump, plain
from retrodict.serve.limits import RefusalError, ServeLimits, too_much
from retrodict.serve.models import Models
from retrodict.serve.online_schemas import AskRequest, CloseRequest, FeedRequest, OnlineRequest
from retrodict.smc.online.arrivals import Checker
from retrodict.smc.online.online import Online, load_online
from retrodict.smc.posterior import Posterior

log = logging.getLogger("retrodict.serve")
NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"  # of a run, and of its folder
_ASKED = "asked.json"  # how a run was created, beside what it has come to
_RUNS = 1_000  # at once


@dataclass
class OnlineRun:
    """One run, and how it was asked for."""

    name: str
    asked: OnlineRequest
    online: Online
    rate: float  # events per unit of time that the model expects
    is_closed: bool = False


class Runs:
    """All online runs of a server."""

    def __init__(self, models: Models, limits: ServeLimits, folder: Path | None) -> None:
        self.models, self.limits, self.folder = models, limits, folder
        self._runs: dict[str, OnlineRun] = {}
        self._lock = threading.Lock()
        if folder is not None:
            make_folder(folder)
            for path in sorted(folder.iterdir()):
                if path.is_dir() and re.fullmatch(NAME, path.name) and (path / _ASKED).exists():
                    self._runs[path.name] = self._load(path)

    @property
    def num_streams(self) -> int:
        """Streams of all runs."""
        return sum(len(run.online) for run in list(self._runs.values()))

    @property
    def names(self) -> list[str]:
        """All runs, in the order in which they came."""
        return list(self._runs)

    def create(self, name: str, asked: OnlineRequest) -> bytes:
        """Begin a run."""
        with self._lock:
            if name in self._runs:
                raise _exists(name)
            if len(self._runs) >= _RUNS:
                raise RefusalError(429, "busy", f"there are {_RUNS:,} runs already. Close some.", retry_after=60)
        if asked.particles > self.limits.particles:
            raise too_much("particles", asked.particles, self.limits.particles, "ask for fewer")
        run = self._make(name, asked, None)
        if asked.lag * run.rate > self.limits.steps:
            raise too_much("events in a lag, about", asked.lag * run.rate, self.limits.steps, "give a shorter lag")
        with self._lock:
            if self._runs.setdefault(name, run) is not run:
                raise _exists(name)
        if self.folder is not None:
            make_folder(self.folder / name)
            write_text(self.folder / name / _ASKED, asked.model_dump_json() + "\n")
        self._save(run)
        return dump(self._about(run))

    def about(self, name: str) -> bytes:
        """What a run is, and up to when its streams are known."""
        return dump(self._about(self._find(name)))

    def feed(self, name: str, asked: FeedRequest) -> bytes:
        """Take in what was observed, and keep it."""
        run = self._find(name)
        self._check_feed(run, asked)
        run.online.feed(asked.events, until=asked.until, start=asked.start)  # type: ignore[arg-type]
        self._save(run)
        return dump(self._about(run))

    def ask(self, name: str, asked: AskRequest) -> bytes:
        """Answer questions about the last lag, and the future."""
        run = self._find(name)
        names = run.online.names if asked.streams is None else asked.streams
        self._check_ask(run, names, asked)
        posterior = run.online.posterior(names)
        result: dict[str, Any] = {
            "ids": names,
            "now": [run.online.now(stream) for stream in names],
            "log_evidence": plain(posterior.log_evidence),
            "answers": [
                {"probability": plain(posterior.probability(*own)), "expected": plain(posterior.expected_count(*own))}
                for own in ((question.type, question.start, question.end) for question in asked.questions)
            ],
        }
        if asked.cost is not None:
            result["imputed"] = _lines(posterior, asked.cost)
        if asked.ahead is not None:
            future = run.online.forecast(asked.ahead, names)
            types = posterior.observed.types
            parts = {part: _by_type(getattr(future, part), types) for part in ("complete", "observed")}
            result["forecast"] = {"types": list(types), **parts}
        return dump(result)

    def close(self, name: str, asked: CloseRequest) -> bytes:
        """Forget streams that have ended."""
        run = self._find(name)
        run.online.close(dict.fromkeys(asked.streams))
        self._save(run)
        return dump(self._about(run))

    def delete(self, name: str) -> bytes:
        """Forget a run, and what is kept of it."""
        with self._lock:
            run = self._find(name)
            run.is_closed = True
            del self._runs[name]
        if self.folder is not None:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        return b""

    def _find(self, name: str) -> OnlineRun:
        if name not in self._runs:
            raise RefusalError(404, "run", f"there is no run {name[:80]!r}. Create it first.")
        return self._runs[name]

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
        return OnlineRun(name, asked, online, float(served.rates.sum()))

    def _load(self, path: Path) -> OnlineRun:
        """A run that was kept; one that cannot be used ends the start of the server, in words."""
        try:
            asked = OnlineRequest.model_validate(read_json(path / _ASKED))
            return self._make(path.name, asked, path)
        except (OSError, ValueError, RefusalError) as error:
            if isinstance(error, RetrodictError):
                raise
            remedy = "serve the model that it was made with, or remove the folder"
            raise DataError(
                f"this online run cannot be gone on with: {error}"[:500], file=path, remedy=remedy
            ) from None

    def _save(self, run: OnlineRun) -> None:
        if self.folder is None or run.is_closed:
            return
        try:
            run.online.save(self.folder / run.name)
        except RetrodictError:
            log.exception("a run cannot be kept")
            raise

    def _about(self, run: OnlineRun) -> dict[str, Any]:
        online = run.online
        return {
            "name": run.name,
            "model": online.proposal.model.digest(),
            "missing": in_words(online.proposal.missingness),
            "lag": online.lag,
            "particles": online.particles,
            "seed": online.seed,
            "now": {str(name): online.now(name) for name in online.names},
        }

    def _check_feed(self, run: OnlineRun, asked: FeedRequest) -> None:
        """Refuse what is too much, before any of it is done."""
        most, online = self.limits, run.online
        count = sum(len(pairs) for pairs in asked.events.values())
        if count > most.events:
            raise too_much("events in a request", count, most.events, "feed fewer at a time")
        new = sum(name not in online for name in asked.events)
        if self.num_streams + new > most.online_streams:
            raise too_much(
                "online streams", self.num_streams + new, most.online_streams, "close streams that have ended"
            )
        lines = online._lines
        arrivals = Checker(online.proposal.model, online.axis, lines).read(asked.events, asked.until, asked.start)
        steps = [arrival.until - (lines[arrival.name].until if arrival.name in lines else 0.0) for arrival in arrivals]
        longest = max((len(arrival.times) for arrival in arrivals), default=0) + run.rate * max(steps, default=0.0)
        if not longest <= most.steps:
            raise too_much("events of a stream since the last feed, about", longest, most.steps, "feed more often")
        work = (count + len(arrivals)) * online.particles
        if work > most.work:
            raise too_much("events x particles", work, most.work, "feed fewer at a time")

    def _check_ask(self, run: OnlineRun, names: list[Any], asked: AskRequest) -> None:
        most, online = self.limits, run.online
        if len(asked.questions) > most.questions:
            raise too_much("questions in a request", len(asked.questions), most.questions, "ask fewer at a time")
        kept = max((len(line.times) for name in names if (line := online._lines.get(name))), default=0)
        longest = 1 + kept + run.rate * (online.lag + (asked.ahead or 0.0))
        if longest > 2 * most.steps:
            raise too_much("events of a stream, about", longest, 2 * most.steps, "look less far ahead")
        work = len(names) * longest * online.particles
        if work > most.work:
            raise too_much("streams x events x particles", work, most.work, "ask about fewer streams, or less time")


def _exists(name: str) -> RefusalError:
    return RefusalError(409, "exists", f"there is a run {name!r} already. Close it first, or name another.")


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
