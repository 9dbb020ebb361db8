"""Something saved in a folder: NAME.json describes it and NAME.safetensors holds its weights, both versioned.

A folder is read as data from strangers: every field of the JSON is checked, the weights must be exactly those that
the description asks for, and no size in it is believed beyond the bytes that are there. No pickle is written or read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from retrodict import _limits
from retrodict._near import why_no_folder
from retrodict.errors import LimitError, ModelError, show
from retrodict.events.atomic import make_folder, write_text
from retrodict.events.plain import read_json
from retrodict.models.tensors import read_tensors, tensors_size, write_tensors

VERSION = 1
Check = tuple[str, Callable[[Any], bool]]  # what a field must be, and whether a value is that
OBJECT: Check = ("an object", lambda value: isinstance(value, dict))
_T = TypeVar("_T")


class Saved:
    """The files of one kind of thing: ``name`` is "model" or "proposal"."""

    def __init__(self, name: str) -> None:
        self.name, self.json, self.weights = name, f"{name}.json", f"{name}.safetensors"

    def write(self, directory: str | os.PathLike[str], about: dict[str, Any], weights: Mapping[str, Tensor]) -> Path:
        """Write a description and weights into a directory (made if need be); returns the directory."""
        path = make_folder(directory)
        write_tensors(path / self.weights, weights, f"retrodict {self.name} {VERSION}")
        head = {"format": f"retrodict {self.name}", "version": VERSION}
        write_text(path / self.json, json.dumps({**head, **about}, indent=1) + "\n")
        return path

    def read(
        self, path: Path, kinds: Mapping[str, type[_T]], checks: Mapping[str, Check]
    ) -> tuple[dict[str, Any], type[_T]]:
        """The description in a folder, each field checked, and which of ``kinds`` it is of."""
        file = path / self.json
        none = why_no_folder(path, self.json)
        if none is not None:
            raise ModelError(none)
        try:
            about = read_json(file)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ModelError(f"{file} is damaged ({why}). Fit or copy it again.") from error
        if not isinstance(about, dict) or about.get("format") != f"retrodict {self.name}":
            raise ModelError(f"{file} does not describe a retrodict {self.name}.")
        if about.get("version") != VERSION or isinstance(about["version"], bool):
            raise ModelError(
                f"{file} has version {show(about.get('version'))}, this retrodict reads version {VERSION}. "
                "Upgrade retrodict, or fit again."
            )
        checks = {"kind": ("a word", lambda value: isinstance(value, str)), "config": OBJECT, **checks}
        lacking = [key for key in checks if key not in about]
        if lacking:
            raise ModelError(f"{file} is damaged: it lacks {', '.join(lacking)}. Fit or copy it again.")
        for key, (wanted, is_good) in checks.items():
            if not is_good(about[key]):
                raise ModelError(f"{file}: {key} must be {wanted}, but is {show(about[key])}. Fit or copy it again.")
        if about["kind"] not in kinds:
            known = ", ".join(kinds)
            raise ModelError(f"{path}: unknown kind of {self.name} {show(about['kind'])}; known are {known}.")
        return about, kinds[about["kind"]]

    def build(self, path: Path, make: Callable[[], _T]) -> _T:
        """What the description says, refused if it would be larger than the file of its weights."""
        file = path / self.json
        try:
            with _limits.limits(memory=2 * tensors_size(path / self.weights) + (1 << 20)):
                return make()
        except LimitError as error:
            raise ModelError(f"{file}: the description does not fit the weights ({error.problem}).") from error
        except ModelError as error:
            raise ModelError(f"{file}: {str(error)[:500]}") from error
        except (TypeError, ValueError, OverflowError, AttributeError, KeyError, RuntimeError, RecursionError) as error:
            raise ModelError(f"{file}: wrong arguments ({str(error)[:200]}). Fit or copy it again.") from error

    def read_weights(self, path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights: exactly those of ``expected`` by name and shape."""
        return read_tensors(path / self.weights, expected)
