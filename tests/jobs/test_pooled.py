"""What all streams together decide is the same from the numbers that chunks leave as from all streams at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import retrodict as rd
from retrodict.jobs.folder import JobFolder
from retrodict.jobs.pooled import decide_for_all, keep_numbers
from retrodict.smc.decision import answer
from retrodict.smc.show import usual_cost

MODEL = rd.Hawkes([0.4, 0.2], [[0.2, 0.7], [0.1, 0.2]], 1.0)
# Streams, their length, and which ensemble is then the better one: many resamplings leave few different guesses.
CASES = {"full": (20, 3.0, 30), "lagged": (8, 60.0, 6)}


@pytest.mark.parametrize("chosen", CASES)
def test_decisions_for_all(tmp_path, chosen):
    number, end, particles = CASES[chosen]
    observed, _ = rd.ByType([0.8, 0.1]).censor(rd.simulate(MODEL, number, end=end, seed=2), seed=3)
    proposal = rd.Filtering(MODEL, rd.ByType([0.8, 0.1]))
    whole = rd.impute(observed, proposal, particles)
    assert (whole.chosen is whole.lagged) == (chosen == "lagged"), "the case is not what it is meant to be"
    job, edges = JobFolder(tmp_path), np.arange(0, number + 1, number // 4)
    for chunk, (first, stop) in enumerate(itertools.pairwise(edges)):
        posterior = rd.impute(observed[first:stop], proposal, particles)
        keep_numbers(posterior, np.arange(stop - first), job.pooled / f"{chunk:05d}")
    found = decide_for_all(job, [[0]] * 4, None)
    assert found.chosen == chosen
    assert found.price == usual_cost(whole)
    assert found.total == whole.total_count()
    mine, its = (answer(whole._judged(), found.price, way, None, **whole._search()) for way in (found.way, None))
    assert np.array_equal(mine.event_times, its.event_times)
