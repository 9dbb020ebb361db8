"""Put what was found into one summary, figures and a page."""

from __future__ import annotations

import os
from pathlib import Path

from experiments import figure_baselines, figure_distance, figure_log_q
from experiments.findings import Findings
from experiments.page import write_page
from experiments.store import ROOT, Run, read_json, write_json
from experiments.style import save, styled
from experiments.summary import summarise
from retrodict.events.atomic import make_folder, write_text


def collect(run: Run) -> list[Path]:
    """Write all that can be made of the finished tasks; of a full run into the checkout, else into its folder."""
    full = run.scale.name == "full"
    summary_file = ROOT / "experiments" / "summary.json" if full else run.folder / "summary.json"
    page = (ROOT / "docs" if full else run.folder) / "results.md"
    findings = Findings(run)
    write_json(summary_file, summarise(findings))
    summary = read_json(summary_file)  # as it will be read later, rounded
    with styled():
        drawn = {
            "log-q": figure_log_q.draw(findings),
            "distance": figure_distance.draw(findings),
            "baselines": figure_baselines.draw(summary),
            "sensitivity": figure_distance.draw_sensitivity(findings),
        }
        images = page.parent / "images"
        figures = {name: save(figure, images / f"results-{name}.png") for name, figure in drawn.items() if figure}
    links = {name: Path(os.path.relpath(path, page.parent)).as_posix() for name, path in figures.items()}
    make_folder(page.parent)
    write_text(page, write_page(summary, links))
    return [summary_file, *figures.values(), page]
