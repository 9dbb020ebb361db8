"""Lightning checkpoints as one safetensors file: tensors as such, the rest as JSON in its header.

Lightning's own checkpoints are pickles, which can run code when they are read. These cannot, and they are
written to the side and moved into place, so that a kill never leaves half a checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins.io.checkpoint_io import CheckpointIO
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from retrodict.errors import TrainingError
from retrodict.events.atomic import atomic_file
from retrodict.events.plain import parse_json


class SafetensorsCheckpoints(CheckpointIO):
    """Saves and loads Lightning's checkpoint dictionaries without pickle; one that was loaded is not read again."""

    def __init__(self, loaded: dict[str, Any] | None = None) -> None:
        self.loaded = loaded

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write the checkpoint atomically."""
        tensors: dict[str, torch.Tensor] = {}
        header = json.dumps(_encode(checkpoint, tensors))
        with atomic_file(Path(path)) as file:
            file.write(save(tensors, metadata={"checkpoint": header}))

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """Read a checkpoint; tensors arrive on the CPU and Lightning moves them."""
        if self.loaded is not None:
            return self.loaded
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                header = file.metadata()["checkpoint"]
            return _decode(parse_json(header), tensors)
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise TrainingError(
                f"the checkpoint {path} cannot be read ({error}). Delete it, or fit with resume=False."
            ) from error

    def remove_checkpoint(self, path: Any) -> None:
        """Delete a checkpoint."""
        Path(path).unlink(missing_ok=True)


def _encode(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """JSON for ``value``, its tensors moved into ``tensors``; dicts become lists of pairs to keep any key."""
    if isinstance(value, torch.Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, tensors), _encode(v, tensors)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_encode(v, tensors) for v in value]}
    if isinstance(value, list):
        return [_encode(v, tensors) for v in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TrainingError(f"cannot save a {type(value).__name__} in a checkpoint.")


def _decode(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_decode(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "tensor":
        return tensors[content]
    if tag == "tuple":
        return tuple(_decode(v, tensors) for v in content)
    return {_decode(k, tensors): _decode(v, tensors) for k, v in content}
