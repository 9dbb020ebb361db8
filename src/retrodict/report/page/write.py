"""Put the page together: one HTML file that loads nothing and in which nothing of the data is ever run.

Its policy (``Content-Security-Policy``) lets the browser run the page's own script alone, known by its digest, and
reach no network. Names from a user's file are packed (``pack.py``), and the script puts them in as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
from importlib.resources import files
from pathlib import Path

from retrodict.events.atomic import atomic_file
from retrodict.report.page.content import Content
from retrodict.report.page.pack import blocks_of, index_of, pack

_SCRIPTS = (
    "inflate",
    "unpack",
    "words",
    "marks",
    "timeline",
    "table",
    "list",
    "charts",
    "summary",
    "score",
    "glossary",
    "address",
    "page",
)


def write_page(content: Content, path: str | os.PathLike[str]) -> Path:
    """Write the page, all of it or nothing."""
    head, foot = _frame(content.title)
    blocks = list(blocks_of(content))
    index = pack(index_of(content, blocks))
    with atomic_file(path) as file:
        file.write(head.encode("utf-8"))
        # The index comes before the script, the blocks after it: the list is there before they have been read.
        file.write(f'<script type="text/plain" id="index">{index}</script>\n'.encode())
        file.write(foot.encode("utf-8"))
        for number, block in enumerate(blocks):
            file.write(f'<script type="text/plain" id="block-{number}">{block.text}</script>\n'.encode())
        file.write(b"</body>\n</html>\n")
    return Path(path)


def _frame(title: str) -> tuple[str, str]:
    """The page before the data, and its script."""
    own = files("retrodict.report.page") / "static"
    frame, style = ((own / name).read_text(encoding="utf-8") for name in ("page.html", "page.css"))
    parts = [(own / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    script = "\n(() => {\n'use strict';\n" + "\n".join(parts) + "\n})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    name = html.escape(title.encode("utf-8", "replace").decode("utf-8"))
    for mark, text in (
        ("{{style}}", style),
        ("{{policy}}", policy),
        ("{{title}}", name),
    ):  # what is put in last is not read
        frame = frame.replace(mark, text)
    return frame, f"<script>{script}</script>\n"
