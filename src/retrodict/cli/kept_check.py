"""The verdict of the check that ended a fit, kept with the model and repeated where it is used."""

from __future__ import annotations

import json
from pathlib import Path

from retrodict.cli import common
from retrodict.models import Model

KEPT = "check.json"  # in the folder of the model or smoother that was checked


def repeat_verdict(model: Model, *folders: Path) -> None:
    """Say what the check said in the first of the folders that has one which was about this model."""
    for folder in folders:
        try:
            kept = json.loads((folder / KEPT).read_bytes())
            verdict = str(kept["verdict"]) if kept["about"]["model"] == model.digest() else None
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if verdict is not None:
            common.note(f"the check after fitting said: {verdict}")
            return
