"""Streams that ``fit --hold-out`` keeps out of the fit, in a file of their own, to check by."""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrodict.cli import common
from retrodict.errors import DataError, ModelError, RetrodictError
from retrodict.events.atomic import make_folder, write_json
from retrodict.events.fingerprint import fingerprint
from retrodict.events.io.write import check_output, check_times, write_events
from retrodict.events.plain import read_json
from retrodict.events.stream_set import StreamSet

if TYPE_CHECKING:
    from retrodict.models import Model

RECORD = "held-out.json"  # in the folder of the model: what was held out when it was fitted
_SHARE, _LEAST, _MOST, _FEWEST = 0.2, 20, 200, 8
_BRANCH = 0x6F7574  # of the streams' random numbers, for this purpose alone


@dataclass(frozen=True)
class HeldOut:
    """Streams that are held out in a file; ``record`` is kept in the folder of the model, ``there`` says the file is.

    ``of`` is the number of all streams.
    """

    path: Path
    streams: StreamSet
    of: int
    record: dict[str, Any]
    there: bool

    def write(self, output: Path) -> None:
        """Write the file, unless it is there, and the record; say how many streams are held out."""
        if not self.there:
            write_events(self.streams, self.path)
        digest = _record(output).get("digest") if self.there else _digest(self.path)  # someone may have changed it
        write_json(make_folder(output) / RECORD, self.record | {"digest": digest})
        few = len(self.streams)
        what = f"{few:,} of {self.of:,} streams, drawn at random and held out of the fit, to check it by"
        if self.there:
            common.out.print(f"{self.path} holds {what}", soft_wrap=True, highlight=False, markup=False)
        else:
            common.wrote(self.path, what)
        if few < _LEAST:
            common.note(f"{few} streams are few to check by: from 40 streams on, {_LEAST} or more are held out")


def refuse_place(path: Path, output: Path, *inputs: Path | None) -> None:
    """Refuse a file for held-out streams that cannot be written, or that would be among what is read or fitted."""
    common.refuse_overwriting(*inputs, outputs={"--hold-out": path})
    remedy = "give the name of a file beside it"
    for folder, what in ((output, "the folder of the model"), *((each, "a folder that is read") for each in inputs)):
        if folder is not None and folder.resolve() in (path.resolve(), *path.resolve().parents):
            raise DataError(f"--hold-out would be in {what}", file=path, remedy=remedy)
    if not path.is_dir():  # one that is there may be a MEDS data set that an earlier fit wrote: see set_aside
        check_output(path)


def set_aside(
    streams: StreamSet, path: Path, output: Path, columns: common.Columns, *, seed: int, resume: bool
) -> tuple[StreamSet, HeldOut]:
    """The streams to fit to, and those to hold out, which are not yet written; refuse what could not be."""
    which = drawn(streams, seed)
    held, rest = streams[np.flatnonzero(which)], streams[np.flatnonzero(~which)]
    check_times(streams, path)
    record: dict[str, Any] = {"file": str(path), "streams": len(held)}
    record |= {"table": fingerprint(streams), "train": fingerprint(rest)}
    if resume:
        _refuse_other_fit(output, record["train"])
    there = path.exists() and _is_kept(path, held, columns, output, resume)
    read = _read(path, columns) if there else _as_written(held, path, columns)
    return rest, HeldOut(path, held, len(streams), record | {"held_out": fingerprint(read)}, there)


def drawn(streams: StreamSet, seed: int) -> NDArray[np.bool_]:
    """Which streams [N] are held out: a function of the seed and the ids alone, in whatever order they come."""
    from retrodict.random import split, stream_keys  # loads torch

    total = len(streams)
    if total < _FEWEST:
        problem = f"--hold-out needs {_FEWEST} streams or more, and {'there are' if total != 1 else 'there is'} {total}"
        raise DataError(problem, remedy="give more complete streams, or leave --hold-out out")
    keys = split(stream_keys(seed, streams.ids), _BRANCH).numpy()
    order = np.lexsort((np.array([str(name) for name in streams.ids]), keys))
    which = np.zeros(total, dtype=bool)
    which[order[: how_many(total)]] = True
    return which


