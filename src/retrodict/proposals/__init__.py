"""Proposals q(z | x): where missing events are drawn from."""

from collections.abc import Callable

from retrodict.proposals.base import Proposal
from retrodict.proposals.filtering import Filtering
from retrodict.proposals.smoothing import Smoothing

# How a saved proposal of each kind is made again, from a model, a mechanism and its configuration.
PROPOSALS: dict[str, Callable[..., Proposal]] = {p.kind: p.from_config for p in (Filtering, Smoothing)}
