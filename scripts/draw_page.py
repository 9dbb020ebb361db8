"""Draw docs/images/page.png: the page that ``retrodict demo`` makes, in a browser without a window.

retrodict demo && python scripts/draw_page.py demo/page.html
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "page.png"


def main(page_file: str) -> None:
    with sync_playwright() as playwright:
        options = {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(**options)
        page = browser.new_page(viewport={"width": 1280, "height": 960})
        page.goto(Path(page_file).resolve().as_uri())
        page.wait_for_selector("html[data-ready]")
        page.evaluate("window.scrollTo(0, document.getElementById('cost').offsetTop - 10)")
        page.locator("#detail svg .guess").last.hover(force=True)
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        browser.close()
    picture.quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
