"""The arguments MODEL and FILE, looked at before anything is read: a folder that is not there, or the two swapped."""

from __future__ import annotations

import os
from pathlib import Path

from retrodict._near import why_no_folder
from retrodict.errors import ModelError

_HOLDS = "model.json"


def check_arguments(command: str, model: Path, file: Path | None) -> None:
    """Refuse a model's folder that is none; ``file`` is None where the command takes none."""
    why = why_no_folder(model, _HOLDS)
    if why is None:
        return
    if file is not None and os.path.isfile(file / _HOLDS):
        raise ModelError(
            f"the arguments seem swapped: {file} is the folder of a model, and {model} is not. The model's folder "
            f"comes first: retrodict {command} {file} {model} ..."
        )
    if file is not None and os.path.isfile(model) and model.name != _HOLDS:
        raise ModelError(
            f"{model} is a file, not the folder of a model. The model's folder comes first, then the file with events."
        )
    raise ModelError(why)
