"""The time that a command may take, from its first moment: what each step has of it, and what it does not bound."""

from __future__ import annotations

import time

from retrodict.cli import common

_CHECK = 0.1  # of the time, for the check that ends a fit


class Clock:
    """Divides the seconds that a command was given among its steps; loading and reading have had theirs."""

    def __init__(self, seconds: float | None, has_check: bool = True) -> None:
        self.seconds = seconds
        self.end = None if seconds is None else common.began[-1] + seconds
        self.reserve = 0.0 if seconds is None or not has_check else _CHECK * seconds

    def left(self) -> float | None:
        """Seconds until the end, at least a little; None where there is none."""
        return None if self.end is None else max(self.end - time.monotonic(), 1e-3)

    def share(self, parts: int) -> dict[str, float | None]:
        """The setting ``seconds`` of a step: an equal part of the time that is left for training."""
        left = self.left()
        return {"seconds": None if left is None else max(left - self.reserve, 1e-3) / parts}

    def announce(self, *, quick: bool = False) -> None:
        """Say beforehand what the time is for, and what is not cut short; ``quick`` fits are not."""
        if self.seconds is None:
            return
        gone = time.monotonic() - common.began[-1]
        whole = ["an epoch", *(["quick models"] if quick else [])]
        whole += ["the check (a minute on first use)"] if self.reserve else []
        listed = " and ".join(filter(None, [", ".join(whole[:-1]), whole[-1]]))
        common.note(f"of --seconds {self.seconds:g}, loading took {gone:.0f}; {listed} may take longer")
