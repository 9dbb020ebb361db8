"""``retrodict decode``: one answer from draws that were saved, at another cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from retrodict.cli import common
from retrodict.events.combine import fill
from retrodict.events.io.write import check_output
from retrodict.events.stream_set import StreamSet
from retrodict.smc.posterior import Posterior, load_posterior

_COST = "What inserting or deleting an event costs, in units of time moved; by default half a gap."
Cost = Annotated[float | None, typer.Option(help=_COST)]
_OUTPUT = "Your table with the imputed events put in."
Output = Annotated[Path, typer.Option("--output", "-o", help=_OUTPUT)]


def decode(
    draws: Annotated[Path, typer.Argument(help="Folder of draws that 'retrodict impute' wrote.")],
    output: Output,
    cost: Cost = None,
) -> None:
    """Decode saved draws at another cost, without sampling again, and write the same table as 'retrodict impute'.

    The folder may also be one that posterior.save wrote in Python.

    [bold]Example[/]

      retrodict decode imputed.csv.draws --cost 20 -o bolder.csv
    """
    from retrodict.smc.posterior_folder import read_names

    common.refuse_unless_positive(cost, "--cost")
    check_output(output)
    posterior = load_posterior(draws)
    columns = common.Columns(dict.fromkeys(common.Columns.OPTIONS) | read_names(draws))
    write_answer(posterior, cost, columns, output)


def write_answer(posterior: Posterior, cost: float | None, columns: common.Columns, output: Path) -> None:
    """Decode a posterior and write the observed table with the imputed events."""
    observed, possible = posterior.observed, posterior.is_possible
    expected = float(posterior.expected_count()[possible].sum())
    cost = _half_a_gap(observed, expected) if cost is None else cost
    with common.bar("decode", len(posterior)) as done:
        decoded = posterior.consensus(cost, progress=done)
    columns.write(fill(observed, decoded), output)
    unit = observed.axis.unit or (posterior.model.time_unit if posterior.model is not None else None)
    units = f"{unit}s" if unit else "units of time"
    common.wrote(
        output,
        f"{observed.num_events:,} observed and {decoded.num_events:,} imputed events "
        f"({expected:,.1f} expected missing; cost {cost:.4g} {units})",
    )


def _half_a_gap(observed: StreamSet, missing: float) -> float:
    """Half of the mean gap between events, the imputed ones included."""
    gaps = observed.num_events + missing + len(observed)
    return 0.5 * float(np.sum(observed.durations)) / max(gaps, 1.0) or 1.0
