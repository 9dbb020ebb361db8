"""How large the experiments are: the paper's sizes, a quick version for two cores, and anything between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

RHOS = (0.1, 0.3, 0.5, 0.7, 0.9)
DETERMINISTIC, STOCHASTIC = "deterministic", "rho-0.5"
SETTINGS = (DETERMINISTIC, STOCHASTIC)
WAYS = ("ours", "data", "paper")  # of training a smoother (training.py)
LOOKAHEAD = "lookahead"  # one more, of some data sets (Scale.lookahead)
AVERSE = "averse"  # and that one, trained further to lose seldom
KINDS = ("synthetic", "elevator", "taxi", "flights")

# What an event too many or too few costs, in the data's own unit of time; the fourth is the middle one.
COSTS: Mapping[str, tuple[float, ...]] = {
    "synthetic": (0.1, 0.2, 0.5, 1.0, 2.0, 4.0),
    "elevator": (5.0, 10.0, 20.0, 40.0, 100.0, 200.0),
    "taxi": (0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    "flights": (0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
}
MIDDLE = 3


def kind_of(dataset: str) -> str:
    """synthetic, elevator, taxi or flights."""
    return dataset.split("-")[0]


def costs_of(dataset: str) -> tuple[float, ...]:
    """The costs at which a data set is decoded."""
    return COSTS[kind_of(dataset)]


def setting_of(rho: float) -> str:
    """The name of the setting in which every event goes missing with probability rho."""
    return f"rho-{rho:g}"


def _sizes() -> dict[str, tuple[int, int, int] | None]:
    return {"synthetic": (5000, 500, 500), "elevator": (500, 100, 100), "taxi": None, "flights": None}


def _hidden() -> dict[str, int]:
    return {"synthetic": 128, "elevator": 64, "taxi": 128, "flights": 64}


def _mixing() -> dict[str, int]:
    return {"synthetic": 256, "elevator": 64, "taxi": 128, "flights": 64}


def _lookahead() -> dict[str, int]:
    # Where single events change the model's mind most.
    return {"synthetic": 256}


def _particles() -> dict[str, tuple[int, ...]]:
    return {"synthetic": (50,), "elevator": (50, 200), "taxi": (50, 500), "flights": (50,)}


def _epochs_p() -> dict[str, int]:
    return {"elevator": 120, "taxi": 80, "flights": 50}


def _epochs_q() -> dict[str, int]:
    return {"synthetic": 40, "elevator": 40, "taxi": 80, "flights": 30}


def _epochs_ours() -> dict[str, int]:
    # Of streams that p draws there is no end.
    return {"synthetic": 400, "elevator": 80, "taxi": 150, "flights": 60}


def _batch_size() -> dict[str, int]:
    # Of the 500 long elevator streams a batch of 50 would leave ten steps an epoch.
    return {"synthetic": 100, "elevator": 10, "taxi": 50, "flights": 50}


@dataclass(frozen=True)
class Scale:
    """The sizes of everything; by default the paper's.

    ``sizes`` are train, dev and test streams (None: all there are), ``test_streams`` the most that are imputed,
    ``process_hidden`` the cells of the processes that synthetic streams are drawn from, ``more_streams`` how many more
    are drawn in the same way for smoothers taught by data, ``hidden`` the cells of p and q (of q alone where p is
    the true process), ``mixing`` the units of q in which past and future interact (not of the paper's), ``lookahead``
    those of one that asks the model what would follow, ``steps`` observed events ahead, on some data sets;
    ``epochs_ours`` of our smoothers and of that one, ``epochs_q`` of others, ``patience_lookahead`` of that one and
    ``patience`` of others; that one is then trained further with an ``aversion`` to losing to filtering; ``damping`` is
    how much of what the future adds a damped smoother takes; ``particles`` the M of the main comparison, the first
    being that of the paper's configuration and of the baselines, ``chunk`` how many particles (streams times M) one job
    imputes.
    """

    name: str = "full"
    kinds: tuple[str, ...] = KINDS
    synthetic_sets: int = 10
    sizes: Mapping[str, tuple[int, int, int] | None] = field(default_factory=_sizes)
    test_streams: int = 500
    process_hidden: int = 256
    more_streams: int = 60_000
    hidden: Mapping[str, int] = field(default_factory=_hidden)
    mixing: Mapping[str, int] = field(default_factory=_mixing)
    lookahead: Mapping[str, int] = field(default_factory=_lookahead)
    steps: int = 2
    aversion: float = 2.0
    damping: float = 0.3
    particles: Mapping[str, tuple[int, ...]] = field(default_factory=_particles)
    epochs_p: Mapping[str, int] = field(default_factory=_epochs_p)
    epochs_q: Mapping[str, int] = field(default_factory=_epochs_q)
    epochs_ours: Mapping[str, int] = field(default_factory=_epochs_ours)
    batch_size: Mapping[str, int] = field(default_factory=_batch_size)
    patience: int = 10
    patience_lookahead: int = 25
    rhos: tuple[float, ...] = RHOS
    sensitivity_kinds: tuple[str, ...] = ("elevator", "taxi", "flights")
    chunk: int = 12_500
    evidence_particles: int = 400
    runtime_kind: str = "elevator"
    runtime_particles: tuple[int, ...] = (10, 20, 50, 100, 200)
    runtime_shares: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
    runtime_streams: int = 20
    integral_kinds: tuple[str, ...] = ("taxi", "flights")
    integral_streams: int = 40
    reference_particles: int = 1000
    seed: int = 0

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the data sets: real ones first, since they take longest."""
        others = tuple(kind for kind in self.kinds if kind != "synthetic")
        synthetic = tuple(f"synthetic-{i}" for i in range(self.synthetic_sets)) if "synthetic" in self.kinds else ()
        return others + synthetic

    def settings(self, dataset: str) -> tuple[str, ...]:
        """Deterministic, rho = 0.5, and the other rates where sensitivity to them is measured."""
        if kind_of(dataset) not in self.sensitivity_kinds:
            return SETTINGS
        return SETTINGS + tuple(setting_of(rho) for rho in self.rhos if setting_of(rho) not in SETTINGS)

    def ways(self, dataset: str) -> tuple[str, ...]:
        """In which ways smoothers of a data set are trained."""
        return (*WAYS, LOOKAHEAD, AVERSE) if kind_of(dataset) in self.lookahead else WAYS

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


FULL = Scale()
QUICK = Scale(
    name="quick",
    kinds=("elevator", "flights", "synthetic"),
    synthetic_sets=2,
    sizes={"synthetic": (300, 40, 20), "elevator": (16, 4, 4), "flights": (200, 40, 20), "taxi": None},
    test_streams=20,
    process_hidden=16,
    more_streams=300,
    hidden={"synthetic": 16, "elevator": 16, "taxi": 16, "flights": 16},
    mixing={"synthetic": 8, "elevator": 8, "taxi": 8, "flights": 8},
    lookahead={"synthetic": 8},
    particles={"synthetic": (20,), "elevator": (20,), "taxi": (20,), "flights": (20,)},
    epochs_p={"elevator": 12, "taxi": 10, "flights": 10},
    epochs_q={"synthetic": 6, "elevator": 6, "taxi": 6, "flights": 6},
    epochs_ours={"synthetic": 6, "elevator": 6, "taxi": 6, "flights": 6},
    batch_size={"synthetic": 50, "elevator": 4, "taxi": 20, "flights": 20},
    patience=5,
    patience_lookahead=5,
    rhos=(0.1, 0.5, 0.9),
    sensitivity_kinds=("flights",),
    evidence_particles=100,
    runtime_particles=(10, 20, 50),
    runtime_shares=(0.25, 0.5, 1.0),
    runtime_streams=4,
    integral_kinds=("flights",),
    integral_streams=10,
    reference_particles=100,
)
