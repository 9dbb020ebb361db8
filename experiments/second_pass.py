"""A proposal that is refreshed by one more pass, beside filtering with as many particles as both passes have.

    python -m experiments.second_pass --streams 40

The first pass filters. Its posterior tells how many missing events of each type to expect in each segment, and its
particles without their weights tell how many filtering draws there. The second pass filters with intensities that are
tilted by the logarithm of the quotient, in each segment and for each type. Printed are the effective size at the end
without resampling, the effective families of a segment, and the distance relative to predicting nothing at a cost of
one gap, for streams of processes on which constants were chosen and of one more.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import retrodict as rd
from experiments.honest import SETTINGS, make_case, streams_of
from experiments.page import table
from retrodict.evaluate import transport_score
from retrodict.events.batch import Batch

_FEW = 0.1  # of an event, added to both expected numbers


class Drive(NamedTuple):
    """What is added to the drive of each type, [R, K]."""

    tilt: Tensor


class Refreshed(rd.Filtering):
    """Filtering whose intensities are tilted in each segment of each stream."""

    kind = "refreshed"

    def __init__(self, model: rd.Model, missingness: rd.Missingness, tilts: list[Tensor]) -> None:
        super().__init__(model, missingness)
        self.tilts = tilts  # of each stream of the set, [segments, K]

    @property
    def is_thinned_model(self) -> bool:
        """It no longer is."""
        return False

    def prepare(self, observed: Batch) -> Tensor:  # type: ignore[override]
        """The tilts of the streams of a batch, [B, S, K]."""
        return torch.nn.utils.rnn.pad_sequence([self.tilts[i] for i in observed.index.tolist()], batch_first=True)

    def ahead(self, prepared: Tensor, stream: Tensor, segment: Tensor) -> Drive:  # type: ignore[override]
        """Those of rows."""
        return Drive(prepared[stream, segment])

    def future_drive(self, ahead: Drive, t: Tensor, past: Tensor | None) -> Tensor:
        """The tilt is constant within a segment."""
        return ahead.tilt if t.dim() == 1 else ahead.tilt[:, None].expand(*t.shape, -1)

    def future_drive_bound(self, ahead: Drive, start: Tensor, stop: Tensor, past: Any) -> Tensor:
        """So it is its own bound."""
        return ahead.tilt


def refresh(observed: rd.StreamSet, filtering: rd.Filtering, particles: int) -> Refreshed:
    """The proposal of the second pass."""
    wanted = rd.impute(observed, filtering, particles, seed=1).chosen.expected_counts(observed)
    alone = rd.impute(observed, filtering, particles, seed=1, resample=None).full
    drawn = replace(alone, weights=np.full_like(alone.weights, 1 / particles)).expected_counts(observed)
    tilts = torch.from_numpy(np.log((wanted + _FEW) / (drawn + _FEW))).to(filtering.model.dtype)
    return Refreshed(filtering.model, filtering.missingness, list(tilts.split((observed.lengths + 1).tolist())))


def row(process: str, setting: str, streams: int, particles: int) -> list[str]:
    """Both ways on one case."""
    case = make_case(process, setting)
    observed, truth = case.missing.censor(streams_of(case, streams, 7), seed=7)
    filtering, cost = rd.Filtering(case.model, case.missing), case.horizon / 16
    cells = []
    for proposal, M in ((filtering, 2 * particles), (refresh(observed, filtering, particles), particles)):
        posterior = rd.impute(observed, proposal, M)
        size = rd.impute(observed, proposal, M, resample=None, islands=1).diagnostics.final_ess
        distance = transport_score(truth, posterior.consensus(cost), cost).distance.sum() / cost / truth.num_events
        families = np.nanmean(posterior.full.effective_families)
        cells += [f"{np.mean(size) / M:.1%}", f"{np.mean(size):.0f}", f"{families:.0f}", f"{distance:.3f}"]
    return [process, setting, *cells]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--particles", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=["neural-99", "neural-100", "neural-106"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row(*case, options.streams, options.particles) for case in product(options.only, SETTINGS)]
    kinds = [
        f"{name}, {what}" for name in ("filtering", "second pass") for what in ("share", "size", "families", "distance")
    ]
    print(table(["process", "missing", *kinds], rows))


if __name__ == "__main__":
    main()
