"""Observed streams unlike those that the model was fitted to: what cannot be is refused, what is odd is told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.errors import DataError
from retrodict.events.batch import batches_by_length, make_batch
from retrodict.events.factor import in_times
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import Suspicion, edge_events
from retrodict.missingness.base import Context, Missingness
from retrodict.models.base import LONGEST
from retrodict.proposals.base import Proposal
from retrodict.smc.options import Options

_CHANCE = 1e-9  # below which what was observed cannot be
_CUT = 0.1  # of the training streams that a model with an end atom was fitted to, this share may have been cut
_MUCH = 3.0  # times the longest training stream that half of the streams may last before it is told
_trying: ContextVar[bool] = ContextVar("trying", default=False)


@contextmanager
def rates_on_trial() -> Iterator[None]:
    """Within the block missing rates are not what somebody says, but learned or varied: nothing is refused by them."""
    token = _trying.set(True)
    try:
        yield
    finally:
        _trying.reset(token)


def refuse_other_edges(observed: StreamSet, proposal: Proposal, options: Options) -> None:
    """Refuse streams that begin or end without an event, more of them than can have lost one, where the model knows
    that streams begin or end with one: an event would be imputed exactly there in each of them."""
    if _trying.get():
        return
    model, there = proposal.model, edge_events(observed)
    if model.start_atom is not None:
        none = math.exp(float(model.start_atom.log_none()))
        _refuse("begin", "start", none, there[0], observed, proposal.missingness, "leave start= out")
    if model.end_atom is not None and not options.cut:
        other = "leave end= out, or pass cut=True if they went on when watching stopped"
        _refuse("end", "end", _CUT, there[1], observed, proposal.missingness, other)


def _refuse(
    verb: str, side: str, none: float, there: NDArray[np.bool_], observed: StreamSet, missing: Missingness, other: str
) -> None:
    """``none`` is the share of complete streams without an event there."""
    if there.all():
        return
    lost = _most_lost(missing, observed, side)
    counted = lost > 0  # where nothing can go missing, a stream just was not watched any longer
    lacking = int((counted & ~there).sum())
    share = float((none + (1 - none) * lost[counted]).mean()) if lacking else 1.0
    from scipy.special import bdtrc  # loaded only where it may be needed

    if share >= 1 or bdtrc(lacking - 1, int(counted.sum()), share) > _CHANCE:  # a binomial's chance of as many or more
        return
    id = observed.ids[int(np.flatnonzero(counted & ~there)[0])]
    raise DataError(
        f"{lacking:,} of {len(observed):,} streams {verb} where no event was observed, but the model was fitted to "
        f"streams that {verb} with an event, of which at most {lost[counted].mean():.0%} go missing: one would be "
        f"imputed exactly at the {side} of each",
        stream=id,
        remedy=f"fit and check again with streams that {verb} as these do (the same {side}= for all), or {other}",
    )


@torch.no_grad()
def _most_lost(missing: Missingness, observed: StreamSet, side: str) -> NDArray[np.float64]:
    """The largest probability that an event at the start or end of each stream went missing, [N]."""
    result, mechanism = np.ones(len(observed)), missing.on(observed)
    for index in batches_by_length(observed.lengths, 1024):
        batch = make_batch(observed, index, dtype=torch.float64)
        history = mechanism.initial((len(index),), batch.durations.device)
        if history:  # what can go missing depends on what happened before
            return result
        time = torch.zeros_like(batch.durations) if side == "start" else batch.durations
        context = Context(batch.starts, batch.ids, None, batch.durations)
        result[index] = mechanism.rates(time, context).amax(-1).numpy()
    return result


def far_longer(observed: StreamSet, proposal: Proposal) -> Iterator[Suspicion]:
    """Streams that last much longer than any that the model was fitted to."""
    known = proposal.model.training_record.get(LONGEST)
    if not isinstance(known, int | float) or not known > 0 or not len(observed):
        return
    usual = float(np.median(observed.durations))
    if usual > _MUCH * known:
        yield Suspicion(
            "longer",
            f"half of the streams last at least {in_times(usual / known)} as long as the longest stream that the "
            "model was fitted to: what it knows of streams may not hold for them",
            "look whether stream= names the same column as in the fit, and whether start= and end= are as there",
        )
