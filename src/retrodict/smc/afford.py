"""How many particles memory affords, and how many events one of them may have, where the user leaves it open.

Both follow from how many streams there are and the longest of them alone, so that streams which are imputed in parts
get what they would get all at once.
"""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

from retrodict import _limits
from retrodict.errors import DataNotice
from retrodict.events.stream_set import StreamSet
from retrodict.proposals.base import Proposal
from retrodict.smc.engines import choose
from retrodict.smc.options import MOST_EVENTS, Options

_A_SEGMENT = 28  # bytes that are kept of a particle in each segment
_LONG = 10_000  # observed events of a stream that is better fed bit by bit
_FEWEST = 50  # particles by default, however little memory there is


def settle_events(max_events: int | None, longest: int) -> int:
    """As many events as a particle may have: by default ten times those of the longest stream, if that is many."""
    return max(MOST_EVENTS, 10 * longest) if max_events is None else max_events


class Means(NamedTuple):
    """An engine by its name, the particles of a stream that it runs by default, and how many at once."""

    engine: str
    affords: int
    rows: int


def means_of(engine: str, proposal: Proposal, options: Options) -> Means:
    """What the engine that is asked for, or the fastest that can do it here, is able to do."""
    chosen = choose(engine, proposal, options)
    return Means(chosen.name, chosen.affords, chosen.rows_at_once(proposal))


def settle_particles(
    particles: int | Literal["auto"], means: Means, proposal: Proposal, streams: int, longest: int, held: int
) -> int:
    """The particles of a stream: where they are "auto", what the engine affords, or half, a quarter ... of it.

    ``streams`` are all of them, of which ``held`` stay in memory until the end.
    """
    if particles != "auto":
        return particles
    few = means.affords
    while few > _FEWEST and not _limits.has_memory(2 * _need(streams, longest, held, proposal, few, means.rows)):
        few = max(_FEWEST, few // 2 // 2 * 2)
    if few < means.affords:
        text = f"{few:,} particles are used for each stream, not {means.affords:,}, since more may not fit into memory"
        warnings.warn(f"{text}; rd.Online imputes long streams in a memory that does not grow", DataNotice, 3)
    return few


def ask_memory(observed: StreamSet, proposal: Proposal, particles: int, rows: int) -> None:
    """Refuse more particles than fit."""
    what, longest = f"{particles:,} particles of {len(observed):,} streams", int(observed.lengths.max(initial=0))
    remedy = "use fewer particles, or fewer streams at a time"
    if longest > _LONG:
        remedy += f"; rd.Online imputes a stream as long as the longest ({longest:,} events) bit by bit"
    _limits.ask_memory(_need(len(observed), longest, len(observed), proposal, particles, rows), what, remedy)


def _need(streams: int, longest: int, held: int, proposal: Proposal, particles: int, rows: int) -> float:
    """Bytes that particles need at least: weights and counts, states of those of one stream, who descends from whom.

    The last is kept for as many streams as are worked on at once, for every observed event.
    """
    state = 16 * proposal.model.num_features + 48 * proposal.model.num_types
    together = min(streams, max(1, rows // particles))
    return particles * (40.0 * held + state + _A_SEGMENT * float(longest * together))
