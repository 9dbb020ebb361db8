"""The last line of ``retrodict impute``: that windows of ``-m`` cannot be the right ones."""

from __future__ import annotations

from rich.markup import escape

from retrodict.cli import common
from retrodict.events.stream_set import StreamSet
from retrodict.missingness.base import Missingness
from retrodict.missingness.conflicts import UNTOUCHED, misses_all, seen_in_windows, untouched

_LOOK = "Check the year and the day, the time zone, and whether days come first (--dates), and impute again."
_MOST = 0.5  # of the events that were to be expected in windows


def warn_of_windows(mechanism: Missingness, observed: StreamSet) -> None:
    """Warn where nobody watched during any window, or most events in windows in which all go missing were observed."""
    if misses_all(mechanism, observed):
        warn_untouched(untouched(observed))
        return
    seen, expected = seen_in_windows(mechanism, observed)
    if seen and seen >= _MOST * expected:
        what = f"{seen:,} {'event was' if seen == 1 else 'events were'} observed"
        usual = f"{expected:,.{0 if expected >= 10 else 1}f}"
        _warn(
            f"{what} where windows of -m let all go missing, and about {usual} were to be expected without an outage: "
            f"the windows do not look like the right ones. {_LOOK}"
        )


def warn_untouched(found: str) -> None:
    """Warn that no window was taken into account, as ``found`` says."""
    said = found.replace(UNTOUCHED, "no stream was watched during any of them")
    _warn(f"no window of -m was taken into account: {said}. {_LOOK}")


def _warn(text: str) -> None:
    common.err.print(f"[bold yellow]warning:[/] {escape(text)}", soft_wrap=True, highlight=False)
