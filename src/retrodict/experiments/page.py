"""The page of results: tables and figures from the summary, and plain words about what fell short."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrodict.experiments.figures.style import name_of
from retrodict.experiments.markdown import NOT_RUN, table
from retrodict.experiments.scale import kind_of
from retrodict.experiments.sections_distance import decoding_section, log_q_section, sensitivity_section, taxi_section
from retrodict.experiments.sections_sampler import ess_section, integrals_section, runtime_section
from retrodict.experiments.shortfalls import shortfalls

_PAPER_DATA = {
    "synthetic": "74,967 / 7,513 / 7,507; 10 / 15 / 20",
    "elevator": "313,043 / 31,304 / 31,206; 235 / 313 / 370",
    "taxi": "157,916 / 15,826 / 15,808; 22 / 32 / 38",
    "flights": "not in the paper",
}


def write_page(summary: dict[str, Any], figures: Path, drawn: Sequence[Path]) -> str:
    """The page in Markdown; ``figures`` is where the ``drawn`` ones are, as seen from the page."""
    shown = {path.name for path in drawn}

    def picture(name: str, caption: str) -> str:
        return f"![{caption}]({(figures / name).as_posix()})" if name in shown else f"*{caption}: {NOT_RUN}.*"

    parts = [
        _head(summary),
        _short(summary),
        _data(summary),
        log_q_section(summary, picture),
        decoding_section(summary, picture),
        taxi_section(summary),
        sensitivity_section(summary, picture),
        ess_section(summary),
        runtime_section(summary, picture),
        integrals_section(summary, picture),
        _how(summary),
    ]
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def _head(summary: dict[str, Any]) -> str:
    quick = "" if summary["scale"] == "full" else f" **These are {summary['scale']} runs: the numbers mean nothing.**"
    return (
        "# Results\n\n"
        "The experiments of the paper's sections 5 and G, and what they show of this package. Every number comes from "
        f"`retrodict reproduce` (below, and in `docs/reproduce.md`); this page is written by it.{quick}\n\n"
        "Distances are optimal transport distances to the truth, means per test stream, in the data's unit of time. "
        "*Smoothing* and *filtering* are ours: quadrature, systematic resampling, exact consensus, smoothers in which "
        "past and future interact, taught by streams that the model draws (or, where it is said, by the data). *The "
        "paper's configuration* is multinomial resampling, one random point an interval, local search, and a smoother "
        "in which past and future add up, trained on one mask of each stream. p-values are of one-sided paired "
        "permutation tests over streams, 20,000 permutations."
    )


def _short(summary: dict[str, Any]) -> str:
    found = shortfalls(summary)
    lines = "\n".join(f"- {text}" for text in found) if found else "Nothing that was measured."
    return f"## What fell short\n\n{lines}"


def _data(summary: dict[str, Any]) -> str:
    rows = []
    for dataset, found in summary["data"].items():
        model = summary["models"].get(dataset)
        nats = f"{model['nats_per_event']['test']:.3f} ({model['epochs']} epochs)" if model else "the true process"
        if kind_of(dataset) != "synthetic" and not model:
            nats = NOT_RUN
        if found is None:
            rows.append([name_of(dataset), "", NOT_RUN, "", _PAPER_DATA[kind_of(dataset)], nats])
            continue
        lengths = found["lengths"]
        rows.append(
            [
                f"{name_of(dataset)} ({found['origin']})",
                found["types"],
                " / ".join(f"{n:,}" for n in found["streams"]),
                " / ".join(f"{n:,}" for n in found["events"]) + f"; {lengths[0]} / {lengths[1]:.1f} / {lengths[2]}",
                _PAPER_DATA[kind_of(dataset)],
                nats,
            ]
        )
    heading = ["data set", "K", "streams", "events; lengths", "the paper's", "p: nats per test event"]
    return (
        "## Data and models\n\nTrain / dev / test, and shortest / mean / longest stream. `docs/datasets.md` says where "
        "the data differ from the paper's, and why.\n\n" + table(heading, rows)
    )


def _how(summary: dict[str, Any]) -> str:
    quick = " --quick" if summary["scale"] == "quick" else ""
    rows = [
        [row["machine"], row["jobs"], ", ".join(f"{stage} {hours:.2f}" for stage, hours in row["stages"].items())]
        for row in summary["machines"]
    ]
    return (
        "## How to repeat it\n\n"
        f"```\nretrodict reproduce --all{quick} --data taxi=DIR --data flights=DIR --workers 16 "
        f"-o experiments/results\n"
        f"retrodict reproduce --all{quick} --collect -o experiments/results --page docs/results.md\n```\n\n"
        "`retrodict reproduce` alone lists the experiments by name. Everything is kept in the folder and nothing is "
        "done twice; `run.json` there holds all sizes. Seeds: the number of a synthetic set is its seed; every other "
        "seed is 0, except the mask of test streams, 1.\n\n"
        + table(["machine", "jobs", "hours of jobs"], rows or [[NOT_RUN, "", ""]])
    )
