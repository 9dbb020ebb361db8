"""The page of results: figures first, what fell short, then tables; all from the summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from experiments.shortfalls import shortfalls
from experiments.sizes import RHOS, SETTINGS, kind_of
from experiments.style import NAMES, name_of, setting_name

TEMPLATE = """# Results

The experiments of the paper's section 5 and appendix G: one run of `make reproduce` at commit `{commit}`, {date}, which
wrote this page ([reproduce.md](reproduce.md)).{warning}

*Smoothing* is `rd.Smoothing(model, missing)`, trained on streams that the model draws; *filtering* is
`rd.Filtering(model, missing)`; both with quadrature, systematic resampling and exact consensus. *The paper's
configuration* has multinomial resampling, one random point an interval, local search, and a smoother in which past and
future add up, trained on one mask of each training stream. *Deterministic*: some types are always hidden
([datasets.md](datasets.md)); *ρ*: every event is hidden with that probability. Distances are optimal transport
distances to the truth, means per test stream, in the data's unit of time; p-values are of one-sided paired permutation
tests over streams. *Synthetic* is all sets together.

{figures}

## What fell short

{short}

## Smoothing against filtering and the paper's configuration

Difference of the mean distance at the middle cost.

{tests}

Each synthetic set alone, against filtering:

{singles}

Other missing rates (section 5.5), against filtering with the fewest particles:

{sensitivity}

## How probable the truth is under each proposal

log q(z\\* | x), nats per missing event, and the share of the test streams on which it is higher than filtering's
(section 5.3). The exact posterior is known where the model is the true process.

{log_q}

## Effective sample size

At the end of a stream, as a share of the fewest particles, without and with resampling; and the share of distinct
histories up to the middle of a stream that resampling leaves.

{ess}

## Distance to the truth

{distances}

## Data and models

For training, dev and test; shortest, mean and longest stream. The other synthetic sets are like the first.

{data}

## Time and integrals

Smoothing of {timed} streams, half of the events hidden (section 5.6; the paper reports 300 to 400 ms an event):

{runtime}

How many points an integral needs (appendix C.3), half of the events hidden: root mean square error of a particle's log
weight against 32 quadrature points, effective size, distance at the middle cost.

{integrals}

## How it was made

All numbers are in `experiments/summary.json`. {fits} smoothers were trained, {hours:.1f} hours of processes that shared
a machine. A synthetic set's number is its seed; other seeds are 0, that of the test streams' mask is 1. Hours of tasks:

