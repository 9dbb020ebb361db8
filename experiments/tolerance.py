"""How near to the least risk decoding should come: seconds and risk against ``tolerance``.

    python -m experiments.tolerance --streams 100

On the processes on which constants were chosen (``experiments/honest.py``), also one of ten times the length, on one
thread. Printed are milliseconds a stream for a consensus with the choice of its ensemble, and the risk under an
independent run relative to that of the first tolerance, in percent.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import torch

import retrodict as rd
from experiments.honest import TUNING, make_case, streams_of
from experiments.page import table

TOLERANCES = (1e-3, 3e-3, 1e-2, 3e-2)
GAPS = (3.0, 10.0)  # costs: where decoding is slow


def rows_of(process: str, setting: str, streams: int) -> list[list[str]]:
    """A row for each cost."""
    case = make_case(process, setting)
    observed, _ = case.missing.censor(streams_of(case, streams, 7), seed=7)
    posterior = rd.impute(observed, rd.Filtering(case.model, case.missing))
    mean_gap = make_case(process.partition("x")[0], setting).horizon / 16
    posterior.decide([mean_gap])  # compiles
    rows = []
    for gaps in GAPS:
        cells, least = [], None
        for tolerance in TOLERANCES:
            begin = time.perf_counter()
            (decision,) = posterior.decide([gaps * mean_gap], tolerance=tolerance)
            took, risk = time.perf_counter() - begin, decision.risk.sum()
            least = risk if least is None else least
            cells.append(f"{1e3 * took / streams:.1f}, {100 * (risk / least - 1):+.2f}")
        rows.append([process, setting, f"{gaps:g}", *cells])
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=[*TUNING, f"{TUNING[-1]}x10"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    cases = product(options.only, ("deterministic", "half"))
    rows = [row for process, setting in cases for row in rows_of(process, setting, options.streams)]
    print(table(["process", "missing", "cost, gaps", *(f"{tolerance:g}" for tolerance in TOLERANCES)], rows))


if __name__ == "__main__":
    main()
