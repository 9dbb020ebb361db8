"""What the demo needs of the embedded flights: splits, a mechanism, a trained smoother."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import as_file, files

from retrodict.events.stream_set import Splits, StreamSet
from retrodict.missingness import ByType
from retrodict.proposals.base import Proposal
from retrodict.proposals.proposal_folder import load_proposal


def sample_splits(streams: StreamSet) -> Splits:
    """The parts of the embedded sample on which the demo's model was trained, stopped early, and never saw."""
    return streams.split(0.7, 0.15, seed=0)


def hidden_departures(types: Sequence[str]) -> ByType:
    """The demo's missingness: every departure goes unrecorded, every arrival is seen."""
    return ByType({name: 1.0 for name in types if name.startswith("depart")}).bind(types)


def flights_smoother() -> Proposal:
    """A small smoother for the embedded flights with hidden departures, trained by scripts/make_demo_model.py."""
    with as_file(files("retrodict.datasets") / "flights_smoother") as folder:
        return load_proposal(folder)
