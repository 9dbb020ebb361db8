"""Sections of the results page about the sampler: effective sample sizes, time, integrals."""

from __future__ import annotations

from typing import Any

from retrodict.experiments.ess import COMPARED
from retrodict.experiments.figures.style import name_of, setting_name
from retrodict.experiments.markdown import NOT_RUN, Picture, share, table


def ess_section(summary: dict[str, Any]) -> str:
    """Effective sample sizes."""
    rows = []
    for dataset, settings in summary["ess"].items():
        for setting, found in settings.items():
            found = found or {}
            cells = [share(found.get(f"{method}{what}")) for what in (", no resampling", "") for method in COMPARED]
            distinct = [found.get(f"{method}, distinct histories") for method in COMPARED]
            cells += [NOT_RUN if x is None else f"{x:.1f}" for x in distinct]
            rows.append([name_of(dataset), setting_name(setting), *cells])
    names = ["filtering", "taught by data", "smoothing"]
    heading = ["data set", "missing", *(f"{name}, never resampled" for name in names), *names]
    heading += [f"{name}, histories" for name in names]
    return (
        "## Effective sample size\n\nAt the end, as a share of the particles; and how many distinct histories up to "
        "the middle are left after resampling.\n\n" + table(heading, rows)
    )


def runtime_section(summary: dict[str, Any], picture: Picture) -> str:
    """Time per event."""
    rows = [
        [
            row["particles"],
            f"{row['together']['observed'] / row['together']['streams']:.0f}",
            *(f"{1e3 * row[key]['seconds'] / row[key]['observed']:.3f}" for key in ("alone", "together")),
        ]
        for row in sorted(summary["runtime"] or [], key=lambda row: (row["share"], row["particles"]))
    ]
    count = summary["runtime"][0]["together"]["streams"] if rows else 0
    heading = ["particles", "observed events a stream", "ms an event, one stream", f"{count} streams at once"]
    text = table(heading, rows or [[NOT_RUN, "", "", ""]])
    figure = picture("runtime.png", "Time per observed event")
    note = (
        "Particle smoothing of elevator streams, half of the events hidden. The paper reports 300 to 400 ms per event."
    )
    return f"## Time\n\n{note}\n\n{figure}\n\n{text}"


def integrals_section(summary: dict[str, Any], picture: Picture) -> str:
    """What the number of points does."""
    parts = [
        "## Points an integral\n\nHalf of the events hidden. Errors are of particles' log weights (root mean square, "
        "the same particles integrated with 32 quadrature points) and of the log evidence (mean ± standard deviation, "
        "against many particles).",
        picture("integrals.png", "Errors of log weights"),
    ]
    for dataset, rows in summary["integrals"].items():
        cost = next(iter(rows.values()))["cost"] if rows else None
        heading = [name_of(dataset), "log weight", "log evidence", "effective size", f"distance at cost {cost or ''}"]
        cells = [
            [
                name.replace("-", " ").replace("monte carlo", "Monte Carlo"),
                f"{row['log_weight_rms']:.2g}",
                f"{row['evidence_bias']:+.3f} ± {row['evidence_sd']:.3f}",
                f"{row['final_ess']:.1f}",
                f"{row['distance']:.4g}",
            ]
            for name, row in sorted((rows or {}).items(), key=lambda item: _rule_order(item[0]))
        ]
        parts.append(table(heading, cells or [[NOT_RUN, "", "", "", ""]]))
    return "\n\n".join(parts)


def _rule_order(name: str) -> tuple[str, int]:
    family, number = name.rsplit("-", 1)
    return family, int(number)
