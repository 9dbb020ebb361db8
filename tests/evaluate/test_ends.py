"""Checks of models that have learned when streams end."""

from __future__ import annotations

import warnings

import retrodict as rd
from retrodict.evaluate.findings import raise_alarms
from retrodict.evaluate.goodness import ENDS, KNOWN_ENDS, goodness
from retrodict.evaluate.observed import compare_observed
from retrodict.models.end import EndAtom

MISSING = rd.ByType([0.5, 0.3])


def process(hazards: list[float]) -> rd.Model:
    model = rd.Hawkes([1.0, 0.5], [[0.4, 0.2], [0.1, 0.3]], 2.0)
    model.end_atom = EndAtom.of_counts(hazards, model)
    return model


HAZARDS = [0.01, 0.05, 0.1, 0.1, 0.2, 0.4, 0.9]


def test_a_model_that_knows_its_ends_is_not_alarmed_by_them():
    """Neither by complete streams nor by incomplete ones, of which the last event may be missing."""
    model = process(HAZARDS)
    complete, other = rd.simulate(model, 150, seed=1), rd.simulate(model, 150, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.SuspicionNotice)
        found = rd.check(model, complete)
    assert not found.flagged, found.verdict
    assert KNOWN_ENDS in [f.name for f in found.findings]
    assert ENDS not in [f.name for f in found.findings]
    incomplete, _ = MISSING.censor(other, seed=3)
    predicted = compare_observed(model, MISSING, incomplete)
    assert not any(f.alarm for f in raise_alarms(predicted.findings()))
    assert predicted.counts.sum() == incomplete.num_events


def test_streams_that_end_otherwise_are_noticed():
    streams = rd.simulate(process(HAZARDS), 120, seed=1)
    found = rd.check(process([h / 2 for h in HAZARDS]), streams)
    assert "more streams end at an event than the model expects" in found.verdict
    assert ENDS in [f.name for f in goodness(process(HAZARDS).endless(), streams).findings()]