def how_many(total: int) -> int:
    """How many of these streams are held out: a fifth, 20 at least and 200 at most, and never more than half."""
    return min(max(round(_SHARE * total), _LEAST), _MOST, total // 2)


def is_fitted_to(model: Model, folder: Path, streams: StreamSet) -> bool:
    """Whether the model in a folder was fitted to this very table, or to what was not held out of it."""
    table, known = model.training_record.get("table"), _record(folder)
    given = fingerprint(streams)
    return given == table or (table is not None and known.get("train") == table and known.get("table") == given)


def was_held_out_of_another(model: Model, folder: Path, streams: StreamSet) -> bool:
    """Whether these streams were held out in this folder, but not when the model that is in it was fitted."""
    known = _record(folder)
    other = known.get("train") != model.training_record.get("table")
    return other and known.get("held_out") == fingerprint(streams)


def warn_unless_held_out(output: Path) -> None:
    """Say so where a fit in this folder held streams out and this one does not."""
    file = _record(output).get("file")
    if file is not None:
        common.note(
            f"an earlier fit in {output} held streams out in {file}, and this one learns from them, too: give "
            f"--hold-out {file} again, or do not check by them"
        )


def _record(folder: Path) -> dict[str, Any]:
    try:
        found = read_json(folder / RECORD)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _refuse_other_fit(output: Path, train: str) -> None:
    """Refuse a folder with a model that was fitted to others than the streams with this fingerprint."""
    try:
        table = read_json(output / "model.json")["training"]["table"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    if table != train:
        raise ModelError(
            f"{output} holds a model that was fitted to other streams, which may be those that --hold-out sets aside. "
            "Choose another folder, repeat the command as it was, or start anew with --restart."
        )


def _is_kept(path: Path, held: StreamSet, columns: common.Columns, output: Path, resume: bool) -> bool:
    """Whether a file that is there has the streams already, or else is an earlier fit's own, to be replaced."""
    try:
        if _same(_read(path, columns), held):
            return True
    except RetrodictError:
        pass
    if not resume and path.is_file() and _digest(path) == _record(output).get("digest"):
        return False
    remedy = "give another name, or remove the file if nobody needs it"
    raise DataError("--hold-out would replace this, which holds something else", file=path, remedy=remedy)


def _as_written(held: StreamSet, path: Path, columns: common.Columns) -> StreamSet:
    """The streams as the same options read them from such a file; refuse one from which they would not come back."""
    remedy = "give it the suffix of the table that is read"
    problem = "streams held out in such a file could not be read again with the same options"
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trial = Path(folder) / path.name
        write_events(held, trial)
        try:
            read = _read(trial, columns)
        except RetrodictError as error:
            raise DataError(problem, file=path, remedy=remedy) from error
    if not _same(read, held):
        raise DataError(problem, file=path, remedy=remedy)
    return read


def _read(path: Path, columns: common.Columns) -> StreamSet:
    """The streams of a file, without a word on what was assumed: that was said of the whole table."""
    from retrodict.events.io.read import read_events

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_events(path, **columns.given())


def _same(one: StreamSet, other: StreamSet) -> bool:
    """Whether two sets have the same streams, in any order, to a rounding error of their times."""
    if len(one) != len(other) or one.num_events != other.num_events or one.axis.is_calendar != other.axis.is_calendar:
        return False
    one = one.with_axis(other.axis) if one.axis.is_calendar else one
    one, other = (each[np.argsort([str(name) for name in each.ids])] for each in (one, other))
    if [str(name) for name in one.ids] != [str(name) for name in other.ids] or (one.lengths != other.lengths).any():
        return False
    names = [np.array(each.types, dtype=object)[each.event_types] for each in (one, other)]
    near = (np.allclose(getattr(one, x), getattr(other, x), 1e-9, 1e-9) for x in ("event_times", "starts", "ends"))
    return bool((names[0] == names[1]).all()) and all(near)


def _digest(path: Path) -> str | None:
    """Of a file's bytes; None for a folder."""
    return None if path.is_dir() else hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
