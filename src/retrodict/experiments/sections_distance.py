"""Sections of the results page about proposals and distances."""

from __future__ import annotations

from typing import Any

from retrodict.experiments.figures.style import name_of, setting_name
from retrodict.experiments.markdown import NOT_RUN, Picture, marked, number, p_value, share, table
from retrodict.experiments.scale import MIDDLE, SETTINGS
from retrodict.experiments.summary import BETTER


def log_q_section(summary: dict[str, Any], picture: Picture) -> str:
    """The clouds and their numbers."""
    rows = []
    for dataset, settings in summary["log_q"].items():
        for setting, found in settings.items():
            row = [name_of(dataset), setting_name(setting)]
            if found is None:
                rows.append([*row, NOT_RUN, *[""] * 2 * len(BETTER)])
                continue
            row.append(f"{found['filtering']:.3f}")
            for name, better in BETTER.items():
                row += [f"{found[name]:.3f}", share(found[better])] if better in found else ["", ""]
            rows.append(row)
    between = 1 / (1 + summary["aversion"])
    heading = [
        "data set",
        "missing",
        "filtering",
        "smoothing",
        "higher",
        "taught by data",
        "higher",
        "looking ahead",
        "higher",
        f"that, damped to {between:.2g}",
        "higher",
        "averse",
        "higher",
        f"averse or taught by data, damped to {summary['damping']:g}",
        "higher",
        "the paper's",
        "higher",
        "exact posterior",
        "higher",
    ]
    text = (
        "## How probable the truth is under each proposal\n\nlog q(z\\* | x), nats per missing event, and on which "
        "share of the test streams it is higher than under filtering. *Smoothing* learned from streams that the model "
        "drew and is near the model's posterior; *taught by data* it is nearer to the truth. *Looking ahead*, it is "
        "taught by data too, and asks the model what would follow from an event before it proposes one. *Averse*, that "
        f"one was first damped, to take only {between:.2g} of what the future adds, and then trained further so as to "
        f"lose to filtering seldom (aversion {summary['aversion']:g}; [imputation.md](imputation.md)). Damped once "
        "more, the averse one, where there is one, and otherwise the one taught by data "
        "gains less, and more often. (If the gain is the "
        "sum of many small things, s² / 2 on average with a standard deviation of s, a proposal at the posterior gains "
        "on a share "
        "Φ(s / 2) of the streams, and one that takes less and less of it on up to Φ(s). So the share says that the "
        "future is used, not how well.) The paper's smoother adds up what past and future say and is trained on one "
        "mask of the set's own streams. Where the model is the true process, its exact posterior (the evidence "
        "estimated by filtering with many particles: a little too low, which flatters the posterior) says what the "
        "best proposal could do if streams did not end with an event, of which the process knows nothing and a "
        "smoother taught by data does."
    )
    pictures = [picture(f"clouds-{s}.png", f"Smoothing against filtering, {setting_name(s)}") for s in SETTINGS]
    return "\n\n".join([text, *pictures, table(heading, rows)])


def decoding_section(summary: dict[str, Any], picture: Picture) -> str:
    """Trade-off curves, tests, and every method at every cost."""
    parts = ["## Distance to the truth"]
    parts += [picture(f"tradeoff-{s}.png", f"Edits against time moved, {setting_name(s)}") for s in SETTINGS]
    parts += [picture(f"tradeoff-synthetic-{s}.png", f"The same, synthetic sets, {setting_name(s)}") for s in SETTINGS]
    parts.append(picture("baselines.png", "Distance relative to predicting nothing"))
    rows = [
        [name_of(dataset), setting_name(setting), *cells]
        for dataset, settings in summary["decoding"].items()
        for setting, found in settings.items()
        for cells in _comparisons(found)
    ]
    heading = ["data set", "missing", "proposal", "M", "frontier to the left", "difference at the middle cost", "p"]
    rows += [
        [f"Synthetic, all {test['sets']}", setting_name(setting), *_comparison(label, test)]
        for setting, tests in summary["pooled"].items()
        for label, test in tests.items()
    ]
    parts.append("Smoothing against filtering with as many particles:\n\n" + table(heading, rows))
    for dataset, settings in summary["decoding"].items():
        for setting, found in settings.items():
            parts.append(f"### {name_of(dataset)}, {setting_name(setting)}\n\n{_methods(found)}")
    return "\n\n".join(parts)


def _comparisons(found: dict[str, Any] | None) -> list[list[Any]]:
    if not found or not found["tests"]:
        return [["", "", NOT_RUN, "", ""]]
    return [_comparison(label, test) for label, test in found["tests"].items()]


def _comparison(label: str, test: dict[str, Any]) -> list[Any]:
    dominates = test.get("dominates")
    return [
        label.split(",")[0],
        label.rsplit(" ", 1)[1],
        "" if dominates is None else "yes" if dominates else "**no**",
        f"{number(test['difference'])} ({test['relative']:+.1%})",
        p_value(test["p"]),
    ]


def _methods(found: dict[str, Any] | None) -> str:
    if found is None:
        return f"*{NOT_RUN}*"
    heading = ["mean distance at cost", *(f"{cost:g}" for cost in found["costs"]), "ms to impute a stream"]
    lowest = [min(row["distance"][i] for row in found["methods"].values()) for i in range(len(found["costs"]))]
    rows = [
        [
            label,
            *(marked(value, least) for value, least in zip(row["distance"], lowest, strict=True)),
            "" if row["seconds_per_stream"] is None else number(1e3 * row["seconds_per_stream"]),
        ]
        for label, row in found["methods"].items()
    ]
    text = table(heading, rows)
    against = found.get("against_paper")
    if against:
        shares = ", ".join(f"{share:.1%}" for share in against["below_by"])
        text += (
            f"\n\nSmoothing with the most particles is below the paper's configuration by {shares} "
            f"(p = {p_value(against['p'])} at cost {found['costs'][MIDDLE]:g})."
        )
    return text


def taxi_section(summary: dict[str, Any]) -> str:
    """The first test streams, for which others have published distances."""
    if summary["taxi"] is None:
        return ""
    parts = ["## The first taxi streams, beside others' figures\n\nAll pick-ups hidden; mean distance per stream."]
    for count, found in summary["taxi"].items():
        heading = [f"first {count} test streams, at cost", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
        if found is None:
            parts.append(table(heading, [[NOT_RUN, *[""] * 6]]))
            continue
        rows = [[f"*others*: {label}", *(f"{x:.3f}" for x in row)] for label, row in found["others"].items()]
        rows += [[label, *(f"{x:.3f}" for x in row)] for label, row in found["here"].items()]
        parts.append(table(heading, rows))
    return "\n\n".join(parts)


def sensitivity_section(summary: dict[str, Any], picture: Picture) -> str:
    """Smoothing against filtering at other missing rates."""
    rows = [
        [name_of(dataset), setting_name(setting), *cells]
        for dataset, settings in summary["sensitivity"].items()
        for setting, found in settings.items()
        for cells in _comparisons(found)
    ]
    heading = ["data set", "missing", "proposal", "M", "frontier to the left", "difference at the middle cost", "p"]
    figure = picture("sensitivity.png", "Edits against time moved at other missing rates")
    return f"## Other missing rates\n\n{figure}\n\n" + table(heading, rows)
