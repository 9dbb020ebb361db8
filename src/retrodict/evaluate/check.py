"""Is an imputation to be trusted? Hide events of complete streams, impute them, and compare with the truth.

    result = rd.check(smoother, test)
    print(result.verdict)

The proposal is the one that a user imputes with. Streams are taken in random order, some at a time, so that a check
can stop when its time is up; goodness of fit takes them all.
"""

from __future__ import annotations

import copy
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrodict.decode.transport import as_cost
from retrodict.errors import DataError, DataNotice, ModelError, SuspicionNotice
from retrodict.evaluate.calibration import Calibration, calibrate
from retrodict.evaluate.evidence import Evidence
from retrodict.evaluate.findings import Finding, raise_alarms
from retrodict.evaluate.goodness import Goodness, goodness, swapped_types
from retrodict.evaluate.observed import Observed, compare_observed
from retrodict.evaluate.summary import summarise
from retrodict.evaluate.verdict import give_verdict
from retrodict.events.atomic import write_text
from retrodict.events.gaps import half_a_gap
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import warn_of
from retrodict.missingness.base import Missingness
from retrodict.missingness.conflicts import UNTOUCHED, misses_all, untouched, usual_rates
from retrodict.missingness.same_hours import at_same_hours
from retrodict.missingness.words import in_words
from retrodict.models.base import TIME_WAS_UP, Model
from retrodict.models.clocks import warn_of_other_clocks
from retrodict.models.poisson import Poisson
from retrodict.proposals import Filtering
from retrodict.proposals.base import Proposal
from retrodict.smc.impute import impute
from retrodict.smc.posterior import Posterior
from retrodict.smc.reliability import Reliability, refuse_other

if TYPE_CHECKING:
    from retrodict.report.style import Picture

_FIRST = 4  # streams of the first group; each group is twice as large as the one before
_LARGEST = 64
_BY_ITSELF = ("converged", "dev no longer improved")  # endings of a training that more time would not change
MOVED = "; events are hidden in the same hours of every day instead"
UNTRIED = ", so that they are not tried"


@dataclass(frozen=True)
class Check:
    """What a check found.

    ``verdict``: a line on what can be used and what not (``decision``), and lines on why and on what to do next.
    ``findings``: what was tested, with alarms (``evaluate/findings.py``).
    ``about``: what was checked. ``goodness``, ``calibration``, ``observed``: the numbers behind it; None where there
    was no mechanism, or no incomplete streams. ``costs``: of decoding, the middle one being that of intervals.
    """

    verdict: str
    findings: list[Finding]
    about: dict[str, Any]
    types: tuple[str, ...]
    costs: list[float]
    goodness: Goodness
    calibration: Calibration | None
    observed: Observed | None

    @property
    def decision(self) -> str:
        """The first line of the verdict."""
        return self.verdict.partition("\n")[0]

    @property
    def flagged(self) -> bool:
        """Whether there is any alarm."""
        return any(finding.alarm for finding in self.findings)

    def __repr__(self) -> str:
        return f"<Check: {self.decision}>"

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values: the verdict, the findings, and tables and diagrams as numbers."""
        plain = {
            "verdict": self.verdict,
            "flagged": self.flagged,
            "about": self.about,
            "findings": [asdict(finding) for finding in self.findings],
            **summarise(self.types, self.costs, self.goodness, self.calibration, self.observed),
        }
        return _without_nan(plain)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as JSON, also written into a file where a path is given."""
        text = json.dumps(self.to_dict(), indent=1) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    def plot(self, path: str | os.PathLike[str] | None = None) -> Picture:
        """A Matplotlib figure of it, also written as PNG, PDF or SVG where a path is given."""
        from retrodict.report.check_picture import draw_check
        from retrodict.report.style import write_picture

        picture = draw_check(self.to_dict())
        if path is not None:
            write_picture(picture, path)
        return picture

    def calibrate(self, posterior: Posterior) -> Posterior:
        """The same posterior, whose imputed events have the probabilities that came true in this check.

        An option for models that are not exactly true: where events of probability 0.75 were there 66 times out of 100,
        0.66 is what is given for 0.75 (``smc/reliability.py``). Which events are imputed, and their intervals, stay.
        """
        found = self.to_dict()
        refuse_other(found, str(posterior.about.get("model")).rpartition(" ")[2], str(posterior.about.get("missing")))
        calibrated = copy.copy(posterior)
        calibrated.about = posterior.about | {"calibration": Reliability.of_check(found)._asdict()}
        return calibrated


