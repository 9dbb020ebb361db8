"""What is published has been tested, is built by actions that cannot change, and says its version once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrodict import __version__

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(name: str) -> dict[str, dict[str, Any]]:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))["jobs"]


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job.get("steps", ()))


def test_nothing_is_published_before_all_tests_pass_and_every_wheel_was_tried():
    release = jobs("release.yml")
    needed = set(release["publish"]["needs"])
    assert needed == set(release) - {"publish"}
    assert "./.github/workflows/ci.yml" in {release[name].get("uses") for name in needed}
    assert "workflow_call:" in (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "scripts/wheels.py --wheels" in commands(release["try"])
    assert release["try"]["strategy"]["matrix"]["os"] == release["wheels"]["strategy"]["matrix"]["os"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_no_prerelease_is_installed(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}|\./\.github/workflows/\w+\.yml", action) for action in used)
    assert "--pre" not in text.split()


def test_the_citation_has_the_version_and_the_date_of_a_release():
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert about["version"] == __version__
    assert ("date-released" in about) == ("dev" not in __version__)
