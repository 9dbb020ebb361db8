"""What the caller asked of a reader, and where in the source each event stands."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict import _limits
from retrodict.errors import DataError, DataNotice, show
from retrodict.events.stream import first_repeat
from retrodict.events.time_axis import TimeAxis

if TYPE_CHECKING:
    from retrodict.events.io.survey import Survey

ASSUMED = "each stream was taken"  # how a notice about starts and ends begins that nobody gave


@dataclass
class Request:
    """The arguments of ``read_events``, the file's name for messages, and the notices gathered on the way.

    ``axis`` is a time axis recorded in the source itself (our Parquet files have one). ``layout`` is "meds" or "xes"
    where the columns are those of these formats (``known_layouts``). Of a source that is read in parts, ``survey``
    looks at each, and ``settled`` is the axis that was chosen for all of them.
    """

    file: object | None = None
    stream: str | bool | None = None
    time: str | None = None
    type: str | None = None
    start: Any = None
    end: Any = None
    types: tuple[str, ...] | None = None
    unit: str | None = None
    timezone: str | None = None
    split: str | None = None
    codes: int | Mapping[str, str] | None = None
    lifecycle: str | None = None
    dates: str | None = None
    encoding: str | None = None
    layout: str | None = None
    axis: TimeAxis | None = None
    survey: Survey | None = None
    settled: TimeAxis | None = None
    notices: list[str] = field(default_factory=list)
    rows: int = 0
    most_rows: int | None = None

    def count_rows(self, events: Any) -> None:
        """Count the events of a stream before they are read.

        There cannot be more than ``most_rows``, the bytes of the source, unless it refers to the same list many times.
        """
        self.rows += len(events) if hasattr(events, "__len__") else 1
        _limits.check("rows", self.rows, f"there are {self.rows:,} events or more", file=self.file)
        if self.most_rows is not None and self.rows > self.most_rows:
            raise self.error(
                f"there are {self.rows:,} events or more, which a file of {self.most_rows:,} bytes cannot hold: it "
                "refers to the same lists again and again", "write each stream once",
            )  # fmt: skip

    def error(
        self, problem: str, remedy: str | None = None, *, stream: Hashable | None = None, row: int | None = None
    ) -> DataError:
        """An error that names this request's file."""
        return DataError(problem, file=self.file, stream=stream, row=row, remedy=remedy)

    def emit_notices(self, stacklevel: int = 3) -> None:
        """Warn once for each thing that was assumed or repaired."""
        for text in self.notices:
            where = "" if self.file is None else f"{self.file}: "
            warnings.warn(where + text, DataNotice, stacklevel=stacklevel)


class Places(NamedTuple):
    """Where each event stands in the source: its ``rows`` [E], and its stream ``ids[codes]``.

    ``nth`` [E] numbers the events within a row from 1, where a row holds many.
    """

    file: object | None
    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    ids: Sequence[Hashable]
    nth: NDArray[np.int64] | None = None

    def error(self, index: int, problem: str, remedy: str) -> DataError:
        """An error about event ``index``."""
        if self.nth is not None:
            problem = f"event {self.nth[index]}: {problem}"
        return DataError(
            problem, file=self.file, stream=self.ids[self.codes[index]], row=int(self.rows[index]), remedy=remedy
        )

    def refuse(self, bad: NDArray[np.bool_], explain: Callable[[int], tuple[str, str]]) -> None:
        """Raise for the first event that is ``bad`` [E]; ``explain`` gives its problem and remedy."""
        if bad.any():
            first = int(np.argmax(bad))
            raise self.error(first, *explain(first))

    def take(self, which: NDArray[Any]) -> Places:
        """The places of some of the events."""
        nth = None if self.nth is None else self.nth[which]
        return self._replace(rows=self.rows[which], codes=self.codes[which], nth=nth)


def check_dates(dates: str | None) -> str | None:
    """The argument ``dates``, if it names a form of dates."""
    if dates is not None:
        from retrodict.events.io.date_forms import date_form  # loads Arrow

        date_form(dates)
    return dates


def check_encoding(encoding: str | None) -> str | None:
    """The argument ``encoding``, if it names an encoding of text."""
    if encoding is not None:
        try:
            b"".decode(encoding), "".encode(encoding)
        except (LookupError, ValueError):
            remedy = "give a known one, such as encoding='cp1252' (Excel on Windows)"
            raise DataError(f"encoding= is {show(encoding)}, which is no encoding of text", remedy=remedy) from None
    return encoding


def check_types_argument(types: Any) -> tuple[str, ...] | None:
    """The vocabulary the caller gave, as a tuple of distinct names."""
    if types is None:
        return None
    remedy = 'pass a list of distinct names, such as types=["pick-up", "drop-off"]'
    if isinstance(types, str) or not isinstance(types, Sequence | np.ndarray):
        raise DataError(f"types= is {types!r}, not a list of names", remedy=remedy)
    names = tuple(str(name) for name in types)
    twice = first_repeat(names)
    if twice is not None:
        raise DataError(f"types= lists {twice!r} twice", remedy=remedy)
    return names
