"""log q of the 2019 code, recomputed in float64 with 20 quadrature nodes; its files leave the factor rho out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType
from retrodict.models.quadrature import GaussLegendre
from retrodict.proposals import Smoothing
from tests.models.test_golden import golden, load_lstm  # noqa: F401


@pytest.fixture
def smoother(golden):  # noqa: F811
    model, streams, files = golden
    hidden, K = int(files["Dback"]), model.num_types
    proposal = Smoothing(model, ByType(1.0), hidden, mixing=0, told=False)
    load_lstm(proposal.lstm, files, "r2l.", hidden, [*range(K), K + 1])
    with torch.no_grad():
        back = torch.as_tensor(files["weights/r2l.hidden_lambda_back.weight"].astype(np.float64))
        proposal.readout.copy_(model.readout @ back)
    return proposal, streams, files


def split(streams: StreamSet, files) -> tuple[StreamSet, StreamSet]:
    seen = np.concatenate([files[f"{n}/observed"] for n in streams.ids])
    return streams.keep(seen), streams.keep(~seen)


def test_log_q_per_stream(smoother):
    proposal, streams, files = smoother
    observed, missing = split(streams, files)
    values = proposal.log_prob(missing, observed, integral=GaussLegendre(20)).detach().numpy()
    np.testing.assert_allclose(values, [files[f"{n}/logq"] for n in streams.ids], rtol=0, atol=1e-8)


def test_log_p_miss_per_stream(smoother):
    _, streams, files = smoother
    observed, missing = split(streams, files)
    rates = np.round(np.broadcast_to(files["rho"], streams.num_types).astype(np.float64), 6).tolist()
    values = ByType(rates).log_prob(observed, missing).numpy()
    np.testing.assert_allclose(values, [files[f"{n}/log_pmiss"] for n in streams.ids], rtol=0, atol=1e-8)
