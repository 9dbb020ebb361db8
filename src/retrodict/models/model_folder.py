"""Save and load models: kind, arguments, type names, time unit and how it was trained, beside its weights."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from retrodict.errors import ModelError
from retrodict.models import MODELS
from retrodict.models.base import MODEL_FILES, Model
from retrodict.models.calendar import Calendar
from retrodict.models.covariates import MOST_NAMES, MOST_STEPS
from retrodict.models.end import MOST_COUNTS, EndAtom
from retrodict.models.saved import OBJECT, Check
from retrodict.models.start import StartAtom


def save_model(model: Model, directory: str | os.PathLike[str]) -> Path:
    """Write a model into a directory (made if need be); returns the directory."""
    return model.save(directory)


def load_model(directory: str | os.PathLike[str], device: str | torch.device = "cpu") -> Model:
    """Read a model that ``save_model`` wrote."""
    path = Path(directory)
    about, kind = MODEL_FILES.read(path, MODELS, _FIELDS)
    model = MODEL_FILES.build(path, lambda: kind(**about["config"]))
    model.time_unit = about["time_unit"]
    if about["start_atom"]:
        model.start_atom = StartAtom(torch.zeros(model.num_types + 1))
    counts = about.get("end_atom")  # folders of before there were any say nothing of it
    if counts is not None:
        if not (isinstance(counts, int) and not isinstance(counts, bool) and 0 < counts <= MOST_COUNTS):
            wanted = f"null or a number of events from 1 to {MOST_COUNTS:,}"
            raise ModelError(f"{path / MODEL_FILES.json}: end_atom must be {wanted}. Fit or copy it again.")
        model.end_atom = EndAtom.empty(counts, model)
    if about.get("calendar") is not None:
        known = about["calendar"]
        model.calendar = MODEL_FILES.build(path, lambda: _calendar(model, known))
    tensors = MODEL_FILES.read_weights(path, model.state_dict())
    model.to(device=device, dtype=next(v.dtype for k, v in tensors.items() if k != "time_scale"))
    model.load_state_dict(tensors)
    if model.calendar is not None:
        model.calendar.check_weights()
    if model.start_atom is not None and not abs(float(model.start_atom.log_probs.logsumexp(0))) < 1e-3:
        file = path / MODEL_FILES.weights
        raise ModelError(f"{file}: the probabilities at the start do not add up to 1. Fit or copy it again.")
    if about["types"] is not None:
        if len(about["types"]) != model.num_types or len(set(about["types"])) < model.num_types:
            file = path / MODEL_FILES.json
            raise ModelError(f"{file}: types must be {model.num_types} different names. Fit or copy it again.")
        model.types = tuple(about["types"])
    model.training_record = about["training"]
    return model


def _calendar(model: Model, about: Any) -> Calendar:
    """An empty calendar as a folder describes it."""
    names, steps = about["covariates"], about["steps"]
    if not (isinstance(names, list) and _is_names(names) and len(names) <= MOST_NAMES):
        raise ModelError(f"the calendar's covariates must be at most {MOST_NAMES} names.")
    if not (isinstance(steps, int) and 0 <= steps <= MOST_STEPS and (steps > 0) == bool(names)):
        raise ModelError(f"the calendar's covariates must have 1 to {MOST_STEPS:,} rows.")
    if about["unit"] != model.time_unit or not (about["zone"] is None or isinstance(about["zone"], str)):
        raise ModelError("the calendar must be in the unit of the model's times, and in a zone.")
    return Calendar.from_config(model.num_types, **about)


def _is_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value))


_FIELDS: dict[str, Check] = {
    "types": ("null or a list of names", _is_names),
    "time_unit": ("null or a word", lambda value: value is None or (isinstance(value, str) and len(value) < 100)),
    "start_atom": ("true or false", lambda value: isinstance(value, bool)),
    "training": OBJECT,
}
