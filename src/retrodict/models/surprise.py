"""Types whose events come as a surprise to a model: it expects them far less than a constant rate would."""

from __future__ import annotations

import numpy as np
import torch

from retrodict.events.batch import iterate_batches
from retrodict.events.factor import in_times
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import Suspicion
from retrodict.models.base import Model
from retrodict.models.quadrature import GaussLegendre

_NO_INTEGRAL = GaussLegendre(1, graded=False)  # integrals are not looked at
_LEAST = -50.0  # log intensities that are told apart
_FEWEST, _MUCH = 20, 1.5  # events of a type, and nats an event above those of a constant rate
_MOST = 20_000  # events that are looked at: a neural model takes some 10 kB for each


@torch.no_grad()
def surprises(model: Model, streams: StreamSet) -> list[Suspicion]:
    """Types at whose events the model's intensity is on average far below their own mean rate in these streams.

    For a model that fits it lies above, since intensities are high where events happen. Of streams that have many
    events the first ones are looked at.
    """
    streams = _beginnings(streams, max(_FEWEST, _MOST // max(len(streams), 1)))
    K, time = streams.num_types, float(streams.durations.sum())
    counts, logs = np.zeros(K), np.zeros(K)
    for batch in iterate_batches(streams, 256, dtype=model.dtype, device=model.device):
        scored = batch.mask & (batch.times > 0) if model.start_atom is not None else batch.mask
        types = batch.types[scored].cpu().numpy()
        counts += np.bincount(types, minlength=K)
        own = model.scored_terms(batch, _NO_INTEGRAL).log_intensities[scored].double().clamp(min=_LEAST)
        logs += np.bincount(types, own.cpu().numpy(), minlength=K)
    if time <= 0:
        return []
    some = np.maximum(counts, 1)
    loss = np.where(counts > 0, counts * np.log(some / time) - logs, 0.0)  # nats, against a constant rate
    worst = int(np.argmax(loss))
    if counts[worst] < _FEWEST or not loss[worst] > _MUCH * counts[worst]:
        return []
    share = loss[worst] / loss[loss > 0].sum()
    factor = np.exp(loss[worst] / counts[worst])
    return [
        Suspicion(
            "surprise",
            f"events of type {streams.types[worst]!r} surprise the model: at {int(counts[worst]):,} of them the "
            f"intensity is on average {in_times(factor)} below their mean rate, which makes {share:.0%} of all that "
            "the model loses against constant rates",
            "look whether the type means the same as in the training streams (renamed, split, another unit of time), "
            "and fit with streams in which it occurs as it does here",
        )
    ]


def _beginnings(streams: StreamSet, most: int) -> StreamSet:
    """Streams that end at their event number ``most``, if they have so many."""
    if streams.lengths.max(initial=0) <= most:
        return streams
    s, lengths = streams, np.minimum(streams.lengths, most)
    kept = np.arange(s.num_events) - s.offsets[s.stream_of_event] < most
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    times, ends = s.event_times[kept], s.ends.copy()
    cut = s.lengths > most
    ends[cut] = times[offsets[1:][cut] - 1]
    return StreamSet.trusted(times, s.event_types[kept], offsets, s.starts, ends, s.ids, s.types, axis=s.axis)
