"""How large the experiments are: the full run, and a quick one for two cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

DETERMINISTIC, STOCHASTIC = "deterministic", "rho-0.5"
SETTINGS = (DETERMINISTIC, STOCHASTIC)
RHOS = (0.1, 0.3, 0.5, 0.7, 0.9)
MIDDLE = 3  # which of the six costs stands for all where one number must do


@dataclass(frozen=True)
class Kind:
    """The sizes of one kind of data set.

    ``costs`` of an insertion or deletion, in the data's unit of time; ``streams`` for training, dev and test (None:
    all); ``imputed``, how many test streams are imputed; ``hidden`` cells of p and of q; ``batch`` of
    streams; ``epochs`` at most of p, of our smoother and of the paper's; ``particles``, the M of the
    comparison, the first for the baselines; ``rhos`` of the sensitivity experiment; ``integrals``, whether rules are
    compared.
    """

    costs: tuple[float, ...]
    streams: tuple[int, int, int] | None
    imputed: int
    hidden: int
    batch: int
    epochs: tuple[int, int, int]
    particles: tuple[int, ...] = (50,)
    rhos: tuple[float, ...] = ()
    integrals: bool = False

    @property
    def other_settings(self) -> tuple[str, ...]:
        """The missing rates of the sensitivity experiment but 0.5."""
        return tuple(name for rho in self.rhos if (name := f"rho-{rho:g}") not in SETTINGS)


@dataclass(frozen=True)
class Scale:
    """The sizes of a run; ``process`` is the number of cells of the processes that synthetic streams are drawn from."""

    name: str
    kinds: Mapping[str, Kind]
    synthetic_sets: int
    process: int
    patience: int
    chunk: int  # particles (streams times M) that one task imputes
    evidence_particles: int  # for log p(x) of the exact posterior
    integral_streams: int
    timed_on: str  # the kind whose streams are timed
    timed_particles: tuple[int, ...]
    timed_shares: tuple[float, ...]  # of a stream's duration
    timed_streams: int

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the data sets, synthetic ones last."""
        real = tuple(kind for kind in self.kinds if kind != "synthetic")
        return real + tuple(f"synthetic-{i}" for i in range(self.synthetic_sets) if "synthetic" in self.kinds)

    def kind(self, dataset: str) -> Kind:
        """The sizes of a data set."""
        return self.kinds[kind_of(dataset)]


def kind_of(dataset: str) -> str:
    """synthetic, elevator, taxi or flights."""
    return dataset.split("-")[0]


FULL = Scale(
    name="full",
    kinds={
        "elevator": Kind((5, 10, 20, 40, 100, 200), (500, 100, 200), 200, 64, 10, (120, 60, 40), rhos=RHOS),
        "taxi": Kind((0.02, 0.05, 0.1, 0.2, 0.5, 1.0), None, 500, 128, 50, (80, 120, 60), (50, 500), RHOS, True),
        "flights": Kind((0.2, 0.5, 1.0, 2.0, 5.0, 10.0), None, 500, 64, 50, (50, 60, 30), (50, 500), RHOS, True),
        "synthetic": Kind((0.1, 0.2, 0.5, 1.0, 2.0, 4.0), (5000, 500, 500), 250, 128, 100, (0, 120, 40)),
    },
    synthetic_sets=10,
    process=256,
    patience=10,
    chunk=6_250,
    evidence_particles=400,
    integral_streams=20,
    timed_on="elevator",
    timed_particles=(10, 50, 200),
    timed_shares=(0.1, 0.3, 1.0),
    timed_streams=8,
)  # fmt: skip

_SMALL = {"hidden": 16, "particles": (20,), "epochs": (10, 4, 4)}
QUICK = replace(
    FULL,
    name="quick",
    kinds={
        "elevator": replace(FULL.kinds["elevator"], streams=(16, 4, 4), imputed=4, batch=4, rhos=(), **_SMALL),
        "flights": replace(
            FULL.kinds["flights"], streams=(200, 40, 20), imputed=20, batch=20, rhos=(0.1, 0.5, 0.9), **_SMALL
        ),
        "synthetic": replace(FULL.kinds["synthetic"], streams=(300, 40, 20), imputed=20, batch=50, **_SMALL),
    },
    synthetic_sets=2,
    process=16,
    patience=5,
    evidence_particles=100,
    integral_streams=5,
    timed_particles=(10, 20),
    timed_shares=(0.5, 1.0),
    timed_streams=2,
)
SCALES = {scale.name: scale for scale in (FULL, QUICK)}