def check(
    fitted: Proposal | Model,
    complete: StreamSet,
    *,
    missing: Missingness | None = None,
    incomplete: StreamSet | None = None,
    costs: Sequence[float] | None = None,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Check:
    """Check a proposal, or a model alone, on complete streams that it was not trained on.

    Events are hidden as the proposal's mechanism, or ``missing``, says, imputed and compared with the truth; a model
    alone is only tested for goodness of fit. ``incomplete`` streams are compared with what model and mechanism predict.
    ``costs`` are by default a quarter of, once and four times the cost that ``retrodict impute`` takes; intervals are
    those of the middle one. After ``seconds`` no more streams are imputed. ``options`` are those of ``rd.impute``
    (particles, engine, islands ...); ``progress`` is called with the number of streams done.
    """
    model = fitted.model if isinstance(fitted, Proposal) else fitted
    if not isinstance(model, Model):
        raise ModelError(f"cannot check a {type(fitted).__name__}. Give a proposal, such as rd.Filtering, or a model.")
    complete = model.matched(complete)
    if isinstance(fitted, Proposal):
        fitted = fitted.ready(missing, complete)
    if len(complete) < 2 or not complete.num_events:
        raise DataError("there are not enough streams to check by", remedy="give at least two, and better a hundred")
    for cost in () if costs is None else costs:
        as_cost(cost)
    if incomplete is not None and not isinstance(fitted, Proposal):
        raise ModelError("how events go missing is not known, so incomplete streams say nothing. Give a proposal.")
    warn_of(complete, skip=() if model.end_atom is None else ("ends", "same number"))
    warn_of_other_clocks(model, complete)
    fit = goodness(model, complete)
    about = {"streams": len(complete), "events": complete.num_events, "model": model.digest(), "seed": seed}
    about |= _training_of(model)
    if isinstance(fitted, Proposal) and fitted.training_record.get("ended") == TIME_WAS_UP:
        about["unfinished_smoother"] = True
    calibration, observed = None, None
    prices: list[float] = []
    if isinstance(fitted, Proposal):
        tried, said = fitted, in_words(fitted.missingness)
        if misses_all(fitted.missingness, complete):
            moved = at_same_hours(fitted.missingness, complete)
            tried = fitted if moved is None else fitted.given(moved).on(complete)
            said += "" if moved is not None else UNTRIED
            warnings.warn(untouched(complete) + (MOVED if moved is not None else UNTRIED), DataNotice, stacklevel=2)
        about |= {"missing": said, "proposal": fitted.kind}
        calibration, prices, about["particles"] = _hide_and_impute(
            tried, complete, costs, seconds, seed, progress, options
        )
        about["imputed_streams"] = len(calibration.hidden)
        if incomplete is not None:
            observed = compare_observed(model, fitted.missingness, incomplete, seed=seed)
            about["incomplete_streams"] = len(incomplete)
    findings = fit.findings()
    findings += [] if calibration is None else calibration.findings(complete.types, prices)
    findings += [] if observed is None else observed.findings()
    findings = raise_alarms(findings)
    swapped, thinned = None, tuple[str, ...]()
    if any(f.alarm and f.part == "model" for f in findings):
        swapped = swapped_types(model, complete, fit)
        if isinstance(fitted, Proposal) and swapped is None:
            thinned = fit.thinned(usual_rates(fitted.missingness, complete))
    verdict = give_verdict(Evidence(findings, about, calibration, observed, swapped, prices, thinned))
    return Check(verdict, findings, about, complete.types, prices, fit, calibration, observed)


def _training_of(model: Model) -> dict[str, Any]:
    """How a training ended, and on how many streams, as far as its record knows."""
    record = model.training_record
    about: dict[str, Any] = {"fitted_to": record["train_streams"]} if "train_streams" in record else {}
    about |= {"unfinished": True} if record.get("ended") == TIME_WAS_UP else {}
    return about | ({"finished": True} if record.get("ended") in _BY_ITSELF else {})


def _hide_and_impute(
    proposal: Proposal,
    complete: StreamSet,
    costs: Sequence[float] | None,
    seconds: float | None,
    seed: int,
    progress: Callable[[int], None] | None,
    options: dict[str, Any],
) -> tuple[Calibration, list[float], int]:
    """Group after group of streams; the costs, and the number of particles, too."""
    deadline = math.inf if seconds is None else time.perf_counter() + seconds
    streams = complete[np.random.default_rng(seed).permutation(len(complete))]
    gap = half_a_gap(complete, complete.num_events)
    prices = [float(cost) for cost in costs or (gap / 4, gap, 4 * gap)]
    constant = Filtering(_constant_rates(proposal.model, complete), proposal.given_missingness)
    parts: list[Calibration] = []
    done, size = 0, _FIRST
    while done < len(streams) and (not parts or time.perf_counter() < deadline):
        group = streams[done : done + size]
        observed, hidden = proposal.missingness.censor(group, seed=seed + 1)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", UNTOUCHED)  # of this group alone
            warnings.simplefilter("ignore", SuspicionNotice)  # said once, of all streams
            posterior = impute(observed, proposal, seed=seed, **options)
            baseline = impute(observed, constant, particles=50, seed=seed)
        parts.append(calibrate(posterior, baseline, hidden, prices, seed, done))
        done += len(group)
        size = min(2 * size, _LARGEST)
        if progress is not None:
            progress(done)
    return Calibration.concatenate(parts), prices, posterior.num_particles


def _constant_rates(model: Model, complete: StreamSet) -> Poisson:
    """The Poisson process with the rates of the streams themselves."""
    counts = np.bincount(complete.event_types, minlength=complete.num_types) + 0.5
    poisson = Poisson((counts / max(float(complete.durations.sum()), 1e-300)).tolist())
    poisson.types, poisson.time_unit = model.types, model.time_unit
    return poisson.to(model.device)


def _without_nan(value: Any) -> Any:
    """The value with None for what is not a number: JSON has no word for it."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
