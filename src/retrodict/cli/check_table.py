"""The findings of a check as a table for somebody who does not know the method: what matters comes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.table import Table

from retrodict.cli import common
from retrodict.evaluate import calibration, goodness, observed
from retrodict.evaluate.findings import Finding, tally
from retrodict.events.factor import MOST

if TYPE_CHECKING:
    from retrodict.evaluate.check import Check

_FIRST = ("look at this first", "in doubt")
_PARTS = {
    goodness.PART: "the model",
    calibration.PART: "what is imputed",
    observed.PART: "incomplete streams",
}
_WORDS = {  # what a name begins with: the words for it, and whether its numbers are shares
    "events of a type, more than": ("events of {of}, more than {rest}", True),
    "events, more than": ("events, more than {rest}", True),
    "gaps, distance": ("gaps too short or too long", True),
    "gaps of each type": ("gaps by type, too short or too long", True),
    goodness.ENDS: (goodness.ENDS, True),
    goodness.KNOWN_ENDS: ("ends at events, more than expected", True),
    calibration.EXCESS: (calibration.EXCESS, True),
    "expected events of a type": ("expected of {of}, more than {rest}", True),
    "centre of the ranks, ": ("counts guessed too low, {rest}", False),
    f"{calibration.SPREAD}, ": ("counts guessed too narrowly, {rest}", False),
    calibration.COVERAGE: ("90 % intervals that hold the time", True),
    calibration.WIDE: ("90 % intervals, the ends left out", True),
    calibration.RELIABILITY: ("probability, more than came true", True),
    calibration.TOP: ("probability of 0.9+, more than true", True),
    calibration.TENTHS: ("probability of {of}, more than true", True),
    calibration.DISTANCE: ("distance, of predicting nothing", True),
    calibration.FAMILIES: ("streams with few guesses left", True),
    "streams that the model finds": ("streams impossible to the model", True),
    "centre of the gaps": ("gaps between events, too long", False),
    "spread of the gaps": ("gaps between events, too spread", False),
}
_LEGEND = "± is a standard error."
_DOUBTFUL = " 'doubtful': further off than chance makes 1 comparison in 20."
_CHANCE = " 'may be chance': not fine, but by chance 1 look in 20 is further off."


def show(result: Check, scale: float, units: str, in_full: bool = False) -> None:
    """Print the verdict, and what it rests on; costs in ``units``, of which one is ``scale`` of the model's.

    ``in_full`` also has what is fine, or off by no more than chance.
    """
    common.out.print(f"[bold]{escape(result.decision)}[/]", soft_wrap=True, highlight=False)
    for line in result.verdict.splitlines()[1:]:
        common.out.print(escape(line), soft_wrap=True, highlight=False)
    sections = list(_sections(result.findings))
    shown = sections if in_full else [(heading, found) for heading, found in sections if heading in _FIRST]
    if shown:
        common.out.print(_findings(shown))
        legend = _LEGEND + _DOUBTFUL * any(f.doubt for f in result.findings) + _CHANCE * in_full
        common.out.print(legend, highlight=False, soft_wrap=True)
    common.out.print(_summed(result.findings, in_full), highlight=False, soft_wrap=True)
    if result.calibration is not None:
        common.out.print(_distances(result.to_dict()["distance"], scale, units))


def _summed(findings: list[Finding], in_full: bool) -> str:
    """How many comparisons there were, and what they came to."""
    kinds = tally(findings)
    said = ", ".join(f"{number} {kind}" for kind, number in kinds.items() if number)
    where = "a row may stand for several types" if in_full else "--full shows them"
    return f"{sum(kinds.values())} comparisons: {said} ({where})"


def _findings(sections: list[tuple[str, list[Finding]]]) -> Table:
    table = Table(
        title="what was checked", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("what was compared", overflow="fold")
    for heading in ("found", "fine is"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("judgement", overflow="fold")
    for heading, findings in sections:
        table.add_row(f"[bold]{heading}[/]")
        for finding in findings:
            table.add_row(*_row(finding))
    return table


def _sections(findings: list[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """Alarms and remarks first, the surest at the top, and doubts; then what is fine, part by part."""
    first = sorted((f for f in findings if f.alarm or f.remark), key=lambda f: (f.remark, f.p_value))
    if first:
        yield _FIRST[0], first
    doubts = [f for f in findings if f.doubt]
    if doubts:
        yield _FIRST[1], doubts
    for part, heading in _PARTS.items():
        rest = [f for f in findings if f.part == part and f not in first and not f.doubt]
        if rest:
            yield heading, rest


def _row(f: Finding) -> tuple[str, str, str, str]:
    """What was compared, what was found, what is fine, and what to think of it."""
    words, is_share = next((known for name, known in _WORDS.items() if f.name.startswith(name)), (f.name, False))
    rest = (
        f.name.rpartition(", " if ", " in f.name else " ")[2]
        .removeprefix("more than ")
        .replace(calibration.SCOPES[0], "in all")
    )
    if f.value < 0 and "more than" in words:  # then there is less, and not minus so much more
        words = words.replace("more than", "less than" if words.startswith("probability") else "fewer than")
        f = replace(f, value=-f.value, expected=-f.expected, side=-f.side)
    times, unit, digits = (100.0, " %", 1) if is_share else (1.0, "", 2)
    found = "-" if f.value != f.value else f"{times * f.value:.{digits}f} ± {times * f.error:.{digits}f}{unit}"
    found = f"over a million{unit}" if times * f.value > MOST else found
    low, high = (times * (f.expected + sign * f.tolerance) for sign in (-1, 1))
    fine = {0: f"{low:.3g} to {high:.3g}", 1: f"at most {high:.3g}", -1: f"at least {low:.3g}"}[f.side] + unit
    judged = f"[bold red]{f.judgement}[/]" if f.alarm else f.judgement
    of = f.of if f.name == calibration.TENTHS else repr(f.of)
    others = f" ({len(f.others)} more so)" if f.others else ""
    return escape(words.format(rest=rest, of=of) + others), found, fine, judged


def _distances(rows: list[dict[str, Any]], scale: float, units: str) -> Table:
    table = Table(
        title="distance to the truth, as a share of predicting nothing", title_justify="left", box=box.SIMPLE_HEAD,
        pad_edge=False,
    )  # fmt: skip
    for heading in (f"cost ({units})", "imputed", "constant rates"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=18)
    for row in rows:
        both = (row["share_of_nothing"], row["constant_rates"])
        table.add_row(
            f"{row['cost'] / scale:.4g}",
            *("-" if x["value"] is None else f"{100 * x['value']:.1f} ± {100 * x['error']:.1f} %" for x in both),
        )
    return table
