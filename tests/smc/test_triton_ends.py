"""The end atom on the Triton engine: exact numbers of missing events, and the law of the torch engine's particles.

On a GPU all of it runs; with TRITON_INTERPRET=1 kernels run on the CPU, slowly, and a small part of it does.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from scipy import stats

import retrodict as rd
from retrodict.models.end import EndAtom
from retrodict.models.start import StartAtom
from retrodict.smc.engines import ENGINES
from retrodict.smc.options import Options
from retrodict.smc.resampling import find_scheme
from tests.smc.test_end import END, HAZARDS, MECHANISMS, RATE, RATES, RHO, exact_weights, ranks_are_uniform, with_ends
from tests.smc.test_triton import DEVICE, ON_GPU, poisson_as_neural, propose, run, runs, runs_fast, some


@runs
@pytest.mark.parametrize("how", ["seen", "missing", "cut"])
@pytest.mark.parametrize("form", ["filtering", pytest.param("smoothing", marks=runs_fast)])
def test_numbers_of_missing_events_are_exact(form, how):
    """Evidence, expected number and its distribution over many runs, all within 3.3 standard errors."""
    model, mechanism, count = poisson_as_neural(RATE), rd.ByType(RHO), some(60, 12)
    model.end_atom = EndAtom.of_counts(HAZARDS, model)
    times, types = [0.41, 1.13, END][: 3 if how == "seen" else 2], [0, 1, 0][: 3 if how == "seen" else 2]
    observed = rd.StreamSet([rd.EventStream(times, types, end=END, id=i) for i in range(count)], types=["0", "1"])
    proposal = propose(form, model, mechanism)
    posterior = rd.impute(observed, proposal, 300, seed=1, engine="triton", cut=how == "cut", islands=1)
    exact = exact_weights(types, how)
    evidence = np.exp(posterior.log_evidence) / exact.sum()
    error = 3.3 if ON_GPU else 4.5  # few runs have heavier tails
    assert abs(evidence.mean() - 1) < error * evidence.std() / math.sqrt(count)
    counts = posterior._counts(posterior.full, None, None, None)
    for j, probability in enumerate(exact / exact.sum()):
        own = evidence * (((counts == j) * posterior.all_weights).sum(1) - probability)
        assert abs(own.mean()) <= error * own.std() / math.sqrt(count) + 1e-6
    at_end = posterior.probability("0", END, END)
    if how == "missing":
        own = evidence * (at_end - RATE[0] * RHO[0] / np.dot(RATE, RHO))
        assert abs(own.mean()) <= error * own.std() / math.sqrt(count) + 1e-6
    else:
        assert not at_end.any()


def cut_short(model: rd.Model, mechanism: rd.Missingness, count: int, seed: int) -> rd.StreamSet:
    """Observed streams that ended at an event, seen or missing."""
    return mechanism.censor(rd.simulate(model, count, seed=seed), seed=seed + 1)[0]


@runs_fast
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("form", ["filtering", "smoothing"])
@pytest.mark.parametrize("scheme", [None, "systematic"])
def test_evidence_is_that_of_the_torch_engine(form, name, scheme):
    """Over 100 runs of each stream; resampled particles keep what their parents' ends weigh."""
    model, mechanism = with_ends("neural_hawkes", single=True), MECHANISMS[name]
    proposal, streams = propose(form, model, mechanism), cut_short(model, mechanism, 6, seed=6)
    options = Options(40, find_scheme(scheme), 1.0)
    for stream in streams:
        copies = rd.StreamSet(
            [rd.EventStream(stream.times, stream.types, end=stream.end, id=i) for i in range(100)], types=streams.types
        )
        logs = [
            run(ENGINES[e], copies, proposal, options, s).log_evidence.cpu() for e, s in (("triton", 1), ("torch", 2))
        ]
        top = torch.cat(logs).max()
        if not torch.isfinite(top):
            continue  # nothing of it can have happened
        values = [(x - top).exp().numpy() for x in logs]
        error = math.hypot(*(x.std(ddof=1) / 10 for x in values))
        assert abs(values[0].mean() - values[1].mean()) < 4 * error + 2e-3 * values[1].mean()


@runs
def test_particles_have_the_law_of_the_torch_engines():
    """Counts, log weights and last types of independent particles, with a start atom too."""
    model = with_ends("neural_hawkes", single=True)
    model.start_atom = StartAtom(torch.tensor([0.4, 0.2, 0.3, 0.1]).log())
    streams, options = cut_short(model, RATES, some(8, 2), seed=9), Options(some(3000, 200))
    proposal = propose("filtering", model, RATES)
    mine, theirs = (run(ENGINES[e], streams, proposal, options, s).sample for e, s in (("triton", 1), ("torch", 2)))
    for b in range(len(streams)):
        counts = [r.counts[b].cpu().numpy() for r in (mine, theirs)]
        # Many weights are the same but for the precision they are computed in.
        weights = [r.log_weights[b].cpu().numpy().round(2) for r in (mine, theirs)]
        top = int(np.quantile(counts[1], 0.9)) + 1
        table = np.array([np.bincount(np.minimum(c, top), minlength=top + 1) for c in counts])
        assert stats.chi2_contingency(table[:, table.sum(0) > 0]).pvalue > 1e-3
        assert stats.ks_2samp(*weights).pvalue > 1e-3


@runs_fast
@pytest.mark.parametrize("form", ["filtering", "smoothing"])
def test_ranks_are_uniform(form):
    """Simulation-based calibration."""
    model = with_ends("neural_hawkes", single=True)
    observed, missing = RATES.censor(rd.simulate(model, 600, seed=21), seed=22)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.SuspicionNotice)
        posterior = rd.impute(observed, propose(form, model.to(DEVICE), RATES), 200, seed=23, engine="triton")
    ranks_are_uniform(posterior, missing)
