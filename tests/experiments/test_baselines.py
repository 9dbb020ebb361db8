"""The baselines on cases small enough to do by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.baselines import best_rules, constant_rate, median_rules, nothing
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.smc.impute import impute

TYPES = ("drop-off:A", "drop-off:B", "pick-up:A", "pick-up:B")
PICK_UPS = ByType([0.0, 0.0, 1.0, 1.0]).bind(TYPES)


def rides(*trips, end=20.0, id=0):
    """A stream of (pick-up time, its place, drop-off time, its place)."""
    events = [event for a, i, b, j in trips for event in ((a, 2 + i), (b, j))]
    return EventStream([t for t, _ in events], [k for _, k in events], 0.0, end, id)


TRAIN = StreamSet(
    [
        rides((0.0, 0, 1.0, 0), (2.0, 0, 3.0, 0), (5.0, 1, 9.0, 1), id=0),
        rides((0.0, 0, 2.0, 0), (4.0, 1, 8.0, 1), (10.0, 1, 15.0, 1), id=1),
    ],
    TYPES,
)


def test_the_medians_and_the_usual_places():
    rules = median_rules(TRAIN, PICK_UPS)
    assert len(rules) == 8  # one median or one each, bounded or not, the first at the start or not
    assert all(rule.hidden.tolist() == [2, 3, -1, -1] for rule in rules)
    assert {tuple(rule.delay[:2]) for rule in rules} == {(3.0, 3.0), (1.0, 4.0)}


def test_a_pick_up_before_each_drop_off():
    observed = StreamSet([EventStream([2.0, 3.0, 10.0], [0, 0, 1], 0.0, 20.0, "x")], TYPES)

    def imputed(own, bounded, first):
        chosen = [
            rule
            for rule in median_rules(TRAIN, PICK_UPS)
            if ((rule.delay[1] == 4.0), rule.after_previous, rule.first_at_start) == (own, bounded, first)
        ]
        stream = chosen[0].impute(observed)[0]
        return list(zip(stream.times.tolist(), stream.types.tolist(), strict=True))

    assert imputed(True, False, False) == [(1.0, 2), (2.0, 2), (6.0, 3)]
    assert imputed(False, False, False) == [(0.0, 2), (0.0, 2), (7.0, 3)]  # never before the start
    assert imputed(False, True, False) == [(0.0, 2), (2.0, 2), (7.0, 3)]  # never before the previous drop-off
    assert imputed(True, False, True) == [(0.0, 2), (2.0, 2), (6.0, 3)]


def test_the_best_rule_is_chosen_on_dev_for_each_cost():
    observed, missing = PICK_UPS.censor(TRAIN)
    rules = median_rules(TRAIN, PICK_UPS)
    best = best_rules(rules, observed, missing, [0.5, 10.0])
    for cost, chosen in zip([0.5, 10.0], best, strict=True):
        from retrodict.evaluate import transport_score

        distances = [transport_score(missing, rule.impute(observed), cost).distance.sum() for rule in rules]
        assert transport_score(missing, chosen.impute(observed), cost).distance.sum() == min(distances)
    assert best[1].delay[1] == 4.0  # rides to B take longer


def test_the_constant_rate_posterior_is_poisson_whatever_was_seen():
    """Expected counts are rho times rate times length; 4 standard errors of 4000 particles."""
    train = StreamSet([EventStream([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 1], 0.0, 5.0)], ("a", "b"))
    proposal = constant_rate(train, ByType([0.5, 1.0]).bind(("a", "b")))
    observed = StreamSet([EventStream([0.1] * 7, [0] * 7, 0.0, 10.0, "x")], ("a", "b"))
    posterior = impute(observed, proposal, 4000, seed=1)
    for k, expected in ((0, 0.5 * 0.6 * 10), (1, 1.0 * 0.2 * 10)):
        assert posterior.expected_count(k)[0] == pytest.approx(expected, abs=4 * np.sqrt(expected / 4000))
    np.testing.assert_allclose(posterior.all_weights, 1 / 4000, rtol=1e-6)


def test_nothing_is_nothing():
    empty = nothing(TRAIN)
    assert len(empty) == 2
    assert empty.num_events == 0
