"""Small posteriors to draw: dated or not, with names that try to break out of a page."""

from __future__ import annotations

import numpy as np

import retrodict as rd
from retrodict.events.time_axis import TimeAxis

MODEL, MISSING = rd.Hawkes([0.5, 0.1], [[0.0, 0.8], [0.0, 0.0]], 2.0), rd.ByType([1.0, 0.0])
NEW_YORK = TimeAxis("hour", int(np.datetime64("2013-03-10T00:00", "ns").astype(np.int64)), "America/New_York")
HOSTILE = (
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"'><svg onload=window.hacked=1>",
    "{{style}} <!-- <script> ${window.hacked=1} \u2028\u2029 \x00\x07",
    "javascript:window.hacked=1 &lt;b&gt; $\\frac{1}{2}$",
    "\u202egnitirw tfel-ot-thgir 🚕 " + "x" * 3000,
    "",
)


def streams(count: int, end: float = 10.0, axis: TimeAxis | None = None, ids=None, types=("call", "trip")):
    drawn = rd.simulate(MODEL, count, end=end, seed=1)
    names = ids or [f"cab-{i}" for i in range(count)]
    named = [rd.EventStream(s.times, s.types, s.start, s.end, name) for s, name in zip(drawn, names, strict=True)]
    return rd.StreamSet(named, types=types, axis=axis)


def imputed(complete: rd.StreamSet, particles: int = 40) -> tuple[rd.Posterior, rd.StreamSet]:
    """A posterior with every event of the first type missing, and what is really missing."""
    observed, hidden = MISSING.censor(complete)
    return rd.impute(observed, rd.Filtering(MODEL, MISSING), particles=particles, seed=0), hidden


def poisson(rates: list[float], complete: list[rd.EventStream], types=None, missing: float = 0.5) -> rd.Posterior:
    """A posterior of streams as they are, of a Poisson process."""
    names = types or [str(k) for k in range(len(rates))]
    return rd.impute(
        rd.StreamSet(complete, types=names), rd.Filtering(rd.Poisson(rates), rd.ByType(missing)), particles=20
    )
