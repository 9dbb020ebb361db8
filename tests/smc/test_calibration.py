"""Simulation-based calibration: the truth's rank among posterior draws is uniform (Talts et al., 2018).

Draw a complete stream from the model, hide events, impute: the truth is then one more draw from the posterior. For six
quantities the ranks among 19 draws fill 20 bins evenly, with draws of the full ensemble and of the lagged one: a
segment that is drawn given less of the future is less sharp, and just as calibrated. Chi-square tests at level 0.001
each; seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models import Hawkes, thinning
from retrodict.models.simulate import simulate
from retrodict.proposals import Filtering, Smoothing
from retrodict.smc import genealogy
from retrodict.smc import sampler as smc_sampler
from retrodict.smc.impute import impute
from tests.conftest import KINDS, each_engine, example_model, random_neural_hawkes

STREAMS, DRAWS, END = 500, 19, 3.0
RATES = [0.5, 0.3, 0.8]


def quantities(z: EventStream) -> list[float]:
    """Counts in all, of type 0, of type 2, in the first half; first and last time (the end where there is none)."""
    return [
        len(z),
        (z.types == 0).sum(),
        (z.types == 2).sum(),
        (z.times < END / 2).sum(),
        z.times[0] if len(z) else END,
        z.times[-1] if len(z) else END,
    ]


def ranks(posterior, truth: StreamSet, seed: int, ensemble: str = "chosen") -> np.ndarray:
    """Ranks of the truth among posterior draws, ties broken at random, [N, 6]."""
    generator = np.random.default_rng(seed)
    draws = posterior.draws(DRAWS, seed=seed, ensemble=ensemble)
    result = np.zeros((len(truth), 6), dtype=int)
    for i in range(len(truth)):
        actual = np.array(quantities(truth[i]), dtype=float)
        drawn = np.array([quantities(d[i]) for d in draws], dtype=float)
        ties = (drawn == actual).sum(0)
        result[i] = (drawn < actual).sum(0) + generator.integers(0, ties + 1)
    return result


def p_values(kind: str, form: str, engine: str = "torch", break_it: Callable[[], None] = lambda: None) -> np.ndarray:
    """A p-value for each quantity and ensemble; ``break_it`` spoils the sampler after the data were drawn."""
    model = random_neural_hawkes(seed=4) if kind == "neural_hawkes" else example_model(kind)
    if kind in ("neural_hawkes", "state_space") and engine == "native":
        model = model.float()
    mechanism = ByType(RATES)
    observed, missing = mechanism.censor(simulate(model, STREAMS, end=END, seed=21), seed=22)
    proposal = Filtering(model, mechanism)
    if form != "filtering":
        torch.manual_seed(5)
        proposal = Smoothing(model, mechanism, 6, mixing=None if form == "smoothing" else 0)
        torch.nn.init.normal_(proposal.readout, std=0.3)
    break_it()
    posterior = impute(observed, proposal, particles=200, seed=23, engine=engine)
    table = np.column_stack([ranks(posterior, missing, seed=24, ensemble=name) for name in ("full", "lagged")])
    return np.array([stats.chisquare(np.bincount(column, minlength=DRAWS + 1)).pvalue for column in table.T])


@each_engine
@pytest.mark.parametrize("form", ["filtering", "the paper's smoothing", "smoothing"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "poisson"])
def test_ranks_are_uniform(kind, form, engine, record_property):
    if kind not in ("hawkes", "neural_hawkes") and form == "the paper's smoothing":
        pytest.skip("filtering and smoothing say enough of the other models")
    if kind in ("state_space_layers", "nonlinear_hawkes") and engine == "native":
        pytest.skip("the native engine takes state spaces of one layer, and linear Hawkes processes")
    if (kind, form, engine) == ("hawkes", "smoothing", "native"):
        engine = "auto"  # the native engine mixes past and future for neural processes alone
    values = p_values(kind, form, engine)
    record_property("p_values", [round(float(v), 3) for v in values])
    assert values.min() > 1e-3, values


def test_types_by_argmax_are_noticed(monkeypatch):
    argmax = lambda weights, u: weights.argmax(-1)  # noqa: E731
    break_it = lambda: monkeypatch.setattr(thinning, "categorical", argmax)  # noqa: E731
    assert p_values("hawkes", "filtering", break_it=break_it).min() < 1e-6


def test_leaving_rho_out_of_the_weight_is_noticed(monkeypatch):
    """Weigh missing events as if they went missing for certain."""
    plain = smc_sampler.SequentialMonteCarlo.weigh

    def wrong(self, i, at, drawn):
        plain(self, i, at, drawn)
        rho = torch.tensor(RATES, dtype=torch.float64)[drawn.type]
        self.particles.log_weights[at.rows] -= torch.where(drawn.found, rho.log(), 0.0)

    monkeypatch.setattr(smc_sampler.SequentialMonteCarlo, "weigh", wrong)
    assert p_values("hawkes", "filtering").min() < 1e-6


@pytest.mark.parametrize("is_weighed", [True, False])
def test_lagged_draws_of_hidden_causes_that_forget_the_weights_are_noticed(is_weighed, monkeypatch):
    """Events of type 1 tell that one of type 0 has happened, whose draws are weighed by them."""
    plain = genealogy._record
    if not is_weighed:
        unweighted = lambda run: plain(run)._replace(log_weights=np.zeros(run.trace.log_weights.shape))  # noqa: E731
        monkeypatch.setattr(genealogy, "_record", unweighted)
    model, mechanism = Hawkes([0.5, 0.02], [[0, 2.0], [0, 0]], 5.0), ByType([1.0, 0.0])
    observed, missing = mechanism.censor(simulate(model, STREAMS, end=END, seed=21), seed=22)
    posterior = impute(observed, Filtering(model, mechanism), particles=200, seed=23)
    table = ranks(posterior, missing, seed=24, ensemble="lagged")[:, [0, 3, 4, 5]]
    values = [stats.chisquare(np.bincount(column, minlength=DRAWS + 1)).pvalue for column in table.T]
    assert (min(values) > 1e-3) == is_weighed, values
