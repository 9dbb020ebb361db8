"""The content of a page as text that is small and that no HTML can be hidden in.

Everything is JSON, compressed and written in base 64: an index of all streams, which the list needs, and blocks of
streams, each unpacked when one of them is looked at. Times are whole numbers of a quantum, a ten-millionth of the
power of ten below the length of the stream or less, counted from its start; lists of times hold the differences.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.report.page.again import decode_command
from retrodict.report.page.content import Answer, Content, Score
from retrodict.report.stream_view import StreamView

_BLOCK = 200_000  # characters of JSON, after which a block is full
_LONGEST = 400  # characters of an id or a name of a type
_FINE = 7  # decimal digits of a time within its stream


def quantum(span: float) -> float:
    """The step of times in a stream of this length."""
    return 10.0 ** (math.floor(math.log10(span)) - _FINE) if span > 0 else 1.0


def pack(value: Any) -> str:
    """A plain value as text of letters, digits, +, / and =."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode("ascii")


class Block(NamedTuple):
    """Streams that are packed together, from the ``first`` on, and how many ``windows`` each of them has."""

    first: int
    windows: list[int]
    text: str


def index_of(content: Content, blocks: list[Block]) -> dict[str, Any]:
    """What the page knows of all streams."""
    o, windows = content.observed, [number for block in blocks for number in block.windows]
    marks = np.zeros(len(o), dtype=np.int64)
    for bit, doubt in enumerate(content.doubts):
        marks |= doubt.streams.astype(np.int64) << bit
    return {
        "axis": {
            "unit": o.axis.unit,
            "scale": o.axis.scale,
            "origin": None if o.axis.origin is None else o.axis.origin / 1e6,
            "zone": o.axis.timezone,
            "grain": _grain(o),
            "form": _form(o),
        },
        "types": [_name(name) for name in o.types],
        "streams": {
            "id": [_name(name) for name in o.ids],
            "start": o.starts.tolist(),
            "end": o.ends.tolist(),
            "observed": o.lengths.tolist(),
            "expected": _rounded(content.expected.sum(1)),
            "surprise": _rounded(content.surprise),
            "families": _rounded(content.families),
            "doubts": marks.tolist(),
            "windows": windows if any(windows) else None,
        },
        "answers": [_answer(answer, content) for answer in content.answers],
        "first": content.first,
        "few": content.few,
        "byType": {
            "observed": np.bincount(o.event_types, minlength=o.num_types).tolist(),
            "expected": _rounded(content.expected.sum(0)),
            "intervals": content.intervals[:-1].tolist(),
        },
        "interval": content.intervals[-1].tolist(),
        "doubts": [{"name": doubt.name, "text": doubt.text} for doubt in content.doubts],
        "warnings": [text[:1].upper() + text[1:] for text in content.warnings],
        "check": content.check,
        "facts": content.facts,
        "blocks": [block.first for block in blocks],
    }


def _grain(streams: StreamSet) -> int:
    """Milliseconds to which dates are rounded down: a minute or a second where all observed times are whole, else 0."""
    if not streams.axis.is_calendar:
        return 0
    instants = streams.axis.to_instants(np.concatenate([streams.starts, streams.event_times, streams.ends]))
    if not (instants % 60_000_000_000).any():
        return 60_000
    return 0 if (streams.axis.to_instants(streams.event_times) % 1_000_000_000).any() else 1000


def _form(streams: StreamSet) -> list[str | tuple[str, str]] | None:
    """How the table writes dates that are not in ISO 8601: the parts of one with their names, and what is between."""
    if streams.source is None or not streams.source.names.get("dates"):
        return None
    from retrodict.events.io.date_forms import date_form
    from retrodict.events.io.dates_out import pieces_of
    from retrodict.events.io.own_table import style_of_times

    style = style_of_times(streams)
    return None if style is None or style.dates is None else pieces_of(date_form(style.dates), style.example)


