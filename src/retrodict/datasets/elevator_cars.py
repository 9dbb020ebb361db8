"""Two cars in a five-floor building at down-peak, event by event: where passengers wait, and where the cars stop.

A car has the paper's primitive actions. Stopped, it must move up or down. In motion, it stops at the next floor or
continues past it:

1. it cannot pass a floor where a passenger wants to get off, nor turn while a car button in its direction is lit: with
   passengers aboard, as all of them want the lobby, it goes down to the lobby;
2. it cannot stop at a floor unless someone wants to get on or off there;
3. it cannot stop to pick up passengers where the other car is already stopped;
4. given a choice between up and down it prefers up;
5. given a choice between stop and continue it continues: going down it passes waiting passengers, and going up it
   passes them while someone waits higher up. So it stops only at the highest of the floors that call;
6. it leaves floors alone that the other car takes care of, or soon will.

Rule 6 needs a reading. Here the other car takes care of the floor where it stands; of the floors below it, as long as
it carries passengers and has room for more; and, when it rises ahead of this car, of the floors above it.

A car without passengers keeps moving, as the paper has no action that waits: up to the top floor, turning there, down
to the lobby, and up again, without a stop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from math import inf

NUM_FLOORS, NUM_CARS, LOBBY = 5, 2, 1
UPPER_FLOORS = range(LOBBY + 1, NUM_FLOORS + 1)
FLOOR_TIME = 1.45  # seconds from one floor to the next
STOP_TIME = 7.19  # to slow down, open and close the doors and gather speed
TURN_TIME = 1.0
CAPACITY = 20

UP, DOWN, STOPPED = 1, -1, 0


@dataclass
class Stop:
    """One stop of a car: from ``time``, when it reaches the floor, until it ``leaves``; ``riders`` got on or off."""

    time: float
    car: int
    floor: int
    riders: int = 0
    leaves: float = inf


@dataclass
class _Car:
    number: int
    floor: int = LOBBY
    motion: int = UP
    riders: int = 0


class _Building:
    """The state of the building, and what happens in it next."""

    def __init__(self, loading: Iterator[float]) -> None:
        self.loading = loading
        self.cars = [_Car(number) for number in range(NUM_CARS)]
        self.waiting = dict.fromkeys(UPPER_FLOORS, 0)
        self.stops: list[Stop] = []
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.now = 0.0
        self._order = count()

    def plan(self, time: float, what: Callable[[], None]) -> None:
        """Let something happen at a time; of two things at once, the one planned first."""
        heapq.heappush(self.agenda, (time, next(self._order), what))

    def arrive(self, floor: int) -> None:
        """A passenger comes to wait at a floor."""
        self.waiting[floor] += 1

    def move(self, car: _Car, direction: int, delay: float = 0.0) -> None:
        """The car sets off, or goes on, to the next floor."""
        car.motion = direction
        self.plan(self.now + delay + FLOOR_TIME, lambda: self.reach(car))

    def reach(self, car: _Car) -> None:
        """A moving car reaches a floor: it stops there or continues."""
        car.floor += car.motion
        if car.motion == DOWN:
            if car.floor > LOBBY:
                self.move(car, DOWN)
            elif car.riders:
                self.stop(car)
            else:
                self.move(car, UP, TURN_TIME)
            return
        calls = [f for f in UPPER_FLOORS if f >= car.floor and self.waiting[f] and not self._taken(f, car)]
        if calls == [car.floor]:
            self.stop(car)
        elif car.floor < NUM_FLOORS:
            self.move(car, UP)
        else:
            self.move(car, DOWN, TURN_TIME)

    def _taken(self, floor: int, car: _Car) -> bool:
        """Whether the other car takes care of a floor, or soon will, so that a rising ``car`` leaves it alone."""
        other = self.cars[1 - car.number]
        if other.motion == UP:
            ahead = (other.floor, -other.number) > (car.floor, -car.number)
            return ahead and floor > other.floor
        stands_there = other.motion == STOPPED and other.floor == floor
        return stands_there or (floor < other.floor and 0 < other.riders < CAPACITY)

    def stop(self, car: _Car) -> None:
        """A car stops at a floor, to pick up passengers or, in the lobby, to let them out."""
        car.motion = STOPPED
        stop = Stop(self.now, car.number, car.floor)
        self.stops.append(stop)
        (self.unload if car.floor == LOBBY else self.load)(car, stop)

    def load(self, car: _Car, stop: Stop) -> None:
        """The next passenger gets on; if there is none, or no room, the doors close."""
        if self.waiting[car.floor] and car.riders < CAPACITY:
            self.waiting[car.floor] -= 1
            car.riders += 1
            stop.riders += 1
            self.plan(self.now + next(self.loading), lambda: self.load(car, stop))
        else:
            self.plan(self.now + STOP_TIME, lambda: self.leave(car, stop))

    def unload(self, car: _Car, stop: Stop) -> None:
        """The next passenger gets off; if there is none, the doors close."""
        if car.riders:
            car.riders -= 1
            stop.riders += 1
            self.plan(self.now + next(self.loading), lambda: self.unload(car, stop))
        else:
            self.plan(self.now + STOP_TIME, lambda: self.leave(car, stop))

    def leave(self, car: _Car, stop: Stop) -> None:
        """A car leaves the floor it stopped at; it always came from the other direction."""
        stop.leaves = self.now
        self.move(car, UP if car.floor == LOBBY else DOWN, TURN_TIME)


def run_cars(arrivals: Iterable[tuple[float, int]], loading: Iterator[float], end: float) -> list[Stop]:
    """All stops up to ``end`` in order of time, given when and at which floor passengers arrive.

    Both cars start in the lobby at time 0, moving up. ``loading`` gives the seconds that each passenger takes to get on
    or off, in the order in which they do.
    """
    building = _Building(loading)
    for car in building.cars:
        building.move(car, UP)
    for time, floor in arrivals:
        building.plan(time, lambda floor=floor: building.arrive(floor))  # type: ignore[misc]
    while building.agenda and building.agenda[0][0] <= end:
        building.now, _, happen = heapq.heappop(building.agenda)
        happen()
    return building.stops
