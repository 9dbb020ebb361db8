"""A Hawkes process written as a neural Hawkes process, so that engines for the latter meet exact answers.

Cell k holds what excites type k, so small that tanh is linear there: an event adds to it (f = i = 1, z the jump), and
it decays to zero. One more cell is constant and carries the base rates. The softplus is so sharp that it is a ramp.
"""

from __future__ import annotations

import torch

from retrodict.models import Hawkes, NeuralHawkes

SMALL = 1e-3
YES, NO = 40.0, -80.0  # gates before the sigmoid: one and zero


def hawkes_as_neural(hawkes: Hawkes, dtype: torch.dtype = torch.float32) -> NeuralHawkes:
    K = hawkes.num_types
    model = NeuralHawkes(K, K + 1, time_scale=1.0).double()
    jumps = (hawkes.excitation * hawkes.decay).detach().double()
    small = SMALL / max(1.0, float(jumps.max()) / 10)
    base, decay = hawkes.base.detach().double(), hawkes.decay.detach().double().expand(K)
    gates = torch.zeros(
        K + 1, 7, K + 1, dtype=torch.float64
    )  # [input, gate, cell]; gates i, f, o, i_bar, f_bar, z, delta
    gates[:, [0, 1, 2, 4]] = YES
    gates[:, 3] = NO
    gates[:K, 5, :K] = 2 * torch.atanh(small * jumps)
    gates[K, 3, K], gates[K, 5, K] = YES, 1.0
    gates[:, 6, :K] = decay + torch.log(-torch.expm1(-decay))
    with torch.no_grad():
        model.lstm.by_type.copy_(gates.reshape(K + 1, -1))
        model.lstm.by_hidden.zero_()
        model.lstm.bias.zero_()
        model.readout.zero_()
        model.readout[:, :K] = torch.eye(K) / small
        model.readout[:, K] = base / torch.tanh(torch.tanh(torch.tensor(0.5)))
        model.log_scale.fill_(-7.0)
    return model.to(dtype)
