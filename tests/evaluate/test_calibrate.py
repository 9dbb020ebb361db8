"""Probabilities of a model that is not true become right by a check on held-out streams, where that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import retrodict as rd
from retrodict.decode.transport import as_cost
from retrodict.evaluate.matching import pair_streams
from retrodict.smc.reliability import FEWEST, Reliability

TRUE = rd.Hawkes([0.25, 0.02], [[0.0, 0.55], [0.0, 0.0]], [2.0, 2.0])
SURE = rd.Hawkes([0.25, 0.02], [[0.0, 0.95], [0.0, 0.0]], [2.0, 2.0])  # believes that nearly all have a successor
MISSING = rd.ByType([0.0, 1.0])
COST = 2.0


def draw(number: int, seed: int) -> rd.StreamSet:
    return rd.simulate(TRUE, number, end=20.0, seed=seed)


@pytest.fixture(scope="module")
def checked() -> rd.Check:
    return rd.check(rd.Filtering(SURE, MISSING), draw(150, 1), costs=[COST], particles=200)


@pytest.fixture(scope="module")
def posterior() -> rd.Posterior:
    return rd.impute(MISSING.censor(draw(150, 2))[0], rd.Filtering(SURE, MISSING), 200)


def excess(imputed: rd.StreamSet) -> float:
    """How much more than the truth is believed, over all imputed events."""
    hidden = MISSING.censor(draw(150, 2))[1]
    happened = ~np.isnan(pair_streams(hidden, imputed).aligned_times(as_cost(COST)))
    return float((imputed.columns["probability"] - happened).mean())


def test_a_model_that_is_too_sure_becomes_right_on_other_streams(checked, posterior):
    before, after = posterior.consensus(COST), checked.calibrate(posterior).consensus(COST)
    assert excess(before) > 0.2
    assert abs(excess(after)) < 0.05  # some 500 events: 2.5 standard errors
    np.testing.assert_array_equal(after.event_times, before.event_times)
    for name in ("earliest", "latest"):
        np.testing.assert_array_equal(after.columns[name], before.columns[name])


def test_a_right_model_hardly_changes(posterior):
    right = rd.Filtering(TRUE, MISSING)
    result = rd.check(right, draw(300, 3), costs=[COST], particles=200)
    own = rd.impute(posterior.observed, right, 200)
    before, after = (each.consensus(COST).columns["probability"] for each in (own, result.calibrate(own)))
    assert np.abs(after - before).mean() < 0.06


def test_all_answers_of_a_posterior_agree_and_it_is_kept_when_saved(checked, posterior, tmp_path):
    calibrated = checked.calibrate(posterior)
    (decision,) = calibrated.decide([COST])
    assert decision.streams == calibrated.consensus(COST)
    calibrated.save(tmp_path / "kept")
    assert rd.load_posterior(tmp_path / "kept").consensus(COST) == calibrated.consensus(COST)
    assert "calibration" not in posterior.about


def test_the_map_is_increasing_and_nothing_becomes_certain(checked):
    found = Reliability.of_check(checked.to_dict())
    assert found.events >= FEWEST
    given, happened = np.array(found.given), np.array(found.happened)
    assert (np.diff(given) > 0).all()
    assert (np.diff(happened) >= 0).all()
    assert 0 < happened[1] <= happened[-2] < 1
    assert found == Reliability.kept(found._asdict())


def test_checks_that_say_nothing_of_it_are_refused(checked, posterior):
    few = rd.check(rd.Filtering(SURE, MISSING), draw(10, 1), costs=[COST], particles=50)
    with pytest.raises(rd.DataError, match=r"too few to calibrate probabilities by.*at least 100"):
        few.calibrate(posterior)
    with pytest.raises(rd.ModelError, match="one of another model"):
        checked.calibrate(rd.impute(posterior.observed[:2], rd.Filtering(TRUE, MISSING), 50))
    other = rd.impute(posterior.observed[:2], rd.Filtering(SURE, rd.ByType([0.0, 0.9])), 50)
    with pytest.raises(rd.ModelError, match="Check with the same mechanism"):
        checked.calibrate(other)


def test_an_answer_at_another_cost_has_a_notice(checked, posterior):
    with pytest.warns(rd.DataNotice, match="calibrated by a check at cost 2, and this answer is one at cost 8"):
        checked.calibrate(posterior).consensus(8.0)


@pytest.mark.parametrize("change", [{"given": [0.0, 2.0]}, {"happened": [0.0]}, {"cost": float("nan")}, {"given": "x"}])
def test_a_damaged_calibration_is_refused(checked, posterior, change):
    calibrated = checked.calibrate(posterior)
    calibrated.about["calibration"] |= change
    with pytest.raises(rd.DataError, match="how probabilities were calibrated is not known"):
        calibrated.consensus(COST)
