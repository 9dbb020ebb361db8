"""Tables of missing rates: how well they are known, and what hangs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.markup import escape
from rich.table import Table

from retrodict.cli import common

if TYPE_CHECKING:
    from retrodict.evaluate.sensitivity import Sensitivity
    from retrodict.train.rates import RateEstimates


def show_rates(rates: RateEstimates) -> None:
    """Each type's rate with its standard error and a 95 % interval."""
    table = Table("type", title="missing rates, if the model is right", title_justify="left")
    for heading in ("rate", "standard error", "95 % interval"):
        table.add_column(heading, justify="right")
    rows = zip(rates.types, rates.rates, rates.standard_errors, rates.intervals(), strict=True)
    for name, rate, error, (low, high) in rows:
        known = ("-", "not identified") if np.isnan(error) else (f"{error:.3f}", f"{low:.3f} to {high:.3f}")
        table.add_row(escape(name), f"{rate:.3f}", *known)
    common.out.print(table)


def show_sensitivity(found: Sensitivity) -> None:
    """Expected and decoded events at each of the odds, and how far the decode moves."""
    table = Table("odds of missing", title="if the missing rates were other", title_justify="left")
    for row in found.rows:
        table.add_column(f"x {row.factor:g}", justify="right")

    table.add_row("log evidence", *(f"{row.log_evidence:,.1f}" for row in found.rows))
    table.add_row("expected missing", *(f"{sum(row.expected.values()):,.1f}" for row in found.rows))
    for name in found.rows[0].expected:
        if any(row.expected[name] >= 0.05 for row in found.rows):
            table.add_row(f"  {escape(name)}", *(f"{row.expected[name]:,.1f}" for row in found.rows))
    table.add_row("decoded events", *(f"{row.decoded.num_events:,}" for row in found.rows))
    table.add_row("  of which not at x 1, or the reverse", *(f"{row.edits:,}" for row in found.rows))
    table.add_row("distance to the decode at x 1, a stream", *(f"{row.distance:.4g}" for row in found.rows))
    common.out.print(table)
