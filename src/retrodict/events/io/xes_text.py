"""The text of an XES event log: its elements, their attributes and where in the text each of them stands.

A document type (DTD) is refused, so that there are no entities to expand; so is what is nested too deeply.
"""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from retrodict import _limits
from retrodict.errors import DataError, show
from retrodict.events.io.known_layouts import IMPUTED
from retrodict.events.io.request import Request

NAME, TIME = "concept:name", "time:timestamp"
ABOUT = "retrodict"  # the key of the log's attribute in which we say what a log cannot
_TAGS = {"string", "date", "int", "float", "boolean", "id"}
_DEEPEST = 64
_ANYWAY = 2_000_000  # cells that the attributes of any log may fill
_DECLARED = re.compile(rb"^\s*<\?xml[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_ENCODINGS = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "iso-8859-15", "windows-1252", "utf-16"}
_CLOSING = re.compile(rb"</([^\s>]+)\s*>")
REPAIR = "check the file, or write it again with the tool that made it"


class Attributes:
    """Values of one level, traces or events: for each key the rows that have it, its texts and its tags."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}
        self.texts: dict[str, list[str]] = {}
        self.tags: dict[str, set[str]] = {}
        self.number = 0

    def add(self, row: int, tag: str, key: str, text: str) -> None:
        """Note that a row has a key, with a value as text."""
        rows = self.rows.get(key)
        if rows is None:
            rows = self.rows[key] = []
            self.texts[key], self.tags[key] = [], set()
        if rows and rows[-1] == row:  # a key that is given twice: the first counts
            return
        rows.append(row)
        self.texts[key].append(text)
        self.tags[key].add(tag)
        self.number += 1

    def get(self, key: str, number: int) -> list[str | None]:
        """The texts of a key, one for each of ``number`` rows."""
        values: list[str | None] = [None] * number
        for row, text in zip(self.rows.get(key, ()), self.texts.get(key, ()), strict=True):
            values[row] = text
        return values

    def chosen(self, number: int, request: Request) -> list[str]:
        """The keys that become columns: all, unless sparse ones would fill far more cells than there are values."""
        room = max(_ANYWAY, 16 * self.number) // max(number, 1)
        if len(self.rows) <= room:
            return list(self.rows)
        common = sorted(self.rows, key=lambda key: -len(self.rows[key]))[:room]
        request.notices.append(
            f"{len(self.rows) - len(common):,} rare attributes of {len(self.rows):,} are no columns; all of them come "
            "back when the log is written"
        )
        wanted = {NAME, TIME, *common}
        return [key for key in self.rows if key in wanted]


class Log:
    """What is found while the text is read: the attributes, and from where to where each trace and event reaches."""

    def __init__(self, data: bytes, request: Request) -> None:
        self.data, self.request = data, request
        self.events, self.traces = Attributes(), Attributes()
        self.event_at: list[tuple[int, int]] = []
        self.trace_at: list[tuple[int, int]] = []
        self.trace_of: list[int] = []
        self.path: list[str] = []
        self.about: str | None = None
        self.imputed = False
        self.parser = expat.ParserCreate("UTF-8")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end

    def error(self, problem: str, remedy: str = REPAIR) -> DataError:
        """An error about what is being read."""
        return self.request.error(f"line {self.parser.CurrentLineNumber}: {problem}", remedy)

    def _refuse_doctype(self, *_: Any) -> None:
        raise self.error("the log has a document type (DTD), which may define entities", "remove <!DOCTYPE ...>")

    def _start(self, tag: str, given: dict[str, str]) -> None:
        tag, path = tag.rpartition(":")[2], self.path
        depth = len(path)
        path.append(tag)
        if depth > _DEEPEST:
            raise self.error(f"attributes are nested more than {_DEEPEST} deep")
        if depth == 0:
            if tag != "log":
                raise self.error(f"the outermost element is <{show(tag)[1:-1]}>, not <log>", "give an XES file")
        elif depth == 1 and tag == "trace":
            self.trace_at.append((self.parser.CurrentByteIndex, -1))
            _limits.check("streams", len(self.trace_at), f"there are {len(self.trace_at):,} traces or more",
                          file=self.request.file)  # fmt: skip
        elif depth == 1 and tag == "event":
            raise self.error("an event stands outside of any trace", "put every event into a <trace>")
        elif depth == 1 and tag == "boolean" and given.get("key") == IMPUTED:
            self.imputed = True
        elif depth == 1 and tag == "string" and given.get("key") == ABOUT:
            self.about = given.get("value")
        elif depth == 2 and path[1] == "trace":
            if tag == "event":
                self.event_at.append((self.parser.CurrentByteIndex, -1))
                self.trace_of.append(len(self.trace_at) - 1)
                _limits.check("rows", len(self.event_at), f"there are {len(self.event_at):,} events or more",
                              file=self.request.file)  # fmt: skip
            elif tag in _TAGS:
                self._add(self.traces, len(self.trace_at) - 1, tag, given)
        elif depth == 3 and path[2] == "event" and tag in _TAGS:
            self._add(self.events, len(self.event_at) - 1, tag, given)

    def _add(self, level: Attributes, row: int, tag: str, given: dict[str, str]) -> None:
        key, value = given.get("key"), given.get("value")
        if key is None or value is None:
            raise self.error(f"<{tag}> has no {'key' if key is None else 'value'}", "give it both key and value")
        level.add(row, tag, key, value)

    def _end(self, written: str) -> None:
        tag, depth = self.path.pop(), len(self.path)
        if (tag == "event" and depth == 2 and self.path[1] == "trace") or (tag == "trace" and depth == 1):
            at, places = self.parser.CurrentByteIndex, self.event_at if tag == "event" else self.trace_at
            closing = _CLOSING.match(self.data, at)
            if closing is not None and closing[1] == written.encode():  # else the element is one tag, and ends here
                at = closing.end()
            places[-1] = (places[-1][0], at)


def as_utf8(data: bytes, request: Request) -> bytes:
    """The text in UTF-8, whatever encoding it declares."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        name = "utf-16"
    else:
        declared = _DECLARED.match(data[3:300] if data[:3] == b"\xef\xbb\xbf" else data[:300])
        name = "utf-8" if declared is None else declared[1].decode().lower()
    if name not in _ENCODINGS:
        raise request.error(f"the encoding {name!r} is not known", "save the file as UTF-8")
    try:
        text = data.decode("utf-8-sig" if name in ("utf-8", "utf8") else name)
    except UnicodeError as error:
        raise request.error(f"the file is not {name} text", "save it as UTF-8") from error
    if name in ("utf-8", "utf8"):
        return data.removeprefix(b"\xef\xbb\xbf")
    start = re.sub(r"(<\?xml[^>]*?\bencoding\s*=\s*)([\"'])[^\"']*[\"']", r"\1\2UTF-8\2", text[:300])
    return (start + text[300:]).encode()
