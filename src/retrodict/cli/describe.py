"""``retrodict describe``: what is in a file of events."""

from __future__ import annotations

import numpy as np
from rich.markup import escape
from rich.table import Table

from retrodict.cli import common
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import beyond_edges, suspicions


def describe(file: common.File, columns: common.Columns) -> None:
    """Show what is in a file: streams, types, lengths, durations, and oddities worth knowing.

    [bold]Example[/]

      retrodict describe trips.csv --stream driver --time when --type what
    """
    streams = columns.read(file)
    common.out.print(_overview(streams))
    common.out.print(_types(streams))
    for found in suspicions(streams) + [edge for edge in beyond_edges(streams) if edge.kind == "start"]:
        common.err.print(f"[yellow]note:[/] {escape(common.in_options(str(found)))}", soft_wrap=True, highlight=False)


def _overview(streams: StreamSet) -> Table:
    table = Table(title=None, show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column()
    lengths, durations = streams.lengths, streams.durations
    unit = f" {streams.axis.unit}s" if streams.axis.unit else ""
    table.add_row("streams", f"{len(streams):,}")
    table.add_row("events", f"{streams.num_events:,}")
    if len(streams):
        table.add_row("events a stream", _spread(lengths))
        table.add_row("duration", _spread(durations) + unit)
    if streams.axis.is_calendar and len(streams):
        first, last = (streams.axis.label(float(edge)) for edge in (streams.starts.min(), streams.ends.max()))
        table.add_row("calendar", f"{first} to {last}, {streams.axis.timezone or 'no time zone'}")
    empty = int((lengths == 0).sum())
    if empty:
        table.add_row("empty streams", f"{empty:,}")
    within = np.diff(streams.stream_of_event) == 0 if streams.num_events else np.zeros(0, bool)
    ties = int((np.diff(streams.event_times) == 0)[within].sum()) if streams.num_events else 0
    if ties:
        table.add_row("tied times", f"{ties:,}")
    for name, edges in (("start", streams.starts), ("end", streams.ends)):
        on_edge = streams.event_times == np.repeat(edges, lengths)
        if on_edge.any():
            table.add_row(f"events exactly at the {name}", f"{int(on_edge.sum()):,}")
    if streams.columns:
        table.add_row("extra columns", escape(", ".join(streams.columns)))
    return table


def _types(streams: StreamSet) -> Table:
    table = Table(title="types", title_justify="left")
    table.add_column("type")
    for heading in ("events", "share", f"rate per {streams.axis.unit or 'unit of time'}"):
        table.add_column(heading, justify="right")
    counts = np.bincount(streams.event_types, minlength=streams.num_types)
    total, time = max(streams.num_events, 1), float(streams.durations.sum())
    for name, count in zip(streams.types, counts, strict=True):
        rate = f"{count / time:.4g}" if time > 0 else "-"
        table.add_row(escape(name), f"{count:,}", f"{count / total:.1%}", rate)
    return table


def _spread(values: np.ndarray) -> str:
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    return f"{low:.4g} to {high:.4g}, median {middle:.4g}, mean {values.mean():.4g}"
