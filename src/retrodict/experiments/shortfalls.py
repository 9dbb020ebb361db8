"""Where the results are not what one would hope for, said in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from retrodict.experiments.figures.style import name_of, setting_name

HIGHER, SIGNIFICANT = 0.95, 0.01


def shortfalls(summary: dict[str, Any]) -> list[str]:
    """One sentence for each kind of thing that fell short, or has not been measured."""
    return [
        *_not_run(summary),
        *_cut_short(summary),
        *_log_q(summary),
        *_frontiers(summary),
        *_baselines(summary),
    ]


def _cells(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for dataset, settings in table.items():
        for setting, found in settings.items():
            yield f"{name_of(dataset)} ({setting_name(setting)})", found


def _not_run(summary: dict[str, Any]) -> Iterator[str]:
    for part, what in (("log_q", "log q"), ("decoding", "distances"), ("sensitivity", "other missing rates")):
        absent = [name for name, found in _cells(summary[part]) if found is None]
        if absent:
            yield f"Not run yet, {what}: {', '.join(absent)}."


def _cut_short(summary: dict[str, Any]) -> Iterator[str]:
    """Smoothers that would have gone on improving."""
    cut: dict[str, list[str]] = {}
    for name, found in summary["smoothers"].items():
        if found["ended"] == "time was up":
            dataset, rest = name.removeprefix("smoothers/").split(".", 1)
            setting, way = rest.rsplit(".", 1)
            cut.setdefault(way, []).append(f"{name_of(dataset)} ({setting_name(setting)})")
    for way, label in (("ours", "smoothing"), ("data", "smoothing taught by data"), ("paper", "the paper's smoother")):
        if way in cut:
            yield f"Training ended because time was up while dev still improved, {label}: {', '.join(cut[way])}."


def _log_q(summary: dict[str, Any]) -> Iterator[str]:
    low = [(name, found) for name, found in _cells(summary["log_q"]) if found and found["smoothing_better"] < HIGHER]
    if low:
        names = ", ".join(f"{name} {found['smoothing_better']:.1%}" for name, found in low)
        text = f"Smoothing has the higher log q(z\\* | x) on fewer than {HIGHER:.0%} of the test streams: {names}."
        text += f" Taught by data and damped it has so on {_span(found['damped_better'] for _, found in low)}."
        exact = [found["exact_better"] for _, found in low if "exact_better" in found]
        if exact:
            text += f" On the synthetic sets among these the model's exact posterior has so on {_span(exact)}."
        yield text


def _span(shares: Iterable[float]) -> str:
    found = sorted(shares)
    return f"{found[0]:.1%} to {found[-1]:.1%}" if found[0] < found[-1] else f"{found[0]:.1%}"


def _frontiers(summary: dict[str, Any]) -> Iterator[str]:
    for part, where in (("decoding", ""), ("sensitivity", ", at other missing rates")):
        tests = [
            (f"{name}, {label}", test)
            for name, found in _cells(summary[part])
            if found
            for label, test in found["tests"].items()
        ]
        crossed = [name for name, test in tests if not test["dominates"]]
        unsure = [f"{name} (p = {test['p']:.2g})" for name, test in tests if test["p"] >= SIGNIFICANT]
        if crossed:
            names = "; ".join(crossed)
            yield f"Smoothing's frontier does not lie everywhere to the left of filtering's{where}: {names}."
        if unsure:
            yield (
                f"Smoothing's distance at the middle cost is not below filtering's with p < {SIGNIFICANT:g}{where}: "
                f"{'; '.join(unsure)}."
            )


def _baselines(summary: dict[str, Any]) -> Iterator[str]:
    """Where smoothing with the most particles is not the best of all but filtering with as many."""
    for name, found in _cells(summary["decoding"]):
        if not found:
            continue
        most = f"M = {found['particles'][-1]}"
        ours = found["methods"].get(f"smoothing, {most}")
        if ours is None:
            continue
        worse = {
            label: [
                f"{cost:g}"
                for cost, a, b in zip(found["costs"], ours["distance"], row["distance"], strict=True)
                if a > b
            ]
            for label, row in found["methods"].items()
            if label.split(",")[0] != "filtering"
        }
        beaten = [f"{label} at {', '.join(costs)}" for label, costs in worse.items() if costs]
        if beaten:
            yield f"{name}: smoothing with {most} is beaten by {'; '.join(beaten)}."
