"""How to run Algorithm 1, on whichever engine."""

from __future__ import annotations

from dataclasses import dataclass

from retrodict.errors import ModelError
from retrodict.models.quadrature import GaussLegendre, Integral
from retrodict.smc.propose import SAMPLERS, Sampler
from retrodict.smc.resampling import Scheme, find_scheme

EIGHT_NODES = GaussLegendre(8)
MOST_EVENTS = 100_000  # that a particle may have by default


@dataclass(frozen=True)
class Options:
    """How to run Algorithm 1."""

    particles: int = 50  # M, for each stream
    scheme: Scheme | None = None  # how to resample; None: never
    ess_threshold: float = 0.5  # resample when the effective sample size is below this share of the particles
    sampler: Sampler | None = None  # how the next event is drawn from q; None: the engine's own choice
    integral: Integral = EIGHT_NODES  # how the integrals of λ^p and λ^q are taken
    max_events: int = MOST_EVENTS  # a particle with more missing events raises a RunawayError
    cut: bool = False  # whether streams without an event at their end were cut there (``smc/ending.py``)

    @classmethod
    def of(
        cls,
        particles: int,
        resample: str | None,
        ess_threshold: float,
        sampler: str | Sampler | None,
        integral: Integral | None,
        max_events: int,
        cut: bool = False,
    ) -> Options:
        """From names and defaults, as users give them."""
        if not (isinstance(particles, int) and particles > 0):
            raise ModelError(f"particles must be a positive whole number, but is {particles!r}.")
        if isinstance(sampler, str) and sampler not in SAMPLERS:
            raise ModelError(f"unknown sampler {sampler!r}. Choose one of {', '.join(SAMPLERS)}.")
        if integral is not None and (isinstance(integral, type) or not hasattr(integral, "nodes")):
            raise ModelError(f"integral must be a rule such as rd.GaussLegendre(8), but is {integral!r}.")
        if not isinstance(cut, bool):
            raise ModelError(f"cut must be True or False, but is {cut!r}.")
        chosen = SAMPLERS[sampler] if isinstance(sampler, str) else sampler
        return cls(particles, find_scheme(resample), ess_threshold, chosen, integral or EIGHT_NODES, max_events, cut)


def runaway_message(most: int) -> str:
    """What to say of a particle with more missing events than ``most``."""
    return (
        f"a particle proposed more than {most:,} missing events in a stream. The model may be explosive, or a missing "
        "rate too close to 1 for it; raise max_events if that many are plausible."
    )
