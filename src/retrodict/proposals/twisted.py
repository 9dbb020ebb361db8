"""Smoothing with twisted targets: resampling looks ahead too, not only the proposal.

Where particles are resampled at an observed event, their weights so far know nothing of what is observed later, while a
smoothing proposal has already taken it into account: good particles may look bad for the moment. A learned function

    ψ(h(t_i), h̄(t_i))  ≈  p(observed after t_i | the particle's history)   up to a constant of the stream

multiplies the weights when they are compared and resampled, and is divided out of the survivors' weights again, so that
it telescopes away by T. Whatever ψ is, the evidence stays unbiased and the posterior is the same; a good ψ makes
particles last longer. ``train/twisting.py`` trains it, for a smoother that is trained already.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from retrodict.errors import ModelError
from retrodict.missingness.base import Missingness
from retrodict.models.base import Model
from retrodict.models.ctlstm import hidden_at
from retrodict.proposals.smoothing import Ahead, Smoothing


class Twisted(Smoothing):
    """A smoothing proposal with a twist of ``twist_size`` hidden units; make one with ``Twisted.of(smoother)``."""

    kind = "twisted"
    is_twisted = True
    learning_rate = 1e-2

    def __init__(
        self, model: Model, missingness: Missingness, hidden_size: int = 64, twist_size: int = 64, mixing: int = 0
    ) -> None:
        super().__init__(model, missingness, hidden_size, mixing)
        if not (isinstance(twist_size, int) and twist_size > 0):
            raise ModelError(f"twist_size must be a positive whole number, but is {twist_size!r}.")
        self.twist_size = twist_size
        last = nn.Linear(twist_size, 1)
        nn.init.zeros_(last.weight)  # no twist at first
        self.twist = nn.Sequential(
            nn.Linear(model.num_features + hidden_size, twist_size),
            nn.Tanh(),
            nn.Linear(twist_size, twist_size),
            nn.Tanh(),
            last,
        )
        self.to(model.device, model.dtype)
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(name.startswith("twist."))

    def damped(self, factor: float) -> Smoothing:
        """Refused: the twist would still be whole."""
        raise ModelError("a twisted proposal cannot be damped. Damp the smoother, then twist it: Twisted.of(damped).")

    @classmethod
    def of(cls, smoother: Smoothing, twist_size: int = 64) -> Twisted:
        """A twist for a trained smoother, whose weights are copied and stay as they are."""
        if type(smoother) is not Smoothing:
            raise ModelError(f"a twist is for a trained Smoothing proposal, not for {type(smoother).__name__}.")
        made = cls(smoother.model, smoother.given_missingness, smoother.hidden_size, twist_size, smoother.mixing)
        made.load_state_dict(smoother.state_dict(), strict=False)
        return made

    def config(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {**super().config(), "twist_size": self.twist_size}

    def twist_features(self, state: Any, ahead: Ahead, time: Tensor) -> Tensor:
        """h(t) and h̄(t) at the right end of each row's segment, before the model reads the event there, [R, F]."""
        back = hidden_at(ahead.cells, self._elapsed(ahead, time))
        return torch.cat([self.model.features(state, time).to(back.dtype), back], -1)

    def log_twist(self, state: Any, ahead: Ahead, time: Tensor) -> Tensor:
        """log ψ, [R]."""
        return self.twist(self.twist_features(state, ahead, time))[:, 0]
