"""Where the results are not what one would hope for, said in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from retrodict.experiments.figures.style import NAMES, name_of, setting_name
from retrodict.experiments.scale import AVERSE, LOOKAHEAD, kind_of
from retrodict.experiments.summary import BETTER

HIGHER, SIGNIFICANT = 0.95, 0.01
Cell = tuple[str, str]  # a data set and a setting


def shortfalls(summary: dict[str, Any]) -> list[str]:
    """One sentence for each kind of thing that fell short, or has not been measured."""
    return [
        *_not_run(summary),
        *_cut_short(summary),
        *_log_q(summary),
        *_frontiers(summary),
        *_baselines(summary),
    ]


def together(cells: Iterable[Cell]) -> str:
    """Data sets and their settings in few words: Synthetic 0-3, 5 (deterministic); NYC Taxi (ρ = 0.5)."""
    by_setting: dict[Cell, list[str]] = {}
    for dataset, setting in cells:
        by_setting.setdefault((kind_of(dataset), setting), []).append(dataset)
    parts: dict[tuple[str, str], list[str]] = {}
    for (kind, setting), datasets in by_setting.items():
        numbers = _ranges(sorted(int(dataset.split("-")[1]) for dataset in datasets if "-" in dataset))
        parts.setdefault((kind, numbers), []).append(setting_name(setting))
    return "; ".join(
        f"{NAMES[kind]}{' ' * bool(numbers)}{numbers} ({', '.join(settings)})"
        for (kind, numbers), settings in parts.items()
    )


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _cells(table: dict[str, Any]) -> Iterator[tuple[Cell, Any]]:
    for dataset, settings in table.items():
        for setting, found in settings.items():
            yield (dataset, setting), found


def _not_run(summary: dict[str, Any]) -> Iterator[str]:
    for part, what in (("log_q", "log q"), ("decoding", "distances"), ("sensitivity", "other missing rates")):
        absent = [cell for cell, found in _cells(summary[part]) if found is None]
        if absent:
            yield f"Not run yet, {what}: {together(absent)}."


def _cut_short(summary: dict[str, Any]) -> Iterator[str]:
    """Smoothers that would have gone on improving."""
    cut: dict[str, list[Cell]] = {}
    for name, found in summary["smoothers"].items():
        if found["ended"] == "time was up" and found["best_epoch"] > 0.9 * found["epochs"]:
            dataset, rest = name.removeprefix("smoothers/").split(".", 1)
            setting, way = rest.rsplit(".", 1)
            cut.setdefault(way, []).append((dataset, setting))
    labels = {
        "ours": "smoothing",
        "data": "smoothing taught by data",
        LOOKAHEAD: "smoothing that looks ahead",
        AVERSE: "the averse smoother",
        "paper": "the paper's smoother",
    }
    for way, label in labels.items():
        if way in cut:
            yield f"Training ended because time was up while dev still improved, {label}: {together(cut[way])}."


def _log_q(summary: dict[str, Any]) -> Iterator[str]:
    low = [(cell, found) for cell, found in _cells(summary["log_q"]) if found and found["smoothing_better"] < HIGHER]
    if not low:
        return
    shares = {key: [found[key] for _, found in low if key in found] for key in BETTER.values()}
    text = (
        f"Smoothing has the higher log q(z\\* | x) on fewer than {HIGHER:.0%} of the test streams: "
        f"{together(cell for cell, _ in low)}. There it has so on {_span(shares['smoothing_better'])}; taught by data "
        f"on {_span(shares['data_better'])}; "
    )
    if shares["lookahead_better"]:
        text += f"when it also looks ahead on {_span(shares['lookahead_better'])}; "
    if shares["averse_better"]:
        text += f"damped on {_span(shares['between_better'])}; then made averse on {_span(shares['averse_better'])}; "
    text += f"the last of these, damped, on {_span(shares['damped_better'])}"
    below = [cell for cell, found in low if found["damped_better"] < HIGHER]
    text += f" (below {HIGHER:.0%}: {together(below)})." if below else "."
    if shares["exact_better"]:
        text += f" The exact posterior of a synthetic process has so on {_span(shares['exact_better'])}."
    yield text


def _span(shares: list[float]) -> str:
    least, most = min(shares), max(shares)
    return f"{least:.1%} to {most:.1%}" if least < most else f"{least:.1%}"


def _frontiers(summary: dict[str, Any]) -> Iterator[str]:
    for part, where in (("decoding", ""), ("sensitivity", ", at other missing rates")):
        tests: dict[str, list[tuple[Cell, Any]]] = {}
        for cell, found in _cells(summary[part]):
            for label, test in found["tests"].items() if found else ():
                tests.setdefault(label, []).append((cell, test))
        for label, rows in tests.items():
            crossed = [cell for cell, test in rows if not test["dominates"]]
            unsure = [(cell, test["p"]) for cell, test in rows if test["p"] >= SIGNIFICANT]
            if crossed:
                yield (
                    f"The frontier does not lie everywhere to the left of filtering's{where}, {label}: "
                    f"{together(crossed)}."
                )
            if unsure:
                cells = "; ".join(f"{name_of(d)} ({setting_name(s)}) {p:.2g}" for (d, s), p in unsure)
                yield (
                    f"The distance at the middle cost is not below filtering's with p < {SIGNIFICANT:g}{where}, "
                    f"{label}, but with p: {cells}."
                )


def _baselines(summary: dict[str, Any]) -> Iterator[str]:
    """Where smoothing with the most particles is not the best of all but filtering and other smoothing."""
    beaten: dict[tuple[str, str, str], Counter[float]] = {}
    sets: Counter[Cell] = Counter()
    for (dataset, setting), found in _cells(summary["decoding"]):
        most = f"smoothing, M = {found['particles'][-1]}" if found else ""
        if not found or most not in found["methods"]:
            continue
        sets[kind_of(dataset), setting] += 1
        ours = found["methods"][most]["distance"]
        for label, row in found["methods"].items():
            if label.split(",")[0] in ("filtering", "smoothing", "smoothing taught by data"):
                continue
            costs = [c for c, a, b in zip(found["costs"], ours, row["distance"], strict=True) if a > b]
            if costs:
                beaten.setdefault((kind_of(dataset), setting, label), Counter()).update(costs)
    for kind, setting in sets:
        baselines = [
            f"{label} at {_costs(costs, sets[kind, setting])}"
            for (k, s, label), costs in beaten.items()
            if (k, s) == (kind, setting)
        ]
        if baselines:
            yield f"{NAMES[kind]} ({setting_name(setting)}): smoothing is beaten by {'; '.join(baselines)}."


def _costs(costs: Counter[float], sets: int) -> str:
    """At which costs, and on how many of several sets."""
    return ", ".join(f"{cost:g}" + (f" ({costs[cost]} of {sets} sets)" if sets > 1 else "") for cost in sorted(costs))
