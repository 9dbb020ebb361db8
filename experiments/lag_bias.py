"""What a lagged ensemble does not know yet: its bias against the lag.

    python -m experiments.lag_bias --out docs/images/lag-bias.png

Filtering with so many particles that the full ensemble is close to the posterior, on the processes on which constants
were chosen (``experiments/honest.py``). Segment i is weighed at observed event i + lag instead of the end. Printed are,
for the expected number of missing events of a segment, its mean (the bias, which is nought where the model is true:
a segment that is drawn given less of the future is less sharp, not shifted) and its root mean square difference from
that of the full ensemble, both as shares of the mean number, and the lag that ``rd.impute`` chooses by default.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from numpy.typing import NDArray

import retrodict as rd
from experiments.honest import TUNING, make_case, streams_of
from experiments.page import table
from retrodict.events.batch import make_batch
from retrodict.random import stream_keys
from retrodict.smc.engines import choose
from retrodict.smc.genealogy import trace_back
from retrodict.smc.options import Options
from retrodict.smc.particles import Result

LAGS = (0, 1, 2, 4, 8, 16)


def run(process: str, streams: int, particles: int) -> Result:
    """Half of the events hidden, one run of all streams."""
    case = make_case(process, "half")
    observed, _ = case.missing.censor(streams_of(case, streams, 5), seed=5)
    proposal = rd.Filtering(case.model, case.missing)
    options = Options.of(particles, "systematic", 0.5, None, None, 100_000)
    batch = make_batch(observed, dtype=case.model.dtype)
    return choose("auto", proposal, options).run(batch, proposal, stream_keys(6, observed.ids), options)


def expected_counts(result: Result, b: int, lag: int) -> NDArray[np.float64]:
    """Expected missing events of each segment of stream b, weighed ``lag`` observed events later, [S]."""
    trace, steps = result.trace, int(result.steps[b])
    heads, parents = trace.heads[b].numpy(), trace.parents[b].numpy()
    depth = _depths(result.forest.before.numpy(), heads[:steps])
    counts = depth.copy()
    counts[1:] -= np.take_along_axis(depth[:-1], parents[: steps - 1].astype(np.int64), 1)
    found = np.zeros(steps)
    for i in range(steps):
        h = min(i + lag, steps - 1)
        weights = torch.softmax(trace.log_weights[b, h], 0).numpy()
        for s in range(h, i, -1):
            weights = np.bincount(parents[s - 1], weights, minlength=len(weights))
        found[i] = weights @ counts[i]
    return found


def _depths(before: NDArray[np.int32], heads: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many events each head ends, [S, M]."""
    depth, at = np.zeros(heads.shape, np.int64), heads.astype(np.int64)
    while (alive := at >= 0).any():
        depth += alive
        at = np.where(alive, before[at], -1)
    return depth


def main() -> None:
    """The table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--particles", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("lag-bias.png"))
    options = parser.parse_args()
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    rows = []
    for process in TUNING:
        result = run(process, options.streams, options.particles)
        full = np.concatenate([expected_counts(result, b, 10**6) for b in range(options.streams)])
        found = [
            np.concatenate([expected_counts(result, b, lag) for b in range(options.streams)]) - full for lag in LAGS
        ]
        shift = np.array([d.mean() for d in found]) / full.mean()
        spread = np.array([np.sqrt((d**2).mean()) for d in found]) / full.mean()
        usual = run(process, options.streams, 500)
        reach = trace_back(usual, torch.arange(options.streams))[2]
        lags = [reach[b, i] - i for b in range(options.streams) for i in range(int(usual.steps[b]) - 1)]
        cells = [f"{a:+.3f}, {b:.3f}" for a, b in zip(shift, spread, strict=True)]
        rows.append([process, *cells, f"{np.mean(lags):.1f}"])
        axis.plot(LAGS, spread, marker="o", label=f"{process}: root mean square")
        axis.plot(LAGS, shift, marker=".", linestyle=":", color=axis.lines[-1].get_color())
    axis.axhline(0, color="0.7", linewidth=0.8)
    axis.set_xlabel("lag, observed events")
    axis.set_ylabel("difference of the expected count,\nshare of its mean")
    axis.legend(frameon=False, title="dotted: mean")
    figure.savefig(options.out, dpi=150)
    print(table(["process", *(f"lag {lag}" for lag in LAGS), "default lag"], rows))


if __name__ == "__main__":
    main()
