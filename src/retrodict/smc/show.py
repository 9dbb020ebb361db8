"""What pictures and the page show of a posterior, as the plain data that ``report`` draws."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrodict._options import in_options
from retrodict.errors import DataError, DataNotice, ModelError
from retrodict.events.atomic import check_writable
from retrodict.events.gaps import half_a_gap
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.report.check_tables import clean_check
from retrodict.report.page.content import Answer, Content, Doubt
from retrodict.report.stream_view import StreamView, Window
from retrodict.smc.diagnostics import FEW, complaints, doubts, surprise
from retrodict.smc.reliability import Reliability
from retrodict.smc.totals import totals_by_type
from retrodict.smc.truth import match_truth, score_answer
from retrodict.smc.windows import windows_over

if TYPE_CHECKING:
    from retrodict.report.style import Picture
    from retrodict.smc.guesses import Guesses
    from retrodict.smc.posterior import Posterior

CELLS, DRAWS = 160, 20  # of a stream's belief, and guesses shown as ticks
# Beginnings of a verdict against some use.
_RESTRICTS = ("Do not", "In doubt", "Use the ", "Use probabilities", "Use expected")
_STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the slider, times the usual cost
_DOUBTS = {
    "impossible": (
        "no probability",
        "The model gives what was observed no probability at all, so that nothing can be imputed.",
    ),
    "few": (
        "few guesses",
        f"Fewer than {FEW:.0f} independent guesses are left in part of this stream: what is imputed there looks surer "
        "than it is.",
    ),
    "implausible": (
        "surprising",
        "The model finds what was observed far less plausible than in the other streams.",
    ),
}


def usual_cost(posterior: Posterior) -> float:
    """The cost that ``retrodict impute`` takes where none is given: half of the mean gap between events."""
    expected = float(posterior.expected_count()[posterior.is_possible].sum())
    return half_a_gap(posterior.observed, posterior.observed.num_events + expected)


def plot_stream(
    posterior: Posterior,
    i: int,
    path: str | os.PathLike[str] | None,
    cost: float | None,
    truth: StreamSet | None,
    title: str | None,
    draws: int,
) -> Picture:
    """The picture of one stream, written where a path is given."""
    from retrodict.report.stream_picture import draw_stream
    from retrodict.report.style import check_picture_name, write_picture

    check_picture_name(path)
    if not -len(posterior) <= i < len(posterior):
        remedy = f"give a number from 0 to {len(posterior) - 1}" if len(posterior) else "impute at least one stream"
        raise DataError(f"there is no stream number {i}", remedy=remedy)
    i %= len(posterior)
    actual = None if truth is None else match_truth(truth, posterior.observed)[i]
    price = usual_cost(posterior) if cost is None else cost
    answer = posterior.consensus(price, which=np.array([i]))[0]
    windows = windows_over(posterior.about.get("windows"), posterior.observed)
    picture = draw_stream(_view(posterior, i, answer, _draws(posterior, draws), actual, windows), title)
    if path is not None:
        write_picture(picture, path)
    return picture


def plot_tradeoff(
    posterior: Posterior, path: str | os.PathLike[str] | None, costs: Sequence[float] | None, truth: StreamSet | None
) -> Picture:
    """Risk and number of events against the cost, written where a path is given."""
    from retrodict.report.curves import Tradeoff, draw_tradeoff
    from retrodict.report.style import check_picture_name, write_picture

    check_picture_name(path)
    _refuse_nothing(posterior)
    actual = None if truth is None else match_truth(truth, posterior.observed)
    rows = []
    for a in _answers(posterior, _costs(posterior, None, costs)[0], actual, None):
        far = None
        if a.score is not None:
            far = float(a.score.distance.sum()) / (a.cost * max(int(a.score.missing.sum()), 1))
        rows.append(Tradeoff(a.cost, float(a.risk.mean()), float(a.nothing.mean()), a.streams.num_events, far))
    picture = draw_tradeoff(rows, posterior.observed.axis.unit)
    if path is not None:
        write_picture(picture, path)
    return picture


def write_report(
    posterior: Posterior,
    path: str | os.PathLike[str],
    cost: float | None,
    costs: Sequence[float] | None,
    truth: StreamSet | None,
    check: Any,
    title: str,
    progress: Callable[[int], None] | None,
) -> Path:
    """The page about all streams."""
    from retrodict.report.page.write import write_page

    check_writable(path)
    _refuse_nothing(posterior)
    actual = None if truth is None else match_truth(truth, posterior.observed)
    tables = _check(check, posterior.about.get("check"))
    prices, first = _costs(posterior, cost, costs)
    answers = _answers(posterior, prices, actual, progress)
    draws, windows = _draws(posterior, DRAWS), windows_over(posterior.about.get("windows"), posterior.observed)

    def view(i: int) -> StreamView:
        return _view(posterior, i, answers[first].streams[i], draws, None if actual is None else actual[i], windows)

    found = doubts(posterior)
    content = Content(
        title=title,
        observed=posterior.observed,
        answers=answers,
        first=first,
        expected=_expected(posterior),
        intervals=_intervals(posterior),
        surprise=surprise(posterior),
        families=_fewest_families(posterior),
        few=FEW,
        doubts=[Doubt(*_DOUBTS[name], found[name]) for name in _DOUBTS],
        warnings=list(_warnings(posterior, tables)),
        view=view,
        check=tables,
        facts=page_facts(posterior),
    )
    return write_page(content, path)


def _warnings(posterior: Posterior, check: dict[str, Any] | None) -> Iterator[str]:
    """What to know before one trusts the page; in options where a command made the posterior."""
    about = posterior.about
    said = in_options if "command" in about else str
    checked, here = (check or {"about": {}})["about"].get("missing"), about.get("missing")
    if checked is not None and here is not None and checked != here:
        yield f"The check was made for other missing events ({checked}) than go missing here."
    decision = "" if check is None else str(check.get("verdict")).partition("\n")[0]
    if check is not None and not check.get("flagged") and decision.startswith(_RESTRICTS):
        yield f"The check said: {decision}"
    yield from complaints(posterior)
    edges = about.get("edges")
    yield from (said(str(text)) for text in (edges if isinstance(edges, list) else ()))
    yield from (said(str(one)) for one in posterior.suspicions())


def _refuse_nothing(posterior: Posterior) -> None:
    if not len(posterior):
        raise DataError("there are no streams to show", remedy="impute at least one stream, an empty one if need be")


def _costs(posterior: Posterior, cost: float | None, costs: Sequence[float] | None) -> tuple[list[float], int]:
    """The costs to decode at, in order, and the one to begin with."""
    usual = usual_cost(posterior) if cost is None else cost
    given = sorted({float(each) for each in ([usual * step for step in _STEPS] if costs is None else costs)})
    if not given or not all(np.isfinite(each) and each > 0 for each in (*given, usual)):
        raise ModelError("costs must be positive numbers, at least one of them.")
    return given, int(np.argmin(np.abs(np.log(np.array(given) / usual))))


def _answers(
    posterior: Posterior, costs: list[float], truth: StreamSet | None, progress: Callable[[int], None] | None
) -> list[Answer]:
    """The consensus at each cost, scored where the truth is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNotice)  # the page says at which cost probabilities were calibrated
        decisions = posterior.decide(costs, progress=progress)
    return [
        Answer(cost, d.streams, d.risk, d.nothing, None if truth is None else score_answer(d.streams, truth, cost))
        for cost, d in zip(costs, decisions, strict=True)
    ]


