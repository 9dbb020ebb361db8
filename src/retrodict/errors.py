"""What can go wrong, in words a user can act on.

Every error about data carries where it is (file, stream, row), what is wrong, and what would be right:

>>> raise DataError("time is NaN", file="trips.csv", stream="taxi-7", row=12, remedy="drop or repair the row")
Traceback (most recent call last):
...
retrodict.errors.DataError: trips.csv, stream 'taxi-7', row 12: time is NaN. Remedy: drop or repair the row.
"""

from __future__ import annotations

from collections.abc import Hashable


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
        self.problem, self.file, self.stream, self.row, self.remedy = problem, file, stream, row, remedy
        where = []
        if file is not None:
            where.append(str(file))
        if stream is not None:
            where.append(f"stream {stream!r}")
        if row is not None:
            where.append(f"row {row}")
        text = ", ".join(where) + ": " + problem if where else problem
        if not text.endswith((".", "?", "!")):
            text += "."
        if remedy is not None:
            text += f" Remedy: {remedy.rstrip('.')}."
        super().__init__(text)


class ModelError(RetrodictError, ValueError):
    """A model, mechanism or saved file that cannot be used as asked."""


class TrainingError(RetrodictError, RuntimeError):
    """Training went wrong (NaN, divergence); names the batch."""


class RunawayError(RetrodictError, RuntimeError):
    """A simulated stream exceeded the documented limit on its number of events."""


class EngineNotice(UserWarning):
    """A faster engine could be used if it were installed: said once."""


class DataNotice(UserWarning):
    """Something was assumed or repaired (rows sorted, an end taken from the last event): worth reading."""
