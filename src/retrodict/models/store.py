"""Save and load models: weights as safetensors, everything else as JSON, both versioned.

    model/model.json           kind, constructor arguments, type names, time unit, how it was trained
    model/model.safetensors    parameters and buffers

A folder is read as data from strangers: every field of the JSON is checked, the weights must be exactly those that
the description asks for, and no size in it is believed beyond the bytes that are there. No pickle is written or read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from retrodict import _limits
from retrodict.errors import LimitError, ModelError, show
from retrodict.events.atomic import make_folder, write_text
from retrodict.events.plain import read_json
from retrodict.models import MODELS
from retrodict.models.base import Model
from retrodict.models.start import StartAtom
from retrodict.models.tensors import digest, read_tensors, tensors_size, write_tensors

FORMAT, VERSION = "retrodict model", 1
_JSON, _WEIGHTS = "model.json", "model.safetensors"


def model_digest(model: Model) -> str:
    """A name for a model that others do not have: from its kind, its types and its weights."""
    about = json.dumps([model.kind, model.types, model.time_unit])
    return hashlib.blake2b((about + digest(model.state_dict())).encode(), digest_size=8).hexdigest()


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
    write_tensors(path / _WEIGHTS, model.state_dict(), f"{FORMAT} {VERSION}")
    write_text(path / _JSON, json.dumps(about, indent=1, allow_nan=True) + "\n")
    return path


def load_model(directory: str | os.PathLike[str], device: str | torch.device = "cpu") -> Model:
    """Read a model that ``save_model`` wrote."""
    path = Path(directory)
    if not (path / _JSON).is_file():
        raise ModelError(f"{path} is not a saved model: there is no {_JSON} in it. Pass the folder that fit wrote.")
    about = read_about(path / _JSON, FORMAT, VERSION, _FIELDS)
    kind = MODELS.get(about["kind"])
    if kind is None:
        raise ModelError(f"{path}: unknown kind of model {show(about['kind'])}; known are {', '.join(MODELS)}.")
    model = build(lambda: kind(**about["config"]), path / _JSON, path / _WEIGHTS)
    if about["start_atom"]:
        model.start_atom = StartAtom(torch.zeros(model.num_types + 1))
    tensors = read_tensors(path / _WEIGHTS, model.state_dict())
    model.to(device=device, dtype=next(v.dtype for k, v in tensors.items() if k != "time_scale"))
    model.load_state_dict(tensors)
    _check_atom(model, path)
    if about["types"] is not None:
        if len(about["types"]) != model.num_types or len(set(about["types"])) < model.num_types:
            raise ModelError(f"{path / _JSON}: types must be {model.num_types} different names. Fit or copy it again.")
        model.types = tuple(about["types"])
    model.time_unit, model.training_record = about["time_unit"], about["training"]
    return model


def build(make: Callable[[], Any], file: Path, weights: Path) -> Any:
    """What a description says, refused if it would be larger than the file of its weights."""
    try:
        with _limits.limits(memory=2 * tensors_size(weights) + (1 << 20)):
            return make()
    except LimitError as error:
        raise ModelError(f"{file}: the description does not fit the weights ({error.problem}).") from error
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from error
    except (TypeError, ValueError, OverflowError, AttributeError, KeyError, RuntimeError, RecursionError) as error:
        raise ModelError(f"{file}: wrong arguments ({str(error)[:200]}). Fit or copy it again.") from error


def read_about(
    file: Path, format: str, version: int, checks: Mapping[str, tuple[str, Callable[[Any], bool]]]
) -> dict[str, Any]:
    """The description in a folder; ``checks`` has, for each field, what it must be and whether a value is that."""
    try:
        about = read_json(file)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"{file} is damaged ({why}). Fit or copy it again.") from error
    if not isinstance(about, dict) or about.get("format") != format:
        raise ModelError(f"{file} does not describe a {format}.")
    if about.get("version") != version or isinstance(about["version"], bool):
        raise ModelError(
            f"{file} has version {show(about.get('version'))}, this retrodict reads version {version}. "
            "Upgrade retrodict, or fit again."
        )
    lacking = [key for key in checks if key not in about]
    if lacking:
        raise ModelError(f"{file} is damaged: it lacks {', '.join(lacking)}. Fit or copy it again.")
    for key, (wanted, is_good) in checks.items():
        if not is_good(about[key]):
            raise ModelError(f"{file}: {key} must be {wanted}, but is {show(about[key])}. Fit or copy it again.")
    return about


def _is_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value))


def is_object(value: Any) -> bool:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "kind": ("a word", lambda value: isinstance(value, str)),
    "config": ("an object", is_object),
    "types": ("null or a list of names", _is_names),
    "time_unit": ("null or a word", lambda value: value is None or (isinstance(value, str) and len(value) < 100)),
    "start_atom": ("true or false", lambda value: isinstance(value, bool)),
    "training": ("an object", is_object),
}


def _check_atom(model: Model, path: Path) -> None:
    if model.start_atom is not None and not abs(float(model.start_atom.log_probs.logsumexp(0))) < 1e-3:
        raise ModelError(f"{path / _WEIGHTS}: the probabilities at the start do not add up to 1. Fit or copy it again.")
