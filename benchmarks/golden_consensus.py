"""Our consensus against the 2019 decoder's on stored ensembles: risk, improvement, certificate.

python benchmarks/golden_consensus.py ../shared/golden/consensus_ensembles.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import retrodict as rd


def main() -> None:
    stored = json.loads(Path(sys.argv[1]).read_text())
    improvements, excesses, gaps = [], [], []
    for ensemble in stored["ensembles"]:
        particles, end = [], 1.0 + max((t for p in ensemble["particles"] for _, t in p), default=0.0)
        for events in ensemble["particles"]:
            events = sorted(events, key=lambda event: event[1])
            types = np.array([k for k, _ in events], dtype=np.int64)
            particles.append(rd.EventStream([t for _, t in events], types, end=end))
        for old in ensemble["by_C"]:
            cost = old["C"]
            exact = rd.consensus(particles, ensemble["weights"], float(cost))
            local = rd.consensus(particles, ensemble["weights"], float(cost), method="local")
            theirs = min(value for name, value in old.items() if name.startswith("bayes_risk"))
            improvements.append(1 - exact.risk / theirs if theirs > 0 else 0.0)
            excesses.append(local.risk / exact.risk - 1 if exact.risk > 0 else 0.0)
            gaps.append(exact.gap)
    print(f"{len(gaps)} decodes: risk below the 2019 decoder's by {np.mean(improvements):.1%} on average and")
    print(
        f"{max(improvements):.1%} at most, never above ({min(improvements):.1e}); largest certified gap {max(gaps):.1e}"
    )
    print(f"local search above the optimum by {np.mean(excesses):.3%} on average, {max(excesses):.2%} at most")


if __name__ == "__main__":
    main()
