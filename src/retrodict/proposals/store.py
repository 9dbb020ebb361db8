"""Save and load proposals: the model in a folder of its own, the proposal's weights and mechanism beside it.

DIR/proposal.json, DIR/proposal.safetensors     kind, arguments, mechanism, its model's digest; weights
DIR/model/                                      the model it proposes for
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from retrodict.errors import ModelError, show
from retrodict.events.atomic import make_folder, write_text
from retrodict.missingness import MECHANISMS, Missingness
from retrodict.models.store import build, is_object, load_model, model_digest, read_about, save_model
from retrodict.models.tensors import read_tensors, write_tensors
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
        "model": model_digest(proposal.model),
        "training": proposal.training_record,
    }
    write_tensors(path / _WEIGHTS, _own(proposal), f"{FORMAT} {VERSION}")
    write_text(path / _JSON, json.dumps(about, indent=1) + "\n")
    return path


def load_proposal(
    directory: str | os.PathLike[str], device: str | torch.device = "cpu", *, missing: Missingness | None = None
) -> Proposal:
    """Read a proposal that ``save_proposal`` wrote; ``missing`` takes the place of the mechanism saved with it."""
    path = Path(directory)
    if not (path / _JSON).is_file():
        raise ModelError(f"{path} is not a saved proposal: there is no {_JSON} in it. Pass a folder that fit wrote.")
    about = read_about(path / _JSON, FORMAT, VERSION, _FIELDS)
    kind = PROPOSALS.get(about["kind"])
    if kind is None:
        raise ModelError(f"{path}: unknown kind of proposal {show(about['kind'])}; known are {', '.join(PROPOSALS)}.")
    model = load_model(path / _MODEL, device)
    if about.get("model", model_digest(model)) != model_digest(model):
        raise ModelError(
            f"{path} holds a proposal that was trained for another model than the one in {path / _MODEL}. Fit it again."
        )

    def make() -> Proposal:
        given = _mechanism(about["missingness"], path) if missing is None else missing
        return kind.from_config(model, given, **about["config"])

    proposal: Proposal = build(make, path / _JSON, path / _WEIGHTS)
    proposal.load_state_dict(read_tensors(path / _WEIGHTS, _own(proposal)), strict=False)  # all but the model's own
    proposal.training_record = about["training"]
    return proposal


def _own(proposal: Proposal) -> dict[str, torch.Tensor]:
    """A proposal's weights without its model's."""
    return {name: value for name, value in proposal.state_dict().items() if not name.startswith("model.")}


def _mechanism(about: dict[str, Any], path: Path) -> Missingness:
    kind = MECHANISMS.get(about["kind"]) if isinstance(about.get("kind"), str) else None
    if kind is None or not isinstance(about.get("config"), dict):
        raise ModelError(f"{path / _JSON}: missingness does not describe a mechanism. Fit it again.")
    return kind.from_config(about["config"])


_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "kind": ("a word", lambda value: isinstance(value, str)),
    "config": ("an object", is_object),
    "missingness": ("an object", is_object),
    "training": ("an object", is_object),
}
