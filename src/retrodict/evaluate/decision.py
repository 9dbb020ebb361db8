"""The first line of a verdict: what of an imputation can be used, what cannot, and why.

A finding tells against some uses alone: expected numbers that are too high say nothing against times. What is wrong
with the model, and does not show in what it imputed, tells against streams unlike those that were checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrodict.evaluate import calibration as imputation
from retrodict.evaluate import goodness, observed
from retrodict.evaluate.evidence import FEW_STREAMS, MANY_STREAMS, Evidence
from retrodict.evaluate.finding_words import in_words, other_types, too_much
from retrodict.evaluate.findings import Finding

USE, UNKNOWN = "Use it: ", "Not known yet: "  # what the line begins with where no use is advised against
EVENTS, TIMES, PROBABILITIES, NUMBERS = USES = (
    "the imputed events", "their times", "probabilities", "expected numbers",
)  # fmt: skip
SURENESS = "how sure numbers are"
FEW_EVENTS = 20  # imputed ones, to judge times and probabilities by
_MORE = f"'retrodict check' on {FEW_STREAMS} or more held-out streams tells more"
_HELD = {NUMBERS: "counts", TIMES: "times", PROBABILITIES: "probabilities"}
_DO = {
    TIMES: "go by intervals",
    PROBABILITIES: "take probabilities at their word",
    NUMBERS: "add up expected numbers",
    SURENESS: "go by how sure numbers are",
}
_OF_PROBABILITIES = (imputation.RELIABILITY, imputation.TOP, imputation.TENTHS)


def uses_against(f: Finding) -> tuple[str, ...]:
    """The uses that a finding tells against, if it is an alarm or a doubt."""
    if f.part == goodness.PART:
        return ()
    if f.part == observed.PART or f.name.startswith((imputation.EXCESS, "expected", "centre")):
        return (NUMBERS,)
    if f.name.startswith(imputation.SPREAD):
        return (SURENESS,)
    if f.name in _OF_PROBABILITIES:
        return (PROBABILITIES,)
    if f.name == imputation.COVERAGE:
        return (TIMES,)
    if f.name == imputation.FAMILIES:
        return (TIMES, PROBABILITIES)
    return USES  # worse than predicting nothing, or impossible to the model


def decide(e: Evidence) -> tuple[str, list[Finding]]:
    """The line, and the findings that it names."""
    wrong = e.alarms(imputation.PART) + e.alarms(observed.PART)
    of_model = e.alarms(goodness.PART)
    if e.thinned and of_model:
        worst = next((f for f in of_model if f.of in e.thinned), of_model[0])
        begin = "Do not use it yet: " if any(EVENTS in _against(f) for f in wrong) else UNKNOWN
        return f"{begin}this looks like the table with missing events, and a check needs complete streams.", [worst]
    for worst in (wrong or of_model)[:1]:
        if e.resting_on(worst) < FEW_STREAMS:
            few = f"on {e.resting_on(worst)} streams, which are few to judge by"
            return f"Do not use it yet: {in_words(worst)}, {few}; {_MORE}.", [worst]
        forbids = [f for f in wrong if EVENTS in _against(f)]
        if e.swapped is not None or not e.compared or forbids:
            worst = (forbids or [worst])[0]
            return f"Do not use it: {in_words(worst)}.", [worst]
    if not e.compared:
        return _nothing_hidden(e), []
    if e.compared < FEW_STREAMS and of_model:
        few = f"{e.compared} streams are few to judge by what it imputes"
        return f"Do not use it yet: {in_words(of_model[0])}, and {few}.", of_model[:1]
    if e.compared < FEW_STREAMS:
        few = f"no clear fault on {e.compared} streams, which are few to judge by"
        return f"{UNKNOWN}{few}; {_MORE}.", []
    return _use_some(e, wrong) or _use_it(e)


def _against(alarm: Finding) -> tuple[str, ...]:
    """The uses that an alarm forbids: all, where incomplete streams are not as predicted."""
    return USES if alarm.part == observed.PART else uses_against(alarm)


def _nothing_hidden(e: Evidence) -> str:
    if e.calibration is not None:
        return f"{UNKNOWN}no event was hidden in {e.tried}, so that none was imputed."
    of_model = "the fit of the model is in doubt" if e.doubts else f"no misfit of the model was found in {e.tried}"
    return f"{UNKNOWN}{of_model}, and no event was hidden to be imputed."


def _use_some(e: Evidence, wrong: list[Finding]) -> tuple[str, list[Finding]] | None:
    """What can be used and what not, where there is an alarm or a doubt about what is imputed; else None."""
    against: dict[str, Finding] = {}
    for f in [*wrong, *e.doubts]:
        for use in uses_against(f):
            against.setdefault(use, f)
    named = list({id(f): f for f in against.values()}.values())
    if not named:
        return None
    good = [use for use in USES if use not in against and is_judged(e, use)]
    good = good if EVENTS in good else [use for use in good if use != TIMES]
    if EVENTS in against or not good:
        first = named[0]
        chance = "" if first.alarm else ", which may be chance"
        return f"Do not use it{'' if first.alarm else ' yet'}: {in_words(first)}{chance}.", [first]
    of_model = e.alarms(goodness.PART)[:1]
    alone = " for streams like these alone" if of_model else ""
    but = [_do_not(f) for f in named] + [in_words(f) for f in of_model]
    return f"Use {_listed(good)}{alone}; {'; '.join(but)}.", [*named, *of_model]


def _use_it(e: Evidence) -> tuple[str, list[Finding]]:
    held = [word for use, word in _HELD.items() if is_judged(e, use)]
    of_model = e.alarms(goodness.PART)[:1]
    limit = "" if e.compared >= MANY_STREAMS else ", as far as so few can show"
    found = f"{_listed(held)} held on {e.tried} like these{limit}"
    unjudged = [word for use, word in _HELD.items() if not is_judged(e, use)]
    found += f"; too few events were imputed to judge {_listed(unjudged)}" if unjudged else ""
    if not unjudged and not is_judged(e, EVENTS):
        found += "; imputed events are not surely nearer to the truth than none"
    if of_model:
        return f"Use it for streams like these alone: {found}, but {in_words(of_model[0])}.", of_model
    return f"{USE}{found}.", []


def is_judged(e: Evidence, use: str) -> bool:
    """Whether there was enough to judge a use by; of events also whether they are nearer to the truth than none are."""
    c = e.calibration
    if c is None:
        return False
    if use in (TIMES, PROBABILITIES):
        return bool((c.aligned.sum() if use == TIMES else len(c.probability)) >= FEW_EVENTS)
    return e.is_better_than_nothing if use == EVENTS else True


def _do_not(f: Finding) -> str:
    """What a finding keeps one from doing, and the finding; a doubt only until it is settled."""
    yet, chance = ("", "") if f.alarm else (" yet", ", which may be chance")
    found = in_words(f) + other_types(f)
    if f.part == observed.PART or not f.name.startswith("expected"):
        return f"do not {_DO[uses_against(f)[-1]]}{yet}: {found}{chance}"
    of = "" if f.of is None else f" of type {f.of!r}"
    off = too_much(f.value)
    return f"do not add up expected numbers{of}{yet}: they were {off}{other_types(f)}{chance}"


def _listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
