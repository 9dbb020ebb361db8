"""The search of the documentation works where the site is opened as files, without a network."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = """
site_name: small
use_directory_urls: false
theme: {name: material, font: false}
plugins: [search, offline]
extra: {generator: false, polyfills: [iframe-worker.js]}
"""


def test_the_site_is_searched_as_files(browser, tmp_path):
    """A small site with the settings of ours: the whole one takes longer to build."""
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install '.[docs]'")
    own = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for setting in ("- search\n", "- offline", "polyfills: [iframe-worker.js]", "use_directory_urls: false"):
        assert setting in own
    (tmp_path / "mkdocs.yml").write_text(SMALL)
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text("# Home\n\nNothing of note.\n")
    (tmp_path / "docs" / "deep" / "other.md").write_text("# Elsewhere\n\nAn aardvark sleeps.\n")
    shutil.copy(ROOT / "docs" / "iframe-worker.js", tmp_path / "docs")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=tmp_path, check=True, capture_output=True)
    for name in ("index.html", "deep/other.html"):
        page, troubles = browser.new_page(), []
        page.on("pageerror", lambda error, own=troubles: own.append(str(error)))
        page.on("request", lambda asked, own=troubles: own.append(asked.url) if "://" in asked.url[5:] else None)
        page.goto((tmp_path / "site" / name).as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("aardvark", delay=20)
        link = page.locator(".md-search-result__link").first
        link.wait_for(timeout=20_000)
        assert re.search(r"site/deep/other\.html", link.get_attribute("href"))
        assert [url for url in troubles if not url.startswith("file:")] == []
        page.close()


@pytest.mark.parametrize(
    ("link", "on_the_site"),
    [
        ("(../SECURITY.md)", "(SECURITY.md)"),
        ("(../../README.md#install)", "(../index.md#install)"),
        ("(../misleading.md)", "(../misleading.md)"),
        ("(formats.md#xes)", "(formats.md#xes)"),
    ],
)
def test_links_lead_to_the_copies_of_pages_beside_docs(link, on_the_site):
    pytest.importorskip("mkdocs", reason="MkDocs is not installed: pip install '.[docs]'")
    hooks = runpy.run_path(str(ROOT / "scripts" / "docs_hooks.py"))
    assert hooks["on_page_markdown"](f"[a page]{link}") == f"[a page]{on_the_site}"
