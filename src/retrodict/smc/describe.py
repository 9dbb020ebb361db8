"""How a posterior was made, in plain values that are kept with it."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import torch

from retrodict._version import __version__
from retrodict.missingness.words import in_words
from retrodict.proposals.base import Proposal


def describe_run(
    proposal: Proposal, engine: str, seed: int, resample: str | None, digest: str | None = None
) -> dict[str, Any]:
    """Model (by ``digest``), mechanism, proposal, engine, seed, versions; what the model knows of ends and hours."""
    model = proposal.model
    return {
        "model": f"{model.kind}, {(digest or model.digest())[:16]}",
        **({} if model.end_atom is None else {"ends": "learned"}),
        **({} if model.calendar is None else {"calendar": model.calendar.in_words()}),
        "missing": in_words(proposal.missingness),
        "proposal": proposal.kind,
        "engine": engine,
        "resampling": resample or "none",
        "seed": int(seed),
        "versions": (
            f"retrodict {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
            f"PyTorch {torch.__version__}"
        ),
    }
