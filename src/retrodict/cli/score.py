"""``retrodict score``: how plausible a model finds complete streams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from retrodict.cli import common
from retrodict.errors import DataError
from retrodict.events.atomic import atomic_file, check_writable
from retrodict.events.stream_set import StreamSet
from retrodict.models.base import Model

_AT_ONCE = 256  # streams


def score(
    model: common.Folder,
    file: common.File,
    by_stream: Annotated[Path | None, typer.Option(help="Also write the score of each stream, as CSV.")] = None,
    device: common.Device = "auto",
    *,
    columns: common.Columns,
) -> None:
    """The log-likelihood of complete streams under a model, in nats per event; higher is better.

    [bold]Examples[/]

      retrodict score model/ test.csv --stream driver --time when --type what

      retrodict score model/ test.parquet --by-stream scores.csv
    """
    import pandas as pd

    from retrodict.models.clocks import warn_of_other_clocks
    from retrodict.models.device import find_device
    from retrodict.models.model_folder import load_model

    where = find_device(device)
    check_writable(by_stream)
    fitted = load_model(model, where)
    streams = fitted.matched(columns.read(file))
    with common.notes():
        warn_of_other_clocks(fitted, streams)
    if not streams.num_events:
        raise DataError("there are no events to score", file=file, remedy="give streams with at least one event")
    scores = _score(fitted, streams)
    events = streams.lengths
    mean = scores.sum() / events.sum()
    error = np.sqrt(((scores - mean * events) ** 2).sum()) / events.sum()
    unit = f", times in {fitted.time_unit}s" if fitted.time_unit else ""
    common.out.print(
        f"{mean:.4f} nats per event (standard error {error:.4f} over streams), {scores.sum():,.1f} in all; "
        f"{len(streams):,} streams, {events.sum():,} events{unit}",
        soft_wrap=True,
        highlight=False,
    )
    if fitted.end_atom is not None:
        ends = (scores - _score(fitted.endless(), streams)).sum() / len(streams)
        common.note(f"of this, {ends:.4f} nats a stream are for when streams end, which this model has learned")
    impossible = ~np.isfinite(scores)
    if impossible.any():
        first = streams.ids[int(np.argmax(impossible))]
        common.note(f"{impossible.sum():,} streams have no probability under the model, the first is {first!r}")
    if by_stream is not None:
        table = pd.DataFrame({"stream": list(streams.ids), "events": events, "log_likelihood": scores})
        with atomic_file(by_stream) as out:
            out.write(table.to_csv(index=False).encode())
        common.wrote(by_stream, f"the score of each of {len(streams):,} streams")


def _score(model: Model, streams: StreamSet) -> NDArray[np.float64]:
    """log p of each stream, [N]."""
    import torch

    parts = []
    with torch.no_grad(), common.bar("score", len(streams)) as done:
        for first in range(0, len(streams), _AT_ONCE):
            part = streams[first : first + _AT_ONCE]
            parts.append(model.log_likelihood(part).double().cpu().numpy())
            done(first + len(part))
    return np.concatenate(parts)
