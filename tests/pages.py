"""Runs the code blocks of a page of README or docs, in order, in one folder and one Python session.

- ``python`` blocks are executed, ``bash`` blocks that begin with ``retrodict`` are run in this process; of other
  commands it is checked that what they name exists (a script, a make target). A block without a language that begins
  with a command counts as ``bash``.
- ``yaml`` blocks with a title are written to that file; all have to be mechanisms that retrodict reads.
- All other blocks without a language, or of ``text``, are what was printed last, or the file that their title names:
  every line must be there, with anything in the place of ``...``. Numbers with decimals may differ by 0.1 or by 10 %.
- ``<!-- not run: why -->`` before a block leaves it out.

Pages may need streams, models or files that they only talk about: ``page_setups.py`` makes them. To be quick, training
is cut to two epochs where a page does not say how many, and imputation to 100 particles; the first example of README,
whose numbers are shown, has all of them, for ten of its test streams.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict.cli import app
from retrodict.datasets import flights_demo
from retrodict.events.stream_set import Splits
from retrodict.smc.engines import ENGINES
from retrodict.smc.resampling import SCHEMES
from tests.page_setups import SETUPS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [page for page in PAGES if page.exists()] + sorted(DOCS.rglob("*.md"))  # a source archive has few

_BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>.*?) -->\n+)?^``` ?(?P<info>[^\n`]*)\n(?P<code>.*?)^```", re.M | re.S)
_OTHER_PROGRAMS = ("pip", "make", "python", "python3", "pytest", "docker", "curl")
_TRAINS = ("fit", "smoother", "fit-incomplete")
_DECIMAL = re.compile(r"-?\d+\\\.\d+")
QUICK_EPOCHS, QUICK_PARTICLES = 2, 100


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str | None
    code: str
    line: int
    not_run: str | None  # why


def blocks(page: Path) -> list[Block]:
    """All of a page."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        language, _, rest = match["info"].partition(" ")
        code = match["code"]
        if not language and (code.split() or [""])[0] in ("retrodict", *_OTHER_PROGRAMS):
            language = "bash"
        title = re.search(r'title="([^"]*)"', rest)
        line = text.count("\n", 0, match.start("code")) + 1
        found.append(Block(language, title and title[1], code, line, match["why"]))
    return found


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass
class Session:
    """What the blocks of a page share."""

    page: Path
    scope: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    words: dict[str, str] = field(default_factory=dict)  # shell variables
    output: str = ""

    def run(self, block: Block) -> None:
        """Run or check one block, in the current directory."""
        if block.not_run:
            return
        if block.language == "python":
            self.output = self.python(block.code, block.line)
        elif block.language == "bash":
            ran = [self.command(line) for line in block.code.replace("\\\n", " ").splitlines() if line.strip()]
            self.output = "".join(ran) if any(ran) else self.output
        elif block.language == "yaml":
            path = Path(block.title or "block.yaml")
            path.write_text(block.code)
            rd.read_missing(path)
        elif block.language in ("", "text"):
            assert_shown(block.code, Path(block.title).read_text() if block.title else self.output)
        else:
            assert block.language in ("bibtex", "json"), f"{self.page.name}: a block of {block.language}"

    def python(self, code: str, line: int = 1) -> str:
        """What Python code prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + code, name_of(self.page), "exec", dont_inherit=True), self.scope)
        return printed.getvalue()

    def command(self, line: str) -> str:
        """What a command prints; NAME=(words) is remembered for those that follow."""
        assigned = re.fullmatch(r"(\w+)=\((.*)\)(?:\s+#.*)?", line)
        if assigned:
            self.words[assigned[1]] = assigned[2]
            return ""
        program, *words = shlex.split(
            re.sub(r'"\$\{(\w+)\[@\]\}"', lambda found: self.words[found[1]], line), comments=True
        ) or ["#"]
        if program == "retrodict":
            return run_retrodict(words)
        assert program in ("#", *_OTHER_PROGRAMS), line
        assert_known(program, words)
        return ""


def run_retrodict(words: list[str]) -> str:
    """What ``retrodict`` with these words prints."""
    if words and words[0] in _TRAINS and "--epochs" not in words:
        words = [*words, "--epochs", str(QUICK_EPOCHS)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{shlex.join(words)}\n{result.output}\n{result.exception!r}"
    return result.output


def assert_known(program: str, words: list[str]) -> None:
    """A script, module or make target that is named exists."""
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert all(word in targets for word in words if "=" not in word), words
    elif program == "python" and words[0] == "-m":
        module = ROOT / words[1].replace(".", "/")
        assert (
            words[1] in ("venv", "pip", "build", "retrodict") or module.exists() or module.with_suffix(".py").exists()
        ), words
    elif program == "python" and words[0].endswith(".py"):
        assert (ROOT / words[0]).exists(), words


def assert_shown(shown: str, output: str) -> None:
    """Every line that is shown is in the output, with anything in the place of ``...``."""
    output = plain(output)
    for line in shown.splitlines():
        pieces = [_DECIMAL.sub(r"(-?\\d+\\.\\d+)", re.escape(plain(piece))) for piece in line.split("...")]
        numbers = [float(x) for x in re.findall(r"-?\d+\.\d+", plain(line))]
        found = re.finditer(".*?".join(pieces), output)
        assert any(all(map(_is_near, numbers, map(float, match.groups()))) for match in found), (
            f"{line!r} is not in {output[-800:]}"
        )


def _is_near(a: float, b: float) -> bool:
    return abs(a - b) <= max(0.1, 0.1 * abs(a))


def plain(text: str) -> str:
    """Words without the lines of tables, and with single blanks."""
    return " ".join(re.sub(r"[^\x00-\x7f]", " ", text).split())


def run_page(page: Path, folder: Path) -> Session:
    """Run all blocks of a page in a folder."""
    session = Session(page)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("fit", "fit_auto", "fit_incomplete"):
            quick = functools.partial(getattr(rd, name), progress=False, epochs=QUICK_EPOCHS)
            patch.setattr(rd, name, quick, raising=False)
        patch.setattr(flights_demo, "sample_splits", few_to_test)
        patch.setattr("retrodict.smc.engines.ENGINES", dict(ENGINES))  # a page may add to them
        patch.setattr("retrodict.smc.resampling.SCHEMES", dict(SCHEMES))
        session.python(SETUPS.get(name_of(page), ""))
        for block, after in itertools.pairwise([*blocks(page), None]):
            with pytest.MonkeyPatch.context() as for_block:
                if page.name != "README.md" or after is None or after.language:
                    afford_few(for_block)
                session.run(block)
    return session


def few_to_test(streams: rd.StreamSet, _split: Any = flights_demo.sample_splits) -> Splits:
    """The splits of the flights sample, with ten test streams: fewer may choose the other ensemble than all do."""
    splits = _split(streams)
    return splits._replace(test=splits.test[:10])


def afford_few(patch: pytest.MonkeyPatch) -> None:
    """Let engines run fewer particles by default."""
    for engine in {type(engine) for engine in ENGINES.values()}:
        patch.setattr(engine, "affords", QUICK_PARTICLES)
