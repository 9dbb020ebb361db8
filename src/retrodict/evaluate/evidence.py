"""All that a verdict rests on, and what it tells: which parts of a model or of its imputations are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrodict.evaluate import calibration as imputation
from retrodict.evaluate import goodness, observed
from retrodict.evaluate.calibration import Calibration
from retrodict.evaluate.findings import Finding, mean_finding
from retrodict.evaluate.observed import Observed
from retrodict.smc.diagnostics import FEW

FEW_STREAMS, MANY_STREAMS = 20, 100


@dataclass(frozen=True)
class Evidence:
    """``swapped`` names two types that the model seems to take for each other; ``costs`` are those of decoding.

    ``thinned`` names types that lack events as if they had gone missing, where that is what the mechanism says of them.
    """

    findings: Sequence[Finding]
    about: Mapping[str, Any]
    calibration: Calibration | None
    observed: Observed | None
    swapped: tuple[str, str] | None
    costs: Sequence[float] = ()
    thinned: tuple[str, ...] = ()

    def alarms(self, part: str) -> list[Finding]:
        """The alarms about one part, the surest first."""
        found = [f for f in self.findings if f.alarm and f.part == part]
        return sorted(found, key=lambda f: f.p_value)

    @property
    def doubts(self) -> list[Finding]:
        """What is no alarm, and yet neither fine nor chance at a single look; the worst first."""
        return sorted((f for f in self.findings if f.doubt), key=lambda f: -f.off / max(f.chance, 1e-300))

    @property
    def is_cut(self) -> bool:
        """Whether streams end at an event."""
        return any(f.name == goodness.ENDS for f in self.alarms(goodness.PART))

    @property
    def does_not_fit(self) -> bool:
        """Whether counts or gaps of the complete streams are not the model's."""
        return any(f.name != goodness.ENDS for f in self.alarms(goodness.PART))

    @property
    def too_sure(self) -> bool:
        """Whether the truth falls outside of what is believed possible, rather than to one side of it."""
        wide = (
            imputation.COVERAGE, imputation.RELIABILITY, imputation.TOP, imputation.TENTHS, imputation.DISTANCE,
            imputation.SPREAD,
        )  # fmt: skip
        return any(f.name.startswith(wide) and _is_too_sure(f) for f in self.alarms(imputation.PART))

    @property
    def is_biased(self) -> bool:
        """Whether there are too many, or too few, imputed events."""
        return any(f.name.startswith(("expected", "centre")) for f in self.alarms(imputation.PART))

    @property
    def compared(self) -> int:
        """With how many streams imputed events were compared; none where nothing was hidden."""
        c = self.calibration
        return len(c.hidden) if c is not None and c.hidden.any() else 0

    def resting_on(self, finding: Finding) -> int:
        """The number of streams that a finding rests on."""
        known = {imputation.PART: "imputed_streams", observed.PART: "incomplete_streams"}
        return int(self.about[known.get(finding.part, "streams")])

    @property
    def has_few_families(self) -> bool:
        """Whether most streams' particles are too much alike somewhere."""
        return self.calibration is not None and float(np.median(self.calibration.families)) < FEW

    @property
    def tried(self) -> str:
        """The streams that were compared, in words."""
        streams, known = self.about["streams"], self.about.get("imputed_streams")
        return f"{streams} streams" if known in (None, streams) else f"the {known} streams that time allowed to impute"

    @property
    def is_better_than_nothing(self) -> bool:
        """Whether imputed events are surely nearer to the truth than none are, at the middle cost; so by default."""
        if self.calibration is None or not self.costs:
            return True
        middle = len(self.costs) // 2
        nothing = self.costs[middle] * self.calibration.hidden[:, -1]
        found = mean_finding("", "", self.calibration.distance[:, middle], nothing, tolerance=0.0)
        return found.value + 2.0 * found.error < 1.0


def _is_too_sure(finding: Finding) -> bool:
    """A rank too often extreme, or a probability too high; all else here is too sure whenever it is wrong."""
    return finding.value > finding.expected or not finding.name.startswith((imputation.SPREAD, imputation.TENTHS))
