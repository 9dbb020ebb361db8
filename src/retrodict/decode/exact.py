"""The exact search: a decode of least objective (risk plus charges) and its certificate (docs/consensus.md, section 5).

The paper guesses that the consensus is NP-hard; it is a minimum-cost flow. To solve it over all candidates at once
would be slow, so columns are generated: solve the program on few chosen times (``program.py``), price every
candidate by the particles' potentials (``bound.py``), choose the cheapest of each run of candidates that would pay,
and go on until none does. In every round the objective of the decode and the best bound so far enclose the least one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from retrodict.decode.bound import Bound, bound
from retrodict.decode.ensemble import Ensemble
from retrodict.decode.kernels import Floats, Ints
from retrodict.decode.local import Decode, align_all
from retrodict.decode.program import decoded_times, solve, start_program, widen
from retrodict.decode.transport import Cost

PATIENCE = 100_000  # passes over the network; tens are usual
CURRENT = 0.8  # pricing at 0.8 current + 0.2 best feasible potentials saves columns


@njit
def exact_search(ensemble: Ensemble, cost: Cost, decode: Decode, tolerance: float, rounds: int) -> tuple[Decode, float]:
    """The optimal decode, and a lower bound on the objective of any decode.

    Stops when the bound is within ``tolerance`` (relative) of the objective, when no candidate pays, or after
    ``rounds`` rounds; in the last case the gap is what it is. A ``decode`` to start from that proves good
    enough is returned as it is: where any gap will do, this gives a bound.
    """
    slack = 2e-15 * (cost.insert + cost.delete)
    program = start_program(decode, ensemble, cost)
    proven = Bound(-np.inf, np.empty(0), np.empty(0))
    for step in range(rounds):
        values = solve(program, ensemble, cost, PATIENCE)
        reached = bound(values, ensemble, cost)
        if reached.lower > proven.lower:
            proven = reached
        if step == 0 and _enough(decode, proven, tolerance):
            break
        decode = align_all(decoded_times(program, ensemble.candidates), ensemble, cost)
        if _enough(decode, proven, tolerance) or reached.price.min() >= -slack:
            break
        chosen, proven = _next_choice(values, proven, program.chosen, ensemble, cost, slack)
        if len(chosen) == len(program.chosen) or _enough(decode, proven, tolerance):
            break
        program = widen(program, chosen, ensemble, cost.delete)
    return decode, proven.lower


@njit
def _enough(decode: Decode, proven: Bound, tolerance: float) -> bool:
    """Whether the bound is within ``tolerance`` of the objective; an infinite one always is, of zero too."""
    return not decode.objective - proven.lower > tolerance * decode.objective


@njit
def _next_choice(
    values: Floats, proven: Bound, chosen: Ints, ensemble: Ensemble, cost: Cost, slack: float
) -> tuple[Ints, Bound]:
    """Candidates to solve on next; the bound improves on the way if mixed potentials prove feasible."""
    mixed = np.empty(len(values))
    more = chosen
    for share in (CURRENT, 0.5 * (1.0 + CURRENT), 1.0):
        for e in range(len(values)):
            mixed[e] = share * values[e] + (1.0 - share) * proven.potentials[e]
        reached = bound(mixed, ensemble, cost)
        if reached.lower > proven.lower:
            proven = reached
        more = _paying(reached.price, chosen, slack)
        if len(more) > len(chosen):
            break
    return more, proven


@njit
def _paying(price: Floats, chosen: Ints, slack: float) -> Ints:
    """The chosen candidates and the cheapest of every run of others priced below ``-slack``."""
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
