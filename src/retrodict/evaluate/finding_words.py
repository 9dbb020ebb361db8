"""One finding of a check as a clause of a sentence."""

from __future__ import annotations

from retrodict.evaluate import calibration as imputation
from retrodict.evaluate import goodness, observed
from retrodict.evaluate.findings import Finding
from retrodict.events.factor import in_times
from retrodict.smc.diagnostics import FEW

_MOST_NAMED = 3
_FAR_MORE = 9.0  # from ten times as many on, percents are hard to read


def other_types(f: Finding) -> str:
    """Further types of which the same is doubtful."""
    if not f.others:
        return ""
    if len(f.others) > _MOST_NAMED:
        return f" ({len(f.others)} others are off, too)"
    return f" ({', '.join(repr(name) for name in f.others)} {'is' if len(f.others) == 1 else 'are'} off, too)"


def _more(excess: float, what: str) -> str:
    """What there is more, or less, of than something else that follows: in percent, or how many times as much."""
    if excess > _FAR_MORE:
        return f"{in_times(1 + excess)} as many {what} as"
    return f"{abs(excess):.0%} {'more' if excess > 0 else 'fewer'} {what} than"


def too_much(excess: float) -> str:
    """By how much numbers are too high or too low."""
    if excess > _FAR_MORE:
        return f"{in_times(1 + excess)} too high"
    return f"{abs(excess):.0%} too {'high' if excess > 0 else 'low'}"


def in_words(f: Finding) -> str:
    """One finding as a clause."""
    of = f" of type {f.of!r}" if f.of is not None else ""
    often = f"{abs(f.value):.0%} {'less' if f.value > 0 else 'more'} often"
    if f.name == goodness.ENDS:
        return f"{f.value:.0%} of the streams end exactly at an event"
    if f.name == goodness.KNOWN_ENDS:
        return f"{_more(f.value, 'streams end at an event')} the model expects"
    if f.part == goodness.PART and f.name.startswith("events"):
        return f"complete streams have {_more(f.value, 'events' + of)} the model expects"
    if f.part == goodness.PART:
        return "times between events are not as the model expects"
    if f.name == observed.IMPOSSIBLE:
        return f"{f.value:,.0f} events of incomplete streams were observed that the mechanism says are always missing"
    if f.part == observed.PART and f.name.startswith("events"):
        return f"incomplete streams have {_more(f.value, 'events' + of)} model and missing rates predict"
    if f.part == observed.PART:
        return "times between observed events are not as model and missing rates predict"
    if f.name.startswith("expected events"):
        return f"it expects {_more(f.value, 'missing events' + of)} were hidden"
    if f.name == imputation.COVERAGE:
        return f"only {f.value:.0%} of the 90 % intervals hold the true time"
    if f.name == imputation.RELIABILITY:
        return f"events are there {often} than their probabilities say"
    if f.name in (imputation.TOP, imputation.TENTHS):
        given = "0.9 or more" if f.of is None else f.of
        return f"events given a probability of {given} are there {often} than that says"
    if f.name.startswith(imputation.DISTANCE):
        far = f"{f.value:.2f} times" if f.value < 100 else in_times(f.value)
        return f"it is worse than predicting nothing ({f.name.split(',')[0]}: {far} as far from the truth)"
    if f.name.startswith(imputation.SPREAD):
        return f"numbers of missing events are {'surer' if f.value > 0 else 'less sure'} than they should be"
    if f.name == imputation.FAMILIES:
        return f"in {f.value:.0%} of the streams fewer than {FEW:.0f} independent guesses are left somewhere"
    if f.name.startswith("centre"):
        return f"numbers of missing events are {'underestimated' if f.value > 0 else 'overestimated'}"
    return f"the model gives {f.value:.0%} of the streams no probability at all"
