"""Choose a model by dev: fit the quick ones, try the slow ones for a while, and go on with the best of these.

Poisson and Hawkes processes are fitted in seconds. Neural ones are each given a trial, and the best of them on dev is
trained to its end; then the best of all is kept. Dated streams have each of them with a calendar too, where that helps
a quick one on dev. Models are compared on dev streams whose times are spread within their cells, if they are on a
lattice (``events/jitter.py``), and without what ends of streams add.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from retrodict.errors import (
    DataError,
    DataNotice,
    LimitError,
    ModelError,
    RetrodictError,
    SuspicionNotice,
    TrainingError,
)
from retrodict.events.atomic import make_folder, write_json
from retrodict.events.fingerprint import fitted_to
from retrodict.events.jitter import spread
from retrodict.events.plain import read_json
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import warn_of
from retrodict.models import Hawkes, Model, NeuralHawkes, Poisson, StateSpace
from retrodict.models.base import TIME_WAS_UP
from retrodict.models.calendar_first import FEWEST_DAYS, days_of
from retrodict.models.end import is_to_learn
from retrodict.models.model_folder import load_model
from retrodict.train.asked import check_data, folder_of_run
from retrodict.train.fitting import fit
from retrodict.train.objective import Likelihood
from retrodict.train.run import CANDIDATES, RUN, SCORES
from retrodict.train.together import trains_together

TRIAL = 20.0  # seconds of a trial, where no time is given; else all trials have half of it


class Candidate(NamedTuple):
    """A model to try: how it is made for training streams, whether with a calendar, and whether it takes long."""

    name: str
    make: Callable[[StreamSet], Model]
    calendar: bool
    slow: bool


class Score(NamedTuple):
    """How a candidate did: ``dev`` in nats per event, higher is better; None where it has none."""

    name: str
    dev: float | None
    seconds: float
    ended: str


def candidates(train: StreamSet, calendar: bool | None = None) -> list[Candidate]:
    """All models to try, the quickest first; with calendars unless that is False, or streams have no days."""
    kinds: list[tuple[str, Callable[[StreamSet], Model], bool]] = [
        ("poisson", Poisson.from_streams, False),
        ("hawkes", partial(Hawkes.from_streams, scales="auto"), False),
        ("state-space", StateSpace.from_streams, True),
        ("neural-hawkes", NeuralHawkes.from_streams, True),
    ]
    dated = calendar is not False and days_of(train) >= FEWEST_DAYS
    with_it = [(name + " with calendar", make, slow) for name, make, slow in kinds] if dated else []
    both = [(*kind, False) for kind in kinds] + [(*kind, True) for kind in with_it]
    found = [Candidate(name, make, has, slow) for name, make, slow, has in both]
    return sorted(found, key=lambda one: one.slow)


@trains_together
def fit_auto(
    train: StreamSet,
    dev: StreamSet | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    seconds: float | None = None,
    seed: int = 0,
    resume: bool = True,
    calendar: bool | None = None,
    say: Callable[[Score], None] | None = None,
    devices: int = 1,
    num_nodes: int = 1,
    **settings: Any,
) -> Model:
    """The best model of complete ``train`` streams on ``dev``, of Poisson, Hawkes, state-space and neural Hawkes.

    ``seconds`` is the time for all of it: half for trials of the neural models, the rest for the best of these. Without
    it a trial takes 20 seconds, and training goes on until dev no longer improves. ``calendar=False`` tries none. With
    a ``directory`` each candidate has a folder in it, and the same call goes on. ``say`` is called with each score.
    Further settings are those of ``rd.fit``. ``training_record["candidates"]`` of the model has the scores.
    """
    began = time.monotonic()
    warn_of(train, skip=("ends", "same number") if is_to_learn(train) else ())
    table = fitted_to(train)
    train, dev = check_data(train, dev, seed)
    fair = spread(dev, seed=seed)
    with folder_of_run(directory) as folder:
        if (folder / RUN).exists():
            if resume:
                raise ModelError(
                    f"{folder} holds a fit of one model. Choose another folder, or start anew (resume=False)."
                )
            (folder / RUN).unlink()
        scores = _Scores(folder, train, dev, {**settings, "seed": seed, "calendar": calendar}, resume)
        settings |= {"seed": seed, "resume": resume, "devices": devices, "num_nodes": num_nodes}
        race = _Race(folder, (train, dev, fair), scores, settings, say)
        all_of_them = candidates(train, calendar)
        for one in (one for one in all_of_them if not one.slow):
            race.run(one, None)
        slow = [one for one in all_of_them if one.slow]
        if not race.calendar_helps():
            slow = [one for one in slow if not one.calendar]
        trial = TRIAL if seconds is None else max(seconds - (time.monotonic() - began), 1e-3) / 2 / max(len(slow), 1)
        for one in slow:
            race.run(one, trial)
        best = max(slow, key=lambda one: scores.dev(one.name))
        left = None if seconds is None else max(seconds - (time.monotonic() - began), 1e-3)
        if scores.found[best.name].ended == TIME_WAS_UP:
            race.run(best, left, again=True)
        kept = max(all_of_them, key=lambda one: scores.dev(one.name))
        if scores.found[kept.name].dev is None:
            raise race.refused or ModelError("no model could be fitted to these streams.")
        model = load_model(folder / CANDIDATES / _place(kept.name))
        model.training_record["candidates"] = [score._asdict() for score in scores.found.values()]
        model.training_record |= {"chosen": kept.name, **table}
        model.training_record["all_seconds"] = round(sum(score.seconds for score in scores.found.values()), 1)
        if directory is not None:
            model.save(folder)
    return model


def folder_of_chosen(folder: Path) -> Path:
    """Where the model in a folder was fitted: in one of its candidates, or, if it was fitted alone, in the folder."""
    try:
        chosen = read_json(folder / "model.json")["training"]["chosen"]
    except (OSError, ValueError, KeyError, TypeError):
        return folder
    return folder / CANDIDATES / _place(str(chosen))


class _Scores:
    """What is known of candidates so far, kept in a file while this is the same task."""

    def __init__(self, folder: Path, train: StreamSet, dev: StreamSet, settings: dict[str, Any], resume: bool) -> None:
        self.file = make_folder(folder) / SCORES
        data = Likelihood(Poisson([1.0]), train, dev).fingerprint()
        given = {name: repr(value) for name, value in sorted(settings.items()) if name != "progress"}
        self.identity = {"data": data, "settings": given}
        self.found: dict[str, Score] = {}
        if self.file.exists() and resume:
            known = read_json(self.file)
            if known.get("identity") != self.identity:
                raise ModelError(
                    f"{folder} holds the models of other streams or settings. Choose another folder, repeat the call "
                    "as it was, or start anew (resume=False)."
                )
            self.found = {row["name"]: Score(**row) for row in known["scores"]}

    def add(self, score: Score) -> None:
        """Remember a score."""
        self.found[score.name] = score
        rows = [one._asdict() for one in self.found.values()]
        write_json(self.file, {"identity": self.identity, "scores": rows})

    def dev(self, name: str) -> float:
        """A candidate's score; the worst there is where it has none."""
        score = self.found[name].dev if name in self.found else None
        return -float("inf") if score is None else score


