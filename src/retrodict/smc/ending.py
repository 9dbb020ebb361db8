"""How observed streams end, for a model with an end atom: at an event that was seen, at one that went missing, or cut.

Where the last observed event is exactly at T, it was the last one. Where nothing was observed at T, the event that
ended the stream went missing there, unless nothing can go missing at T, or the caller says that such streams were cut:
then no event was the last one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from retrodict.events.batch import Batch, batches_by_length, make_batch
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import Suspicion, edge_events
from retrodict.missingness.base import Context
from retrodict.models.end import last_events
from retrodict.proposals.base import Proposal
from retrodict.smc.options import Options

_CHANCE = 1e-4  # that as many last events are observed


class Endings(NamedTuple):
    """Of B streams: which observed event is the last one, [B, L], and whether the last one is missing, [B]."""

    seen: Tensor
    missing: Tensor


@torch.no_grad()
def endings(observed: Batch, proposal: Proposal, options: Options) -> Endings | None:
    """How streams end; None for a model without an end atom."""
    if proposal.model.end_atom is None:
        return None
    seen = last_events(observed)
    B, mechanism, end = len(observed.durations), proposal.missingness, observed.durations
    history = mechanism.initial((B,), end.device)
    context = Context(observed.starts, observed.ids, proposal.model.initial((B,)), end, history)
    possible = (mechanism.rates(end, context) > 0).any(-1) & (end > 0)
    if history:  # what can go missing depends on what happened before
        possible = torch.ones_like(possible)
    return Endings(seen, ~seen.any(1) & possible & (not options.cut))


def ends_not_observed(observed: StreamSet, proposal: Proposal, options: Options) -> list[Suspicion]:
    """Streams without an event at their end, where most end at one: an event is imputed exactly there."""
    at_end = edge_events(observed)[1]
    if proposal.model.end_atom is None or options.cut or 2 * int(at_end.sum()) <= len(observed):
        return []
    which, model = np.flatnonzero(~at_end), proposal.model
    some = observed[which]
    missing = np.zeros(len(which), dtype=bool)
    for index in batches_by_length(some.lengths, 1024):
        found = endings(make_batch(some, index, dtype=model.dtype, device=model.device), proposal, options)
        assert found is not None
        missing[index] = found.missing.cpu().numpy()
    which = which[missing]
    if not len(which):
        return []
    id = observed.ids[which[0]]
    ends = f"stream {id!r} ends" if len(which) == 1 else f"{len(which)} streams ({id!r} is the first) end"
    what = (
        f"{ends} where no event was observed, and this model has learned that a stream ends with an event: one is "
        "imputed exactly at that time"
    )
    remedy = "where only watching stopped there, and the stream went on, pass cut=True"
    return [Suspicion("unseen end", what, remedy)]


def ends_of_observed(observed: StreamSet, proposal: Proposal) -> list[Suspicion]:
    """Streams that end at observed events, more of them than can be if last events go missing as the mechanism says."""
    at_end = edge_events(observed)[1]
    seen, filled = int(at_end.sum()), int((observed.lengths > 0).sum())
    if proposal.model.end_atom is None or not seen:
        return []
    rates = proposal.missingness.on(observed).event_rates(observed)[observed.offsets[1:][at_end] - 1]
    lost = float(rates.mean())  # of events like those that were seen last
    from scipy.special import bdtrc  # loaded only where a model has an end atom

    if bdtrc(seen - 1, filled, 1 - lost) > _CHANCE:  # a binomial's chance of as many or more
        return []
    what = (
        f"{seen:,} of {filled:,} streams end exactly at an observed event, though {lost:.0%} of such events go "
        "missing: ends were probably taken from the last events that were observed, and nothing is imputed after them"
    )
    return [Suspicion("end", what, "pass end= with when streams ended, to the fit as well")]
