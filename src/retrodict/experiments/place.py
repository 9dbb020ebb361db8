"""The folder of a run: streams, models, and one small JSON file for each finished job.

DIR/run.json                     the scale of the run
DIR/data/taxi/                   train, dev and test streams; of a synthetic set also DIR/data/synthetic-0-more/
DIR/models/taxi/p/               a model; DIR/models/taxi/q-deterministic-ours/ a smoother
DIR/jobs/decoding/taxi....json   what a job found
DIR/figures/, DIR/summary.json, DIR/results.md   made from these by collecting them
"""

from __future__ import annotations

import functools
import json
import math
import os
from pathlib import Path
from typing import Any

from retrodict.datasets.folder import read_splits
from retrodict.errors import DataError
from retrodict.events.atomic import make_folder, write_text
from retrodict.events.stream_set import Splits
from retrodict.experiments.scale import Scale
from retrodict.models.base import Model
from retrodict.models.store import load_model
from retrodict.proposals.base import Proposal
from retrodict.proposals.store import load_proposal


class Place:
    """Where a run keeps its files; jobs in other processes open the same folder."""

    def __init__(self, folder: str | os.PathLike[str], scale: Scale) -> None:
        self.folder, self.scale = Path(folder), scale
        self.splits = functools.lru_cache(maxsize=3)(self._splits)

    def claim(self) -> None:
        """Make the folder, or check that it holds a run of the same scale."""
        make_folder(self.folder)
        file = self.folder / "run.json"
        mine = json.loads(json.dumps(self.scale.to_dict()))
        if not file.exists():
            write_json(file, mine)
            return
        before = read_json(file)
        differs = [key for key in {**before, **mine} if before.get(key) != mine.get(key)]
        if differs:
            raise DataError(
                f"this folder holds a run with another {', '.join(differs)}",
                file=self.folder,
                remedy="give another folder with --output, or repeat the call as it was",
            )

    def data_folder(self, dataset: str) -> Path:
        """The streams of a data set."""
        return self.folder / "data" / dataset

    def more_folder(self, dataset: str) -> Path:
        """Further streams, drawn as those of a synthetic set were."""
        return self.folder / "data" / f"{dataset}-more"

    def model_folder(self, dataset: str) -> Path:
        """A data set's complete-data model p."""
        return self.folder / "models" / dataset / "p"

    def smoother_folder(self, dataset: str, setting: str, way: str) -> Path:
        """A smoothing proposal q, trained in one of several ways (``training.py``)."""
        return self.folder / "models" / dataset / f"q-{setting}-{way}"

    def job_file(self, name: str) -> Path:
        """What a job found."""
        return self.folder / "jobs" / f"{name}.json"

    def _splits(self, dataset: str) -> Splits:
        return read_splits(self.data_folder(dataset))

    def model(self, dataset: str, device: str = "cpu") -> Model:
        """The model p of a data set."""
        return load_model(self.model_folder(dataset), device)

    def smoother(self, dataset: str, setting: str, way: str, device: str = "cpu") -> Proposal:
        """A trained smoother."""
        return load_proposal(self.smoother_folder(dataset, setting, way), device)


def read_json(path: Path) -> Any:
    """What is in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write all of a file, or nothing: numbers to 6 digits, one line for each list."""
    make_folder(path.parent)
    write_text(path, _text(plain(value)) + "\n")


def plain(value: Any) -> Any:
    """Numbers as JSON can hold them, to 6 digits; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _text(value: Any, depth: int = 0) -> str:
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = " " * (depth + 1)
    rows = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {_text(item, depth + 1)}" for key, item in value.items())
    return "{\n" + ",\n".join(rows) + "\n" + " " * depth + "}"