def _draws(posterior: Posterior, number: int) -> list[StreamSet]:
    """Draws to show, none of streams whose particles mean nothing."""
    drawn = posterior.draws(number, seed=0)
    possible = posterior.is_possible
    return drawn if possible.all() else [draw.keep(possible[draw.stream_of_event]) for draw in drawn]


def _view(
    posterior: Posterior,
    i: int,
    answer: EventStream,
    draws: list[StreamSet],
    truth: EventStream | None,
    windows: Callable[[int], list[Window]],
) -> StreamView:
    observed = posterior.observed
    return StreamView(
        observed[i],
        answer,
        [draw[i] for draw in draws],
        _rates(posterior, i),
        _families(posterior.chosen, i, len(observed[i]) + 1),
        FEW,
        observed.types,
        observed.axis,
        truth,
        windows(i),
    )


def _rates(posterior: Posterior, i: int) -> NDArray[np.float64]:
    """Expected missing events of stream i per unit of time, in equal cells, [CELLS, K]."""
    guesses, M, K = posterior.chosen, posterior.num_particles, posterior.observed.num_types
    start, span = float(posterior.observed.starts[i]), float(posterior.observed.durations[i])
    if span <= 0 or not posterior.is_possible[i]:
        return np.zeros((CELLS, K))
    own = slice(guesses.offsets[i * M], guesses.offsets[(i + 1) * M])
    weights = np.repeat(guesses.weights[i], np.diff(guesses.offsets[i * M : (i + 1) * M + 1]))
    cell = ((guesses.event_times[own] - start) / span * CELLS).astype(np.int64).clip(0, CELLS - 1)
    counts = np.bincount(cell * K + guesses.event_types[own], weights, minlength=CELLS * K)
    return counts.reshape(CELLS, K) / (span / CELLS)


