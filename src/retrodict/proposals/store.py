"""Save and load proposals: the model in a folder of its own, the proposal's weights and mechanism beside it.

DIR/proposal.json, DIR/proposal.safetensors     kind, arguments, mechanism; weights
DIR/model/                                      the model it proposes for
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from retrodict.errors import ModelError
from retrodict.events.atomic import atomic_path, make_folder
from retrodict.missingness import MECHANISMS, Missingness
from retrodict.models.store import load_model, save_model
from retrodict.proposals import PROPOSALS
from retrodict.proposals.base import Proposal

FORMAT, VERSION = "retrodict proposal", 1
_JSON, _WEIGHTS, _MODEL = "proposal.json", "proposal.safetensors", "model"


def save_proposal(proposal: Proposal, directory: str | os.PathLike[str]) -> Path:
    """Write a proposal into a directory (made if need be); returns the directory."""
    path = make_folder(directory)
    save_model(proposal.model, path / _MODEL)
    about = {
        "format": FORMAT,
        "version": VERSION,
        "kind": proposal.kind,
        "config": proposal.config(),
        "missingness": {"kind": proposal.missingness.kind, "config": proposal.missingness.config()},
        "training": proposal.training_record,
    }
    own = {k: v.detach().cpu().contiguous() for k, v in proposal.state_dict().items() if not k.startswith("model.")}
    with atomic_path(path / _WEIGHTS) as side:
        save_file(own, side, metadata={"format": FORMAT, "version": str(VERSION)})
    with atomic_path(path / _JSON) as side:
        Path(side).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return path


def load_proposal(
    directory: str | os.PathLike[str], device: str | torch.device = "cpu", *, missing: Missingness | None = None
) -> Proposal:
    """Read a proposal that ``save_proposal`` wrote; ``missing`` takes the place of the mechanism saved with it."""
    path = Path(directory)
    try:
        about = json.loads((path / _JSON).read_text(encoding="utf-8"))
        kind, mechanism = PROPOSALS[about["kind"]], MECHANISMS[about["missingness"]["kind"]]
        if (about["format"], about["version"]) != (FORMAT, VERSION):
            raise ModelError(f"{path / _JSON} is not a proposal of version {VERSION}.")
        tensors = load_file(path / _WEIGHTS, device=str(device))
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is not a saved proposal, or is damaged ({error}). Fit it again.") from error
    model = load_model(path / _MODEL, device)
    if missing is None:
        missing = mechanism.from_config(about["missingness"]["config"])
    proposal = kind(model, missing, **about["config"])
    proposal.load_state_dict(tensors, strict=False)
    proposal.training_record = about["training"]
    return proposal
