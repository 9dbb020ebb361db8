"""The data sets (section 5.2), made once so that every task reads the same streams; and what goes missing from them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from experiments.sizes import DETERMINISTIC, kind_of
from experiments.store import ROOT, Run
from retrodict.datasets import elevator, flights_sample, flights_splits, synthetic, taxi
from retrodict.datasets.elevator import DETERMINISTIC as ONE_CAR
from retrodict.datasets.flights_demo import hidden_departures, sample_splits
from retrodict.datasets.folder import find_part, read_splits, write_splits
from retrodict.datasets.synthetic import DETERMINISTIC as TWO_TYPES
from retrodict.datasets.taxi import DETERMINISTIC as PICK_UPS
from retrodict.events.io.read import read_events
from retrodict.events.stream_set import Splits, StreamSet
from retrodict.missingness import ByType
from retrodict.models.model_folder import save_model

TEST_MASK = 1  # the seed of the one mask of the test streams
_USUAL = {"taxi": "nyc_taxi_2013", "flights": "nyc_flights_2013"}


def source_of(kind: str) -> str | None:
    """Where taxi or flights streams are: what the variable TAXI or FLIGHTS says, or shared/data beside the checkout."""
    usual = ROOT.parent / "shared" / "data" / _USUAL[kind]
    return os.environ.get(kind.upper()) or (str(usual) if usual.exists() else None)


def prepare(run: Run, dataset: str) -> dict[str, Any]:
    """Make a data set, and the process it was drawn from where that is known; returns its statistics."""
    kind = kind_of(dataset)
    sizes = run.kind(dataset).streams
    if kind == "synthetic":
        assert sizes is not None
        model, streams = synthetic(int(dataset.split("-")[1]), run.scale.process, sizes)
        model.adapt(streams.train)
        save_model(model, run.model(dataset))
        origin = "drawn from a random neural Hawkes process"
    elif kind == "elevator":
        assert sizes is not None
        streams, origin = elevator(sizes=sizes), "simulated"
    elif kind == "taxi":
        streams, origin = taxi(source_of(kind)), "New York, 2013"
    else:
        streams, origin = _flights(source_of(kind))
    if sizes is not None:
        streams = Splits(*(part[:count] for part, count in zip(streams, sizes, strict=True)))
    folder = run.data(dataset)
    shutil.rmtree(folder, ignore_errors=True)
    write_splits(streams, folder)
    lengths = np.concatenate([part.lengths for part in streams])
    return {
        "origin": origin,
        "types": streams.train.num_types,
        "unit": streams.train.axis.unit,
        "streams": [len(part) for part in streams],
        "events": [part.num_events for part in streams],
        "lengths": [int(lengths.min()), float(lengths.mean()), int(lengths.max())],
    }


def mechanism(setting: str, dataset: str, types: tuple[str, ...]) -> ByType:
    """Which events go missing in a setting of a data set."""
    if setting != DETERMINISTIC:
        return ByType(float(setting.removeprefix("rho-"))).bind(types)
    if kind_of(dataset) == "flights":
        return hidden_departures(types)
    return {"synthetic": TWO_TYPES, "elevator": ONE_CAR, "taxi": PICK_UPS}[kind_of(dataset)].bind(types)


def test_pair(run: Run, dataset: str, setting: str) -> tuple[StreamSet, StreamSet]:
    """The test streams as observed, and what is missing from them."""
    test = run.splits(dataset).test
    return mechanism(setting, dataset, test.types).censor(test, seed=TEST_MASK)


def _flights(source: str | Path | None) -> tuple[Splits, str]:
    """Prepared streams, whole tables, or (without a source) the sample that comes with retrodict."""
    if source is None:
        return sample_splits(flights_sample()), "the embedded sample of 900 streams"
    origin = "out of New York, 2013"
    if find_part(source, "test") is not None:
        return read_splits(source), origin
    every = find_part(source, "all")
    return (read_events(every).split(0.8, 0.1, seed=0) if every else flights_splits(source)), origin
