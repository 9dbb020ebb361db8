"""Mechanisms as people write them: in a YAML file, or as ``pick-up=0.5``, ``'pick-up:*=1'`` or ``0.5`` for every type.

A file has one mapping, or a list of them where several mechanisms are at work; ``mechanism`` names the mechanism, the
rest are its arguments as in Python:

    - mechanism: by_type
      rates: {pick-up: 0.1}
    - mechanism: windows
      windows: [["22:00", "06:00"]]
      every: day
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn

import yaml

from retrodict._near import did_you_mean
from retrodict.errors import DataError, ModelError, RetrodictError, show
from retrodict.events.atomic import write_text
from retrodict.events.plain import read_regular
from retrodict.events.stream_set import describe_types
from retrodict.missingness import MECHANISMS
from retrodict.missingness.arguments import WRONG
from retrodict.missingness.base import Either, Missingness
from retrodict.missingness.by_type import ByType
from retrodict.missingness.date_texts import in_iso

_LONGEST, _DEEPEST = 4 << 20, 16  # bytes of a file, and how deep its values nest
_SHORT = 40  # characters of a type in an example
_SUFFIXES = (".yaml", ".yml")
_NAMES = [kind for kind in MECHANISMS if kind not in ("either", "custom")]


class _Loader(yaml.SafeLoader):
    """YAML in which times and dates stay text (not 1320 for 22:00), without references, and of bounded depth."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """One value; aliases would let a few lines stand for millions."""
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "references (*name) are not allowed", event.start_mark)
        if self.depth >= _DEEPEST:
            raise yaml.composer.ComposerError(None, None, "it is nested too deeply", event.start_mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":int", ":float"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_FIRST = list("-+.0123456789")
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?\d+$"), _FIRST)
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.\d*|\.?\d+)([eE][-+]?\d+)?$"), _FIRST)


def read_missing(path: str | os.PathLike[str], dates: str | None = None) -> Missingness:
    """The mechanism that a YAML file describes; ``dates`` is the form of dates in it that are not in ISO 8601.

    It is "day-first", "month-first" or a format, as for ``read_events``.
    """
    try:
        text = read_regular(Path(os.path.realpath(path)), _LONGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise DataError(
            f"cannot be read: {why}", file=path, remedy="give a YAML file that describes a mechanism"
        ) from None
    try:
        parsed = yaml.load(text, _Loader)  # a SafeLoader: nothing in the file is run
    except (yaml.YAMLError, *WRONG) as error:
        where = getattr(error, "problem_mark", None)
        line = "" if where is None else f", line {where.line + 1}"
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise DataError(f"this is no YAML{line}: {problem}", file=path, remedy="correct the file") from None
    return build(parsed, path, dates)


def write_missing(mechanism: Missingness, path: str | os.PathLike[str], comments: Sequence[str] = ()) -> None:
    """Describe a mechanism in a YAML file that ``read_missing`` and ``--missing`` take, below lines of ``comments``."""
    head = "".join("# " + "".join(c if c.isprintable() else "?" for c in line) + "\n" for line in comments)
    write_text(path, head + yaml.safe_dump(describe(mechanism), sort_keys=False))


def describe(mechanism: Missingness) -> Any:
    """The content of a file that describes the mechanism: a mapping, or a list of mappings."""
    parts = mechanism.parts if isinstance(mechanism, Either) else (mechanism,)
    content = [{"mechanism": part.kind, **part.config()} for part in parts]
    return content if len(content) > 1 else content[0]


def build(content: Any, path: str | os.PathLike[str] | None = None, dates: str | None = None) -> Missingness:
    """The mechanism that a mapping, or a list of them, describes; dates of a file may be of the form ``dates``."""
    if isinstance(content, list) and content:
        parts = [_build(part, path, f"entry {number}, ", dates) for number, part in enumerate(content, 1)]
        return parts[0] if len(parts) == 1 else Either(*parts)
    return _build(content, path, "", dates)


def from_values(content: Any, types: Sequence[str], unit: str | None = None, zone: str | None = None) -> Missingness:
    """A mechanism over ``types`` from texts NAME=RATE and mappings as in a file, one or a list; no file is opened."""
    given = content if isinstance(content, list) and content else [content]
    texts = [part for part in given if isinstance(part, str)]
    mappings = [part for part in given if not isinstance(part, str)]
    parts: list[Missingness] = [_by_type(texts, types)] if texts else []
    if mappings:
        try:
            parts.append(build(mappings).in_zone(zone).bind(types, unit))
        except RetrodictError:
            raise
        except WRONG as error:
            raise DataError(str(error)[:500], remedy="correct the mechanism") from error
    return parts[0] if len(parts) == 1 else Either(*parts)


def _build(given: Any, path: str | os.PathLike[str] | None, where: str, dates: str | None) -> Missingness:
    """One mechanism from its mapping."""
    if not isinstance(given, Mapping) or "mechanism" not in given:
        remedy = f"write 'mechanism: NAME' with one of {', '.join(_NAMES)}, and its arguments beside it"
        raise DataError(f"{where}the key 'mechanism' is missing", file=path, remedy=remedy)
    kind = str(given["mechanism"]).replace("-", "_")
    if kind not in _NAMES:
        raise DataError(
            f"{where}key 'mechanism': there is no mechanism {show(given['mechanism'])}",
            file=path,
            remedy=f"choose one of {', '.join(_NAMES)}",
        )
    arguments = {str(key): value for key, value in given.items() if key != "mechanism"}
    known = inspect.signature(MECHANISMS[kind].__init__).parameters
    for key in arguments:
        if key not in known or key == "self":
            remedy = f"use some of {', '.join(name for name in known if name != 'self')}"
            raise DataError(f"{where}key {key!r}: {kind} takes no such argument", file=path, remedy=remedy)
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in ("self", *arguments):
            raise DataError(f"{where}key {name!r} is missing", file=path, remedy=f"{kind} needs it: add it")

    def refuse(problem: str, remedy: str) -> NoReturn:
        raise DataError(f"{where}{problem}"[:500], file=path, remedy=remedy)

    if path is not None:
        arguments = in_iso(arguments, dates, refuse)
    try:
        return MECHANISMS[kind](**arguments)
    except WRONG as error:
        raise DataError(f"{where}mechanism {kind!r}: {error}"[:500], file=path, remedy="correct the value") from error


def parse_missing(
    specs: Sequence[str],
    types: Sequence[str],
    unit: str | None = None,
    zone: str | None = None,
    dates: str | None = None,
) -> Missingness:
    """A mechanism over ``types`` from texts NAME=RATE, PATTERN=RATE or RATE (later texts win) and YAML files.

    Dates and times of day without a zone are in ``zone``, that of the streams; ``dates`` is as for ``read_missing``.

    >>> parse_missing(["0.1", "pick-up:*=0.5"], ["drop-off:A", "pick-up:A", "pick-up:B"])
    ByType({'drop-off:A': 0.1, 'pick-up:A': 0.5, 'pick-up:B': 0.5})
    """
    files = [spec for spec in specs if spec.lower().endswith(_SUFFIXES)]
    rates = [spec for spec in specs if spec not in files]
    parts = [_from_file(file, types, unit, zone, dates) for file in files]
    if rates:
        parts.insert(0, _by_type(rates, types))
    return parts[0] if len(parts) == 1 else Either(*parts)


def example(types: Sequence[str]) -> str:
    """A missing rate of one of these types, as a shell takes it; of every type where their names are too odd.

    >>> example(["blood test", "round"])
    "'blood test=0.5'"
    """
    name = next((name for name in types if name.isprintable() and 0 < len(name) <= _SHORT), None)
    return "0.5" if name is None else shlex.quote(f"{name}=0.5")


def _from_file(file: str, types: Sequence[str], unit: str | None, zone: str | None, dates: str | None) -> Missingness:
    mechanism = read_missing(file, dates)
    try:
        return mechanism.in_zone(zone).bind(types, unit)
    except WRONG as error:
        raise DataError(str(error)[:500], file=file, remedy="correct the mechanism") from error


def _refuse_comma(spec: str) -> None:
    """Refuse a rate with a decimal comma, and say it with a point."""
    name, equals, number = spec.rpartition("=")
    if re.fullmatch(r"\s*\d*,\d+\s*", number):
        with_point = number.strip().replace(",", ".")
        raise ModelError(
            f"cannot understand the missing rate {spec!r}: it has a comma. Use a point, "
            f"{shlex.quote(f'{name}{equals}{with_point}')}."
        )


def _by_type(specs: Sequence[str], types: Sequence[str]) -> ByType:
    rates: dict[str, float] = {}
    for spec in specs:
        name, equals, number = spec.rpartition("=")
        try:
            rate = float(number)
        except ValueError:
            _refuse_comma(spec)
            raise ModelError(
                f"cannot understand the missing rate {spec!r}. Write NAME=RATE, such as {example(types)} (not 50%), a "
                "pattern such as 'pick-up:*=1', a single rate for every type, or a file such as missing.yaml."
            ) from None
        matches = [t for t in types if fnmatchcase(t, name)] if equals and name not in types else [name]
        if not equals:
            matches = list(types)
        if not matches:
            near = did_you_mean(name, types)
            raise ModelError(f"no event type matches {name!r}. The types are {describe_types(types, 20)}.{near}")
        rates.update(dict.fromkeys(matches, rate))
    return ByType(rates).bind(types)
