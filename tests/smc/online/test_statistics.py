"""Online answers are calibrated and their evidence is unbiased, with a lag that is much shorter than the past."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import retrodict as rd
from tests.conftest import EXAMPLES, compiled, each_engine
from tests.smc.hawkes_as_neural import hawkes_as_neural
from tests.smc.hawkes_as_state_space import hawkes_as_state_space

STREAMS, DRAWS, END, LAG, AHEAD = 400, 19, 9.0, 2.5, 1.5


def smoothing(model: rd.Model, mechanism: rd.Missingness) -> rd.Smoothing:
    torch.manual_seed(5)
    proposal = rd.Smoothing(model, mechanism, 6)
    torch.nn.init.normal_(proposal.readout, std=0.3)
    return proposal


def rank(drawn: np.ndarray, actual: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Ranks of the truth [N] among draws [D, N], ties broken at random."""
    ties = (drawn == actual).sum(0)
    return (drawn < actual).sum(0) + generator.integers(0, ties + 1)


def counts(streams: rd.StreamSet, start: float, end: float, kind: int | None = None) -> np.ndarray:
    inside = (streams.event_times > start) & (streams.event_times <= end)
    inside &= True if kind is None else streams.event_types == kind
    return np.bincount(streams.stream_of_event[inside], minlength=len(streams))


@pytest.mark.parametrize(
    ("form", "engine"),
    [("filtering", "torch"), ("smoothing", "torch"), pytest.param("smoothing", "native", marks=compiled)],
)
def test_the_truth_is_one_more_draw(form, engine):
    """Ranks of the truth in the last lag, and of what comes then, complete and observed: chi-square at 0.001 each."""
    model, mechanism = EXAMPLES["hawkes"](), rd.Windows([(0.0, 4.0), (7.0, 9.5)], inside=0.8, outside=0.3)
    if engine == "native":
        mechanism = rd.ByType([0.5, 0.3, 0.8])
    complete = rd.simulate(model, STREAMS, end=END + AHEAD, seed=21)
    observed, missing = mechanism.censor(complete, seed=22)
    proposal = rd.Filtering(model, mechanism) if form == "filtering" else smoothing(model, mechanism)
    online = rd.Online(proposal, LAG, particles=100, seed=23, engine=engine)
    known = observed.keep(observed.event_times <= END)
    online.feed(known.replace(ends=np.full(STREAMS, END)))
    past, future = online.posterior(), online.forecast(AHEAD)
    generator, table = np.random.default_rng(24), []
    now = END, END + AHEAD
    for answer, truth, window in (
        (past, missing, (END - LAG, END)),
        (future.complete, complete, now),
        (future.observed, observed, now),
    ):
        draws = answer.draws(DRAWS, seed=25, ensemble="full")
        for kind in (None, 0, 2):
            drawn = np.array([counts(d, *window, kind) for d in draws])
            table.append(rank(drawn, counts(truth, *window, kind), generator))
    p = [stats.chisquare(np.bincount(column, minlength=DRAWS + 1)).pvalue for column in table]
    assert min(p) > 0.001, p


@each_engine
@pytest.mark.parametrize("form", ["filtering", "smoothing"])
def test_the_evidence_is_unbiased_whatever_the_lag(form, engine):
    """400 runs of 10 particles with a lag of a few events, and with silences cut, average to 100,000 particles."""
    model, mechanism = rd.Hawkes([0.3, 0.2], [[0.2, 0.9], [0.1, 0.2]], 3.0), rd.ByType([0.9, 0.1])
    stream = mechanism.censor(rd.simulate(model, 1, end=8.0, seed=4), seed=1)[0][0]

    def copies(number: int) -> rd.StreamSet:
        return rd.StreamSet([rd.EventStream(stream.times, stream.types, end=8.0, id=i) for i in range(number)])

    many = np.exp(rd.impute(copies(20), rd.Filtering(model, mechanism), particles=5000, seed=77).log_evidence)
    proposal = rd.Filtering(model, mechanism) if form == "filtering" else smoothing(model, mechanism)
    online = rd.Online(proposal, 0.7, particles=10, seed=6, islands=1, engine=engine)
    online.feed(copies(400))
    assert all(line.marks.older.time > 5.0 for line in online._lines.values())
    for values in (np.exp(online.log_evidence()), np.exp(online.posterior().log_evidence)):
        error = np.hypot(values.std() / 20, many.std() / np.sqrt(20))
        assert abs(values.mean() - many.mean()) < 3 * error


@each_engine
@pytest.mark.parametrize("form", ["hawkes", "neural", "state space"])
def test_counts_of_the_last_lag_are_those_of_many_particles(form, engine):
    """The mean over 40 runs with a lag of a third of the stream, within 3.3 standard errors, for two halves of it."""
    model, mechanism = rd.Hawkes([0.3, 0.2], [[0.2, 0.9], [0.1, 0.2]], 1.0), rd.ByType([0.9, 0.1])
    stream = mechanism.censor(rd.simulate(model, 1, end=9.0, seed=4), seed=1)[0][0]

    def copies(number: int) -> rd.StreamSet:
        return rd.StreamSet([rd.EventStream(stream.times, stream.types, end=9.0, id=i) for i in range(number)])

    own = {"hawkes": lambda m: m, "neural": hawkes_as_neural, "state space": hawkes_as_state_space}[form](model)
    online = rd.Online(rd.Filtering(own, mechanism), 3.0, particles=400, seed=6, engine=engine)
    online.feed(copies(40))
    exact = rd.impute(copies(20), rd.Filtering(model, mechanism), particles=5000, seed=77)
    posterior = online.posterior()
    for window in ((6.0, 7.5), (7.5, 9.0)):
        few, many = ((a.full.weights * a._counts(a.full, 0, *window)).sum(1) for a in (posterior, exact))
        error = np.hypot(few.std() / np.sqrt(40), many.std() / np.sqrt(20))
        assert abs(few.mean() - many.mean()) < 3.3 * error
