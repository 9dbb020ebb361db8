"""The smoothers of a model: its folder holds the first in ``smoother`` and further ones in ``smoothers/NAME``.

Each smoother is for one mechanism, or for any, and for one model, which it knows by its digest. It says so from the
start of its training: ``missing.yaml`` describes the mechanism and ``model/`` is the model; ``proposal.json`` comes
when it is done.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrodict.errors import ModelError, RetrodictError
from retrodict.missingness import Anything, Missingness
from retrodict.missingness.arguments import WRONG
from retrodict.missingness.spec import read_missing, write_missing
from retrodict.missingness.words import in_words
from retrodict.models.base import Model
from retrodict.models.model_folder import load_model
from retrodict.proposals.base import MODEL_FOLDER, PROPOSAL_FILES
from retrodict.proposals.proposal_folder import read_about, read_mechanism

SMOOTHER, SMOOTHERS, MISSING = "smoother", "smoothers", "missing.yaml"


@dataclass(frozen=True)
class KeptSmoother:
    """A smoother in a model's folder: what it is for, and why it cannot be used, if so."""

    name: str
    path: Path
    missing: Missingness | None  # bound to the model's types; None where that cannot be read
    problem: str | None  # in words, with the remedy
    is_stale: bool = False  # whether it was trained for another model than the one in the folder

    @property
    def is_for_any(self) -> bool:
        """Whether it is for whatever goes missing."""
        return isinstance(self.missing, Anything)

    def is_for(self, missing: Missingness) -> bool:
        """Whether it is for this mechanism, bound to the model's types, however that was written down."""
        return self.missing is not None and self.missing.meaning() == missing.meaning()


def type_names(model: Model) -> tuple[str, ...]:
    """The model's types, by index where they have no names."""
    return model.types or tuple(str(k) for k in range(model.num_types))


def smoothers_of(folder: Path, model: Model) -> list[KeptSmoother]:
    """All smoothers in the folder of a model, the first one first."""
    others = sorted(path for path in (folder / SMOOTHERS).glob("*") if path.is_dir())
    return [kept for path in (folder / SMOOTHER, *others) if (kept := _look(path, model)) is not None]


def _look(path: Path, model: Model) -> KeptSmoother | None:
    try:
        if (path / PROPOSAL_FILES.json).exists():
            about, _ = read_about(path)
            digest = about["model"] if "model" in about else load_model(path / MODEL_FOLDER).digest()
            missing = _bind(read_mechanism(about["missingness"], path), model)
            problem = None
        elif (path / MISSING).exists():
            digest = load_model(path / MODEL_FOLDER).digest()
            missing = _bind(read_missing(path / MISSING), model)
            problem = "its training has not ended: repeat the command that began it"
        else:
            return None
    except (RetrodictError, *WRONG) as error:
        return KeptSmoother(path.name, path, None, str(error)[:500])
    if digest != model.digest():
        problem = (
            f"it was trained for another model than the one that is in the folder now: train it again with 'retrodict "
            f"smoother', or delete {path}"
        )
    return KeptSmoother(path.name, path, missing, problem, digest != model.digest())


def _bind(missing: Missingness, model: Model) -> Missingness | None:
    """The mechanism over the model's types; None where it is about other types."""
    try:
        return missing.bind(type_names(model), model.time_unit)
    except ModelError:
        return None


def place_for(folder: Path, model: Model, missing: Missingness, name: str | None, written: Sequence[str]) -> Path:
    """Where to train a smoother for a mechanism: where one for it is or was begun, else in a place that is free.

    ``name`` chooses the place; without one it follows from how the mechanism is ``written``.
    """
    if name is not None:
        if not re.fullmatch(r"\w[\w.=+-]{0,99}", name):
            raise ModelError(f"a smoother cannot be called {name!r}. Use letters, digits and any of . _ = + -")
        return folder / SMOOTHER if name == SMOOTHER else folder / SMOOTHERS / name
    for kept in smoothers_of(folder, model):
        if kept.is_for(missing):
            return kept.path
    if not (folder / SMOOTHER).exists():
        return folder / SMOOTHER
    short = "-".join(re.sub(r"\.ya?ml$", "", Path(text).name, flags=re.IGNORECASE) for text in written)
    short = re.sub(r"[^\w.=+-]+", "-", short).strip("-.")[:60] or "other"
    names = (short if number == 1 else f"{short}-{number}" for number in range(1, 10_000))
    return next(path for each in names if not (path := folder / SMOOTHERS / each).exists())


def claim(path: Path, model: Model, missing: Missingness, resume: bool) -> bool:
    """Note in a smoother's folder what it will be for; returns whether to go on with a training that is there.

    What was trained there for another model is not gone on with. What is there for another mechanism is refused,
    unless it is not to be resumed.
    """
    kept = _look(path, model)
    if kept is not None and resume and kept.missing is not None and not kept.is_for(missing) and not kept.is_stale:
        raise ModelError(
            f"{path} holds a smoother for {in_words(kept.missing)}, not for {in_words(missing)}. Choose another "
            "--name, or leave it out; --restart trains it anew for what you ask."
        )
    if kept is not None and (kept.is_stale or kept.missing is None):
        resume = False
        (path / PROPOSAL_FILES.json).unlink(missing_ok=True)
    model.save(path / MODEL_FOLDER)
    write_missing(missing, path / MISSING)
    return resume
