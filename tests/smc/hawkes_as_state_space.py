"""A Hawkes process written as a state space of one layer, so that engines for the latter meet exact answers.

Unit k remembers what excites type k at the speed at which that decays, so small that tanh is linear there: an event
forgets nothing and adds its jump. The softplus is so sharp that it is a ramp.
"""

from __future__ import annotations

import torch

from retrodict.models import Hawkes, StateSpace
from tests.smc.hawkes_as_neural import SMALL, YES


def hawkes_as_state_space(hawkes: Hawkes, dtype: torch.dtype = torch.float32) -> StateSpace:
    K = hawkes.num_types
    jumps, decay = (hawkes.excitation * hawkes.decay).detach().double(), hawkes.decay.detach().double().expand(K)
    small = SMALL / max(1.0, float(jumps.max()) / 10)
    model = StateSpace(K, K, scales=K + 1, time_scale=1.0).double()
    (layer,) = model.layers
    table = torch.zeros(K + 1, K + 1, K, dtype=torch.float64)  # [input, speed, unit]
    for k in range(K):
        table[:K, k, k] = small * jumps[:, k]
    with torch.no_grad():
        layer.log_decay.copy_(decay.log())
        layer.gates.fill_(YES)
        layer.jumps.copy_(table.flatten(1))
        layer.bias.zero_()
        model.readout.copy_(torch.eye(K) / small)
        model.offset.copy_(hawkes.base.detach())
        model.log_scale.fill_(-7.0)
    return model.to(dtype)
