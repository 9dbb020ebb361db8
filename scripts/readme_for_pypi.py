"""Make the links of README.md absolute, for PyPI, which has no other file of the repository.

    python scripts/readme_for_pypi.py

The release workflow runs it before it builds anything; README.md in the repository keeps its relative links, which
work in a checkout, in a fork and on the site. A released version links to its own tag, any other to main.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_OWN = r"\]\((?!\w+:|#|//)([^)\s]+)\)"
_IMAGE, _LINK = re.compile(r"(!\[[^\]]*)" + _OWN), re.compile(_OWN)
_FENCE = re.compile(r"(^```.*?^```$)", re.M | re.S)


def absolute(text: str, home: str, version: str) -> str:
    """The text with links into the repository at ``home``; what stands in code blocks is left alone."""
    branch = "main" if "dev" in version else f"v{version}"

    parts = _FENCE.split(text)
    for n in range(0, len(parts), 2):
        part = _IMAGE.sub(rf"\1]({home}/raw/{branch}/\2)", parts[n])
        parts[n] = _LINK.sub(rf"]({home}/blob/{branch}/\1)", part)  # GitHub leads on where it is a folder
    return "".join(parts)


def settings() -> tuple[str, str]:
    """The address of the repository, and the version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = re.search(
        r'"(.+?)"', (ROOT / "src" / "retrodict" / "_version.py").read_text(encoding="utf-8").split("=")[1]
    )
    assert found is not None
    return project["urls"]["Homepage"], found[1]


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(absolute(readme.read_text(encoding="utf-8"), *settings()), encoding="utf-8")
    print("README.md: links are absolute now, for this build; 'git checkout README.md' takes them back")
