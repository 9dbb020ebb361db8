"""Proposals q(z | x): where missing events are drawn from."""

from retrodict.proposals.base import Proposal
from retrodict.proposals.filtering import Filtering
from retrodict.proposals.smoothing import Smoothing

PROPOSALS: dict[str, type[Proposal]] = {p.kind: p for p in (Filtering, Smoothing)}
