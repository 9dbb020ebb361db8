"""Draw the pictures of docs/images that users make themselves: of the page, in a browser, and of Matplotlib.

    python scripts/draw_page.py               # all; or some of: demo start outage
    python scripts/draw_page.py demo start

``demo`` runs ``retrodict demo`` (page.png, imputed.png), ``start`` the commands of docs/start.md, two minutes
(start.png), ``outage`` the code of docs/tutorials/outage.md (outage.png).
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parents[1] / "docs"
BESIDE = Path(sys.executable).parent  # where the command retrodict is


def blocks(page: str, language: str) -> list[str]:
    """The code of a page's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)


def run(*words: str, folder: Path) -> None:
    path = f"{BESIDE}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(words, cwd=folder, check=True, env={**os.environ, "PATH": path})


def shoot(page_file: Path, name: str, height: int, stream: str = "") -> None:
    """A picture of a page from the slider on, opened on ``stream``, with the pointer over an imputed event."""
    with sync_playwright() as playwright:
        options = {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(**options)
        page = browser.new_page(viewport={"width": 1280, "height": height})
        page.goto(page_file.as_uri() + (f"#{stream}" if stream else ""))
        page.wait_for_selector("html[data-ready]")
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")  # the slider stays where it is seen
        page.evaluate("window.scrollTo(0, document.getElementById('cost').offsetTop - 10)")
        page.locator("#detail svg .guess").last.hover(force=True)
        keep(Image.open(io.BytesIO(page.screenshot())), name)
        browser.close()


def keep(picture: Image.Image, name: str) -> None:
    """In few colours, so that it is small."""
    few = picture.convert("RGB").quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(DOCS / "images" / name, optimize=True)


def draw_demo(folder: Path) -> None:
    run("retrodict", "demo", folder=folder)
    shoot(folder / "demo" / "page.html", "page.png", 1000)
    keep(Image.open(folder / "demo" / "imputed.png"), "imputed.png")


def draw_start(folder: Path) -> None:
    run(sys.executable, "-c", blocks("start.md", "python")[0], folder=folder)
    run("bash", "-ec", "\n".join(blocks("start.md", "bash")), folder=folder)
    shoot(folder / "page.html", "start.png", 860, "p200")  # of which the text tells


def draw_outage(folder: Path) -> None:
    run(sys.executable, "-c", "\n".join(blocks("tutorials/outage.md", "python")), folder=folder)
    keep(Image.open(folder / "outage.png"), "outage.png")


DRAW = {"demo": draw_demo, "start": draw_start, "outage": draw_outage}


if __name__ == "__main__":
    for asked in sys.argv[1:] or DRAW:
        with tempfile.TemporaryDirectory() as made:
            DRAW[asked](Path(made))
