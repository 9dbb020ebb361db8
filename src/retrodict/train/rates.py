"""Missing rates by type with standard errors: Newton steps up the evidence, and words where streams cannot tell."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from retrodict.errors import SuspicionNotice
from retrodict.events.stream_set import StreamSet, describe_types
from retrodict.missingness.by_type import ByType
from retrodict.proposals.base import Proposal
from retrodict.smc.impute import impute
from retrodict.smc.unlike import rates_on_trial
from retrodict.train.information import Information, Moments, information, moments, pool

_PARTS, _STEPS, _MOST = 4, 8, 32  # independent parts of the particles, steps, and runs of a step: the latter at most
_PRECISE = 0.15  # relative error of the information along any direction that is good enough
_NEAR = 0.05  # squared distance to the top, in standard errors: nearer need not be
_WIDE = 1.5  # a standard error of the log odds above which a rate is as good as unknown
_FLAT = 0.05  # least share of the complete information that a step relies on
_FAR = 13.8  # log odds of the rates next to 0 and 1 that are still learned


@dataclass(frozen=True)
class RateEstimates:
    """Learned rates of P types, and how well the streams know them if the model is right."""

    types: tuple[str, ...]
    rates: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]  # [P, P] of log odds; the Monte Carlo error counts too
    monte_carlo: tuple[float, ...]  # [P]: the part of each variance that more particles would take away
    unknown: tuple[str, ...] = ()  # types whose rates the streams do not tell
    doubts: tuple[str, ...] = field(default=())  # why, and what to do

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Of the rates, [P]; NaN where the streams do not tell."""
        rates = np.array(self.rates)
        return np.where(self._known(), rates * (1 - rates) * self._spread(), np.nan)

    def intervals(self, level: float = 0.95) -> NDArray[np.float64]:
        """Both ends for each rate, [P, 2]: symmetric in the log odds, and 0 and 1 where nothing is known."""
        width = NormalDist().inv_cdf(0.5 + level / 2) * self._spread()
        middle = _log_odds(np.array(self.rates))
        ends = torch.sigmoid(torch.as_tensor(np.stack([middle - width, middle + width], 1))).numpy()
        return np.where(self._known()[:, None], ends, [0.0, 1.0])

    def to_frame(self, library: str = "pandas") -> Any:
        """One row a type: rate, standard error, and a 95 % interval."""
        import pandas as pd

        from retrodict.events.io.tables_out import in_library  # loads Arrow

        ends = self.intervals()
        frame = pd.DataFrame(
            {"type": self.types, "rate": self.rates, "standard_error": self.standard_errors, "low": ends[:, 0],
             "high": ends[:, 1]}
        )  # fmt: skip
        return in_library(frame, library)

    def lines(self) -> list[str]:
        """The same in words, one line a type."""
        rows = zip(self.types, self.rates, self.standard_errors, self.intervals(), strict=True)
        return [
            f"{name}: {rate:.4g}, not identified" if np.isnan(error) else
            f"{name}: {rate:.4g}, standard error {error:.2g}, 95 % interval {low:.4g} to {high:.4g}"
            for name, rate, error, (low, high) in rows
        ]  # fmt: skip

    def warn(self) -> None:
        """Say, as one notice each, which rates are not to be relied on."""
        for text in self.doubts:
            warnings.warn(text, SuspicionNotice, stacklevel=3)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> RateEstimates:
        """What ``to_dict`` gave, after a round trip through JSON."""
        values: dict[str, Any] = {name: tuple(value) for name, value in content.items()}
        values["covariance"] = tuple(map(tuple, content["covariance"]))
        return cls(**values)

    def _known(self) -> NDArray[np.bool_]:
        return np.array([name not in self.unknown for name in self.types], dtype=bool)

    def _spread(self) -> NDArray[np.float64]:
        return np.sqrt(np.diag(np.array(self.covariance).reshape(len(self.types), -1)))


class _Measured:
    """The information at the proposal's rates from independent parts of the particles, and its Monte Carlo error."""

    def __init__(self, proposal: Proposal, streams: StreamSet, types: NDArray[np.int64], particles: int, seed: int):
        self.proposal, self.streams, self.types, self.particles, self.seed = proposal, streams, types, particles, seed
        self.rates = proposal.missingness.rates(torch.zeros(())).numpy()[types]
        self.parts: list[Moments] = []
        self.more()

    def more(self) -> None:
        """One more run for each part."""
        done = sum(part.runs for part in self.parts)
        seeds = range(self.seed + done, self.seed + done + _PARTS)
        with rates_on_trial():
            new = [
                moments(impute(self.streams, self.proposal, self.particles, seed=seed), self.types) for seed in seeds
            ]
        self.parts = [pool(pair) for pair in zip(self.parts, new, strict=True)] if self.parts else new
        self.at = self._of(self.parts)
        self.without = [self._of([part for part in self.parts if part is not left]).matrix for left in self.parts]

    def directions(self, inside: list[int]) -> list[tuple[float, float, NDArray[np.float64]]]:
        """Information, its error and the direction, [P'], along each principal axis of some of the types."""
        block = np.ix_(inside, inside)
        values, vectors = np.linalg.eigh(self.at.matrix[block])
        left_out = np.array([[v @ matrix[block] @ v for v in vectors.T] for matrix in self.without])
        errors = np.sqrt((len(self.parts) - 1) * left_out.var(0))
        return list(zip(values.tolist(), errors.tolist(), vectors.T, strict=True))

    def settle(self) -> None:
        """Add runs until the information is known well enough for a standard error."""
        everything = list(range(len(self.types)))
        while sum(part.runs for part in self.parts) < _MOST and any(
            error > _PRECISE * abs(value) for value, error, _ in self.directions(everything)
        ):
            self.more()

    def _of(self, parts: Sequence[Moments]) -> Information:
        return information(parts, self.streams, self.types, self.rates)


