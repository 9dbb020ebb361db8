"""The events that are really missing, where a user has them: how they are read, and told from observed ones."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from retrodict.cli import common
from retrodict.errors import DataError, ModelError
from retrodict.events.stream_set import StreamSet

if TYPE_CHECKING:
    from retrodict.models.base import Model

Truth = Annotated[
    Path | None,
    typer.Option(help="Events that are really missing, where they are known (or the whole truth), to show and score."),
]
_PARTS = ("stream", "time", "type", "start", "end")


def read_truth(truth: Path | None, columns: common.Columns, observed: StreamSet | None = None) -> StreamSet | None:
    """The events that are really missing; the options for columns are for them alone.

    Columns that are not given are those of the table of ``observed``, if the truth has them.
    """
    if truth is not None:
        for known in _columns_of(observed):
            given = {name: value for name, value in columns.items() if value is not None or name not in known}
            try:
                found = common.Columns(known | given).read(truth, bounds=False)
            except DataError:  # it has other columns, or is wrong in itself, which is told below
                continue
            return _missing_from(observed, found)
        return _missing_from(observed, columns.read(truth, bounds=False))
    for name, given in columns.items():
        if given is not None and name != "unit":
            raise ModelError(f"--{name} is for the table of --truth. Give --truth, too, or leave --{name} out.")
    return None


def truth_of(truth: Path | None, columns: common.Columns, observed: StreamSet, model: Model) -> StreamSet | None:
    """The events that are really missing from streams that are to be imputed, whose ``columns`` they share.

    What could not be shown beside the streams, such as a type that the model does not know, is refused at once.
    """
    if truth is None:
        return None
    from retrodict.smc.truth import match_truth

    shared = {name: None if name in (*_PARTS, "encoding") else value for name, value in columns.items()}
    known = read_truth(truth, common.Columns(shared), observed)
    if known is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the streams: 'impute' says them
            match_truth(known, model.matched(observed))
    return known


def _columns_of(observed: StreamSet | None) -> list[dict[str, str | None]]:
    """What is known of the columns of the table that was imputed: all, those of events alone, only the zone.

    The truth may be in the encoding of that table, where it is not UTF-8.
    """
    if observed is None or observed.source is None:
        return []
    from retrodict.events.io.csv_file import encoding_of  # loads Arrow

    names, zone = observed.source.names, {"timezone": observed.axis.timezone}
    forms = [{"dates": names["dates"]}, {}] if names.get("dates") else [{}]
    own_encoding = encoding_of(observed)
    encodings: list[dict[str, str | None]] = [{}] if own_encoding is None else [{}, {"encoding": own_encoding}]
    known = [{part: names.get(part) for part in parts} | zone for parts in (_PARTS, _PARTS[:3], ())]
    return [own | form | encoding for own in known for form in forms for encoding in encodings]


def _missing_from(observed: StreamSet | None, truth: StreamSet) -> StreamSet:
    from retrodict.evaluate.matching import on_axis_of

    return truth if observed is None else only_missing(on_axis_of(observed, truth), observed, "the table")


def only_missing(truth: StreamSet, observed: StreamSet, name: str) -> StreamSet:
    """The truth without the observed events, those of the table of that ``name``, if it is the whole truth.

    It is where it has most of the observed events of its streams; fewer are events that happened at the same time.
    """
    from retrodict.evaluate.matching import found_among

    known = set(truth.ids)
    of_truth = np.array([each in known for each in observed.ids], dtype=bool)
    seen = observed.keep(of_truth[observed.stream_of_event])
    found = found_among(truth, seen)
    number, total = int(found.sum()), truth.num_events
    if not number:
        return truth
    stand = f"{number:,} of these {total:,} events stand in {name} as observed"
    if 2 * number <= seen.num_events:
        common.note(f"{stand}, too (same stream, time and type); all {total:,} are scored")
        return truth
    if number == total:
        remedy = "give the events that were hidden, or the whole truth"
        raise DataError(f"{stand}, so that none is left to score", remedy=remedy)
    common.note(f"{stand}; the other {total - number:,} are scored")
    return truth.keep(~found)
