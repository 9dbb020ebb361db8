"""The newest check of a model or smoother, kept in its folder: repeated where it is used, and shown on the page."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrodict.cli import common
from retrodict.errors import ModelError, WriteError
from retrodict.events.plain import read_json
from retrodict.missingness.words import in_words
from retrodict.models import Model
from retrodict.proposals import Proposal
from retrodict.report.check_tables import clean_check
from retrodict.smc.reliability import Reliability, refuse_other

if TYPE_CHECKING:
    from retrodict.evaluate.check import Check

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO)  # of the disk: no matter of what may be written here
KEPT = "check.json"  # in the folder of the model or smoother that was checked


def keep_check(result: Check, folder: Path) -> None:
    """Keep a check that was asked for in place of the one that is there, and say so; a note where one may not."""
    try:
        result.to_json(folder / KEPT)
    except WriteError as error:
        if getattr(error.__cause__, "errno", None) in _FULL:
            raise
        common.note(f"the check is not kept, and 'impute' will not repeat it: {error}")
        return
    common.wrote(folder / KEPT, "the check, which 'impute' repeats and its page shows (--no-keep: do not keep it)")


def find_check(model: Model, *folders: Path) -> dict[str, Any] | None:
    """The check in the first of the folders that has one which was about this model."""
    for folder in folders:
        try:
            kept = clean_check(read_json(folder / KEPT))
        except (OSError, ValueError):
            continue
        if kept["about"].get("model") == model.digest():
            return kept
    return None


def repeat_verdict(kept: dict[str, Any] | None, proposal: Proposal) -> None:
    """Say the first line of a check, and where it was about something else than what goes missing here."""
    if kept is None:
        return
    checked = kept["about"].get("missing")
    is_other = checked not in (None, in_words(proposal.missingness))
    said = "was not about what goes missing here. It said" if is_other else "said"
    first, more, _ = kept["verdict"].partition("\n")
    more = " ('retrodict check' says more)" if more and "'retrodict check'" not in first else ""
    common.note(f"the check {_which(kept['about'])} {said}: {first}{more}")


def calibration_by(checked: dict[str, Any] | None, proposal: Proposal) -> dict[str, Any]:
    """For --calibrate: how probabilities came true in the check that is kept, as ``posterior.about`` takes it."""
    if checked is None:
        remedy = "Run 'retrodict check MODEL COMPLETE_STREAMS' with the same --missing first, which keeps a check."
        raise ModelError(f"--calibrate goes by a check, and none is kept with this model. {remedy}")
    refuse_other(checked, proposal.model.digest(), in_words(proposal.missingness))
    found = Reliability.of_check(checked)
    common.note(f"probabilities are calibrated by the {found.events:,} imputed events of this check")
    return {"calibration": found._asdict()}


def _which(about: dict[str, Any]) -> str:
    """Where the check is from: a fit, or a file that was checked by, and what was hidden of it."""
    if not about.get("file"):
        return "after fitting"
    hidden = f" ({about['missing']} hidden)" if about.get("missing") else ""
    return f"on {about['file']}{hidden}"