def estimate_rates(
    proposal: Proposal, streams: StreamSet, *, particles: int = 50, seed: int = 0, move: bool = True
) -> tuple[ByType, RateEstimates]:
    """The likeliest rates by type near those of the proposal's mechanism, and their standard errors.

    Each step takes ``particles`` in each of a few independent runs. With ``move=False`` the rates stay as they are.
    Types with rates 0 and 1 keep them.
    """
    given = proposal.missingness
    assert isinstance(given, ByType)
    all_rates = given.rates(torch.zeros(())).numpy().copy()
    types = np.flatnonzero(learnable(given))
    theta = _log_odds(all_rates[types])
    try:
        for step in range(_STEPS if move else 1):
            all_rates[types] = _rates(theta)
            proposal.missingness = _by_type(streams.types, all_rates)
            measured = _Measured(proposal, streams, types, particles, seed * 1_000_003 + 500_000 + step * _MOST)
            change, near = _step(measured.at, _NEAR if move else 1.0)
            if near or not move:
                measured.settle()
                change, _ = _step(measured.at, _NEAR)
            theta = np.clip(theta + np.clip(change, -1, 1) * move, -_FAR, _FAR)
            if near:
                break
    finally:
        proposal.missingness = given
    all_rates[types] = _rates(theta)
    return _by_type(streams.types, all_rates), _estimates(streams, types, theta, measured, near)


def learnable(mechanism: ByType) -> NDArray[np.bool_]:
    """Which types, [K], have rates that can be learned: neither 0 nor 1."""
    rates = mechanism.rates(torch.zeros(())).numpy()
    return (rates > 0) & (rates < 1)


def _step(at: Information, near: float) -> tuple[NDArray[np.float64], bool]:
    """A Newton step up the evidence, [P], and whether it stays within a fraction of the standard errors, squared."""
    inverse, curve = _inverse(at)
    change = inverse @ at.score
    noise = float(np.trace(inverse @ at.noise))
    return change, bool(change @ curve @ change <= near * len(change) + 2 * noise)


def _inverse(at: Information) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The inverse information, [P, P], and the information: with no direction flatter than a step can rely on."""
    scale = np.sqrt(at.complete + 1e-6)
    values, vectors = np.linalg.eigh(at.matrix / np.outer(scale, scale))
    values = np.maximum(values, _FLAT)
    inverse = (vectors / values) @ vectors.T / np.outer(scale, scale)
    return inverse, (vectors * values) @ vectors.T * np.outer(scale, scale)


def _estimates(
    streams: StreamSet, types: NDArray[np.int64], theta: NDArray[np.float64], measured: _Measured, converged: bool
) -> RateEstimates:
    at, names = measured.at, [streams.types[k] for k in types]
    inverse, _ = _inverse(at)
    noise = inverse @ at.noise @ inverse
    unknown, doubts = _edges(at, names)
    inside = [p for p, name in enumerate(names) if name not in unknown]
    for group in _flat_groups(measured, inside):
        some = [names[p] for p in group]
        unknown += some
        doubts.append(_not_identified(some))
    if not converged:
        doubts.append("the evidence still rises beyond these missing rates: train for longer, or use more particles.")
    return RateEstimates(
        tuple(names),
        tuple(_rates(theta).tolist()),
        tuple(map(tuple, (inverse + noise).tolist())),
        tuple((np.diag(noise) / np.diag(inverse + noise)).tolist()),
        tuple(dict.fromkeys(unknown)),
        tuple(doubts),
    )


def _edges(at: Information, names: list[str]) -> tuple[list[str], list[str]]:
    """Types whose rates came out next to 0 or 1, where curvature says nothing, and words about them."""
    sides = {
        "0: no event of them seems to be missing": (at.missing < 1) & (at.observed >= 1),
        "1: hardly any event of them was observed": at.observed < 1,
    }
    unknown, doubts = [], []
    for where, there in sides.items():
        some = [name for name, is_there in zip(names, there, strict=True) if is_there]
        if some:
            unknown += some
            doubts.append(
                f"the missing rates of {describe_types(some)} go to {where}. No standard error can be given there: "
                "leave them out of what is learned, or give the rates."
            )
    return unknown, doubts


def _flat_groups(measured: _Measured, inside: list[int]) -> list[list[int]]:
    """Types, by position, along whose rates the evidence is flat as far as its Monte Carlo error lets one see."""
    return [
        [inside[p] for p in np.flatnonzero(np.abs(direction) > 0.3)]
        for value, error, direction in measured.directions(inside)
        if value < max(1 / _WIDE**2, 2 * error)
    ]


def _not_identified(some: list[str]) -> str:
    if len(some) == 1:
        what, which = f"the missing rate of {some[0]!r} is not identified", "its rate"
    else:
        what = f"the missing rates of {describe_types(some)} are not identified: at most a combination of them is known"
        which = "one of the rates"
    return (
        f"{what}, the evidence being nearly the same over a wide range. Give more streams, or {which} (0 and 1 are "
        "kept as given), or use more particles if the curvature is lost in Monte Carlo noise; compare imputations "
        "under several rates (--sensitivity, rd.sensitivity)."
    )


def _by_type(names: Sequence[str], rates: NDArray[np.float64]) -> ByType:
    return ByType(dict(zip(names, rates.tolist(), strict=True))).bind(names)


def _rates(theta: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-theta))


def _log_odds(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(rates) - np.log1p(-rates)
