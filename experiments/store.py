"""The folder of a run: streams, models, and one small JSON file for each finished task.

DIR/run.json                                  the scale of the run, its commit and its date
DIR/data/taxi/, DIR/data/taxi.json            train, dev and test streams; their statistics
DIR/models/taxi/p/, DIR/models/taxi/p.json    a model and how its training went; likewise each smoother
DIR/results/impute/taxi....json               what was measured
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from experiments.sizes import Kind, Scale
from retrodict.datasets.folder import read_splits
from retrodict.errors import DataError
from retrodict.events.atomic import make_folder, write_text
from retrodict.events.stream_set import Splits

ROOT = Path(__file__).resolve().parents[1]
_CODE = ("src", "native", "experiments", ":!experiments/summary.json")


class Run(NamedTuple):
    """A folder and the scale of the run in it."""

    folder: Path
    scale: Scale

    def claim(self) -> None:
        """Make the folder, or check that it holds a run of the same scale and commit."""
        file, commit = self.folder / "run.json", _commit()
        if not file.exists():
            write_json(file, {"scale": self.scale.name, "commit": commit, "date": time.strftime("%Y-%m-%d")})
            return
        before = read_json(file)
        for name, value in (("scale", self.scale.name), ("commit", commit)):
            if value is not None and before[name] != value:
                raise DataError(
                    f"this folder holds a run of {name} {before[name]}, not {value}",
                    file=self.folder,
                    remedy="give another folder with --folder, or remove it to start anew",
                )

    def kind(self, dataset: str) -> Kind:
        """The sizes of a data set."""
        return self.scale.kind(dataset)

    def data(self, dataset: str) -> Path:
        """The folder of a data set's streams."""
        return self.folder / "data" / dataset

    def model(self, dataset: str, name: str = "p") -> Path:
        """The folder of p, or of the smoother ``ours-SETTING`` or ``paper-SETTING``."""
        return self.folder / "models" / dataset / name

    def result(self, name: str) -> Path:
        """The file of a measurement."""
        return self.folder / "results" / f"{name}.json"

    def splits(self, dataset: str) -> Splits:
        """Train, dev and test streams."""
        return _splits(self.data(dataset))


@lru_cache(maxsize=2)
def _splits(folder: Path) -> Splits:
    return read_splits(folder)


def record_of(folder: Path) -> Path:
    """The JSON file beside a folder of streams or a model."""
    return folder.with_name(folder.name + ".json")


def _commit() -> str | None:
    """The commit of this checkout, marked where its code was changed since; None outside of git."""
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        status = subprocess.run(
            ["git", "status", "--porcelain", "--", *_CODE], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + (" with changes" if status else "")


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
