"""The ways of imputing that are compared: a proposal, how it is run, and how its particles are decoded."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from retrodict.experiments.baselines import constant_rate
from retrodict.experiments.data import mechanism
from retrodict.experiments.place import Place
from retrodict.proposals.base import Proposal
from retrodict.proposals.filtering import Filtering
from retrodict.smc.compensator import SharedPoints


class Method(NamedTuple):
    """``proposal``: filtering, smoothing or constant rate; ``way`` in which a smoother was trained."""

    proposal: str
    way: str = "ours"
    decode: Literal["exact", "local"] = "exact"
    options: tuple[tuple[str, Any], ...] = ()

    def prepare(self, place: Place, dataset: str, setting: str, device: str) -> Proposal:
        """The proposal, on a device."""
        if self.proposal == "smoothing":
            return place.smoother(dataset, setting, self.way, device)
        train = place.splits(dataset).train
        missing = mechanism(setting, dataset, train.types)
        if self.proposal == "filtering":
            return Filtering(place.model(dataset, device), missing)
        return constant_rate(train, missing).to(device)


# As the paper has it: multinomial resampling, one random point an interval, local search.
_PAPER = (("resample", "multinomial"), ("integral", SharedPoints(1)))
METHODS: dict[str, Method] = {
    "filtering": Method("filtering"),
    "smoothing": Method("smoothing"),
    "data-smoothing": Method("smoothing", "data"),
    "paper-filtering": Method("filtering", decode="local", options=_PAPER),
    "paper-smoothing": Method("smoothing", "paper", "local", _PAPER),
    "constant-rate": Method("constant rate"),
    "filtering-no-resampling": Method("filtering", options=(("resample", None),)),
    "data-smoothing-no-resampling": Method("smoothing", "data", options=(("resample", None),)),
    "smoothing-no-resampling": Method("smoothing", options=(("resample", None),)),
}
