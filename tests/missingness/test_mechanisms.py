"""Every mechanism keeps the contract of ``contract.py``; and what each does by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.errors import ModelError
from retrodict.events.batch import make_batch
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis
from retrodict.missingness import (
    After,
    ByType,
    Context,
    Contextual,
    Custom,
    Either,
    ReportingDelay,
    TimeVarying,
    Windows,
)
from retrodict.models import Poisson
from retrodict.models.start import StartAtom
from retrodict.proposals import Filtering, Smoothing
from retrodict.proposals.proposal_folder import load_proposal
from retrodict.smc.impute import impute
from tests.missingness.contract import CHECKS, RATES, contract_streams, random_context
from tests.missingness.examples import EXAMPLES, TYPES, contextual


@pytest.fixture(scope="module")
def streams() -> StreamSet:
    return contract_streams()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_mechanism(check, name):
    check(EXAMPLES[name])


@pytest.mark.parametrize(
    "mechanism",
    [
        ReportingDelay("exponential", mean={"0": 0.002, "1": 0.05, "2": 7.0}),
        ReportingDelay("gamma", mean={"0": 0.002, "1": 0.05, "2": 7.0}, shape={"0": 0.6, "1": 4.0, "2": 2.0}),
        ReportingDelay("lognormal", median={"0": 0.002, "1": 0.05, "2": 1.0}, spread={"0": 0.3, "1": 1.0, "2": 2.0}),
        Contextual(**{**contextual(blind=False).config(), "scales": [0.003, 0.2]}),
    ],
    ids=repr,
)
@torch.no_grad()
def test_fast_changes_in_long_gaps_are_not_missed(mechanism):
    """Eight nodes between breaks, against a million midpoints, for rates that change in a thousandth of the gap."""
    bound = mechanism.bind(TYPES)
    context = random_context(bound, 1)
    start, stop = (torch.tensor([x], dtype=torch.float64) for x in (0.9, 6.0))
    edges = torch.cat([start, bound.breaks(start, stop, context)[0], stop])
    points, weights = (torch.as_tensor(x) for x in np.polynomial.legendre.leggauss(8))
    half = edges.diff()[:, None] / 2
    times = (edges[:-1, None] + half * (1 + points)).reshape(1, -1)
    area = (bound.rates(times, context.over(times))[0] * (half * weights).reshape(-1, 1)).sum(0)
    many = (start + (stop - start) * (torch.arange(1_000_000) + 0.5) / 1_000_000)[None]
    fine = bound.rates(many, context.over(many))[0].mean(0) * (stop - start)
    torch.testing.assert_close(area, fine, rtol=0, atol=2e-5)


def test_a_users_own_function_is_given_again_when_loading(tmp_path):
    mechanism, model = EXAMPLES["custom"].mechanism, Poisson(RATES)
    Filtering(model, mechanism).save(tmp_path)
    with pytest.raises(ModelError, match=r"not saved with a proposal. Give it again: rd.load_proposal"):
        load_proposal(tmp_path)
    assert load_proposal(tmp_path, missing=mechanism).given_missingness is mechanism
    too_high = Custom(lambda t, context: t, bound=0.5).bind(["a"])
    with pytest.raises(ModelError, match="must lie between 0 and its bound"):
        too_high.rates(torch.tensor([0.7], dtype=torch.float64))


def test_an_event_is_seen_only_if_it_survives_all():
    t = torch.zeros(1, dtype=torch.float64)
    both = (ByType(0.5) * ByType([0.2, 0.4]) * ByType(0.5)).bind(["a", "b"])
    torch.testing.assert_close(both.rates(t)[0], torch.tensor([0.8, 0.85], dtype=torch.float64))
    assert len(both.parts) == 3
    assert both.is_constant
    assert not (both * After("a", 1.0)).is_constant


def test_a_missing_first_event_knows_its_time():
    """With an atom at the start: hidden there for certain, seen there for certain half a day later."""
    model = Poisson([1.0, 0.5])
    model.start_atom = StartAtom(torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).log())
    mechanism = Windows([(0, 12)], every=24)
    observed = StreamSet([EventStream([], [], s, s + 1.0, s) for s in (24.0, 36.0)], types=["a", "b"])
    posterior = impute(observed, Filtering(model, mechanism), particles=400, seed=1)
    assert abs(posterior.probability("a", 24.0, 24.0)[0] - 0.5) < 3.3 * 0.5 / 20
    assert posterior.expected_count()[1] == 0
    np.testing.assert_allclose(posterior.log_evidence, [0.0, math.log(0.2) - 1.5], rtol=0, atol=1e-6)
    missing = StreamSet(
        [EventStream([24.0], [0], 24.0, 25.0, 24.0), EventStream([], [], 36.0, 37.0, 36.0)], types=["a", "b"]
    )
    log_q = Filtering(model, mechanism).log_prob(missing, observed)
    torch.testing.assert_close(log_q, torch.tensor([math.log(0.5) - 1.5, 0.0], dtype=torch.float64))


def dated(unit: str, hours: list[float]) -> StreamSet:
    """One stream on 2 March 2024, a Saturday, UTC, all day, with events at these hours."""
    origin = 1709337600 * 10**9
    scale = {"minute": 60.0, "hour": 1.0, "day": 1 / 24}[unit]
    axis = TimeAxis(unit, origin - 24 * 3600 * 10**9, "UTC")
    times = (np.array(hours) + 24) * scale
    return StreamSet([EventStream(times, np.zeros(len(times), int), 24 * scale, 48 * scale, "s")], ["a"], axis)


HOURS = [0.5, 5.0, 7.0, 12.0, 13.0, 18.0, 23.0]


@pytest.mark.parametrize("unit", ["minute", "hour", "day"])
@pytest.mark.parametrize(
    ("mechanism", "hidden"),
    [
        (Windows([("22:00", "06:00")], every="day"), [0.5, 5.0, 23.0]),
        (Windows([("sat 06:00", "sat 12:30")], every="week"), [7.0, 12.0]),
        (Windows([("fri", "sat 01:00")], every="week"), [0.5]),
        (Windows([("2024-03-02T12:30", "2024-03-02T19:00+01:00")]), [13.0]),
        (Windows([("2024-03-02", "2024-03-02 06:00")]), [0.5, 5.0]),
        (Windows([(6, 12.5)], unit="hour"), [7.0, 12.0]),
        (Windows([(0.25, 0.5)], unit="day", every="day"), [7.0]),
        (Windows([(None, "1 hour"), ("0.7 days", None)]), [0.5, 18.0, 23.0]),
        (TimeVarying(["00:00", "12:00", "14:00"], [0, 1, 0], every="day", steps=True), [12.0, 13.0]),
        (TimeVarying(["2024-03-02T08:00"], [1.0], steps=True), HOURS),
        (After("a", "90 minutes"), [13.0]),
        (After("a", 1.5, unit="hour"), [13.0]),
        (ReportingDelay("empirical", delays=[2.0], unit="hour"), [23.0]),
        (ReportingDelay("empirical", delays=[2.0], unit="hour", wait="2 hours"), []),
    ],
)
def test_dates_times_of_day_and_units(mechanism, hidden, unit):
    streams = dated(unit, HOURS)
    _, missing = mechanism.censor(streams)
    hours = (missing.event_times - streams.starts[0]) / streams.durations[0] * 24
    assert np.round(hours, 9).tolist() == hidden
    model = Poisson([0.01])
    model.types, model.time_unit = ("a",), "hour"
    inside = Filtering(model, mechanism).missingness.event_rates(model.matched(streams))
    assert [h for h, rate in zip(HOURS, inside, strict=True) if rate == 1] == hidden


def test_delays_in_another_unit_are_the_same_delays():
    t, end = torch.tensor([20.0], dtype=torch.float64), torch.tensor([24.0], dtype=torch.float64)
    given = ReportingDelay("lognormal", median=2.0, spread=0.5, unit="hour")
    hours, minutes = given.bind(["a"], "hour"), given.bind(["a"], "minute")
    same = hours.rates(t, Context(0 * t, t.long(), end=end))
    torch.testing.assert_close(minutes.rates(60 * t, Context(0 * t, t.long(), end=60 * end)), same)
    assert minutes.config()["median"] == {"a": pytest.approx(120.0)}
    assert minutes.config()["unit"] == "minute"
    assert minutes.bind(["a"], "minute") is minutes
    again = ReportingDelay(**minutes.config()).bind(["b", "a"], "hour")
    torch.testing.assert_close(again.rates(t, Context(0 * t, t.long(), end=end))[:, 1], same[:, 0])


@pytest.mark.parametrize(
    "mechanism",
    [
        contextual(blind=False),
        contextual(blind=False, every=2.0),
        ReportingDelay("exponential", mean=1.0),
        ReportingDelay("gamma", mean=1.0, shape=1.7),
        ReportingDelay("lognormal", median=0.5, spread=0.9),
        ByType(0.3) * ReportingDelay("exponential", mean={"0": 0.5}),
    ],
    ids=repr,
)
def test_what_can_be_learned_has_gradients(mechanism, streams):
    """d log p_miss / d parameter, against finite differences."""
    bound = mechanism.bind(TYPES)
    batch = make_batch(streams[:3], dtype=torch.float64)

    def total() -> torch.Tensor:
        return torch.where(batch.mask, bound.batch_rates(batch), 0.0).square().sum()

    parameters = list(bound.parameters())
    assert parameters
    gradients = torch.autograd.grad(total(), parameters, allow_unused=True)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        flat = parameter.detach().view(-1)
        for i in range(min(3, len(flat))):
            kept, step = float(flat[i]), 1e-5
            values = []
            for sign in (1, -1):
                flat[i] = kept + sign * step
                values.append(float(total().detach()))
            flat[i] = kept
            numeric = (values[0] - values[1]) / (2 * step)
            assert float(gradient.view(-1)[i]) == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def test_training_a_smoother_leaves_the_mechanism_alone(streams):
    mechanism = contextual(blind=False)
    proposal = Smoothing(Poisson(RATES), mechanism, 4)
    observed, missing = mechanism.censor(streams, seed=4)
    proposal.log_prob(missing, observed).sum().backward()
    assert all(p.grad is None for p in mechanism.parameters())
    assert not any("network" in name for name, _ in proposal.named_parameters())


def test_a_contextual_mechanism_knows_its_types_by_name():
    made = contextual(blind=False)
    renamed = Contextual(**{**made.config(), "types": ["x", "y", "z"]})
    stream = EventStream([1.0, 1.5, 2.0], [0, 1, 2], end=3.0)
    one = renamed.bind(["x", "y", "z"]).event_rates(StreamSet([stream], ["x", "y", "z"]))
    turned = EventStream([1.0, 1.5, 2.0], [2, 0, 1], end=3.0)
    np.testing.assert_allclose(renamed.bind(["y", "z", "x"]).event_rates(StreamSet([turned], ["y", "z", "x"])), one)
    with pytest.raises(ModelError, match=r"does not know the types 'w'. It knows 'x', 'y', 'z'"):
        renamed.bind(["x", "w"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Windows([]), "there are no windows"),
        (lambda: Windows([(3, 2)]).bind(["a"]), "ends before it begins"),
        (lambda: Windows([5]), "Give two times, from and to"),
        (lambda: Windows([("soon", "later")]), "which is no time"),
        (lambda: Windows([("08:00", "09:00")], every="day").bind(["a"]), "not known in which unit the streams' times"),
        (lambda: Windows([(1, 2)], types=["b"]).bind(["a"]), "no event type 'b' to hide in windows"),
        (lambda: Windows([(1, 2)], inside=1.2), "inside windows is 1.2. A rate is a probability"),
        (lambda: Windows([(1, 9)], every=4).bind(["a"]), "does not fit into every 4"),
        (lambda: Windows([(1, 2)], clock="wall"), "Choose stream .* or axis"),
        (lambda: Windows([(1, 2)], unit="moon"), "has the unit 'moon'"),
        (lambda: Windows([(1, 2)], every=-1), "every must be a positive number"),
        (lambda: TimeVarying([1, 2], [0.5]), "Give 2 rates, one for each time"),
        (lambda: TimeVarying([2, 1], [0.5, 0.5]).bind(["a"]), "are not in order"),
        (lambda: TimeVarying([1], {"a": [2.0]}), "missing rate of 'a' is 2.0"),
        (lambda: ReportingDelay("weibull", mean=1.0), "unknown family of delays 'weibull'"),
        (lambda: ReportingDelay("gamma", mean=1.0), "gamma delays take mean and shape, but got mean"),
        (lambda: ReportingDelay(mean=-1.0).bind(["a"]), "the mean of delays must be a positive number"),
        (lambda: ReportingDelay("empirical", delays=[-1]).bind(["a"]), "numbers that are not negative"),
        (lambda: ReportingDelay(mean=1.0).bind(["a"]).rates(torch.zeros(1)), "needs to know when the stream ends"),
        (lambda: After("b", 1.0).bind(["a"]), "no event type 'b' to go missing after"),
        (lambda: After("a", 1.0).bind(["a"]).rates(torch.zeros(1)), "looks at preceding events needs them"),
        (lambda: Contextual(2, []), "at least one time scale"),
        (lambda: Either(), "Either takes mechanisms"),
        (lambda: Custom(lambda t, context: t, bound=2.0), "the bound of 'every type' is 2.0"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_delays_seen_follow_their_quantiles():
    drawn = np.random.default_rng(0).gamma(2.0, 1.5, 5000)
    made = ReportingDelay("empirical", delays=drawn.tolist()).bind(["a"])
    t = torch.linspace(0, 10, 50, dtype=torch.float64)
    rates = made.rates(t, Context(0 * t, t.long(), end=torch.full_like(t, 10.0)))[:, 0].numpy()
    assert np.abs(rates - stats.gamma(2.0, scale=1.5).sf(10 - t.numpy())).max() < 0.03
