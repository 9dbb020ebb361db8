"""The models that are served: read from folders when the server starts, never later and never from the network."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import ModelError, RetrodictError
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Either, Missingness
from retrodict.missingness.schedule import Scheduled
from retrodict.missingness.spec import describe, from_values
from retrodict.missingness.words import in_words
from retrodict.models.base import Model
from retrodict.models.model_folder import load_model
from retrodict.models.simulate import simulate
from retrodict.proposals import Filtering, Proposal
from retrodict.proposals.proposal_folder import load_proposal
from retrodict.proposals.smoothers import KeptSmoother, smoothers_of, type_names
from retrodict.serve.limits import RefusalError, ServeLimits, too_much
from retrodict.serve.tasks import USUAL
from retrodict.smc.engines import place

# Of those that a request may describe; the others are networks or code.
MECHANISMS = ("by_type", "windows", "time_varying", "reporting_delay", "after")
_KEPT = 64  # mechanisms of which the proposals are kept
_PIECES = 1_000_000  # streams x pieces of time x types that a mechanism may cut the streams of a request into


class Served:
    """A model, its smoothers, and the proposals for the mechanisms that were asked for last."""

    def __init__(self, name: str, folder: Path, device: str = "auto") -> None:
        self.name, self.model = name, load_model(folder)
        self.digest, self.types = self.model.digest(), type_names(self.model)
        usable = [kept for kept in smoothers_of(folder, self.model) if kept.problem is None and kept.missing]
        self.smoothers: list[tuple[KeptSmoother, Proposal]] = []
        for kept in usable:
            proposal = place(load_proposal(kept.path), device, "auto", USUAL)
            self.smoothers.append((kept, proposal))
        plain = Filtering(self.model, from_values("0.5", self.types))
        self.rates = usual_rates(self.model)
        self._filtering = place(plain, device, "auto", USUAL)
        self._proposals: OrderedDict[str, Proposal] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def device(self) -> str:
        """Where its proposals run: cpu or cuda."""
        return self._filtering.model.device.type

    def about(self) -> dict[str, Any]:
        """What a client may know of the model."""
        return {
            "name": self.name,
            "kind": self.model.kind,
            "digest": self.digest,
            "types": list(self.types),
            "unit": self.model.time_unit,
            "smoothers": [
                {"name": kept.name, "missing": in_words(kept.missing)} for kept, _ in self.smoothers if kept.missing
            ],
        }

    def proposal(self, missing: Any, smoother: str | None, filtering: bool, zone: str | None) -> Proposal:
        """The proposal for what goes missing: the smoother for it, one for anything, or filtering; kept for the next.

        The same request gets the same object, whose weights engines have packed already.
        """
        key = json.dumps([missing, smoother, filtering, zone], sort_keys=True)
        with self._lock:
            if key in self._proposals:
                self._proposals.move_to_end(key)
                return self._proposals[key]
        made = self._choose(self._mechanism(missing, zone), smoother, filtering)
        with self._lock:
            made = self._proposals.setdefault(key, made)
            while len(self._proposals) > _KEPT:
                self._proposals.popitem(last=False)
            return made

    def _mechanism(self, missing: Any, zone: str | None) -> Missingness | None:
        if missing is None:
            return None
        for part in missing if isinstance(missing, list) else [missing]:
            kind = str(part.get("mechanism")).replace("-", "_") if isinstance(part, dict) else "by_type"
            if isinstance(part, dict) and "mechanism" in part and kind not in MECHANISMS:
                raise ModelError(f"the server takes no mechanism {kind[:80]!r}. Choose one of {', '.join(MECHANISMS)}.")
        return from_values(missing, self.types, self.model.time_unit, zone)

    def _choose(self, wanted: Missingness | None, name: str | None, filtering: bool) -> Proposal:
        """As ``retrodict impute`` chooses."""
        found = self._named(name) if name is not None else self._fitting(wanted)
        if found is None or (filtering and name is None):
            if wanted is None and found is not None and not found[0].is_for_any:
                wanted = found[0].missing
            if wanted is None:
                raise ModelError(
                    'it is not known which events go missing. Say so with "missing", such as "missing": '
                    f'"{self.types[0]}=0.5".'
                )
            return self._filtering.given(wanted)
        kept, proposal = found
        if kept.is_for_any and wanted is None:
            raise ModelError(
                'the smoother is for whatever goes missing: say what does with "missing", such as "missing": '
                f'"{self.types[0]}=0.5".'
            )
        return proposal if wanted is None else proposal.given(wanted)

    def _named(self, name: str) -> tuple[KeptSmoother, Proposal]:
        for kept, proposal in self.smoothers:
            if kept.name == name:
                return kept, proposal
        there = ", ".join(kept.name for kept, _ in self.smoothers) or "none"
        raise ModelError(f"the model has no smoother {name[:80]!r}; there is {there}.")

    def _fitting(self, wanted: Missingness | None) -> tuple[KeptSmoother, Proposal] | None:
        fits = [s for s in self.smoothers if not s[0].is_for_any and (wanted is None or s[0].is_for(wanted))]
        fits = fits or [s for s in self.smoothers if s[0].is_for_any][:1]
        if len(fits) > 1:
            names = ", ".join(kept.name for kept, _ in fits)
            raise ModelError(f'several smoothers could be meant. Name one with "smoother": {names}.')
        return fits[0] if fits else None


def usual_rates(model: Model) -> NDArray[np.float64]:
    """Events of each type per unit of time, [K], of a few streams that the model draws."""
    try:
        drawn = simulate(model, 8, num_events=20, seed=0, start=None if model.calendar is None else "2024-01-01T12:00")
    except RetrodictError:  # it hardly ever has an event
        return np.zeros(model.num_types)
    counts = np.bincount(drawn.event_types, minlength=model.num_types)
    first = drawn.event_times[drawn.offsets[:-1]]  # what comes before may take long, or no time at all
    return np.asarray(counts / max(float((drawn.ends - first).sum()), 1e-300), dtype=np.float64)


class Models:
    """All models that are served, by name."""

    def __init__(self, folders: Sequence[Path], device: str = "auto") -> None:
        self._served: dict[str, Served] = {}
        for folder in folders:
            name = folder.resolve().name
            if name in self._served:
                raise ModelError(f"two folders are called {name!r}, and requests name models by folder: rename one.")
            self._served[name] = Served(name, folder, device)

    def __iter__(self) -> Any:
        return iter(self._served.values())

    def find(self, name: str | None) -> Served:
        """The model of a name; None is the first one."""
        if name is None:
            return next(iter(self._served.values()))
        if name not in self._served:
            there = ", ".join(self._served)
            raise RefusalError(404, "model", f"there is no model {name[:80]!r} here. There is {there}.")
        return self._served[name]


def check_pieces(missing: Missingness, observed: StreamSet, most: ServeLimits) -> None:
    """Refuse a timetable that recurs too often in the streams to be worked out."""
    longest = float(observed.durations.max(initial=0.0))
    pieces = 1.0
    for part in missing.parts if isinstance(missing, Either) else (missing,):
        pieces += _entries(describe(part)) * _times(part, longest)
    size = pieces * len(observed) * observed.num_types
    if not size <= _PIECES:
        remedy = "give shorter streams, fewer of them, or a mechanism that recurs less often"
        raise too_much("times in the mechanism x streams x types", size, _PIECES, remedy)


def _times(part: Missingness, longest: float) -> float:
    """How often what a mechanism says recurs in the longest stream."""
    return 1 + longest / part.period if isinstance(part, Scheduled) and part.period is not None else 1


def _entries(value: Any) -> int:
    """How many values a description holds."""
    if isinstance(value, dict | list):
        return 1 + sum(map(_entries, value.values() if isinstance(value, dict) else value))
    return 1
