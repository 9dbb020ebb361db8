"""The verdict of a check: two plain sentences, what to trust and what not, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrodict.evaluate import calibration as imputation
from retrodict.evaluate import goodness, observed
from retrodict.evaluate.calibration import Calibration
from retrodict.evaluate.finding_words import in_words, other_types
from retrodict.evaluate.findings import Finding
from retrodict.evaluate.observed import Observed
from retrodict.smc.diagnostics import FEW

_FEW_STREAMS, _MANY_STREAMS, _FEW_EVENTS = 20, 100, 20
_MOST_NAMED = 3  # doubts
_MORE = f"check with {_FEW_STREAMS} or more complete streams that were not trained on ('retrodict check')"
_TOO_WIDE = "Intervals are wider than they need be: times are known better than the intervals say."


@dataclass(frozen=True)
class Evidence:
    """All that a verdict rests on; ``swapped`` names two types that the model seems to take for each other."""

    findings: Sequence[Finding]
    about: Mapping[str, Any]
    calibration: Calibration | None
    observed: Observed | None
    swapped: tuple[str, str] | None

    def alarms(self, part: str) -> list[Finding]:
        """The alarms about one part, the surest first."""
        found = [f for f in self.findings if f.alarm and f.part == part]
        return sorted(found, key=lambda f: f.p_value)

    @property
    def doubts(self) -> list[Finding]:
        """What is no alarm, and yet neither fine nor chance at a single look; the worst first."""
        return sorted((f for f in self.findings if f.doubt), key=lambda f: -f.off / max(f.chance, 1e-300))

    @property
    def is_cut(self) -> bool:
        """Whether streams end at an event."""
        return any(f.name == goodness.ENDS for f in self.alarms(goodness.PART))

    @property
    def does_not_fit(self) -> bool:
        """Whether counts or gaps of the complete streams are not the model's."""
        return any(f.name != goodness.ENDS for f in self.alarms(goodness.PART))

    @property
    def too_sure(self) -> bool:
        """Whether the truth falls outside of what is believed possible, rather than to one side of it."""
        wide = (
            imputation.COVERAGE, imputation.RELIABILITY, imputation.TOP, imputation.TENTHS, imputation.DISTANCE,
            imputation.SPREAD,
        )  # fmt: skip
        return any(f.name.startswith(wide) and _is_too_sure(f) for f in self.alarms(imputation.PART))

    @property
    def is_biased(self) -> bool:
        """Whether there are too many, or too few, imputed events."""
        return any(f.name.startswith(("expected", "centre")) for f in self.alarms(imputation.PART))

    @property
    def compared(self) -> int:
        """With how many streams imputed events were compared; none where nothing was hidden."""
        c = self.calibration
        return len(c.hidden) if c is not None and c.hidden.any() else 0

    def resting_on(self, finding: Finding) -> int:
        """The number of streams that a finding rests on."""
        known = {imputation.PART: "imputed_streams", observed.PART: "incomplete_streams"}
        return int(self.about[known.get(finding.part, "streams")])

    @property
    def has_few_families(self) -> bool:
        """Whether most streams' particles are too much alike somewhere."""
        return self.calibration is not None and float(np.median(self.calibration.families)) < FEW


def give_verdict(evidence: Evidence) -> str:
    """Two sentences: what was found, and what to do; further ones where intervals are wider than they need be, and
    where training was stopped."""
    is_wide = any(f.remark and f.name == imputation.WIDE for f in evidence.findings)
    said = is_wide and not evidence.alarms(imputation.PART)
    verdict = _two_sentences(evidence) + (f" {_TOO_WIDE}" if said else "")
    return verdict + _unfinished(evidence.about, "its training was stopped" in verdict)


