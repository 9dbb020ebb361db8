"""Where the results are not what one would hope for: computed, and in few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from experiments.sizes import SETTINGS, kind_of
from experiments.style import NAMES, setting_name
from experiments.training import OUT_OF_TIME

HIGHER, SIGNIFICANT = 0.95, 0.01


def shortfalls(summary: dict[str, Any]) -> list[str]:
    """One sentence for each kind of thing that fell short, or was not measured."""
    parts = (_not_measured, _out_of_time, _log_q, _ess, _tests, _baselines)
    return [sentence for part in parts for sentence in part(summary)]


def places(cells: Iterable[tuple[str, str]]) -> str:
    """Kinds of data sets and what is said of each: Elevator (deterministic; ρ = 0.5), NYC Taxi (ρ = 0.1)."""
    grouped: dict[str, list[str]] = {}
    for kind, text in cells:
        grouped.setdefault(kind, []).append(text)
    return ", ".join(f"{NAMES[kind]} ({'; '.join(texts)})" for kind, texts in grouped.items())


def _cells(table: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Kind, setting and content, the synthetic sets together."""
    together = [dataset for dataset in table if "-" not in dataset]
    return ((kind, setting, found) for kind in together for setting, found in table[kind].items())


def _not_measured(summary: dict[str, Any]) -> Iterator[str]:
    for part, what in (("log_q", "log q"), ("decoding", "distances")):
        absent = [(kind, setting_name(setting)) for kind, setting, found in _cells(summary[part]) if found is None]
        if absent:
            yield f"Not measured, {what}: {places(absent)}."


def _out_of_time(summary: dict[str, Any]) -> Iterator[str]:
    records = [
        (kind_of(d), r) for d, fits in summary["smoothers"].items() for n, r in fits.items() if r and "ours" in n
    ]
    cut = [k for k, r in records if r["ended"] == OUT_OF_TIME and r["best_epoch"] > 0.9 * r["epochs"]]
    if cut:
        counts = {k: f"{cut.count(k)} of {sum(kind == k for kind, _ in records)}" for k in cut}
        yield f"Smoothers whose training ran out of time while dev still improved: {places(counts.items())}."


def _log_q(summary: dict[str, Any]) -> Iterator[str]:
    low = []
    for kind, setting, found in _cells(summary["log_q"]):
        if found and found["smoothing_higher"] < HIGHER:
            exact = f", the exact posterior {found['exact_higher']:.1%}" if "exact_higher" in found else ""
            low.append((kind, f"{setting_name(setting)}: {found['smoothing_higher']:.1%}{exact}"))
    if low:
        yield f"log q(z\\* | x) is above filtering's on fewer than {HIGHER:.0%} of the streams: {places(low)}."


def _ess(summary: dict[str, Any]) -> Iterator[str]:
    low = []
    for kind, setting, found in _cells(summary["ess"]):
        ours, theirs = found["smoothing unresampled"], found["filtering unresampled"]
        if ours is not None and theirs is not None and ours <= theirs:
            low.append((kind, setting_name(setting)))
    if low:
        yield f"The effective sample size without resampling is no larger than filtering's: {places(low)}."


def _tests(summary: dict[str, Any]) -> Iterator[str]:
    """Smoothing against filtering with as many particles; the synthetic sets together, and how many of them alone."""
    tests = [
        (kind, f"{setting_name(setting)}, M = {M}", test)
        for kind, setting, found in _cells(summary["decoding"])
        for M, test in (found["tests"].items() if found else ())
    ]
    crossed = [(kind, text) for kind, text, test in tests if not test["dominates"]]
    unsure = [(kind, f"{text}: p = {test['p']:.2g}") for kind, text, test in tests if test["p"] >= SIGNIFICANT]
    for setting in SETTINGS:
        sets = [found[setting]["tests"] for d, found in summary["decoding"].items() if "-" in d and found[setting]]
        single = [next(iter(found.values())) for found in sets if found]
        text = f"of {len(single)} sets alone, {setting_name(setting)}"
        for count, cells in (
            (sum(not test["dominates"] for test in single), crossed),
            (sum(test["p"] >= SIGNIFICANT for test in single), unsure),
        ):
            if count:
                cells.append(("synthetic", f"{count} {text}"))
    if crossed:
        yield f"The frontier is not everywhere to the left of filtering's: {places(crossed)}."
    if unsure:
        yield f"The distance at the middle cost is not below filtering's with p < {SIGNIFICANT:g}: {places(unsure)}."


def _baselines(summary: dict[str, Any]) -> Iterator[str]:
    """Costs at which smoothing with the fewest particles is not the best of all but filtering and more particles."""
    beaten = []
    for kind, setting, found in _cells(summary["decoding"]):
        methods = found["methods"] if found and setting in SETTINGS else {}
        ours = next((row for label, row in methods.items() if label.startswith("smoothing")), [])
        others = {k: row for k, row in methods.items() if k.split(",")[0] not in ("smoothing", "filtering")}
        better = {
            (cost, label.split(", M")[0])
            for label, row in others.items()
            for cost, own, other in zip(found["costs"], ours, row, strict=False)
            if other < own
        }
        if better:
            costs = ", ".join(f"{cost:g}" for cost in sorted({cost for cost, _ in better}))
            beaten.append((kind, f"{setting_name(setting)} at {costs}: {', '.join(sorted({b for _, b in better}))}"))
    if beaten:
        yield f"Some baseline is better than smoothing with the fewest particles: {places(beaten)}."