{machines}
"""
FIGURES = {
    "log-q": "log q(z\\* | x) per missing event, smoothing against filtering, one point a test stream",
    "distance": "Edits against time moved at six costs, from filtering to smoothing",
    "baselines": "Distance to the truth beside the baselines and the paper's configuration, fewest particles",
    "sensitivity": "Edits against time moved at missing rates from 0.1 to 0.9",
}
PAPER = {  # events for training, dev and test; shortest, mean and longest stream
    "synthetic": "74,967 / 7,513 / 7,507; 10 / 15 / 20",
    "elevator": "313,043 / 31,304 / 31,206; 235 / 313 / 370",
    "taxi": "157,916 / 15,826 / 15,808; 22 / 32 / 38",
    "flights": "not in the paper",
}


def write_page(summary: dict[str, Any], figures: dict[str, str]) -> str:
    """The page in Markdown; ``figures`` are links by name."""
    run, timed = summary["run"], summary["runtime"]
    pictures = [f"![{text}]({figures[name]})" for name, text in FIGURES.items() if name in figures]
    fits = [record for records in summary["smoothers"].values() for record in records.values() if record]
    return TEMPLATE.format(
        commit=run["commit"],
        date=run["date"],
        warning="" if run["scale"] == "full" else f" **This is a {run['scale']} run: its numbers mean nothing.**",
        figures="\n\n".join(pictures),
        short="\n".join(f"- {text}" for text in shortfalls(summary)) or "Nothing that was measured.",
        tests=_tests(summary),
        singles=_differences(summary, [d for d in summary["decoding"] if "-" in d], SETTINGS),
        sensitivity=_sensitivity(summary),
        log_q=_log_q(summary),
        ess=_ess(summary),
        distances=_distances(summary),
        data=_data(summary),
        timed=name_of(timed["dataset"]) if timed else "no",
        runtime=_runtime(timed),
        integrals=_integrals(summary),
        fits=len(fits),
        hours=sum(record["train_seconds"] for record in fits) / 3600,
        machines="\n".join(f"- {name}: {hours:.2f}" for name, hours in summary["machines"].items()),
    )


def _tests(summary: dict[str, Any]) -> str:
    rows = []
    for kind, setting, found in _cells(summary["decoding"], SETTINGS):
        for M, test in found["tests"].items() if found else ():
            paper = (
                found.get("against_paper") if not rows or rows[-1][:2] != [NAMES[kind], setting_name(setting)] else None
            )
            left = "yes" if test["dominates"] else "no"
            rows.append([NAMES[kind], setting_name(setting), M, left, _difference(test), _difference(paper)])
    heading = ["data", "missing", "M", "frontier to the left", "against filtering", "against the paper's configuration"]
    return table(heading, rows)


def _sensitivity(summary: dict[str, Any]) -> str:
    kinds = [d for d, settings in summary["decoding"].items() if len(settings) > len(SETTINGS)]
    return _differences(summary, kinds, [f"rho-{rho:g}" for rho in RHOS])


def _differences(summary: dict[str, Any], datasets: Sequence[str], settings: Sequence[str]) -> str:
    """Smoothing against filtering with the fewest particles."""
    rows = []
    for setting in settings:
        found = [summary["decoding"][d].get(setting) for d in datasets]
        tests = [next(iter(one["tests"].values()), None) if one else None for one in found]
        rows.append([setting_name(setting), *map(_difference, tests)])
    return table(["missing", *map(name_of, datasets)], rows)


def _log_q(summary: dict[str, Any]) -> str:
    rows = []
    for kind, setting, found in _cells(summary["log_q"], SETTINGS):
        cells = [_fixed(found, "filtering")]
        for name in ("smoothing", "paper", "exact"):
            cells += [_fixed(found, name), _share(found, f"{name}_higher")]
        rows.append([NAMES[kind], setting_name(setting), *cells])
    names = ("smoothing", "the paper's smoother", "exact posterior")
    return table(["data", "missing", "filtering", *(cell for name in names for cell in (name, "higher"))], rows)


def _ess(summary: dict[str, Any]) -> str:
    columns = [
        f"{method} {what}"
        for what in ("unresampled", "resampled", "histories")
        for method in ("filtering", "smoothing")
    ]
    cells = _cells(summary["ess"], SETTINGS)
    rows = [[NAMES[kind], setting_name(s), *(_share(found, column) for column in columns)] for kind, s, found in cells]
    return table(["data", "missing", *(column.replace(" ", ", ") for column in columns)], rows)


def _distances(summary: dict[str, Any]) -> str:
    tables = []
    for kind, setting, found in _cells(summary["decoding"], SETTINGS):
        if found:
            heading = [f"{NAMES[kind]}, {setting_name(setting)}: distance at cost", *(f"{c:g}" for c in found["costs"])]
            least = [min(column) for column in zip(*found["methods"].values(), strict=True)]
            tables.append(
                table(heading, [[label, *map(_marked, row, least)] for label, row in found["methods"].items()])
            )
    return "\n\n".join(tables)


def _data(summary: dict[str, Any]) -> str:
    rows = []
    for dataset, found in summary["data"].items():
        if not found or (dataset.startswith("synthetic") and dataset != "synthetic-0"):
            continue
        model, lengths = summary["models"].get(dataset), found["lengths"]
        streams, events = (" / ".join(f"{n:,}" for n in found[name]) for name in ("streams", "events"))
        nats = f"{model['nats_per_event']['test']:.3f} ({model['epochs']} epochs)" if model else "the true process"
        own = f"{events}; {lengths[0]} / {lengths[1]:.1f} / {lengths[2]}"
        name = f"{name_of(dataset)} ({found['origin']})"
        rows.append([name, found["types"], streams, own, PAPER[kind_of(dataset)], nats])
    return table(["data", "K", "streams", "events; lengths", "the paper's", "nats per test event"], rows)


def _runtime(timed: dict[str, Any] | None) -> str:
    if timed is None:
        return "Not measured."
    rows = [
        [row["particles"], *(f"{row[key]:.3g}" for key in ("length", "alone", "together"))] for row in timed["rows"]
    ]
    several = f"{timed['streams']} streams at once"
    return (
        table(["particles", "observed events", "ms an event, one stream", several], rows) + f"\n\n({timed['machine']})"
    )


def _integrals(summary: dict[str, Any]) -> str:
    found = {dataset: one for dataset, one in summary["integrals"].items() if one}
    if not found:
        return "Not measured."
    rows = []
    for rule in next(iter(found.values()))["rules"]:
        values = [one["rules"][rule] for one in found.values()]
        rows.append([rule, *(f"{v['log_weight_rms']:.2g}, {_share(v, 'ess')}, {v['distance']:.4g}" for v in values)])
    return table(["points an interval", *map(name_of, found)], rows)


def _cells(cells: dict[str, Any], settings: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """Kind, setting and content; the synthetic sets together."""
    return ((kind, s, cells[kind].get(s)) for kind in NAMES if kind in cells for s in settings)


def _difference(test: dict[str, Any] | None) -> str:
    if test is None:
        return ""
    p = "< 0.0001" if test["p"] < 1e-4 else f"= {test['p']:.2g}"
    return f"{100 * test['relative']:+.1f} %, p {p}"


def _marked(value: float, least: float) -> str:
    """Four digits, in bold where it is the least."""
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    return f"**{text}**" if value <= least else text


def _fixed(found: dict[str, Any] | None, name: str) -> str:
    return f"{found[name]:.3f}" if found and name in found else ""


def _share(found: dict[str, Any] | None, name: str) -> str:
    return f"{100 * found[name]:.1f} %" if found and found.get(name) is not None else ""


def table(heading: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
