"""Log-likelihoods and intensities of the 2019 code, recomputed in float64 with 20 quadrature nodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.models import NeuralHawkes
from retrodict.models.quadrature import GaussLegendre
from tests.conftest import shared

# The files' gate blocks are i, f, o, z, ī, f̄, δ with z = tanh(x); ours are i, f, o, ī, f̄, z, δ with
# z = 2 sigmoid(x) - 1 = tanh(x / 2).
ORDER = (0, 1, 2, 4, 5, 3, 6)


def our_blocks(array: np.ndarray, hidden: int) -> torch.Tensor:
    blocks = [array[..., g * hidden : (g + 1) * hidden] * (2.0 if g == 3 else 1.0) for g in ORDER]
    return torch.as_tensor(np.concatenate(blocks, -1))


def load_lstm(lstm, files, prefix: str, hidden: int, inputs: list[int]) -> None:
    """Fill a continuous-time LSTM with the weights of a golden file."""
    linear = files[f"weights/{prefix}rnn_cell.linear.weight"].astype(np.float64)
    embedding = files[f"weights/{prefix}Emb.weight"].astype(np.float64)
    by_type = embedding[inputs] @ linear[:, :hidden].T
    with torch.no_grad():
        lstm.by_type.copy_(our_blocks(by_type, hidden))
        lstm.by_hidden.copy_(our_blocks(linear[:, hidden:].T, hidden))
        lstm.bias.copy_(our_blocks(files[f"weights/{prefix}rnn_cell.linear.bias"].astype(np.float64), hidden))


@pytest.fixture(params=["add", "det_add"])
def golden(request):
    files = np.load(shared(f"golden/loglik_small_{request.param}.npz"))
    K, D = int(files["K"]), int(files["D"])
    model = NeuralHawkes(K, D, time_scale=1.0).double()
    load_lstm(model.lstm, files, "", D, [*range(K), K])
    with torch.no_grad():
        model.readout.copy_(torch.as_tensor(files["weights/hidden_lambda.weight"].astype(np.float64)))
    names = [f"seq{i:02d}" for i in range(int(files["n_seq"]))]
    streams = StreamSet(
        [EventStream(files[f"{n}/time"], files[f"{n}/type"], end=float(files[f"{n}/T"]), id=n) for n in names],
        types=[str(k) for k in range(K)],
    )
    return model, streams, files


def test_log_likelihood_per_stream(golden):
    model, streams, files = golden
    values = model.log_likelihood(streams, integral=GaussLegendre(20)).detach().numpy()
    np.testing.assert_allclose(values, [files[f"{n}/logp"] for n in streams.ids], rtol=0, atol=1e-8)


def test_intensities_on_a_grid(golden):
    model, streams, files = golden
    for stream in streams:
        grid = files[f"{stream.id}/grid_times"]
        for t, expected in zip(grid, files[f"{stream.id}/grid_lambda_p"], strict=True):
            state = model.initial((1,))
            for time, kind in stream:
                if time < t:
                    state = model.update(state, torch.tensor([kind]), torch.tensor([time], dtype=torch.float64))
            rates = model.intensity(state, torch.tensor([t], dtype=torch.float64))[0]
            np.testing.assert_allclose(rates.detach(), expected, rtol=0, atol=1e-8)
