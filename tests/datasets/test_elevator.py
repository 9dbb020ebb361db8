"""Elevators: traffic against the profile, and every rule of the cars replayed from what is left of a run."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import gammainc
from scipy.stats import chi2

from retrodict.datasets.elevator import (
    DETERMINISTIC,
    ERLANG_SCALE,
    HOUR,
    TYPES,
    Hour,
    draw_arrivals,
    draw_load_times,
    elevator,
    simulate_hour,
)
from retrodict.datasets.elevator_cars import Stop, run_cars

FLOOR, STOP, TURN, CAPACITY, TOP = 1.45, 7.19, 1.0, 20, 5
PROFILE = (1, 2, 4, 4, 18, 12, 8, 7, 18, 5, 3, 2)  # the paper's table
ROUND = 2 * (TOP - 1) * FLOOR + 2 * TURN  # from the lobby to the top and back, without a stop


@pytest.fixture(scope="module")
def hours() -> list[Hour]:
    return [simulate_hour(7, run) for run in range(40)]


class Seen(NamedTuple):
    """Where a car is: its last floor, where it goes (0 stopped), and how many are aboard."""

    floor: int
    motion: int
    riders: int


class Replay:
    """What must have been the case at any time of a run, from its arrivals and stops alone."""

    def __init__(self, hour: Hour) -> None:
        self.hour = hour
        self.stops = [[s for s in hour.stops if s.car == car] for car in (0, 1)]

    def waiting(self, floor: int, time: float) -> int:
        """Passengers at a floor; if a car is loading there, fewer than there are."""
        came = sum(t <= time for t, f in self.hour.arrivals if f == floor)
        return came - sum(s.riders for s in self.hour.stops if s.floor == floor and s.time < time - 1e-6)

    def see(self, car: int, time: float) -> Seen:
        before = [s for s in self.stops[car] if s.time <= time + 1e-6]
        last = before[-1] if before else Stop(-HOUR, car, 1, 0, -TURN)
        if time < last.leaves:
            return Seen(last.floor, 0, last.riders)
        steps = (time - last.leaves - TURN) / FLOOR + 1e-7
        if last.floor > 1:
            return Seen(last.floor - max(0, math.floor(steps)), -1, last.riders)
        phase = (time - last.leaves + 1e-7) % ROUND
        if phase < TURN + (TOP - 1) * FLOOR:
            return Seen(1 + max(0, math.floor((phase - TURN) / FLOOR)), 1, 0)
        return Seen(TOP - max(0, math.floor((phase - 2 * TURN) / FLOOR - (TOP - 1))), -1, 0)

    def calls(self, car: int, floor: int, time: float) -> list[int]:
        """Floors from ``floor`` up that call a rising car and that the other does not take care of."""
        other = self.see(1 - car, time)
        ahead = other.motion == 1 and (other.floor, car) > (floor, 1 - car)

        def taken(f: int) -> bool:
            stands = other.motion == 0 and other.floor == f
            passes = other.motion < 1 and f < other.floor and 0 < other.riders < CAPACITY
            return stands or passes or (ahead and f > other.floor)

        return [f for f in range(max(floor, 2), TOP + 1) if self.waiting(f, time) > 0 and not taken(f)]

    def passes(self, car: int):
        """Each floor that a rising car reached, when, and whether it stopped."""
        for before, after in zip([None, *self.stops[car]], [*self.stops[car], None], strict=True):
            leaves = -TURN if before is None else before.leaves
            if (before is not None and before.floor > 1) or leaves > HOUR:
                continue
            until = HOUR if after is None else after.time
            for trip in range(math.ceil((until - leaves) / ROUND) + 1):
                for floor in range(2, TOP + 1):
                    time = leaves + trip * ROUND + TURN + (floor - 1) * FLOOR
                    if time < until + 1e-6:
                        yield floor, min(time, until), after is not None and abs(time - until) < 1e-6


def test_arrivals_are_poisson_with_the_means_of_the_profile():
    """Chi-square of 48 cells summed over 400 hours, false alarm 1e-3; and each count varies as its mean does."""
    random = np.random.default_rng(1)
    counts = np.zeros((400, 4, 12))
    for hour in counts:
        for time, floor in draw_arrivals(random):
            hour[floor - 2, int(time // 300)] += 1
    means = np.broadcast_to(PROFILE, (4, 12))
    statistic = float(((counts.sum(0) - 400 * means) ** 2 / (400 * means)).sum())
    assert chi2.ppf(5e-4, 48) < statistic < chi2.ppf(1 - 5e-4, 48)
    dispersion = float(((counts - means) ** 2 / means).mean())
    # Of one cell the square has mean 1 and variance 2 + 1/mean.
    error = np.sqrt((2 + 1 / means).sum()) / counts[0].size / np.sqrt(400)
    assert dispersion == pytest.approx(1, abs=3.3 * error)


def test_arrivals_are_uniform_within_five_minutes():
    random = np.random.default_rng(2)
    times = np.array([time % 300 for _ in range(30) for time, _ in draw_arrivals(random)])
    expected = len(times) / 10
    statistic = float(((np.bincount((times // 30).astype(int), minlength=10) - expected) ** 2 / expected).sum())
    assert statistic < chi2.ppf(1 - 1e-3, 9)


def test_getting_on_takes_a_second_on_average():
    def mass(order: int) -> float:
        return float(gammainc(order, 6 / ERLANG_SCALE) - gammainc(order, 0.6 / ERLANG_SCALE))

    assert 20 * ERLANG_SCALE * mass(21) / mass(20) == pytest.approx(1, abs=1e-12)
    times = draw_load_times(np.random.default_rng(3), 20_000)
    assert len(times) == 20_000
    assert times.min() >= 0.6
    assert times.max() <= 6
    assert times.mean() == pytest.approx(1, abs=3.3 * times.std() / np.sqrt(len(times)))


def test_a_lone_passenger_is_fetched_by_the_book():
    """Both cars rise together, the first serves the call at floor 4, and only then is the floor free again."""
    stops = run_cars([(1.0, 4)], iter([0.8, 0.9]), 60.0)
    fetched = 3 * FLOOR
    lobby = fetched + 0.8 + STOP + TURN + 3 * FLOOR
    assert [(s.car, s.floor, s.riders) for s in stops] == [(0, 4, 1), (0, 1, 1)]
    assert [s.time for s in stops] == pytest.approx([fetched, lobby])
    assert [s.leaves for s in stops] == pytest.approx([fetched + 0.8 + STOP, lobby + 0.9 + STOP])


def test_a_full_car_leaves_the_rest_behind():
    stops = run_cars([(0.5, 2)] * 33, iter([1.0] * 66), 200.0)
    upstairs = [s for s in stops if s.floor == 2]
    assert [s.riders for s in upstairs] == [20, 13]
    assert upstairs[1].time > upstairs[0].leaves


def test_cars_pick_up_and_go_straight_to_the_lobby(hours):
    """Nobody is carried past the lobby, all get off there, and no car turns with passengers aboard."""
    for hour in hours:
        for stops in Replay(hour).stops:
            for pick_up, lobby in zip(stops[::2], stops[1::2], strict=False):
                assert pick_up.floor > 1
                assert lobby.floor == 1
                assert lobby.time == pytest.approx(pick_up.leaves + TURN + (pick_up.floor - 1) * FLOOR)
                assert 0 < pick_up.riders <= CAPACITY
                assert lobby.riders == pick_up.riders or lobby.leaves > HOUR


def test_stops_last_as_long_as_passengers_take(hours):
    for hour in hours:
        for stop in hour.stops:
            if stop.leaves <= HOUR:
                assert 0.6 * stop.riders <= stop.leaves - stop.time - STOP <= 6 * stop.riders


def test_between_lobby_and_pick_up_a_car_only_moves(hours):
    """From the lobby to a floor takes the time of the floors between, and of whole rounds without a stop."""
    rounds = []
    for hour in hours:
        for stops in Replay(hour).stops:
            for lobby, pick_up in zip(stops[1::2], stops[2::2], strict=False):
                spare = pick_up.time - lobby.leaves - TURN - (pick_up.floor - 1) * FLOOR
                rounds.append(spare / ROUND)
    np.testing.assert_allclose(rounds, np.rint(rounds), atol=1e-6)
    assert min(rounds) > -1e-6
    assert max(rounds) > 5


def test_no_car_stops_where_nobody_waits_or_the_other_car_stands(hours):
    for hour in hours:
        replay = Replay(hour)
        for stop in hour.stops:
            if stop.floor > 1:
                assert replay.waiting(stop.floor, stop.time) > 0
                other = replay.see(1 - stop.car, stop.time)
                assert (other.floor, other.motion) != (stop.floor, 0)


def test_a_car_leaves_only_when_it_is_full_or_nobody_is_left(hours):
    for hour in hours:
        for stop in hour.stops:
            if stop.floor > 1 and stop.leaves <= HOUR:
                left = Replay(hour).waiting(stop.floor, stop.leaves - STOP)
                assert left == 0 or stop.riders == CAPACITY


def test_rising_cars_continue_while_they_can(hours):
    """At every floor a rising car reaches: it stops if that is the highest that calls it, and else continues."""
    seen = Counter()
    for hour in hours[:8]:
        replay = Replay(hour)
        for car in (0, 1):
            for floor, time, stopped in replay.passes(car):
                other = replay.see(1 - car, time)
                if other.motion == 0 and other.riders == CAPACITY:
                    continue  # how many were aboard at that moment cannot be told
                assert stopped == (replay.calls(car, floor, time) == [floor]), (car, floor, time)
                seen[stopped] += 1
    assert seen[True] > 1000
    assert seen[False] > 1000


def test_everyone_is_carried_once(hours):
    for hour in hours:
        fetched = sum(s.riders for s in hour.stops if s.floor > 1)
        waiting = sum(Replay(hour).waiting(floor, HOUR) for floor in range(2, TOP + 1))
        assert fetched + waiting == len(hour.arrivals)


def test_streams_come_near_the_papers_table():
    """The paper: K = 10; 235, 313 and 370 events in the shortest, the mean and the longest of 700 streams."""
    train, dev, test = elevator(seed=0, sizes=(80, 20, 20))
    assert [len(part) for part in (train, dev, test)] == [80, 20, 20]
    assert train.types == TYPES
    assert len(TYPES) == 10
    assert (train.axis.unit, set(train.ends)) == ("second", {HOUR})
    lengths = np.concatenate([part.lengths for part in (train, dev, test)])
    assert lengths.mean() == pytest.approx(313, rel=0.05)
    assert lengths.min() >= 235
    assert lengths.max() <= 370
    observed, hidden = DETERMINISTIC.censor(test, seed=0)
    assert set(observed.event_types) == {0, 1, 2, 3, 4}
    assert set(hidden.event_types) == {5, 6, 7, 8, 9}


def test_a_run_depends_on_its_seed_and_number_alone():
    few, more = elevator(3, (2, 1, 1)), elevator(3, (4, 1, 1))
    assert few.train == more.train[:2]
    assert few.dev[0].times.tolist() == more.train[2].times.tolist()
    other = elevator(4, (2, 1, 1)).train
    assert other != few.train
    assert other[0].times.tolist() != other[1].times.tolist()
