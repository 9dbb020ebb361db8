"""Errors in words that a user can act on.

Every error about data carries where it is (file, stream, row), what is wrong, and what would be right:

>>> raise DataError("time is NaN", file="trips.csv", stream="taxi-7", row=12, remedy="drop or repair the row")
Traceback (most recent call last):
...
retrodict.errors.DataError: trips.csv, stream 'taxi-7', row 12: time is NaN. Remedy: drop or repair the row.
"""

from __future__ import annotations

import reprlib
from collections.abc import Hashable


class _Short(reprlib.Repr):
    """``repr`` of whatever a file may hold, in bounded time and length."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxtuple, self.maxdict = 2, 4, 4, 4
        self.maxstring = self.maxother = 80

    def repr_int(self, x: int, level: int) -> str:
        """The digits, or how many there are."""
        return repr(x) if abs(x) < 10**30 else f"a number of about {int(x.bit_length() * 0.30103) + 1} digits"


show = _Short().repr  # for messages
_LONGEST = 1500  # characters: names in a file may have any length


class RetrodictError(Exception):
    """Base of every error that retrodict raises on purpose."""


class DataError(RetrodictError, ValueError):
    """Input that cannot be used: names the file, the stream, the row, what is wrong and the remedy.

    Rows are counted as a user sees them in the source: the first data row is row 1 (a header is not
    counted); in JSON Lines the row is the line.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: object | None = None,
        stream: Hashable | None = None,
        row: int | None = None,
        remedy: str | None = None,
    ) -> None:
        problem = problem if len(problem) <= _LONGEST else problem[:_LONGEST] + " ..."
        self.problem, self.file, self.stream, self.row, self.remedy = problem, file, stream, row, remedy
        places = {"": file, "stream ": None if stream is None else show(stream), "row ": row}
        where = ", ".join(f"{what}{place}" for what, place in places.items() if place is not None)
        text = f"{where}: {problem}" if where else problem
        if not text.endswith((".", "?", "!")):
            text += "."
        if remedy is not None:
            text += f" Remedy: {remedy.rstrip('.')}."
        super().__init__(text)


class LimitError(DataError):
    """A file or a job asks for more than a limit allows; names the limit and how to raise it."""


class WriteError(DataError):
    """Something cannot be written; says what is still there."""


class BusyError(RetrodictError, RuntimeError):
    """Another process works in the same folder; names it."""


class ModelError(RetrodictError, ValueError):
    """A model, mechanism or saved file that cannot be used as asked."""


class TrainingError(RetrodictError, RuntimeError):
    """Training went wrong (NaN, divergence); names the batch."""


class RunawayError(RetrodictError, RuntimeError):
    """A simulated stream exceeded the documented limit on its number of events."""


class EngineNotice(UserWarning):
    """A faster engine could be used if it were installed: said once."""


class SuspicionNotice(UserWarning):
    """Something in the data, or learned from them, would mislead: with numbers and a remedy."""


class DataNotice(UserWarning):
    """Something was assumed or repaired (rows sorted, an end taken from the last event): worth reading."""
