"""From a posterior to the bytes of an answer: the streams with what was imputed, or answers to questions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict._version import __version__
from retrodict.errors import DataError
from retrodict.events.combine import fill
from retrodict.events.suspicion import suspicions
from retrodict.missingness.conflicts import IDLE, UNTOUCHED, beside_windows, misses_all
from retrodict.missingness.words import in_words
from retrodict.proposals import Proposal
from retrodict.serve.limits import ServeLimits, too_much
from retrodict.serve.schemas import ImputeRequest, QueryRequest, Question
from retrodict.serve.streams import Given, write_streams
from retrodict.smc.diagnostics import complaints, none_possible
from retrodict.smc.ending import ends_of_observed
from retrodict.smc.posterior import Posterior
from retrodict.smc.show import usual_cost


def imputed(posterior: Posterior, given: Given, proposal: Proposal, asked: ImputeRequest) -> bytes:
    """The client's streams with the imputed events put in, at a cost."""
    _refuse_impossible(posterior)
    cost = usual_cost(posterior) if asked.cost is None else asked.cost * given.scale
    decoded = posterior.consensus(cost, level=asked.level)
    return dump(
        {
            "streams": write_streams(fill(given.own, decoded)),
            "cost": cost / given.scale,
            "expected": plain(posterior.expected_count()),
            "log_evidence": plain(posterior.log_evidence),
            "notices": notices(posterior, given, proposal),
            "about": about(posterior, proposal),
        }
    )


def queried(posterior: Posterior, given: Given, proposal: Proposal, asked: QueryRequest, most: ServeLimits) -> bytes:
    """Probabilities and expected numbers of missing events, question by question, and intensities on a grid."""
    _refuse_impossible(posterior)
    result: dict[str, Any] = {
        "ids": [id if isinstance(id, int) else str(id) for id in given.own.ids],
        "answers": [_answer(posterior, given, question) for question in asked.questions],
    }
    if asked.grid is not None:
        size = len(posterior) * (len(asked.grid) - 1) * posterior.observed.num_types
        if size > most.answers:
            remedy = "ask for a coarser grid, or about fewer streams"
            raise too_much("numbers in an answer", size, most.answers, remedy)
        grid: list[Any] = [given.on_model_axis(time) for time in asked.grid]
        result["types"] = list(posterior.observed.types)
        result["intensity"] = plain(posterior.intensity(grid) * given.scale)
    result["notices"] = notices(posterior, given, proposal)
    result["about"] = about(posterior, proposal)
    return dump(result)


def _answer(posterior: Posterior, given: Given, question: Question) -> dict[str, Any]:
    kind = question.type
    start, end = given.on_model_axis(question.start), given.on_model_axis(question.end)
    return {
        "probability": plain(posterior.probability(kind, start, end)),
        "expected": plain(posterior.expected_count(kind, start, end)),
    }


def about(posterior: Posterior, proposal: Proposal) -> dict[str, Any]:
    """How an answer was made: enough to make it again."""
    known = posterior.about
    return {
        "model": proposal.model.digest(),
        "missing": in_words(proposal.missingness),
        "proposal": proposal.kind,
        "engine": known["engine"],
        "particles": posterior.num_particles,
        "seed": known["seed"],
        "version": __version__,
    }


def notices(posterior: Posterior, given: Given, proposal: Proposal) -> list[str]:
    """What the package would warn of, for the streams of this request alone."""

    def found() -> Iterable[str]:
        yield from given.notices
        known = ("ends",) if proposal.model.end_atom is None else ("ends", "same number")
        yield from (str(each) for each in suspicions(posterior.observed) if each.kind not in known)
        yield from map(str, ends_of_observed(posterior.observed, proposal))
        if misses_all(proposal.missingness, posterior.observed):
            yield UNTOUCHED
        beside = beside_windows(proposal.missingness, posterior.observed)
        yield from (str(each) for each in beside if each.kind != IDLE)  # windows are for the streams of all requests
        if proposal.is_for_other():
            yield "the smoother was trained for other missing rates: fewer of the particles count"
        yield from map(str, posterior.suspicions())
        yield from complaints(posterior)

    return list(dict.fromkeys(found()))


def plain(values: NDArray[np.float64]) -> Any:
    """Numbers as JSON has them; null for what is not finite."""
    numbers = values.astype(object)
    numbers[~np.isfinite(values)] = None
    return numbers.tolist()


def dump(value: Any) -> bytes:
    """The bytes of an answer."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:
        raise DataError(
            "an extra column holds a number that is not finite", remedy="leave it out, or give null"
        ) from error


def _refuse_impossible(posterior: Posterior) -> None:
    if len(posterior) and not posterior.is_possible.any():
        raise none_possible(posterior.about.get("conflict"))
