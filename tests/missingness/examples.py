"""One or more examples of every mechanism, each with its rates written out again in plain NumPy.

Three types; streams start at 10 and last 6. Type 1 never goes missing in those that look at preceding events, so that
what they look at is known once the stream is observed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats

from retrodict.events.stream import EventStream
from retrodict.missingness import (
    After,
    ByType,
    Context,
    Contextual,
    Custom,
    Either,
    Missingness,
    ReportingDelay,
    TimeVarying,
    Windows,
)

START, END = 10.0, 16.0
TYPES = ("0", "1", "2")
DELAYS = [0.2, 0.4, 0.5, 1.0, 1.1, 2.5, 4.0]


class Example(NamedTuple):
    """A mechanism, with its rates written out by hand."""

    mechanism: Missingness
    rate: Callable[[int, np.ndarray, EventStream], np.ndarray]  # ρ of a type at times since the start [N]
    looks_back: bool = False  # at the preceding events
    is_tight: bool = True  # whether its bound is near the rate over short intervals
    is_saved: bool = True  # whether it can be saved


def within(t: np.ndarray, *windows: tuple[float, float]) -> np.ndarray:
    return np.any([(t >= a) & (t < b) for a, b in windows], axis=0)


def left(t: np.ndarray) -> np.ndarray:
    return END - START - t


def contextual(seed: int = 1, blind: bool = True, every: float | None = None, spread: float = 1.0) -> Contextual:
    """A random network that (``blind``) sees type 1 alone and never hides it."""
    made = Contextual(list(TYPES), [0.3, 1.5], 4, seed=seed, every=every)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=spread, generator=generator)
        if blind:
            made.network[0].weight[:, [0, 1, 4, 5]] = 0.0
            made.network[2].weight[1], made.network[2].bias[1] = 0.0, -800.0
    return made


def _contextual_rate(k: int, t: np.ndarray, stream: EventStream) -> np.ndarray:
    made = contextual()
    first, last = ([p.detach().numpy() for p in layer.parameters()] for layer in (made.network[0], made.network[2]))
    traces = np.zeros((len(t), 3, 2))
    for when, kind in zip(stream.times - stream.start, stream.types, strict=True):
        lag = t - when
        traces[:, kind] += np.where(lag[:, None] > 0, np.exp(-lag[:, None] / [0.3, 1.5]), 0)
    inside = np.tanh(np.log1p(traces.reshape(len(t), 6)) @ first[0].T + first[1])
    return 1 / (1 + np.exp(-np.clip(inside @ last[0][k] + last[1][k], -700, 700))) * (k != 1)


def _after_rate(k: int, t: np.ndarray, stream: EventStream) -> np.ndarray:
    triggers = (stream.times - stream.start)[stream.types == 1]
    lag = t[:, None] - triggers
    soon = ((lag > 0) & (lag < 0.7)).any(1)
    return np.where(soon, (0.9, 0.0, 0.1)[k], (0.2, 0.0, 0.5)[k])


def _wave(t: torch.Tensor, context: Context | None) -> torch.Tensor:
    assert context is not None
    return 0.4 * (1 + torch.sin(2 * (t + context.start)))


def _daily(k: int, t: np.ndarray, _: EventStream) -> np.ndarray:
    return np.where(within((t + START) % 4, (3.5, 4.0), (0.0, 0.5)), 1.0, 0.0)


def _table(k: int, t: np.ndarray, _: EventStream) -> np.ndarray:
    rates = ([0.1, 0.9, 0.3], None, [0.0, 0.5, 1.0])[k]
    return np.zeros_like(t) if rates is None else np.interp(t + START, [1, 2, 4], rates, period=5)


EXAMPLES: dict[str, Example] = {
    "by type": Example(ByType([0.5, 0.0, 1.0]), lambda k, t, _: np.full_like(t, (0.5, 0.0, 1.0)[k])),
    "windows": Example(
        Windows([(1.0, 2.5), (4.0, 4.2)], types=["0", "2"], inside=0.9, outside=0.1),
        lambda k, t, _: np.where(k == 1, 0, np.where(within(t, (1.0, 2.5), (4.0, 4.2)), 0.9, 0.1)),
    ),
    "narrow window": Example(
        Windows([(4.1, 4.3)], types="2"), lambda k, t, _: np.where((k == 2) & within(t, (4.1, 4.3)), 1.0, 0.0)
    ),
    "windows that recur": Example(Windows([(3.5, 0.5)], every=4.0), _daily),
    "windows by stream": Example(
        Windows([(11.0, 12.0)], by_stream={"a": [(13.0, None)], "zz": [(0.0, 99.0)]}, clock="axis", outside=0.2),
        lambda k, t, s: np.where(within(t, (1.0, 2.0)) | ((s.id == "a") & (t >= 3.0)), 1.0, 0.2),
    ),
    "time varying": Example(TimeVarying([1, 2, 4], {"0": [0.1, 0.9, 0.3], "2": [0.0, 0.5, 1.0]}, every=5), _table),
    "steps": Example(
        TimeVarying([0, 2, 2.5], [0.1, 0.8, 0.0], steps=True),
        lambda k, t, _: np.where(t < 2, 0.1, np.where(t < 2.5, 0.8, 0.0)),
    ),
    "exponential delay": Example(
        ReportingDelay("exponential", mean={"0": 0.8, "2": 3.0}),
        lambda k, t, _: np.zeros_like(t) if k == 1 else np.exp(-left(t) / (0.8, 0, 3.0)[k]),
    ),
    "gamma delay": Example(
        ReportingDelay("gamma", mean=1.5, shape=0.7, wait=0.5),
        lambda k, t, _: stats.gamma(0.7, scale=1.5 / 0.7).sf(left(t) + 0.5),
    ),
    "log-normal delay": Example(
        ReportingDelay("lognormal", median={"0": 0.2, "1": 1.0, "2": 0.5}, spread=0.8),
        lambda k, t, _: stats.lognorm(0.8, scale=(0.2, 1.0, 0.5)[k]).sf(left(t)),
    ),
    "empirical delay": Example(
        ReportingDelay("empirical", delays=DELAYS), lambda k, t, _: 1 - np.interp(left(t), DELAYS, np.linspace(0, 1, 7))
    ),
    "after": Example(After("1", 0.7, rates={"0": 0.9, "2": 0.1}, otherwise={"0": 0.2, "2": 0.5}), _after_rate, True),
    "contextual": Example(contextual(), _contextual_rate, True),
    "either": Example(
        ByType(0.3) * Windows([(3.5, 0.5)], every=4.0) * ReportingDelay("exponential", mean=0.8),
        lambda k, t, s: 1 - 0.7 * (1 - _daily(k, t, s)) * (1 - np.exp(-left(t) / 0.8)),
    ),
    "either, looking back": Example(
        Either(After("1", 0.7, rates={"0": 0.9, "2": 0.1}, otherwise={"0": 0.2, "2": 0.5}), contextual()),
        lambda k, t, s: 1 - (1 - _after_rate(k, t, s)) * (1 - _contextual_rate(k, t, s)),
        True,
    ),
    "custom": Example(
        Custom(_wave, bound=0.8), lambda k, t, _: 0.4 * (1 + np.sin(2 * (t + START))), is_tight=False, is_saved=False
    ),
}