class _Race:
    """Fits candidates, each into a folder of its own, and scores them."""

    def __init__(
        self,
        folder: Path,
        streams: tuple[StreamSet, StreamSet, StreamSet],
        scores: _Scores,
        settings: dict[str, Any],
        say: Callable[[Score], None] | None,
    ) -> None:
        self.folder, self.scores, self.settings, self.say = folder, scores, settings, say
        self.train, self.dev, self.fair = streams
        self.refused: RetrodictError | None = None  # why the last candidate that could not be fitted was not

    def run(self, one: Candidate, seconds: float | None, again: bool = False) -> None:
        """Fit a candidate, for so long at most, unless its score is known."""
        known = self.scores.found.get(one.name)
        if known is None or again:
            began = time.monotonic()
            place = self.folder / CANDIDATES / _place(one.name)
            settings = {**self.settings, "seconds": seconds, "calendar": one.calendar, "directory": place}
            if again:
                settings["resume"] = True
            if one.name == "poisson":
                settings |= {"epochs": 1}  # it starts at its maximum
            try:
                known = self._fit(one, settings, 0.0 if known is None else known.seconds)
            except (LimitError, ModelError, TrainingError, DataError) as error:  # others may do
                self.refused = error
                known = Score(one.name, None, round(time.monotonic() - began, 1), f"refused: {str(error)[:200]}")
            self.scores.add(known)
        if self.say is not None:
            self.say(known)

    def _fit(self, one: Candidate, settings: dict[str, Any], before: float) -> Score:
        """Fit a candidate that has taken so many seconds before, and score it."""
        began = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspicionNotice)
            warnings.simplefilter("ignore", DataNotice)
            model: Model = fit(one.make, self.train, self.dev, **settings)
        useless = one.calendar and model.calendar is None
        dev = None if useless else _dev_score(model, self.fair)
        ended = "the calendar was of no use" if useless else str(model.training_record.get("ended", ""))
        return Score(one.name, dev, round(before + time.monotonic() - began, 1), ended)

    def calendar_helps(self) -> bool:
        """Whether a quick model with a calendar is the better one on dev."""
        pairs = [(self.scores.dev(f"{name} with calendar"), self.scores.dev(name)) for name in ("poisson", "hawkes")]
        return any(with_it > without for with_it, without in pairs)


@torch.no_grad()
def _dev_score(model: Model, fair: StreamSet) -> float:
    """Nats per event on dev streams, without what their ends add."""
    streams = model.matched(fair)
    return float(model.log_likelihood(streams, score_end=False).double().sum()) / max(streams.num_events, 1)


def _place(name: str) -> str:
    return name.replace(" ", "-")
