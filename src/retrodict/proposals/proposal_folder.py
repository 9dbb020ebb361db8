"""Load proposals: kind, arguments, mechanism and the model's digest, beside the weights; the model is in model/."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from retrodict.errors import ModelError
from retrodict.missingness import MECHANISMS, Missingness
from retrodict.models.model_folder import load_model
from retrodict.models.saved import OBJECT
from retrodict.proposals import PROPOSALS
from retrodict.proposals.base import MODEL_FOLDER, PROPOSAL_FILES, Proposal


def load_proposal(
    directory: str | os.PathLike[str], device: str | torch.device = "cpu", *, missing: Missingness | None = None
) -> Proposal:
    """Read a proposal that ``Proposal.save`` wrote; ``missing`` takes the place of the mechanism saved with it."""
    path = Path(directory)
    about, kind = read_about(path)
    model = load_model(path / MODEL_FOLDER, device)
    if about.get("model", model.digest()) != model.digest():
        raise ModelError(
            f"{path} holds a proposal that was trained for another model than the one in {path / MODEL_FOLDER}. "
            "Fit it again."
        )

    def make() -> Proposal:
        given = read_mechanism(about["missingness"], path) if missing is None else missing
        return kind.from_config(model, given, **about["config"])

    proposal = PROPOSAL_FILES.build(path, make)
    weights = PROPOSAL_FILES.read_weights(path, proposal.own_weights())
    proposal.load_state_dict(weights, strict=False)  # all but the model's own
    proposal.training_record = about["training"]
    return proposal


def read_about(path: Path) -> tuple[dict[str, Any], type[Proposal]]:
    """The description of a saved proposal, each field checked, and its class."""
    return PROPOSAL_FILES.read(path, PROPOSALS, {"missingness": OBJECT, "training": OBJECT})


def read_mechanism(about: dict[str, Any], path: Path) -> Missingness:
    """The mechanism that a saved proposal describes."""
    kind = MECHANISMS.get(about["kind"]) if isinstance(about.get("kind"), str) else None
    if kind is None or not isinstance(about.get("config"), dict):
        raise ModelError(f"{path / PROPOSAL_FILES.json}: missingness does not describe a mechanism. Fit it again.")
    return kind.from_config(about["config"])
