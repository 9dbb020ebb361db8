"""The verdict of the check that ended a fit, kept with the model and repeated where it is used."""

from __future__ import annotations

import json
from pathlib import Path

from rich.markup import escape

from retrodict.cli import common
from retrodict.models import Model

KEPT = "check.json"  # in the folder of a model


def repeat_verdict(folder: Path, model: Model) -> None:
    """Say what the check said, where there was one and it was about this model."""
    try:
        kept = json.loads((folder / KEPT).read_bytes())
        verdict = str(kept["verdict"]) if kept["about"]["model"] == model.digest() else None
    except (OSError, ValueError, KeyError, TypeError):
        return
    if verdict is not None:
        text = f"[yellow]note:[/] the check after fitting said: {escape(verdict)}"
        common.err.print(text, soft_wrap=True, highlight=False)
