"""What a check finds: how far something is from what it should be, how sure that is, and when it is an alarm.

A model that was learned is never exactly right, and enough streams would show it. So each finding has a *tolerance*:
the null hypothesis is that the deviation is within it, and the p-value is that of a deviation beyond it. Streams are
the independent units: standard errors come from sums over streams, never from events. Holm's method bounds the
probability of any false alarm by ``LEVEL`` over all findings of a check. What does no harm, such as intervals that are
wider than they need be, is a remark where it would be an alarm, and is in the same bound. What is no alarm, and yet
further off than is fine and than chance takes a single look 19 times in 20, is a *doubt*: the verdict names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

LEVEL = 0.05
KOLMOGOROV_95 = 1.36  # times 1 / sqrt(n): further from the true distribution n values are 1 time in 20
_ERRORS = 2.0  # standard errors, for means the same


@dataclass(frozen=True)
class Finding:
    """One quantity of a check: ``value`` +- ``error``, where ``expected`` +- ``tolerance`` is fine.

    ``side`` 1 or -1: only values above, or below, are not. ``part`` is what it speaks of: the model, the imputation, or
    the observed streams. ``of`` names the type that deviates most, where ``looks`` many types were looked at one by
    one, and ``others`` those that are doubtful, too; of the rest ``also_fine`` are fine, and ``also_few`` too few to
    tell. ``chance`` is how far off a single look is 19 times in 20. A ``harmless`` finding that is surely not fine is a
    ``remark``, any other an ``alarm``.
    """

    part: str
    name: str
    value: float
    expected: float
    error: float
    tolerance: float
    p_value: float
    side: int = 0
    of: str | None = None
    alarm: bool = False
    harmless: bool = False
    remark: bool = False
    chance: float = np.inf
    looks: int = 1
    others: tuple[str, ...] = ()
    also_fine: int = 0
    also_few: int = 0
    doubt: bool = False

    @property
    def off(self) -> float:
        """How far the value is on the wrong side of what is expected."""
        off = self.value - self.expected
        return abs(off) if self.side == 0 else self.side * off

    @property
    def is_doubtful(self) -> bool:
        """Whether a single look like this would be neither fine nor chance."""
        return not self.harmless and self.off > max(self.tolerance, self.chance)

    @property
    def judgement(self) -> str:
        """What to think of the value, in words; what "may be chance" is outside of what is fine."""
        if self.alarm:
            return "ALARM"
        if self.remark:
            return "remark"
        if self.value != self.value:
            return "too few to tell"
        if self.doubt:
            return "doubtful"
        return "may be chance" if self.off > self.tolerance else "fine"


def mean_finding(
    part: str, name: str, rows: ArrayLike, per: ArrayLike | None = None, *, expected: float = 0.0, tolerance: float,
    side: int = 0, least: ArrayLike = 0.0, fewest: float = 0.0, of: str | None = None, harmless: bool = False,
) -> Finding:  # fmt: skip
    """A ratio of sums over N streams, Σ ``rows`` / Σ ``per`` (a mean without ``per``), against ``expected``.

    ``side`` -1 or 1 asks for deviations below or above alone. ``least`` [N] is a variance of each row that is known,
    for rows that vary less by chance: a type of which nothing happened to go missing. With Σ ``per`` below ``fewest``
    there is no alarm, and no doubt.
    """
    x = np.asarray(rows, dtype=np.float64)
    y = np.ones(len(x)) if per is None else np.asarray(per, dtype=np.float64)
    if len(x) < 2 or not y.sum():
        return Finding(part, name, float("nan"), expected, float("nan"), tolerance, 1.0, side, of, harmless=harmless)
    value = x.sum() / y.sum()
    known = float(np.broadcast_to(np.asarray(least, dtype=np.float64), x.shape).sum())
    squares = max(float(((x - value * y) ** 2).sum()), known)
    error = float(np.sqrt(squares * len(x) / (len(x) - 1))) / float(y.sum())
    off = value - expected
    beyond = (abs(off) if side == 0 else side * off) - tolerance
    if beyond <= 0 or y.sum() < fewest:
        p_value = 1.0
    else:
        p_value = 0.0 if error == 0 else float(stats.t.sf(beyond / error, len(x) - 1)) * (2 if side == 0 else 1)
    chance = _ERRORS * error if y.sum() >= fewest else np.inf
    return Finding(
        part, name, float(value), expected, error, tolerance, min(p_value, 1.0), side, of, harmless=harmless,
        chance=chance,
    )  # fmt: skip


def distance_finding(part: str, name: str, uniform: NDArray[np.float64], *, tolerance: float) -> Finding:
    """The largest distance between the distribution of ``uniform`` [n] and the uniform one (Kolmogorov-Smirnov)."""
    n = len(uniform)
    if n < 2:
        return Finding(part, name, float("nan"), 0.0, float("nan"), tolerance, 1.0, 1)
    value = float(stats.kstest(uniform, "uniform").statistic)
    p_value = float(special.kolmogorov(max(value - tolerance, 0.0) * np.sqrt(n)))
    chance = KOLMOGOROV_95 / float(np.sqrt(n))
    return Finding(part, name, value, 0.0, 0.5 / float(np.sqrt(n)), tolerance, p_value, 1, chance=chance)


def legendre(uniform: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first two Legendre polynomials on [0, 1]: of mean 0 and variance 1 if ``uniform`` is, and uncorrelated.

    Neyman's smooth test looks at their means: the first is off where values are shifted, the second where they crowd
    at both ends (above zero) or in the middle.
    """
    centred = uniform - 0.5
    return np.sqrt(12.0) * centred, np.sqrt(180.0) * (centred**2 - 1 / 12)


def worst(findings: Sequence[Finding]) -> list[Finding]:
    """Of several findings of one kind (types, costs) the surest doubt, if any; the p-value that of the least of all."""
    if not findings:
        return []
    chosen = min(findings, key=lambda f: (not f.is_doubtful, f.p_value, -f.off if f.value == f.value else 0.0))
    others = tuple(f.of for f in findings if f is not chosen and f.is_doubtful and f.of is not None)
    p_value = min(1.0, min(f.p_value for f in findings) * len(findings))
    rest = [f.judgement for f in findings if f is not chosen]
    fine, few = rest.count("fine"), rest.count("too few to tell")
    return [replace(chosen, p_value=p_value, looks=len(findings), others=others, also_fine=fine, also_few=few)]


def tally(findings: Sequence[Finding]) -> dict[str, int]:
    """How many comparisons there were of each kind, in words; the kinds add up to all of them."""
    alone = [f.judgement for f in findings]
    found = {
        "wrong": alone.count("ALARM"),
        "remarkable": alone.count("remark"),
        "in doubt": alone.count("doubtful") + sum(len(f.others) for f in findings),
        "fine": alone.count("fine") + sum(f.also_fine for f in findings),
    }
    few = alone.count("too few to tell") + sum(f.also_few for f in findings)
    chance = sum(f.looks for f in findings) - sum(found.values()) - few
    return found | {"off by no more than chance": chance, "with too few events to tell": few}


def raise_alarms(findings: Sequence[Finding], level: float = LEVEL) -> list[Finding]:
    """The findings with alarms and remarks by Holm's method, at a familywise level, and the doubts among the others."""
    order = sorted(range(len(findings)), key=lambda i: findings[i].p_value)
    marked = [replace(f, doubt=f.is_doubtful) for f in findings]
    for done, i in enumerate(order):
        if findings[i].p_value > level / (len(order) - done):
            break
        marked[i] = replace(marked[i], alarm=not marked[i].harmless, remark=marked[i].harmless, doubt=False)
    return marked
