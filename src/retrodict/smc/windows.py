"""The windows in which more goes missing: kept with a posterior in plain values, laid over its streams to be shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from retrodict.errors import RetrodictError
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.arguments import WRONG
from retrodict.missingness.base import Context, Either, Missingness
from retrodict.missingness.spec import build
from retrodict.missingness.windows import Windows
from retrodict.report.stream_view import Window


def windows_in(missing: Missingness, observed: StreamSet) -> dict[str, Any]:
    """What to keep of a mechanism's windows: as in a file, without those of other streams; nothing if it has none."""
    parts = missing.parts if isinstance(missing, Either) else (missing,)
    kept = [{"mechanism": part.kind, **part.config()} for part in parts if isinstance(part, Windows)]
    ids = {str(id) for id in observed.ids} if any(one["by_stream"] for one in kept) else set()
    for one in kept:
        one["by_stream"] = {id: pairs for id, pairs in one["by_stream"].items() if id in ids}
    kept = [one for one in kept if one["windows"] or one["by_stream"]]
    return {"windows": kept} if kept else {}


def windows_over(kept: Any, observed: StreamSet) -> Callable[[int], list[Window]]:
    """The windows that lie over stream i, from what was kept; none where that is damaged."""
    try:
        bound = [build(one).on(observed) for one in kept or ()]
    except (RetrodictError, *WRONG):
        bound = []
    return lambda i: [window for part in bound if isinstance(part, Windows) for window in _over(part, observed, i)]


@torch.no_grad()
def _over(part: Windows, observed: StreamSet, i: int) -> list[Window]:
    """Where the rates of some types are above the lower of the two that there are."""
    start, zero = float(observed.starts[i]), torch.zeros(1, dtype=torch.float64)
    end = zero + float(observed.durations[i])
    context = Context(zero + start + observed.axis.since_1970, torch.from_numpy(observed.id_keys[i : i + 1]), None, end)
    inner = part.breaks(zero, end, context)
    edges = torch.cat([zero, *([] if inner is None else [inner[0]]), end]).unique()
    middle = ((edges[1:] + edges[:-1]) / 2)[None]
    if not middle.numel():
        return []
    more = (part.rates(middle, context.over(middle))[0] > min(part.inside, part.outside)).numpy()
    types = tuple(np.flatnonzero(more.any(0)).tolist())
    is_on = np.diff(np.concatenate([[0], more.any(1), [0]]).astype(int))
    first, last = (np.flatnonzero(is_on == step) for step in (1, -1))
    at = start + edges.numpy()
    return [Window(float(at[low]), float(at[high]), types) for low, high in zip(first, last, strict=True)]
