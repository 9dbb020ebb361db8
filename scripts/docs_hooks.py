"""What the site needs beside docs/: README and its neighbours as pages, and formulas that need no script."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"README.md": "index.md"} | {name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
_DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.S)
_TAG = re.compile(r"\\tag\{(\w+)\}")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages beside docs/."""
    for source, target in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=_from_root(text)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to pages beside docs/ lead to their copies; those to folders, which the site lacks, become names."""
    beside = "|".join(map(re.escape, PAGES))  # a level higher than their copies, from pages of a folder too
    markdown = re.sub(
        rf"\]\(\.\./((?:\.\./)*)({beside})(?=[)#])", lambda found: f"]({found[1]}{PAGES[found[2]]}", markdown
    )
    return re.sub(r"\[([^\]]*)\]\((?:missing|docs|(?:\.\./)?examples)(?:/[^)]*)?\)", r"`\1`", markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as MathML, which browsers draw themselves."""
    content = _INLINE.sub(lambda found: convert(html.unescape(found[1])), content)
    return _DISPLAY.sub(lambda found: _display(html.unescape(found[1])), content)


def _display(formula: str) -> str:
    number = _TAG.search(formula)
    drawn = convert(_TAG.sub("", formula), display="block")
    return f'<div style="overflow-x: auto">{drawn}{f"<p align=right>({number[1]})</p>" if number else ""}</div>'


def _from_root(text: str) -> str:
    return re.sub(r"\]\(docs/([^)]*)\)", r"](\1)", text).replace("](README.md)", "](index.md)")
