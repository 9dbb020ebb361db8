"""How far a posterior is to be trusted: effective sample sizes, ancestry, and plain words about both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.stream_set import StreamSet


@dataclass(frozen=True)
class Diagnostics:
    """For N streams with up to S - 1 observed events.

    ``ess`` [N, S]: effective sample size at each observed event and at the end (before resampling), NaN beyond.
    ``ancestors`` [N, S]: how many distinct particles of that moment still have descendants at the end, NaN beyond.
    ``resamplings`` [N]; ``largest_weight`` [N]; ``accepted`` [N]: share of moves accepted, NaN where none were made.
    """

    ess: NDArray[np.float64]
    ancestors: NDArray[np.float64]
    resamplings: NDArray[np.int64]
    largest_weight: NDArray[np.float64]
    accepted: NDArray[np.float64]

    @classmethod
    def concatenate(cls, parts: Sequence[Diagnostics], order: NDArray[np.int64]) -> Diagnostics:
        """The diagnostics of parts of a set, in the order of the set."""
        width = max(p.ess.shape[1] for p in parts)

        def joined(name: str) -> NDArray[Any]:
            arrays = [getattr(p, name) for p in parts]
            if arrays[0].ndim == 2:
                arrays = [np.pad(a, ((0, 0), (0, width - a.shape[1])), constant_values=np.nan) for a in arrays]
            return np.concatenate(arrays)[order]

        return cls(*(joined(field.name) for field in fields(cls)))

    @property
    def final_ess(self) -> NDArray[np.float64]:
        """Effective sample size at the end, [N]."""
        last = (~np.isnan(self.ess)).sum(1) - 1
        return self.ess[np.arange(len(self.ess)), last]

    @property
    def middle_ancestors(self) -> NDArray[np.float64]:
        """How many distinct particles halfway (by observed events) still have descendants at the end, [N]."""
        steps = (~np.isnan(self.ancestors)).sum(1)
        return self.ancestors[np.arange(len(self.ancestors)), (steps - 1) // 2]

    def complaints(
        self, observed: StreamSet, log_evidence: NDArray[np.float64], past_is_thin: NDArray[np.bool_]
    ) -> list[str]:
        """What is wrong, in words; empty where nothing is."""
        texts = []

        def complain(bad: NDArray[np.bool_], what: str, remedy: str) -> None:
            if bad.any():
                first = observed.ids[int(np.argmax(bad))]
                more = f" and {int(bad.sum()) - 1} more" if bad.sum() > 1 else ""
                texts.append(f"stream {first!r}{more}: {what} {remedy}")

        impossible = ~np.isfinite(log_evidence)
        complain(
            impossible,
            "the model gives what was observed no probability at all, so its particles mean nothing and are not used.",
            "Check the missing rates (a type that is always missing was observed?) and the model's training data.",
        )
        fine = ~impossible
        complain(
            fine & (self.final_ess < 5),
            "fewer than 5 effective particles are left at the end.",
            "Use more particles, or a smoothing proposal trained for these missing rates.",
        )
        complain(
            fine & (self.largest_weight > 0.5), "one particle has more than half of the weight.", "Use more particles."
        )
        complain(
            fine & past_is_thin & (self.final_ess >= 5),
            "fewer than 5 different guesses of its first half are left: earlier events look surer than they are.",
            "Use more particles, a smoothing proposal, or (more) moves after sampling.",
        )
        with np.errstate(invalid="ignore"):
            # Compared with the other streams, per observed event: far below the rest means the model is surprised.
            score = log_evidence / np.maximum(observed.lengths, 1)
            if fine.sum() >= 20:
                low, middle = np.quantile(score[fine], [0.25, 0.5])
                complain(
                    fine & (score < middle - 8 * max(middle - low, 1e-9)),
                    "the model finds what was observed far less plausible than in the other streams.",
                    "Look at it before you trust its imputation.",
                )
        return texts


def surviving_ancestors(parents: Tensor, steps: Tensor) -> Tensor:
    """Distinct particles at each meeting that have descendants at the end, [N, S] float64, from parents [N, S, M].

    ``steps`` [N] is the number of meetings of each stream; NaN beyond.
    """
    N, S, M = parents.shape
    result = torch.full((N, S), torch.nan, dtype=torch.float64, device=parents.device)
    lineage = torch.arange(M, device=parents.device).expand(N, M)
    for s in range(S - 1, -1, -1):
        live = s < steps
        # Who, after the resampling at meeting s, has descendants; then who their parents before it were.
        lineage = torch.where(live[:, None], parents[:, s].long().gather(1, lineage), lineage)
        marked = torch.zeros(N, M, dtype=torch.bool, device=parents.device).scatter_(1, lineage, True)
        result[:, s] = torch.where(live, marked.sum(1), torch.nan)
    return result
