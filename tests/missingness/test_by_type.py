"""Missing rates by type: what goes missing, how likely that was, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.errors import DataError, ModelError
from retrodict.events.combine import combine
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models import Poisson
from retrodict.models.simulate import simulate

TYPES = ["pick-up", "drop-off", "rest"]


@pytest.fixture
def streams():
    return simulate(Poisson([3.0, 2.0, 1.0]), 300, end=5.0, seed=1).with_types(["0", "1", "2"])


def test_each_type_goes_missing_at_its_own_rate(streams):
    rates = [0.3, 1.0, 0.0]
    observed, missing = ByType(rates).censor(streams, seed=5)
    assert observed.num_events + missing.num_events == streams.num_events
    kept, gone = (np.bincount(s.event_types, minlength=3) for s in (observed, missing))
    assert stats.binomtest(int(gone[0]), int(gone[0] + kept[0]), 0.3).pvalue > 1e-3
    assert kept[1] == 0
    assert gone[2] == 0


def test_observed_and_missing_make_up_the_whole(streams):
    observed, missing = ByType(0.5).censor(streams, seed=5)
    complete, is_missing = combine(observed, missing)
    assert complete == streams
    assert is_missing.sum() == missing.num_events


def test_a_streams_mask_does_not_depend_on_the_other_streams(streams):
    mechanism = ByType(0.5)
    observed, _ = mechanism.censor(streams, seed=5)
    alone, _ = mechanism.censor(streams[[17]], seed=5)
    assert alone[0] == observed[17]
    backwards, _ = mechanism.censor(streams[::-1], seed=5)
    assert backwards[::-1] == observed
    assert mechanism.censor(streams, seed=6)[0] != observed


def test_extra_columns_follow_their_events():
    stream = EventStream([1.0, 2.0, 3.0], [0, 1, 0], end=4.0, columns={"fare": [5, 6, 7]})
    observed, missing = ByType([1.0, 0.0]).censor(StreamSet([stream], types=["a", "b"]))
    assert observed[0].columns["fare"].tolist() == [6]
    assert missing[0].columns["fare"].tolist() == [5, 7]


def test_log_prob_is_the_product_of_the_rates():
    make = lambda times, types: StreamSet([EventStream(times, types, end=9.0)], types=TYPES)  # noqa: E731
    observed, missing = make([1.0, 2.0], [0, 1]), make([1.5, 3.0, 4.0], [0, 0, 2])
    mechanism = ByType({"pick-up": 0.4, "drop-off": 0.1, "rest": 1.0})
    expected = math.log(0.6) + math.log(0.9) + 2 * math.log(0.4)
    torch.testing.assert_close(mechanism.log_prob(observed, missing), torch.tensor([expected], dtype=torch.float64))
    assert float(ByType({"pick-up": 0.4}).log_prob(observed, missing)) == -math.inf
    assert float(ByType(0.0).log_prob(observed, make([], []))) == 0.0


def test_log_prob_integrates_to_one(streams):
    """E[1 / p_miss of the drawn mask] counts masks: 2 to the number of events that can go either way."""
    few = simulate(Poisson([1.0]), 4000, num_events=3, seed=2)
    observed, missing = ByType(0.3).censor(few, seed=1)
    inverse = (-ByType(0.3).log_prob(observed, missing)).exp()
    assert abs(float(inverse.mean()) - 8) < 3.3 * float(inverse.std()) / math.sqrt(4000)


def test_rates_have_the_shape_of_the_times():
    mechanism = ByType({"rest": 0.2}).bind(TYPES)
    t = torch.zeros(4, 5)
    assert mechanism.rates(t).shape == (4, 5, 3)
    assert mechanism.rates(t)[0, 0].tolist() == [0.0, 0.0, 0.2]
    assert torch.equal(mechanism.bound(t, t), mechanism.rates(t))
    assert ByType({0: 0.1, 2: 0.3}).bind(TYPES).rates(t)[0, 0].tolist() == [0.1, 0.0, 0.3]
    assert ByType(0.7).bind(TYPES).rates(t)[0, 0].tolist() == [0.7] * 3


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"pick-up": 1.5}, "missing rate of 'pick-up' is 1.5. A rate is a probability"),
        ({"pick-up": 40}, r"give a number from 0 .* to 1 \(always missing\), such as 0.4 for 40 %\.$"),
        ({"pick-up": 101}, r"to 1 \(always missing\)\.$"),
        ([-0.1, 0.2, 0.0], "missing rate of 0 is -0.1"),
        (float("nan"), "missing rate of 'every type' is nan"),
        ({"pick-up": "half"}, "missing rate of 'pick-up' is 'half'"),
        (
            {"lunch": 0.5},
            "no event type 'lunch' to give a missing rate to. The types are 'pick-up', 'drop",
        ),
        ({"pickup": 0.5}, r"'rest'\. Did you mean 'pick-up'\?"),
        ({7: 0.5}, "no event type 7"),
        ([0.5, 0.5], "2 missing rates for 3 types"),
    ],
)
def test_impossible_rates_are_refused(rates, message):
    with pytest.raises(ModelError, match=message):
        ByType(rates).bind(TYPES)


def test_rates_by_name_need_a_vocabulary():
    with pytest.raises(ModelError, match="call bind"):
        ByType({"a": 0.5}).rates(torch.zeros(2))


def test_sets_that_do_not_belong_together_are_refused():
    make = lambda id, end: StreamSet([EventStream([], [], end=end, id=id)], types=["a"])  # noqa: E731
    with pytest.raises(DataError, match="different ids"):
        combine(make("x", 1.0), make("y", 1.0))
    with pytest.raises(DataError, match=r"stream 'x': observed on \[0, 1\] but missing on \[0, 2\]"):
        combine(make("x", 1.0), make("x", 2.0))