def _two_sentences(evidence: Evidence) -> str:
    if not any(f.alarm for f in evidence.findings):
        return _nothing_found(evidence)
    wrong = evidence.alarms(imputation.PART) + evidence.alarms(observed.PART)
    worst = (wrong or evidence.alarms(goodness.PART))[0]
    if evidence.resting_on(worst) < _FEW_STREAMS:
        return _found_on_few(evidence, worst)
    if wrong:
        first = f"Do not trust what is imputed: {in_words(wrong[0])}."
    elif evidence.compared and not evidence.does_not_fit:
        first = (
            f"What is imputed agrees with the truth on {evidence.compared} streams like these, but do "
            f"not trust it elsewhere: {in_words(evidence.alarms(goodness.PART)[0])}."
        )
    elif not evidence.compared:
        first = f"Do not trust what this model would impute: {in_words(evidence.alarms(goodness.PART)[0])}."
    else:
        first = (
            f"Trust what is imputed with care: it agrees with the truth on {evidence.compared} streams, "
            f"but {in_words(evidence.alarms(goodness.PART)[0])}."
        )
    return f"{first} {_cause(evidence)}"


def _found_on_few(evidence: Evidence, worst: Finding) -> str:
    """What an alarm on few streams means: a reason to look at more of them, and the remedy if these agree."""
    what, cause = "the model" if worst.part == goodness.PART else "what is imputed", _cause(evidence)
    return (
        f"On {evidence.resting_on(worst)} streams, which are few to judge by, something seems wrong with {what}: "
        f"{in_words(worst)}. Before you act on it, {_MORE}; if the same is found there, {cause[0].lower()}{cause[1:]}"
    )


def _unfinished(about: Mapping[str, Any], model_was_named: bool) -> str:
    """That a limit of time stopped a training, where that is not said yet."""
    stopped = ["the model"] if about.get("unfinished") and not model_was_named else []
    stopped += ["the smoother"] if about.get("unfinished_smoother") else []
    if not stopped:
        return ""
    which = " and ".join(stopped)
    return f" Training of {which} was stopped by a limit of time: the same fit with more --seconds goes on with it."


def _doubted(evidence: Evidence, tried: str) -> str:
    """What is doubtful, as two sentences; nothing where nothing is."""
    doubts, looks = evidence.doubts, sum(f.looks for f in evidence.findings)
    if not doubts:
        return ""
    named = list(dict.fromkeys(in_words(f) + other_types(f) for f in doubts))  # gaps of all and by type are one
    if len(named) > _MOST_NAMED:
        named[_MOST_NAMED:] = [f"and {len(named) - _MOST_NAMED} more"]
    count = sum(1 + len(f.others) for f in doubts)
    return (
        f"In doubt: {count} of {looks} comparisons with {tried} {'is' if count == 1 else 'are'} further off than "
        f"chance makes 1 in 20. Furthest off: {'; '.join(named)}. "
    )


def _nothing_found(evidence: Evidence) -> str:
    """What no alarm means: all is well, as far as so many streams can show; or that there is doubt."""
    about, c = evidence.about, evidence.calibration
    streams = about["streams"] if c is None else about["imputed_streams"]
    tried = (
        f"{streams} streams" if streams == about["streams"] else f"the {streams} streams that time allowed to impute"
    )
    doubts = _doubted(evidence, tried)
    is_sure = streams >= _MANY_STREAMS and not doubts
    if c is None:
        first = f"The model fits: counts by type and gaps of {streams} streams are as it expects. "
        if not is_sure:
            first = f"No misfit of the model could be told from chance by counts and gaps of {streams} streams. "
        second = (
            "Whether imputed events are to be trusted is not known until a check hides some: say how events go missing."
        )
    elif not c.hidden.any():
        first = f"Nothing is known of imputed events: none was hidden in {streams} streams. "
        second = "Give more streams, or check the missing rates."
    else:
        opening = f"No fault {'was found' if is_sure else 'could be told from chance'} in {tried}: "
        first = ("On the whole, " if doubts else opening) + _on_the_whole(evidence, c)
        limit = "" if streams >= _MANY_STREAMS else f" as far as {streams} streams can show (a hundred show more)"
        second = (
            f"Trust counts, probabilities and intervals on streams like these{limit}, and not where streams, or the "
            "way events go missing, are different."
        )
        if doubts:
            second = (
                "That may be chance among so many comparisons: check more streams before you trust counts, "
                "probabilities and intervals."
            )
    if streams < _FEW_STREAMS:
        second = f"{streams} streams are few, so that smaller faults would not be seen: {_MORE}."
    return f"{doubts}{'' if doubts and c is None else first}{second}"


