"""The options of every command that trains: how long, on what, and how the steps are taken."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from retrodict.cli import common

LearnFrom = StrEnum("LearnFrom", ["model", "data", "both"])  # as in train/streams.py, which is slow to import
_SMOOTHER, _TRAINING = "Smoother", "Training"

Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the model, its logs and checkpoints.")]
_MISSING = "What goes missing: NAME=RATE, PATTERN=RATE, RATE or a YAML file; may be repeated."
Missing = Annotated[list[str], typer.Option("--missing", "-m", help=_MISSING)]
_MIXING = "Units in which past and future interact; 0 is the paper's form."
Mixing = Annotated[int | None, typer.Option(help=_MIXING, min=0, rich_help_panel=_SMOOTHER)]
_LEARN_FROM = "Train the smoother on streams that the model draws, on the data, or on both."
From = Annotated[LearnFrom, typer.Option(help=_LEARN_FROM, rich_help_panel=_SMOOTHER)]
_HIDDEN = "LSTM cells, or units of a state space; chosen from the data by default."
Hidden = Annotated[int | None, typer.Option(help=_HIDDEN, min=1)]
_SCALES = (
    "Exponentials in a Hawkes kernel: auto (the default, a grid over all gaps), a number, or one, its decay learned."
)
Scales = Annotated[str | None, typer.Option(help=_SCALES)]
_DEV = "Streams to stop early by; else a tenth of FILE is set aside."
Dev = Annotated[Path | None, typer.Option(help=_DEV)]


def _option(kind: Any, default: Any, help: str, *names: str, **more: Any) -> tuple[Any, Any]:
    return Annotated[kind, typer.Option(*names, help=help, rich_help_panel=_TRAINING, **more)], default


_DEVICES = "Processes that train together, each on a GPU or on cores of its own."
Devices = Annotated[int, typer.Option(help=_DEVICES, min=1, rich_help_panel=_TRAINING)]
_NODES = "Machines, with so many devices each; torchrun starts the command on all of them."
Nodes = Annotated[int, typer.Option("--nodes", help=_NODES, min=1, rich_help_panel=_TRAINING)]


class Training(common.Options):
    """How to train, by the names that ``rd.fit`` has for it."""

    OPTIONS: ClassVar[Mapping[str, tuple[Any, Any]]] = {
        "epochs": _option(
            int | None, None, "Passes over the data, at most: 2,000 for a model, 200 for a smoother.", min=1
        ),
        "seconds": _option(
            float | None,
            None,
            "Time for the whole command, loading included; a step ends with the epoch in which its share is over. "
            "The same command goes on later.",
        ),
        "patience": _option(int, 12, "Stop after this many epochs without a better dev score.", min=1),
        "batch_size": _option(int | None, None, "Streams a step: 50, fewer where they are long and few.", min=1),
        "learning_rate": _option(float | None, None, "Adam's step size; each model has its own."),
        "device": _option(str, "auto", "auto, cpu or cuda."),
        "resume": _option(bool, True, "Go on with what is in the folder, or not.", "--resume/--restart"),
        "seed": _option(int, 0, "Same seed, same result.", min=0),
    }

    def check(self, devices: int = 1) -> None:
        """Refuse what cannot be, before anything is read."""
        from retrodict.models.device import find_device

        for name in ("seconds", "learning_rate"):
            common.refuse_unless_positive(self[name], "--" + name.replace("_", "-"))
        find_device(self["device"], devices)
