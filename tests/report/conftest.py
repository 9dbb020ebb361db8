"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright.

Where there is none the tests skip in words; RETRODICT_NEEDS_BROWSER=1 (as in .ci/run) makes that a failure.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AXE = Path(os.environ.get("RETRODICT_AXE", ROOT / "build" / "axe-core" / "package" / "axe.min.js"))


def lacking(why: str) -> None:
    if os.environ.get("RETRODICT_NEEDS_BROWSER") == "1":
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module")
def browser():
    """Chromium for the tests of one file: while it runs so does an event loop, and other files have their own."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        lacking("no Chromium was found, so the page was not opened: apt-get install chromium")
    try:
        from playwright import sync_api as api
    except ImportError:
        lacking("Playwright is not installed: pip install playwright")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def axe() -> str:
    """The source of axe-core, which finds what people with disabilities would stumble over."""
    if not AXE.exists():
        lacking(f"no axe-core at {AXE}: npm pack axe-core, and unpack it there")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture
def visit(browser):
    """Open a page, as wide as asked, ``at`` a stream; it must run without an error and ask nothing of any network."""
    pages = []

    def go(path: Path, width: int = 1280, scheme: str = "light", touch: bool = False, at: str = ""):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=touch)
        page.set_default_timeout(10_000)
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("console", lambda said: page.troubles.append(said.text) if said.type in ("error", "warning") else None)
        page.on("request", lambda asked: None if asked.url.startswith("file:") else page.troubles.append(asked.url))
        page.goto(path.as_uri() + (f"#{at}" if at else ""))
        page.wait_for_selector("html[data-ready]")
        page.wait_for_selector("#timeline svg g")
        pages.append(page)
        return page

    yield go
    troubles = [trouble for page in pages for trouble in page.troubles]
    for page in pages:
        page.close()
    assert not troubles