def _families(guesses: Guesses, i: int, segments: int) -> NDArray[np.float64]:
    """The effective families of stream i, [segments]."""
    shares = guesses.weights[i].reshape(guesses.islands, -1).sum(1)
    squares = (shares**2)[:, None] / np.where(shares[:, None] > 0, guesses.families[i, :, :segments], 1.0)
    return 1.0 / squares.sum(0)


def _expected(posterior: Posterior) -> NDArray[np.float64]:
    """Expected missing events by type, [N, K]; none where particles mean nothing."""
    guesses, M, K = posterior.counting, posterior.num_particles, posterior.observed.num_types
    result = np.zeros((len(posterior), K))
    for i in np.flatnonzero(posterior.is_possible):
        own = guesses.offsets[i * M : (i + 1) * M + 1]
        weights = np.repeat(guesses.weights[i], np.diff(own))
        result[i] = np.bincount(guesses.event_types[own[0] : own[-1]], weights, minlength=K)
    return result


def _intervals(posterior: Posterior) -> NDArray[np.int64]:
    """From how many to how many events are missing in all streams, by type and, last, of all types, [K + 1, 2]."""
    some = np.flatnonzero(posterior.is_possible)
    totals = totals_by_type(posterior.counting, some, posterior.observed.num_types)
    return np.array([(total.low, total.high) for total in totals])


def _fewest_families(posterior: Posterior) -> NDArray[np.float64]:
    """The fewest effective families of a segment with missing events, or of any where there is none, [N]."""
    observed, guesses = posterior.observed, posterior.chosen
    families = guesses.effective_families
    kept = ~np.isnan(families)
    missing = np.zeros(families.shape, dtype=bool)
    missing[kept] = guesses.expected_counts(observed).sum(1) > 0.1
    missing[~missing.any(1)] = True
    return np.where(kept & missing, families, np.inf).min(1, initial=np.inf)


def _check(check: Any, kept: Any) -> dict[str, Any] | None:
    """The tables of a check that was given, else of the one kept with the posterior, unless that is damaged."""
    try:
        if check is not None:
            return clean_check(check.to_dict() if hasattr(check, "to_dict") else check)
    except ValueError as error:
        remedy = "give what rd.check returns, or leave it out"
        raise DataError(f"the check cannot be shown: {error}", remedy=remedy) from error
    try:
        return None if kept is None else clean_check(kept)
    except ValueError:
        return None


def page_facts(posterior: Posterior) -> list[tuple[str, str]]:
    """How it was made, in words, as far as it is known."""
    names = {
        "command": "command",
        "file": "observed events",
        "model": "model",
        "calendar": "calendar of the model",
        "ends": "ends of streams",
        "missing": "what goes missing",
        "proposal": "proposal",
        "engine": "engine",
        "resampling": "resampling",
        "calibration": "probabilities",
        "seed": "seed",
        "versions": "versions",
    }
    about = dict(posterior.about)
    if about.get("model") is not None and posterior.observed.axis.is_calendar:
        about.setdefault("calendar", "none: hours of the day and days of the week are all alike to this model")
    if "calibration" in about:
        found = Reliability.kept(about["calibration"])
        what = f"{found.events:,} imputed events of a check at cost {found.cost:.4g}"
        about["calibration"] = f"as they came true for {what}"
    made = [(names[key], str(about[key])[:2000]) for key in names if about.get(key) is not None]
    islands = posterior.full.islands
    return [*made, ("particles", f"{posterior.num_particles:,} for each stream, in {islands} independent runs")]