def _on_the_whole(evidence: Evidence, c: Calibration) -> str:
    """How many events were expected and hidden, and how many intervals hold, as the end of a sentence."""
    predicted = "incomplete streams are as predicted, " if evidence.observed is not None else ""
    expected, true = c.expected[:, -1].sum(), c.hidden[:, -1].sum()
    error = next(f.error for f in evidence.findings if f.name == imputation.EXCESS) * true
    digits = 1 if error < 1 else 0  # so that a small error is not told as none
    number = f"{expected:,.{digits}f} ± {error:,.{digits}f}" if error == error else f"{expected:,.0f}"
    return f"{predicted}{number} events were expected where {true:,} were hidden, and {_covered(c)}. "


def _covered(c: Calibration) -> str:
    if c.aligned.sum() < _FEW_EVENTS:
        return "too few events were imputed to judge their intervals"
    found = c.coverage()
    return f"{found.value:.0%} ± {found.error:.0%} of the 90 % intervals hold the true time"


def _cause(evidence: Evidence) -> str:
    """Why, as far as the findings tell one cause from another, and the remedy; lesser causes go last."""
    particles, wrong = evidence.about.get("particles", 0), evidence.alarms(imputation.PART)
    more = f"use more particles ({4 * particles:,} instead of {particles:,})"
    cut = (
        "lengths of streams were chosen by a cut or taken from the last event, which the model does not know: cut "
        "streams by time, say until when they were watched (--end), and fit again"
    )
    also = f"; also, {cut}" if evidence.is_cut else ""
    if evidence.swapped is not None:
        a, b = evidence.swapped
        return (
            f"The model takes types {a!r} and {b!r} for each other: check the names of the types in both tables{also}."
        )
    if evidence.does_not_fit:
        too_few = f"; also, {more}" if evidence.too_sure and evidence.has_few_families else ""
        remedy = (
            "fit it to streams like them, with more of them or another kind of model, and check types and units of time"
        )
        if evidence.about.get("unfinished"):
            remedy = (
                "its training was stopped by a limit of time, so go on with that first (the same fit, more --seconds)"
            )
        return f"The model does not fit these streams: {remedy}{too_few}{also}."
    if wrong and (evidence.too_sure or evidence.has_few_families) and not (evidence.is_cut and evidence.is_biased):
        assert evidence.calibration is not None
        families = float(np.median(evidence.calibration.families))
        return (
            f"The model itself fits, but its particles are too few and too alike ({particles:,} of them are worth "
            f"{families:.0f} independent ones somewhere in a stream): {more}, or train a smoother for these missing "
            f"rates{also}."
        )
    if evidence.is_cut:
        return f"{cut[0].upper()}{cut[1:]}."
    if wrong:
        return (
            "The model itself fits, but not what it makes of hidden events: "
            f"{more}, and try filtering if a smoother was used."
        )
    return _cause_of_observed(evidence)


def _cause_of_observed(evidence: Evidence) -> str:
    """The model fits and its imputations too: then the mechanism is wrong, or the streams are others."""
    assert evidence.observed is not None
    if evidence.observed.impossible:
        return "The mechanism is wrong, or the incomplete streams are of another kind: correct --missing or its dates."
    name = next((f.of for f in evidence.alarms(observed.PART) if f.of is not None), None)
    rate = evidence.observed.implied_rate(name)
    which = "all events" if name is None else repr(name)
    hint = f" (with {rate:.0%} of {which} missing counts would agree)" if 0 <= rate <= 1 else ""
    return (
        f"The model fits complete streams, so the missing rates are wrong{hint} or the incomplete streams are of "
        "another kind: correct --missing, or learn the rates with 'retrodict learn-missing'."
    )


def _is_too_sure(finding: Finding) -> bool:
    """A rank too often extreme, or a probability too high; all else here is too sure whenever it is wrong."""
    return finding.value > finding.expected or not finding.name.startswith((imputation.SPREAD, imputation.TENTHS))
