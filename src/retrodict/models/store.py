"""Save and load models: weights as safetensors, everything else as JSON, both versioned.

    model/model.json           kind, constructor arguments, type names, time unit, how it was trained
    model/model.safetensors    parameters and buffers

No pickle is written or read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.atomic import atomic_path, make_folder
from retrodict.models import MODELS
from retrodict.models.base import Model
from retrodict.models.start import StartAtom

FORMAT, VERSION = "retrodict model", 1
_JSON, _WEIGHTS = "model.json", "model.safetensors"


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """A name for weights that others do not have."""
    digest = hashlib.blake2b(digest_size=8)
    for name, value in sorted(weights.items()):
        digest.update(name.encode() + value.cpu().numpy().tobytes())
    return digest.hexdigest()


def save_model(model: Model, directory: str | os.PathLike[str]) -> Path:
    """Write a model into a directory (made if need be); returns the directory."""
    path = make_folder(directory)
    about = {
        "format": FORMAT,
        "version": VERSION,
        "kind": model.kind,
        "config": model.config(),
        "types": None if model.types is None else list(model.types),
        "time_unit": model.time_unit,
        "start_atom": model.start_atom is not None,
        "training": model.training_record,
    }
    with atomic_path(path / _WEIGHTS) as side:
        tensors = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
        save_file(tensors, side, metadata={"format": FORMAT, "version": str(VERSION)})
    with atomic_path(path / _JSON) as side:
        Path(side).write_text(json.dumps(about, indent=1, allow_nan=True) + "\n", encoding="utf-8")
    return path


def load_model(directory: str | os.PathLike[str], device: str | torch.device = "cpu") -> Model:
    """Read a model that ``save_model`` wrote."""
    path = Path(directory)
    about = _read_about(path)
    kind = MODELS.get(about["kind"])
    if kind is None:
        raise ModelError(f"{path}: unknown kind of model {about['kind']!r}; known are {', '.join(MODELS)}.")
    try:
        tensors = load_file(path / _WEIGHTS, device=str(device))
    except (OSError, SafetensorError, RuntimeError, AssertionError) as error:
        raise ModelError(f"{path / _WEIGHTS} cannot be read ({error}). Fit or copy the model again.") from error
    try:
        model = kind(**about["config"])
    except TypeError as error:
        raise ModelError(f"{path / _JSON}: wrong arguments for a {about['kind']} model ({error}).") from error
    if about["start_atom"]:
        model.start_atom = StartAtom(torch.zeros(model.num_types + 1))
    model.to(device=device, dtype=next(v.dtype for k, v in tensors.items() if k != "time_scale"))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise ModelError(f"{path}: weights do not fit the description in {_JSON} ({error}).") from error
    model.types = None if about["types"] is None else tuple(about["types"])
    model.time_unit, model.training_record = about["time_unit"], about["training"]
    return model


def _read_about(path: Path) -> dict[str, Any]:
    file = path / _JSON
    if not file.is_file():
        raise ModelError(f"{path} is not a saved model: there is no {_JSON} in it. Pass the folder that fit wrote.")
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelError(f"{file} is damaged ({error}). Fit or copy the model again.") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelError(f"{file} does not describe a retrodict model.")
    lacking = [key for key in ("kind", "config", "types", "time_unit", "start_atom", "training") if key not in about]
    if about.get("version") == VERSION and lacking:
        raise ModelError(f"{file} is damaged: it lacks {', '.join(lacking)}. Fit or copy the model again.")
    if about.get("version") != VERSION:
        raise ModelError(
            f"{file} has version {about.get('version')}, this retrodict reads version {VERSION}. "
            "Upgrade retrodict, or fit the model again."
        )
    return about
