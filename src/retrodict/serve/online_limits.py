"""What is too much for an online run is refused before any of it is done."""

from __future__ import annotations

from typing import Any

from retrodict.serve.limits import ServeLimits, too_much
from retrodict.serve.online_schemas import AskRequest, FeedRequest
from retrodict.smc.online.arrivals import Arrival, Checker
from retrodict.smc.online.online import Online

_EVENT = 64  # bytes of an event that is kept: two numbers in two lists


def memory(online: Online, events: int, new: int = 0) -> int:
    """Bytes of a run that keeps so many events, once it has so many streams more."""
    return online._size(new) + _EVENT * events


def check_feed(online: Online, rate: float, asked: FeedRequest, most: ServeLimits) -> list[Arrival]:
    """Refuse a feed that is too much work, at so many events per unit of time; returns what is new."""
    count = sum(len(pairs) for pairs in asked.events.values())
    if count > most.events:
        raise too_much("events in a request", count, most.events, "feed fewer at a time")
    lines = online._lines
    arrivals = Checker(online.proposal.model, online.axis, lines).read(asked.events, asked.until, asked.start)
    steps = [arrival.until - (lines[arrival.name].until if arrival.name in lines else 0.0) for arrival in arrivals]
    longest = max((len(arrival.times) for arrival in arrivals), default=0) + rate * max(steps, default=0.0)
    if not longest <= most.steps:
        raise too_much("events of a stream since the last feed, about", longest, most.steps, "feed more often")
    work = (count + len(arrivals)) * online.particles
    if work > most.work:
        raise too_much("events x particles", work, most.work, "feed fewer at a time")
    return arrivals


def check_ask(online: Online, rate: float, names: list[Any], asked: AskRequest, most: ServeLimits) -> None:
    """Refuse questions that are too much work."""
    if len(asked.questions) > most.questions:
        raise too_much("questions in a request", len(asked.questions), most.questions, "ask fewer at a time")
    kept = max((len(line.times) for name in names if (line := online._lines.get(name))), default=0)
    longest = 1 + kept + rate * (online.lag + (asked.ahead or 0.0))
    if longest > 2 * most.steps:
        raise too_much("events of a stream, about", longest, 2 * most.steps, "look less far ahead")
    work = len(names) * longest * online.particles
    if work > most.work:
        raise too_much("streams x events x particles", work, most.work, "ask about fewer streams, or less time")
