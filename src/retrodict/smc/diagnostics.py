"""How far a posterior is to be trusted: effective sample sizes, families, and plain words about both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrodict.errors import ModelError

if TYPE_CHECKING:
    from retrodict.smc.posterior import Posterior

_CHECK = "Check the missing rates (a type that is always missing was observed?) and the model's training data"
_CORRECT = "Correct the mechanism (of a window the day, the time zone, or whether days come first) or the data"
FEW = 10.0  # effective families below which a stretch of time is complained about


@dataclass(frozen=True)
class Diagnostics:
    """For N streams with up to S - 1 observed events; the effective families are those of the guesses.

    ``ess`` [N, S]: effective sample size at each observed event and at the end (before resampling), NaN beyond.
    ``ahead`` [N, S]: by how many observed events the lagged ensemble looks ahead of each segment.
    ``resamplings`` [N]: at how many observed events particles were resampled.
    """

    ess: NDArray[np.float64]
    ahead: NDArray[np.int64]
    resamplings: NDArray[np.int64]

    @classmethod
    def concatenate(cls, parts: Sequence[Diagnostics], order: NDArray[np.int64]) -> Diagnostics:
        """The diagnostics of parts of a set, in the order of the set."""
        width = max(p.ess.shape[1] for p in parts)

        def joined(name: str) -> NDArray[Any]:
            arrays = [getattr(p, name) for p in parts]
            if arrays[0].ndim == 2:
                nothing = np.nan if arrays[0].dtype.kind == "f" else 0
                arrays = [np.pad(a, ((0, 0), (0, width - a.shape[1])), constant_values=nothing) for a in arrays]
            return np.concatenate(arrays)[order]

        return cls(*(joined(field.name) for field in fields(cls)))

    def of_streams(self, which: NDArray[np.int64], segments: int) -> Diagnostics:
        """The diagnostics of some of the streams, which have up to this many segments."""
        return Diagnostics(self.ess[which, :segments], self.ahead[which, :segments], self.resamplings[which])

    @property
    def final_ess(self) -> NDArray[np.float64]:
        """Effective sample size at the end, [N]."""
        last = (~np.isnan(self.ess)).sum(1) - 1
        return self.ess[np.arange(len(self.ess)), last]


def doubts(posterior: Posterior) -> dict[str, NDArray[np.bool_]]:
    """Which streams are not to be trusted, [N], by the reason: "impossible", "few" (families) or "implausible"."""
    impossible = ~posterior.is_possible
    stream, thin = _thin_segments(posterior)
    few = np.bincount(stream[thin], minlength=len(posterior)) > 0
    return {"impossible": impossible, "few": few, "implausible": _implausible(posterior)}


def surprise(posterior: Posterior) -> NDArray[np.float64]:
    """By how many nats an observed event each stream is less plausible than the median one, [N]."""
    with np.errstate(invalid="ignore"):
        score = posterior.log_evidence / np.maximum(posterior.observed.lengths, 1)
    fine = posterior.is_possible
    return np.where(fine, (np.median(score[fine]) if fine.any() else 0.0) - score, np.inf)


def none_possible(conflict: str | None, names: Sequence[object] = ()) -> ModelError:
    """The error for streams, perhaps of these names, of which the model gives none any probability."""
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    listed = f" ({', '.join(map(repr, names[:20]))}{more})" if names else ""
    return ModelError(
        f"the model gives none of the streams{listed} any probability, so that nothing can be imputed. "
        f"{conflict or _CHECK}."
    )


def complaints(posterior: Posterior) -> Iterator[str]:
    """What should keep one from trusting an answer, in words; nothing where nothing should."""
    observed = posterior.observed

    def name(bad: NDArray[np.bool_], what: str) -> Iterator[str]:
        if bad.any():
            first = observed.ids[int(np.argmax(bad))]
            more = f" and {int(bad.sum()) - 1} more" if bad.sum() > 1 else ""
            yield f"stream {first!r}{more}: {what}"

    conflict = posterior.about.get("conflict")
    remedy = f"so its particles mean nothing. {_CHECK}."
    if conflict is not None:
        remedy = f"so nothing is imputed there: {conflict}. {_CORRECT}."
    yield from name(~posterior.is_possible, f"the model gives what was observed no probability at all, {remedy}")
    yield from _thin_stretches(posterior)
    yield from name(
        _implausible(posterior),
        "the model finds what was observed far less plausible than in the other streams. Look at it before "
        "you trust its imputation.",
    )


def _implausible(posterior: Posterior) -> NDArray[np.bool_]:
    """Streams far below the rest in log evidence per observed event, [N]: the model is surprised."""
    fine, high = posterior.is_possible, surprise(posterior)
    if fine.sum() < 20:
        return np.zeros(len(posterior), dtype=bool)
    return fine & (high > 8 * max(np.quantile(high[fine], 0.75), 1e-9))


def _thin_segments(posterior: Posterior) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The stream of each segment, and whether events are missing there and few families are left."""
    observed, guesses = posterior.observed, posterior.chosen
    stream = np.repeat(np.arange(len(observed)), observed.lengths + 1)
    expected = guesses.expected_counts(observed).sum(1)
    families = guesses.effective_families
    families = families[~np.isnan(families)]  # segment by segment, as the expected counts are
    return stream, (families < FEW) & (expected > 0.1) & posterior.is_possible[stream]


def _thin_stretches(posterior: Posterior) -> Iterator[str]:
    """Streams with segments in which events are missing and few families are left, and the longest such stretch."""
    observed = posterior.observed
    stream, thin = _thin_segments(posterior)
    if not thin.any():
        return
    times = np.bincount(stream[thin], minlength=len(observed))
    worst = int(np.argmax(times))
    own = np.flatnonzero(thin & (stream == worst)) - (observed.offsets[worst] + worst)
    edges = np.array([observed.starts[worst], *observed[worst].times, observed.ends[worst]])
    runs = np.split(own, np.flatnonzero(np.diff(own) > 1) + 1)
    longest = max(runs, key=lambda run: float(edges[run[-1] + 1] - edges[run[0]]))
    since, until = (observed.axis.label(float(t)) for t in (edges[longest[0]], edges[longest[-1] + 1]))
    others = int((times > 0).sum()) - 1
    more = f", and {others} more stream{'s' if others > 1 else ''}" if others else ""
    yield (
        f"stream {observed.ids[worst]!r} between {since} and {until}{more}: fewer than {FEW:.0f} independent guesses "
        "are left there, so that what is imputed looks surer than it is. Use more particles, or a smoother trained for "
        "these missing rates."
    )
