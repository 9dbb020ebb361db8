"""A posterior for ArviZ: its plots, summaries and files work on what can be said of every draw."""

from __future__ import annotations

import inspect
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from retrodict.errors import ModelError

if TYPE_CHECKING:
    from retrodict.smc.posterior import Posterior

_OF_A_STREAM = ("first_time", "last_time", "log_evidence", "final_ess", "observed_count")


def to_arviz(posterior: Posterior, draws: int, seed: int) -> Any:
    """``count`` [draw, stream, type]; ``first_time`` and ``last_time`` [draw, stream], NaN where nothing is missing."""
    from_dict = _find_from_dict()
    if not (isinstance(draws, int) and draws > 0):
        raise ModelError(f"draws must be a positive whole number, but is {draws!r}.")
    N, K = len(posterior), posterior.observed.num_types
    count = np.zeros((1, draws, N, K), dtype=np.int64)
    first, last = np.full((2, 1, draws, N), np.nan)
    for d, drawn in enumerate(posterior.draws(draws, seed)):
        np.add.at(count[0, d], (drawn.stream_of_event, drawn.event_types), 1)
        some = drawn.lengths > 0
        first[0, d, some] = drawn.event_times[drawn.offsets[:-1][some]]
        last[0, d, some] = drawn.event_times[drawn.offsets[1:][some] - 1]
    groups = {
        "posterior": {"count": count, "first_time": first, "last_time": last},
        "constant_data": {
            "log_evidence": posterior.log_evidence,
            "final_ess": posterior.diagnostics.final_ess,
            "observed_count": posterior.observed.lengths,
        },
    }
    attributes = {"created_by": "retrodict", "particles": posterior.num_particles}
    labels: dict[str, Any] = {
        "coords": {"stream": [str(i) for i in posterior.observed.ids], "type": list(posterior.observed.types)},
        "dims": {"count": ["stream", "type"], **{name: ["stream"] for name in _OF_A_STREAM}},
    }
    if "posterior" in inspect.signature(from_dict).parameters:  # ArviZ 0.x: InferenceData
        return from_dict(**groups, **labels, attrs=attributes)
    return from_dict(groups, **labels, attrs=dict.fromkeys(("/", *groups), attributes))  # 1.x: a DataTree


def _find_from_dict() -> Any:
    """ArviZ's function of that name, of any version; arviz-base alone has it too."""
    for name in ("arviz", "arviz_base"):
        with suppress(ImportError):
            return import_module(name).from_dict
    raise ModelError('to_arviz needs ArviZ. Install it: pip install "retrodict[arviz]".')
