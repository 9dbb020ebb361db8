"""Put what the jobs found into tables, figures and a page."""

from __future__ import annotations

from pathlib import Path

from retrodict.experiments.place import Place


def collect(place: Place, page: Path | None = None) -> list[tuple[Path, str]]:
    """Write everything that can be made of the finished jobs; returns the files with a word about each."""
    return []
