"""A Hawkes process written as a neural Hawkes process, so that engines for the latter meet exact answers."""

from __future__ import annotations

import torch

from retrodict.models import Hawkes, NeuralHawkes

_SMALL = 0.004  # cells stay where tanh is a straight line, yet far above rounding
_OPEN = 30.0  # a gate that is open (or, negative, shut) to single precision


def hawkes_as_neural(hawkes: Hawkes) -> NeuralHawkes:
    """The same process, up to about 1e-4 in its rates.

    Cell k holds what past events add to λ_k, small, and decays to zero at the rate of type k; one more cell is constant
    and carries the base rates. Nothing depends on h, forgetting gates are open, and tiny s_k make the softplus linear.
    """
    K = hawkes.num_types
    base, decay = hawkes.base.detach().float(), hawkes.decay.detach().float().expand(K)
    jumps = hawkes.excitation.detach().float() * decay  # [from, to]
    size = _SMALL / jumps.max()
    model = NeuralHawkes(K, K + 1, time_scale=1.0)
    with torch.no_grad():
        model.lstm.by_hidden.zero_()
        by_type = model.lstm.by_type.zero_().view(K + 1, 7, K + 1)  # the last input is BOS
        bias = model.lstm.bias.zero_().view(7, K + 1)
        bias[:5] = _OPEN
        bias[3, :K] = -_OPEN  # no target: cells decay to zero
        by_type[:K, 5, :K] = 2 * torch.atanh(jumps * size)
        by_type[K, 5, K] = 2 * torch.atanh(torch.tensor(0.5))
        bias[6, :K] = torch.log(torch.expm1(decay))
        model.readout.zero_()
        model.readout[:, :K] = torch.eye(K) / size
        model.readout[:, K] = base / torch.tanh(torch.tensor(0.5))
        model.log_scale.copy_((base / 40).log())
    return model