def blocks_of(content: Content) -> Iterator[Block]:
    """All streams in order, in blocks."""
    first, rows, size = 0, [], 0
    for i in range(len(content.observed)):
        row = stream_of(content, i)
        rows.append(row)
        size += len(json.dumps(row, separators=(",", ":")))
        if size >= _BLOCK or i == len(content.observed) - 1:
            yield Block(first, [len(row["w"]) for row in rows], pack(rows))
            first, rows, size = i + 1, [], 0


def stream_of(content: Content, i: int) -> dict[str, Any]:
    """What there is to see of stream i, in whole numbers."""
    view = content.view(i)
    start, step = view.observed.start, quantum(view.observed.duration)
    truth, shown = view.truth, view.rows()
    return {
        "q": step,
        "o": _events(view.observed, start, step),
        "a": [_imputed(answer.streams[i], start, step) for answer in content.answers],
        "d": [_events(draw, start, step) for draw in view.draws],
        "t": None if truth is None else _events(truth, start, step),
        "e": {str(k): round(float(content.expected[i, k]), 3) for k in shown if content.expected[i, k] >= 0.0005},
        "r": _belief(view, shown),
        "f": _rounded(view.families),
        "k": shown,
        "w": [[*_steps(np.array([w.start, w.end]), start, step).tolist(), list(w.types)] for w in view.windows],
    }


def _answer(answer: Answer, content: Content) -> dict[str, Any]:
    z, K, command = answer.streams, content.observed.num_types, dict(content.facts).get("command")
    chance = np.bincount(z.event_types, z.columns["probability"], minlength=K).astype(np.float64)
    return {
        "cost": answer.cost,
        "command": decode_command(command, answer.cost, content.observed.axis.unit),
        "events": z.lengths.tolist(),
        "risk": _rounded(answer.risk),
        "nothing": _rounded(answer.nothing),
        "byType": np.bincount(z.event_types, minlength=K).tolist(),
        "sure": _rounded(chance),
        "score": None if answer.score is None else _score(answer.score),
    }


def _score(score: Score) -> dict[str, Any]:
    """The truth against this answer, by stream and by type."""
    return {
        "missing": score.missing.sum(1).tolist(),
        "distance": _rounded(score.distance.sum(1)),
        "aligned": score.aligned.tolist(),
        "covered": score.covered.tolist(),
        "missingByType": score.missing.sum(0).tolist(),
        "distanceByType": _rounded(score.distance.sum(0)),
    }


def _events(stream: EventStream, start: float, step: float) -> list[list[int]]:
    return [_differences(stream.times, start, step), stream.types.tolist()]


def _imputed(stream: EventStream, start: float, step: float) -> list[list[int]]:
    """Times, types, probabilities in thousandths, and how far before and after the interval reaches."""
    times, columns = _steps(stream.times, start, step), stream.columns
    before, after = (times - _steps(columns["earliest"], start, step), _steps(columns["latest"], start, step) - times)
    chance = np.rint(1000 * columns["probability"]).astype(np.int64)
    return [*_events(stream, start, step), chance.tolist(), before.tolist(), after.tolist()]


def _belief(view: StreamView, shown: list[int]) -> dict[str, list[int]]:
    """How high to draw the rate of each type that is shown, in hundredths."""
    heights = np.rint(100 * view.heights()).astype(np.int64)
    return {str(k): heights[:, k].tolist() for k in shown if heights[:, k].any()}


def _steps(times: NDArray[np.float64], start: float, step: float) -> NDArray[np.int64]:
    return np.rint((times - start) / step).astype(np.int64)


def _differences(times: NDArray[np.float64], start: float, step: float) -> list[int]:
    steps = _steps(times, start, step).tolist()
    return [after - before for before, after in pairwise([0, *steps])]


def _rounded(values: NDArray[np.float64]) -> list[float | None]:
    """Four digits of each; None for what is not finite."""
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in values.tolist()]


def _name(value: Any) -> str:
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
