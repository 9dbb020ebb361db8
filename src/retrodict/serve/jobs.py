"""From a request to a job: streams are read and checked, a proposal is chosen, and what is too much is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from retrodict.errors import DataError
from retrodict.events.batch import make_batch
from retrodict.events.results import refuse_results
from retrodict.events.suspicion import refuse_unix_time
from retrodict.missingness.pieces import of_time, rates_at
from retrodict.proposals import Proposal
from retrodict.serve.answers import imputed, queried
from retrodict.serve.limits import ServeLimits, too_much
from retrodict.serve.models import Models, Served, check_pieces
from retrodict.serve.schemas import Asked, ImputeRequest, QueryRequest
from retrodict.serve.streams import Given, read_streams
from retrodict.serve.tasks import Job, make_job
from retrodict.smc.posterior import Posterior

_SLACK = 4  # an estimate of missing events may be that much off before it is believed
_SHARES = torch.linspace(0, 1, 64, dtype=torch.float64)  # of a stream, where missing rates are looked at


def impute_job(asked: ImputeRequest, models: Models, most: ServeLimits) -> Job:
    """The job of a request to impute."""
    prepared = _prepare(asked, models, most)
    given, proposal, _ = prepared

    def answer(posterior: Posterior) -> bytes:
        return imputed(posterior, given, proposal, asked)

    return _checked(prepared, asked, answer, most)


def query_job(asked: QueryRequest, models: Models, most: ServeLimits) -> Job:
    """The job of a request with questions."""
    if len(asked.questions) > most.questions:
        raise too_much("questions in a request", len(asked.questions), most.questions, "ask fewer at a time")
    prepared = _prepare(asked, models, most)
    given, proposal, _ = prepared
    size = len(asked.questions) * len(given.own)
    if size > most.answers:
        raise too_much("numbers in an answer", size, most.answers, "ask fewer questions, or about fewer streams")

    def answer(posterior: Posterior) -> bytes:
        return queried(posterior, given, proposal, asked, most)

    return _checked(prepared, asked, answer, most)


class Prepared(NamedTuple):
    """The streams of a request, the proposal for them, and about how many events the longest of them misses."""

    given: Given
    proposal: Proposal
    expected: float


def _prepare(asked: Asked, models: Models, most: ServeLimits) -> Prepared:
    served = models.find(asked.model)
    given = read_streams(asked.streams, served.model, most)
    refuse_results(given.own)
    refuse_unix_time(given.matched)
    proposal = served.proposal(asked.missing, asked.smoother, asked.filtering, given.matched.axis.timezone)
    proposal = proposal.ready(None, given.matched)
    check_pieces(proposal.missingness, given.matched, most)
    return Prepared(given, proposal, _expected(served, proposal, given, most))


def _checked(prepared: Prepared, asked: Asked, answer: Callable[[Posterior], bytes], most: ServeLimits) -> Job:
    """The job, if it is not too much work."""
    if (asked.particles or 0) > most.particles:
        raise too_much("particles", asked.particles or 0, most.particles, "ask for fewer")
    observed = prepared.given.matched
    job = make_job(observed, prepared.proposal, asked.particles, asked.seed, answer, most, asked.cut)
    length = int(observed.lengths.max(initial=0)) + 1 + min(prepared.expected, most.missing)
    work = len(observed) * length * job.particles
    if work > most.work:
        what = "streams x events of the longest, observed and missing, x particles"
        raise too_much(what, work, most.work, "send fewer or shorter streams at a time, or ask for fewer particles")
    if not job.shares and length > most.steps:
        what = "events of the longest stream, observed and missing, for a model or mechanism that is not compiled"
        raise too_much(what, length, most.steps, "send shorter streams")
    return job


def _expected(served: Served, proposal: Proposal, given: Given, most: ServeLimits) -> float:
    """About how many events the longest stream misses; refused, before any work, where a guess may not have as many."""
    observed, model = given.matched, proposal.model
    durations = observed.durations
    i = int(np.argmax(durations))
    rates = torch.ones(1, 1, model.num_types, dtype=torch.float64)
    if of_time(proposal.missingness) is not None:
        batch = make_batch(observed[[i]], dtype=model.dtype)
        rates = rates_at(proposal.missingness, batch, batch.durations[:, None] * _SHARES)
    expected = float(rates[0].mean(0).numpy() @ served.rates) * float(durations[i])
    if not expected <= _SLACK * most.missing:
        raise DataError(
            f"it lasts {durations[i]:g}{f' {model.time_unit}s' if model.time_unit else ''}, in which about "
            f"{expected:.3g} events would be missing, and the server draws at most {most.missing:,} a guess",
            stream=observed.ids[i],
            remedy="cut it into shorter streams, and check the unit of its times",
        )
    return expected
