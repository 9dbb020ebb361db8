"""The program on chosen times gives the best decode on them, with a proof if all times are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode import Cost
from retrodict.decode.bound import bound
from retrodict.decode.exact import PATIENCE
from retrodict.decode.local import align_all
from retrodict.decode.program import decoded_times, solve, start_program, widen
from retrodict.errors import RetrodictError
from tests.decode.examples import random_stretch

COST = Cost(0.7, 0.4)


@pytest.mark.parametrize("seed", range(5))
def test_a_program_on_all_times_is_solved_and_proven_by_its_potentials(seed: int) -> None:
    """It is the same whether all times are chosen at once or the program is widened to them."""
    ensemble = random_stretch(seed)
    everywhere = start_program(align_all(ensemble.candidates, ensemble, COST), ensemble, COST)
    few = start_program(align_all(ensemble.candidates[::5], ensemble, COST), ensemble, COST)
    solve(few, ensemble, COST, PATIENCE)
    risk_of_few = align_all(decoded_times(few, ensemble.candidates), ensemble, COST).objective
    wider = widen(few, np.arange(len(ensemble.candidates)), ensemble, COST.delete)
    for program in (everywhere, wider):
        values = solve(program, ensemble, COST, PATIENCE)
        risk = align_all(decoded_times(program, ensemble.candidates), ensemble, COST).objective
        assert risk == pytest.approx(bound(values, ensemble, COST).lower, rel=1e-11)
        assert risk <= risk_of_few + 1e-12


def test_an_endless_solve_is_an_error() -> None:
    ensemble = random_stretch(0)
    program = start_program(align_all(ensemble.candidates, ensemble, COST), ensemble, COST)
    with pytest.raises(RetrodictError, match="did not end"):
        solve(program, ensemble, COST, 0)
