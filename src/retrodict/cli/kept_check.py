"""The check that ended a fit, kept with the model: repeated where the model is used, and shown on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrodict.cli import common
from retrodict.events.plain import read_json
from retrodict.models import Model
from retrodict.report.check_tables import clean_check

KEPT = "check.json"  # in the folder of the model or smoother that was checked


def repeat_verdict(model: Model, *folders: Path) -> dict[str, Any] | None:
    """Say what the check said in the first of the folders that has one which was about this model, and give it."""
    for folder in folders:
        try:
            kept = clean_check(read_json(folder / KEPT))
        except (OSError, ValueError):
            continue
        if kept["about"].get("model") == model.digest():
            common.note(f"the check after fitting said: {kept['verdict']}")
            return kept
    return None
