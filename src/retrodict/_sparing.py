"""How often a long step says how far it is where nobody watches: into a file or a pipe, a line now and then."""

from __future__ import annotations

import time

SECONDS, SHARE = 30.0, 0.1  # after which the next line is due


class Sparing:
    """Whether a line is due: half a minute after it began, each time twice as long after the line before, so that an
    hour has six; or (``by_share``) at first and a tenth of the work later.

    ``by_share`` is for steps that say how well they do; others may end before there is anything to say.
    """

    def __init__(self, by_share: bool = True) -> None:
        self.by_share = by_share
        self.at, self.share, self.wait = time.monotonic(), 0.0, SECONDS
        self.said = False

    def is_due(self, share: float) -> bool:
        """Whether to say that this share of the work is done; if so, it counts as said."""
        now = time.monotonic()
        is_far = not self.said or share - self.share >= SHARE - 1e-9 or share >= 1.0
        is_late = now - self.at >= self.wait
        due = is_late or (self.by_share and is_far)
        if due:
            self.at, self.share, self.said = now, share, True
            self.wait *= 2 if is_late else 1
        return due
