"""The verdict of a check: a line with what can be used and what not, one with why, and one with what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrodict.evaluate import calibration as imputation
from retrodict.evaluate import goodness, observed
from retrodict.evaluate.calibration import Calibration
from retrodict.evaluate.decision import FEW_EVENTS, PROBABILITIES, decide, uses_against
from retrodict.evaluate.evidence import FEW_STREAMS, MANY_STREAMS, Evidence
from retrodict.evaluate.finding_words import in_words, other_types
from retrodict.evaluate.findings import Finding, tally

_MOST_NAMED = 3  # doubts
_FEWEST_CALIBRATED = 100  # imputed events
_TOO_WIDE = "intervals are wider than they need be: times are known better than the intervals say"


def give_verdict(evidence: Evidence) -> str:
    """Lines, the first of which is a decision; "Why" and "Next" where there is something to say."""
    first, named = decide(evidence)
    why, remedy = _cause(evidence) if any(f.alarm for f in evidence.findings) else ("", "")
    reasons = [why, _on_the_whole(evidence), _doubted(evidence, named), _wide(evidence)]
    steps = _next(evidence, remedy) + ([] if first.startswith("Do not use it") else _calibrated(evidence))
    said = [first]
    said += [f"Why: {'; '.join(filter(None, reasons))}."] if any(reasons) else []
    said += [f"Next: {'; '.join(steps)}."] if steps else []
    return "\n".join(said)


def _next(e: Evidence, remedy: str) -> list[str]:
    """What to do, the first thing first: by an alarm, or to settle what is in doubt or not known."""
    alarms = [f for f in e.findings if f.alarm]
    judged_by = e.compared or int(e.about["streams"])
    unfinished = _unfinished(e.about, "its training was stopped" in remedy)
    steps = []
    if alarms:
        wrong = e.alarms(imputation.PART) + e.alarms(observed.PART)
        is_few = e.resting_on((wrong or alarms)[0]) < FEW_STREAMS
        steps = [f"if more streams show the same, {remedy}"] if is_few else [remedy]
    elif e.calibration is None:
        steps = ["say how events go missing, so that a check can hide some"]
    elif not e.compared:
        steps = ["give more streams, or check the missing rates"]
    elif e.doubts and e.compared >= FEW_STREAMS:
        steps = [f"check by more held-out streams than {judged_by} ({4 * judged_by} halve what may be chance)"]
        steps += [] if unfinished else [f"if the doubt stays, {_more_to_fit_by(e)}"]
    elif FEW_STREAMS <= e.compared < MANY_STREAMS:
        steps = [f"{MANY_STREAMS} held-out streams or more would show smaller faults"]
    first = [unfinished] if unfinished else []
    return first + steps if e.doubts and not alarms else steps + first


def _more_to_fit_by(e: Evidence) -> str:
    """More complete streams, and whether more time would do instead."""
    known = e.about.get("fitted_to")
    more = f"fit by more complete streams{f' than {known:,}' if known else ''}"
    return f"{more} (more training time would not help: it ended by itself)" if e.about.get("finished") else more


def _calibrated(e: Evidence) -> list[str]:
    """That probabilities can be given as they came true, where they did not and there is enough to go by."""
    off = any((f.alarm or f.doubt) and uses_against(f) == (PROBABILITIES,) for f in e.findings)
    if not off or e.calibration is None or len(e.calibration.probability) < _FEWEST_CALIBRATED:
        return []
    return ["'retrodict impute --calibrate' gives probabilities as they came true here"]


def _unfinished(about: Mapping[str, Any], model_was_named: bool) -> str:
    """That a limit of time stopped a training, where that is not said yet."""
    stopped = ["the model"] if about.get("unfinished") and not model_was_named else []
    stopped += ["the smoother"] if about.get("unfinished_smoother") else []
    if not stopped:
        return ""
    which = " and ".join(stopped)
    return f"give the fit more time (training of {which} was stopped by a limit: the same fit, more --seconds)"


def _doubted(e: Evidence, named: list[Finding]) -> str:
    """What is doubtful beyond the findings that were named, where there is no alarm."""
    doubts, kinds = e.doubts, tally(e.findings)
    if not doubts or any(f.alarm for f in e.findings):
        return ""
    rest = [f for f in doubts if not any(f is known for known in named)]
    words = list(dict.fromkeys(in_words(f) + other_types(f) for f in rest))  # gaps of all and by type are one
    if len(words) > _MOST_NAMED:
        words[_MOST_NAMED:] = [f"and {len(words) - _MOST_NAMED} more"]
    count, looks = kinds["in doubt"], sum(kinds.values())
    also = " also" if named else ""
    found = f"in doubt is{also} that {', '.join(words)}; " if words else ""
    return (
        f"{found}{count} of {looks} comparisons with {e.tried} {'is' if count == 1 else 'are'} further off than chance "
        "makes 1 in 20"
    )


def _wide(e: Evidence) -> str:
    is_wide = any(f.remark and f.name == imputation.WIDE for f in e.findings)
    return _TOO_WIDE if is_wide and not e.alarms(imputation.PART) else ""


def _on_the_whole(e: Evidence) -> str:
    """How many events were expected and hidden, and how many intervals hold; of a model alone, that it fits."""
    c = e.calibration
    if c is None:
        if any(f.alarm for f in e.findings) or e.doubts:
            return ""
        if e.about["streams"] >= MANY_STREAMS:
            return "the model fits: counts by type and gaps are as it expects"
        return "no misfit could be told from chance by counts by type and gaps"
    if not e.compared:
        return ""
    predicted = "incomplete streams are as predicted, " if e.observed is not None and not _is_off(e) else ""
    expected, true = c.expected[:, -1].sum(), c.hidden[:, -1].sum()
    error = next(f.error for f in e.findings if f.name == imputation.EXCESS) * true
    digits = 1 if error < 1 else 0  # so that a small error is not told as none
    number = f"{expected:,.{digits}f} ± {error:,.{digits}f}" if error == error else f"{expected:,.0f}"
    held = f", and {_covered(c)}" if c.aligned.sum() >= FEW_EVENTS else ""
    return f"{predicted}{number} events were expected where {true:,} were hidden{held}"


def _is_off(e: Evidence) -> bool:
    """Whether there is an alarm or a doubt about incomplete streams."""
    return any((f.alarm or f.doubt) and f.part == observed.PART for f in e.findings)


def _covered(c: Calibration) -> str:
    found = c.coverage()
    return f"{found.value:.0%} ± {found.error:.0%} of the 90 % intervals hold the true time"


def _cause(e: Evidence) -> tuple[str, str]:
    """Why, as far as the findings tell one cause from another, and the remedy; lesser causes go last."""
    particles, wrong = e.about.get("particles", 0), e.alarms(imputation.PART)
    more = f"use more particles ({4 * particles:,} instead of {particles:,})"
    cut = "lengths of streams were chosen by a cut or taken from the last event, which the model does not know"
    mend = "cut streams by time, say until when they were watched (--end), and fit again"
    also = f"; also, as {cut}: {mend}" if e.is_cut else ""
    if e.swapped is not None:
        a, b = e.swapped
        return (
            f"the model takes types {a!r} and {b!r} for each other",
            f"check the names of the types in both tables{also}",
        )
    if e.thinned:
        lacking = next((f for f in e.alarms(goodness.PART) if f.of in e.thinned), e.alarms(goodness.PART)[0])
        found = in_words(lacking).replace("complete streams", "these streams")
        said = f"{found}, and {_types(e.thinned)} what --missing says goes missing"
        return said, "check on complete streams that were kept out of the fit"
    if e.does_not_fit:
        too_few = f"; also, {more}" if e.too_sure and e.has_few_families else ""
        return "the model does not fit these streams", f"{_fit_again(e)}{too_few}{also}"
    if wrong and (e.too_sure or e.has_few_families) and not (e.is_cut and e.is_biased):
        assert e.calibration is not None
        families = float(np.median(e.calibration.families))
        return (
            f"the model itself fits, but its particles are too few and too alike ({particles:,} of them are worth "
            f"{families:.0f} independent ones somewhere in a stream)",
            f"{more}, or train a smoother for these missing rates{also}",
        )
    if e.is_cut:
        return cut, mend
    if wrong:
        return (
            "the model itself fits, but not what it makes of hidden events",
            f"{more}, and try filtering if a smoother was used",
        )
    return _cause_of_observed(e)


def _types(names: Sequence[str]) -> str:
    listed = ", ".join(repr(name) for name in names[:_MOST_NAMED]) + (" and more" if len(names) > _MOST_NAMED else "")
    return f"{listed} {'is' if len(names) == 1 else 'are'}"


def _fit_again(e: Evidence) -> str:
    """What to do about a model that does not fit: more time for it where that was too short, else other streams."""
    if e.about.get("unfinished"):
        return "its training was stopped by a limit of time, so go on with that first (the same fit, more --seconds)"
    remedy = (
        "fit it to streams like them, with more of them or another kind of model, and check types and units of time"
    )
    return remedy + (" (more training time would not help: it ended by itself)" if e.about.get("finished") else "")


def _cause_of_observed(e: Evidence) -> tuple[str, str]:
    """The model fits and its imputations too: then the mechanism is wrong, or the streams are others."""
    assert e.observed is not None
    if e.observed.impossible:
        wrong = "the mechanism is wrong, or the incomplete streams are of another kind"
        return wrong, "correct --missing or its dates"
    name = next((f.of for f in e.alarms(observed.PART) if f.of is not None), None)
    rate = e.observed.implied_rate(name)
    which = "all events" if name is None else repr(name)
    hint = f" (with {rate:.0%} of {which} missing counts would agree)" if 0 <= rate <= 1 else ""
    return (
        f"the model fits complete streams, so the missing rates are wrong{hint} or the incomplete streams are of "
        "another kind",
        "correct --missing, or learn the rates with 'retrodict learn-missing'",
    )
