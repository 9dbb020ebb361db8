"""The minimum-risk consensus of one event type, with a certificate (docs/consensus.md, section 5).

Column generation: solve the program on few chosen times, price all other candidates by the particles'
potentials, choose the best of each stretch that would pay, and go on until none does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from retrodict.decode.aligned import Decode, align_all
from retrodict.decode.arrays import Floats, Ints
from retrodict.decode.certificate import Bound, bound
from retrodict.decode.chains import (
    Chains,
    build_chains,
    carry_over,
    counts_from_alignment,
    potentials_from_counts,
)
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.flow import solve_flow
from retrodict.decode.search import first_at_least

LARGEST_FLOW = 2.0**59
PATIENCE = 100_000  # passes over the network; tens are usual
CURRENT = 0.8  # pricing at 0.8 current + 0.2 best feasible potentials saves columns


class Program(NamedTuple):
    """The program on ``chosen`` [K] candidates: consensus events at each, ``number`` [K], and the particles' chains
    with their counts ``level`` [V] and integer potentials ``flow`` [V]."""

    chosen: Ints
    number: Ints
    chains: Chains
    level: Ints
    flow: Ints


@njit
def _scale(ensemble: Ensemble, insert: float, delete: float) -> float:
    """Integer steps per unit of potential: as fine as sums of flow at one node can be without overflow."""
    longest = 0
    for m in range(len(ensemble.weights)):
        longest = max(longest, ensemble.offsets[m + 1] - ensemble.offsets[m])
    return LARGEST_FLOW / ((longest + 4) * (insert + delete))


@njit
def start_program(decode: Decode, ensemble: Ensemble, insert: float, delete: float, scale: float) -> Program:
    """The program on the candidates that a decode uses, at the counts and potentials that it implies."""
    place = np.empty(len(decode.times), np.int64)
    chosen = np.empty(len(place), np.int64)
    number = np.zeros(len(place), np.int64)
    count = 0
    for i in range(len(place)):
        place[i] = first_at_least(ensemble.candidates, decode.times[i], 0, len(ensemble.candidates))
        if i == 0 or place[i] != place[i - 1]:
            chosen[count] = place[i]
            count += 1
        number[count - 1] += 1
    chosen, number = chosen[:count], number[:count]
    chains = build_chains(ensemble, chosen)
    level = counts_from_alignment(chains, ensemble, place, decode.match)
    flow = potentials_from_counts(chains, ensemble, number, level, insert, delete, scale)
    return Program(chosen, number, chains, level, flow)


@njit
def _widen(program: Program, chosen: Ints, ensemble: Ensemble, delete: float, scale: float) -> Program:
    """The same program with more ``chosen`` candidates, none of them used yet."""
    chains = build_chains(ensemble, chosen)
    level, flow = carry_over(program.chains, program.level, program.flow, chains, ensemble, delete, scale)
    number = np.zeros(len(chosen), np.int64)
    k = 0
    for i in range(len(chosen)):
        if k < len(program.chosen) and program.chosen[k] == chosen[i]:
            number[i] = program.number[k]
            k += 1
    return Program(chosen, number, chains, level, flow)


@njit
def _solve(program: Program, ensemble: Ensemble, insert: float, delete: float, scale: float) -> Floats:
    """Solve the program in place; the potential of every particle event [E]."""
    chains = program.chains
    solve_flow(chains, ensemble, program.number, program.level, program.flow, insert, delete, scale, PATIENCE)
    values = np.empty(len(ensemble.times))
    event = 0
    for m in range(len(ensemble.weights)):
        unit = ensemble.weights[m] * scale
        for node in range(chains.bounds[m], chains.bounds[m + 1]):
            for _ in range(chains.events[node]):
                values[event] = program.flow[node] / unit
                event += 1
    return values


@njit
def _times(program: Program, candidates: Floats) -> Floats:
    """The decode that a solved program describes."""
    size = 0
    for number in program.number:
        size += number
    times = np.empty(size)
    count = 0
    for k in range(len(program.chosen)):
        for _ in range(program.number[k]):
            times[count] = candidates[program.chosen[k]]
            count += 1
    return times


@njit
def _paying(price: Floats, chosen: Ints, slack: float) -> Ints:
    """The chosen candidates and the cheapest of every stretch of others priced below ``-slack``."""
    more = np.empty(len(price), np.int64)
    count = k = 0
    best = -1
    for j in range(len(price) + 1):
        taken = k < len(chosen) and chosen[k] == j
        if j < len(price) and price[j] < -slack and not taken:
            if best < 0 or price[j] < price[best]:
                best = j
            continue
        if best >= 0:
            more[count] = best
            count += 1
            best = -1
        if taken:
            more[count] = j
            count += 1
            k += 1
    return more[:count]


@njit
def _next_choice(
    values: Floats, proven: Bound, chosen: Ints, ensemble: Ensemble, insert: float, delete: float, slack: float
) -> tuple[Ints, Bound]:
    """Candidates to solve on next; the bound improves on the way if mixed potentials prove feasible."""
    mixed = np.empty(len(values))
    more = chosen
    for share in (CURRENT, 0.5 * (1.0 + CURRENT), 1.0):
        for e in range(len(values)):
            mixed[e] = share * values[e] + (1.0 - share) * proven.potentials[e]
        reached = bound(mixed, ensemble, insert, delete)
        if reached.lower > proven.lower:
            proven = reached
        more = _paying(reached.price, chosen, slack)
        if len(more) > len(chosen):
            break
    return more, proven


@njit
def exact_search(
    ensemble: Ensemble, insert: float, delete: float, decode: Decode, tolerance: float, rounds: int
) -> tuple[Decode, float]:
    """The optimal decode, and a lower bound on the risk of any decode.

    Stops when the bound is within ``tolerance`` (relative) of the risk, when no candidate pays, or after
    ``rounds`` rounds; in the last case the gap is what it is. A ``decode`` to start from that proves good
    enough is returned as it is: where any gap will do, this gives a bound on its risk.
    """
    scale = _scale(ensemble, insert, delete)
    slack = 2e-15 * (insert + delete)
    program = start_program(decode, ensemble, insert, delete, scale)
    proven = Bound(-np.inf, np.empty(0), np.empty(0))
    for step in range(rounds):
        values = _solve(program, ensemble, insert, delete, scale)
        reached = bound(values, ensemble, insert, delete)
        if reached.lower > proven.lower:
            proven = reached
        if step == 0 and not decode.risk - proven.lower > tolerance * decode.risk:
            break
        decode = align_all(_times(program, ensemble.candidates), ensemble, insert, delete)
        if not decode.risk - proven.lower > tolerance * decode.risk or reached.price.min() >= -slack:
            break
        chosen, proven = _next_choice(values, proven, program.chosen, ensemble, insert, delete, slack)
        if len(chosen) == len(program.chosen) or not decode.risk - proven.lower > tolerance * decode.risk:
            break
        program = _widen(program, chosen, ensemble, delete, scale)
    return decode, proven.lower
