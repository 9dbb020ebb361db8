"""Put what the jobs found into one summary, figures and a page."""

from __future__ import annotations

import os
from pathlib import Path

from retrodict.events.atomic import make_folder, write_text
from retrodict.experiments.figures import clouds, curves, tradeoff
from retrodict.experiments.figures.style import styled
from retrodict.experiments.findings import Findings
from retrodict.experiments.page import write_page
from retrodict.experiments.place import Place, read_json, write_json
from retrodict.experiments.summary import summarise


def collect(place: Place, page: Path | None = None) -> list[tuple[Path, str]]:
    """Write everything that can be made of the finished jobs; returns the files with a word about each."""
    findings = Findings(place)
    write_json(place.folder / "summary.json", summarise(findings))
    summary = read_json(place.folder / "summary.json")  # as it will be read later, rounded
    folder = place.folder / "figures"
    with styled():
        figures = [*clouds.draw(findings, folder), *tradeoff.draw(findings, folder), *curves.draw(summary, folder)]
    page = page or place.folder / "results.md"
    make_folder(page.parent)
    write_text(page, write_page(summary, Path(os.path.relpath(folder, page.parent)), figures))
    return [
        (place.folder / "summary.json", "all numbers"),
        *((path, "a figure") for path in figures),
        (page, "tables, figures, and what fell short"),
    ]
