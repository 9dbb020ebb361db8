"""Save and load online runs: one file of tensors and a small JSON file that names it, in one folder.

DIR/online.json                   format, version, options, names of streams, digests of the model and the mechanism
DIR/online-DIGEST.safetensors     particles at the three marks of every stream, what is known of it, recent events

The JSON file is replaced last, so that a folder holds the old run or the new one, never a mixture. Nothing is pickled;
a folder is read as data from strangers.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from retrodict import _limits
from retrodict.errors import DataError, ModelError, RetrodictError, show
from retrodict.events.atomic import atomic_file, write_text
from retrodict.events.lock import lock_folder
from retrodict.events.plain import read_json, read_regular
from retrodict.events.time_axis import TimeAxis
from retrodict.missingness.base import Missingness
from retrodict.smc.online.arrivals import Kept, Line, Mark
from retrodict.smc.online.pool import Pool

if TYPE_CHECKING:
    from retrodict.smc.online.online import Online

FORMAT, VERSION, FILE = "retrodict online", 1, "online.json"
_WORDS = ("resample", "engine")
_OPTIONS = ("lag", "particles", "seed", "ess_threshold", "islands", "max_events", *_WORDS)
_NUMBERS = ("start", "until")
_MARKS = Kept._fields


def save_online(online: Online, directory: str | os.PathLike[str]) -> Path:
    """Write a run into a folder (made if need be), all of it or nothing."""
    path = Path(directory)
    data = save(_tensors(online), metadata={"format": f"{FORMAT} {VERSION}"})
    name = f"online-{hashlib.blake2b(data, digest_size=16).hexdigest()}.safetensors"
    about = {
        "format": FORMAT,
        "version": VERSION,
        "tensors": name,
        "model": online.proposal.model.digest(),
        "missing": _digest(online.proposal.missingness),
        "axis": online.axis.to_dict(),
        "options": {option: getattr(online, option) for option in _OPTIONS},
        "names": online.names,
    }
    with lock_folder(path):
        with atomic_file(path / name) as file:
            file.write(data)
        write_text(path / FILE, json.dumps(about) + "\n")
        for other in path.glob("online-*.safetensors"):
            if other.name != name:
                other.unlink(missing_ok=True)
    return path


def read_online(directory: str | os.PathLike[str], make: Callable[..., Online]) -> Online:
    """The run that ``save_online`` wrote; ``make`` makes an empty one from its options."""
    path = Path(directory)
    try:
        about = read_json(path / FILE, _limits.current().bytes)
        options, axis = _read_about(about), TimeAxis.from_dict(about["axis"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from error
    online = make(**options, axis=axis)
    for what, own in (
        ("model", online.proposal.model.digest()),
        ("missing", _digest(online.proposal.missingness)),
    ):
        if about[what] != own:
            other = "model" if what == "model" else "mechanism"
            raise ModelError(
                f"{path} was saved with another {other} than the one given: its particles mean nothing with this one. "
                f"Give the {other} that it was saved with, or begin anew."
            )
    try:
        _fill(online, about["names"], _read(path / about["tensors"], online, len(about["names"])))
    except (OSError, ValueError, KeyError, TypeError, OverflowError, SafetensorError) as error:
        if isinstance(error, RetrodictError):
            raise
        raise _damaged(path, error) from error
    return online


def _digest(mechanism: Missingness) -> str:
    """A name that no other mechanism has, as far as it can be described."""
    text = json.dumps(mechanism.meaning(), default=repr)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _damaged(path: Path, error: Exception) -> DataError:
    why = str(getattr(error, "strerror", None) or error)[:300]
    return DataError(f"this is not a saved online run, or it is damaged ({why})", file=path, remedy="begin anew")


def _read_about(about: Any) -> dict[str, Any]:
    """The options of a run, as ``Online`` takes them; ValueError if the description cannot be right."""
    if not isinstance(about, dict) or about.get("format") != FORMAT or about.get("version") != VERSION:
        raise ValueError(f"it is not of version {VERSION}")
    options, names, file = about["options"], about["names"], about["tensors"]
    if not isinstance(options, dict) or sorted(options) != sorted(_OPTIONS):
        raise ValueError("its options are not those of an online run")
    numbers = [options[name] for name in _OPTIONS if name not in _WORDS]
    if any(isinstance(x, bool) or not isinstance(x, int | float) for x in numbers):
        raise ValueError("its options are not numbers")
    if not all(isinstance(options[name], str | None) for name in _WORDS):
        raise ValueError("its resampling scheme or its engine has no name")
    good = isinstance(names, list) and all(isinstance(x, str | int) and not isinstance(x, bool) for x in names)
    if not good or len(set(names)) != len(names):
        raise ValueError("its names are not those of streams")
    if (
        not isinstance(about["axis"], dict)
        or not isinstance(file, str)
        or not file.startswith("online-")
        or Path(file).name != file
    ):
        raise ValueError(f"it names no file of tensors but {show(file)}")
    return options


def _tensors(online: Online) -> dict[str, Tensor]:
    """Everything of a run that is a number; particles in the order of the names."""
    lines = list(online._lines.values())
    slots = torch.tensor([line.slot for line in lines], dtype=torch.int64, device=online.proposal.model.device)
    result: dict[str, Tensor] = {
        "start": torch.tensor([line.start for line in lines], dtype=torch.float64),
        "until": torch.tensor([line.until for line in lines], dtype=torch.float64),
        "is_told": torch.tensor([line.is_told for line in lines], dtype=torch.bool),
        "events": torch.tensor([len(line.times) for line in lines], dtype=torch.int64),
        "times": torch.tensor([t for line in lines for t in line.times], dtype=torch.float64),
        "types": torch.tensor([k for line in lines for k in line.types], dtype=torch.int64),
    }
    for mark, pool in zip(_MARKS, online._pools, strict=True):
        marks = [getattr(line.marks, mark) for line in lines]
        result[f"{mark}.time"] = torch.tensor([m.time for m in marks], dtype=torch.float64)
        result[f"{mark}.number"] = torch.tensor([m.number for m in marks], dtype=torch.int64)
        result |= {f"{mark}.{name}": value.cpu() for name, value in pool.part(slots).tensors.items()}
    return {name: value.contiguous() for name, value in result.items()}


def _read(path: Path, online: Online, streams: int) -> dict[str, Tensor]:
    """The tensors of a run: exactly those that it has to have, of the right kinds and shapes."""
    data = read_regular(path, _limits.current().bytes)
    name = f"online-{hashlib.blake2b(data, digest_size=16).hexdigest()}.safetensors"
    if path.name != name:
        raise ValueError("its tensors are not those that were written")
    tensors = load(data)
    expected = _tensors(online)  # of no stream
    if tensors.keys() != expected.keys():
        raise ValueError("it does not have the tensors of an online run")
    total = int(tensors["events"].sum()) if tensors["events"].dtype == torch.int64 else -1
    each = {name: len(value) for name, value in online._pools.head.empty.items()}
    for name, value in tensors.items():
        rows = total if name in ("times", "types") else streams * each.get(name.partition(".")[2], 1)
        if value.dtype != expected[name].dtype or value.shape != (rows, *expected[name].shape[1:]):
            raise ValueError(f"{name} is of another kind or shape than it has to be")
        if bool(value.isnan().any()):
            raise ValueError(f"{name} holds what is no number")
    return tensors


def _fill(online: Online, names: list[Any], tensors: Mapping[str, Tensor]) -> None:
    """Put what was read into an empty run; ValueError where it cannot be true."""
    own = {name: value.tolist() for name, value in tensors.items() if value.dim() == 1 and "." not in name}
    marks = {mark: (tensors[f"{mark}.time"].tolist(), tensors[f"{mark}.number"].tolist()) for mark in _MARKS}
    K, first, lines = online.proposal.model.num_types, 0, {}
    for i, name in enumerate(names):
        last = first + own["events"][i]
        times, types = own["times"][first:last], own["types"][first:last]
        at = Kept(*(Mark(marks[mark][0][i], marks[mark][1][i]) for mark in _MARKS))
        line = Line(own["start"][i], i, own["until"][i], own["is_told"][i], times, types, at)
        known = [at.older.time, *times, line.until]
        ordered = 0 <= at.older.time <= at.newer.time <= at.head.time <= line.until and known == sorted(known)
        good = ordered and all(0 <= kind < K for kind in types) and min(mark.number for mark in at) >= 0
        if not good or not np.isfinite([line.start, line.until]).all():
            raise ValueError(f"what it says of stream {show(name)} cannot be true")
        lines[name] = line
        first = last
    slots = torch.arange(len(names), device=online.proposal.model.device)
    for mark, pool in zip(_MARKS, online._pools, strict=True):
        pool.grow(len(names))
        _check_particles({name: tensors[f"{mark}.{name}"] for name in pool.tensors}, pool, tensors[f"{mark}.time"])
        _put(pool, slots, {name: tensors[f"{mark}.{name}"] for name in pool.tensors})
    online._lines = lines


def _check_particles(own: Mapping[str, Tensor], pool: Pool, at: Tensor) -> None:
    """Refuse particles that no run has, at marks of these times; ValueError says which part of them is wrong."""
    times = own[f"state.{pool.make_state._fields.index('time')}"]
    good = {
        "state": all(bool(value.isfinite().all()) for name, value in own.items() if name.startswith("state")),
        "time": bool(((times >= 0) & (times <= at.repeat_interleave(pool.islands * pool.M))).all()),
        "window": bool((own["window"] > 0).all()),
        "rounds": bool((own["rounds"] >= 0).all()),
        "log_weights": bool((own["log_weights"] < torch.inf).all()),
        "log_evidence": bool((own["log_evidence"] < torch.inf).all()),
    }
    wrong = [name for name, is_good in good.items() if not is_good]
    if wrong:
        raise ValueError(f"its particles have a {wrong[0]} that cannot be")


def _put(pool: Pool, slots: Tensor, values: dict[str, Tensor]) -> None:
    pool.put(slots, {name: value.to(pool.tensors[name].device) for name, value in values.items()})
