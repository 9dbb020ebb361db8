"""Weights as safetensors: the same bytes for the same weights, and read as data from strangers.

A file is taken only if it holds exactly the tensors that were expected, with plausible numbers in them: what a folder
says of its own sizes is checked against the bytes that are there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from retrodict.errors import ModelError
from retrodict.events.atomic import atomic_file
from retrodict.events.plain import parse_json, read_regular

_HEADER = 1 << 20  # bytes of names and shapes; the largest of ours has some thousand
_DTYPES = {"F32": torch.float32, "F64": torch.float64}
MOST_WEIGHT, MOST_LOG = 1e6, 100.0
SCALES = (1e-12, 1e15)  # a clock's unit, in units of the streams' times


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """A name that no other weights have."""
    hash = hashlib.blake2b(digest_size=8)
    for name, value in sorted(weights.items()):
        hash.update(name.encode())
        hash.update(value.detach().cpu().contiguous().numpy().data)
    return hash.hexdigest()


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: str) -> None:
    """Write weights, all or nothing; ``about`` is a note in the header."""
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with atomic_file(path) as file:
        file.write(save(plain, metadata={"format": about}))  # one entry: several come in another order every time


def tensors_size(path: Path) -> int:
    """Bytes of a file of weights; 0 where there is none."""
    try:
        return path.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def read_tensors(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in a file: exactly those of ``expected`` by name and shape, in single or double precision."""
    most = sum(8 * value.numel() for value in expected.values()) + _HEADER
    try:
        data = read_regular(path, most)
        found = _header(data)
        _check_names(found, expected)
        tensors = load(data)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"{path} cannot be read ({str(why)[:300]}). Fit or copy it again.") from error
    for name, value in tensors.items():
        _check_values(path, name, value)
    return tensors


def _header(data: bytes) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Dtype and shape of each tensor, as the file says."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _HEADER):
        raise ValueError("it is cut off, or its header is too long")
    header = parse_json(data[8 : 8 + length])
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    header.pop("__metadata__", None)
    return {name: (str(about["dtype"]), tuple(about["shape"])) for name, about in header.items()}


def _check_names(found: Mapping[str, tuple[str, tuple[int, ...]]], expected: Mapping[str, Tensor]) -> None:
    lacking, foreign = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if lacking or foreign:
        lists = (("lacks", lacking), ("has, unexpectedly,", foreign))
        words = [f"it {verb} {', '.join(name[:60] for name in names[:5])}" for verb, names in lists if names]
        raise ValueError("weights do not fit the description: " + "; ".join(words))
    for name, (dtype, shape) in found.items():
        if dtype not in _DTYPES:
            raise ValueError(f"{name} has the dtype {dtype[:20]}, and weights have F32 or F64")
        if shape != tuple(expected[name].shape):
            raise ValueError(
                f"weights do not fit the description: {name} has shape {str(shape)[:60]} instead of "
                f"{tuple(expected[name].shape)}"
            )


def _check_values(path: Path, name: str, value: Tensor) -> None:
    """Finite numbers of a plausible size; logarithms may be -inf, for what never happens."""
    last = name.rpartition(".")[2]
    if last == "time_scale":
        good, wanted = (value >= SCALES[0]) & (value <= SCALES[1]), f"a number from {SCALES[0]:g} to {SCALES[1]:g}"
    elif last.startswith("log_"):
        good, wanted = value <= MOST_LOG, f"numbers up to {MOST_LOG:g}"
    else:
        good, wanted = value.abs() <= MOST_WEIGHT, f"finite numbers of at most {MOST_WEIGHT:g} in size"
    if not bool(good.all()):
        raise ModelError(f"{path}: {name} holds values that cannot be worked with; expected are {wanted}. Fit again.")
