"""README's links lead somewhere on PyPI, too, which has no other file of the repository."""

from __future__ import annotations

import re

import pytest

from scripts.readme_for_pypi import ROOT, absolute, settings

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.skipif("](docs/" not in README, reason="README's links are absolute already, as in a source archive")
@pytest.mark.parametrize(("version", "branch"), [("1.2.0", "v1.2.0"), ("1.3.0.dev0", "main")])
def test_every_link_leads_to_a_file_of_the_repository(version, branch):
    home, _ = settings()
    text = absolute(README, home, version)
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    assert len(links) > 20
    for image, link in links:
        assert link.startswith("https://")
        if link.startswith(home):
            kind, found, path = link.removeprefix(home + "/").split("/", 2)
            assert (kind, found) == ("raw" if image else "blob", branch)
            assert (ROOT / path).exists()


def test_other_links_and_code_stay_as_they_are():
    text = "[a](https://x.org) [b](#here) [c](mailto:a@b)\n```\ntable[[0]](docs)\n[d](e.md)\n```\n[![i](p.png)](q.md)\n"
    made = absolute(text, "https://h", "1.0")
    made_by_hand = text.replace("(q.md)", "(https://h/blob/v1.0/q.md)")
    assert made == made_by_hand.replace("(p.png)", "(https://h/raw/v1.0/p.png)")


def test_the_release_makes_links_absolute_before_it_builds():
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    for build in ("cibuildwheel", "--sdist"):
        before = workflow.split(build)[0].rsplit("uses: actions/checkout", 1)[1]
        assert "python scripts/readme_for_pypi.py" in before
