"""The data sets of the experiments: made once into the run's folder, so that every job reads the same streams."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from retrodict.datasets import elevator, flights_sample, flights_splits, synthetic, taxi
from retrodict.datasets.elevator import DETERMINISTIC as ONE_CAR
from retrodict.datasets.flights_demo import hidden_departures, sample_splits
from retrodict.datasets.folder import find_part, read_splits, write_splits
from retrodict.datasets.synthetic import DETERMINISTIC as TWO_TYPES
from retrodict.datasets.synthetic import draw
from retrodict.datasets.taxi import DETERMINISTIC as DROP_OFFS
from retrodict.errors import DataError
from retrodict.events.io.read import read_events
from retrodict.events.stream_set import Splits, StreamSet
from retrodict.experiments.place import Place
from retrodict.experiments.scale import DETERMINISTIC, kind_of
from retrodict.missingness import ByType
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.models.store import save_model

TEST_MASK = 1  # the seed of the one mask of the test streams
_MORE_SEED = 1000  # of further streams of synthetic processes


def prepare(place: Place, device: str, dataset: str, source: str | None = None) -> dict[str, Any]:
    """Make a data set, and the process it was drawn from where that is known; returns its statistics."""
    kind = kind_of(dataset)
    if kind == "synthetic":
        sizes = place.scale.sizes[kind] or (5000, 500, 500)
        model, streams = synthetic(int(dataset.split("-")[1]), place.scale.process_hidden, sizes)
        model.adapt(streams.train)
        save_model(model, place.model_folder(dataset))
        folder = place.more_folder(dataset)
        shutil.rmtree(folder, ignore_errors=True)
        write_splits(_more(model, streams.dev, place.scale.more_streams), folder)
        origin = "drawn from a random neural Hawkes process"
    elif kind == "elevator":
        streams, origin = elevator(sizes=place.scale.sizes[kind] or (500, 100, 100)), "simulated"
    elif kind == "taxi":
        streams, origin = taxi(source), "New York taxi records of 2013"
    else:
        streams, origin = _flights(source)
    streams = _cut(streams, place.scale.sizes[kind], place.scale.test_streams)
    folder = place.data_folder(dataset)
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


def _more(model: NeuralHawkes, dev: StreamSet, count: int) -> Splits:
    """Streams of a synthetic set's process that end as its own do, with an event; dev is that of the set."""
    streams = draw(model, count, seed=_MORE_SEED)
    return Splits(model.matched(streams), dev, streams[:0])


def mechanism(setting: str, dataset: str, types: tuple[str, ...]) -> ByType:
    """Which events go missing in a setting of a data set."""
    if setting != DETERMINISTIC:
        return ByType(float(setting.removeprefix("rho-"))).bind(types)
    if kind_of(dataset) == "flights":
        return hidden_departures(types)
    return {"synthetic": TWO_TYPES, "elevator": ONE_CAR, "taxi": DROP_OFFS}[kind_of(dataset)].bind(types)


def test_pair(place: Place, dataset: str, setting: str) -> tuple[StreamSet, StreamSet]:
    """The test streams of a data set as observed, and what is missing from them."""
    test = place.splits(dataset).test
    return mechanism(setting, dataset, test.types).censor(test, seed=TEST_MASK)


def _flights(source: str | None) -> tuple[Splits, str]:
    """Prepared streams, whole tables, or (if no source is given) the sample that comes with retrodict."""
    if source is None:
        return sample_splits(flights_sample()), "the embedded sample of 900 streams"
    origin = "flights out of New York in 2013"
    if find_part(source, "test") is not None:
        return read_splits(source), origin
    every = find_part(source, "all")
    return (read_events(every).split(0.8, 0.1, seed=0) if every else flights_splits(source)), origin


def _cut(streams: Splits, sizes: tuple[int, int, int] | None, most_test: int) -> Splits:
    train, dev, test = sizes or (len(streams.train), len(streams.dev), len(streams.test))
    return Splits(streams.train[:train], streams.dev[:dev], streams.test[: min(test, most_test)])


def check_source(name: str, source: str) -> Path:
    """A folder or file that the user named for a data set."""
    path = Path(source)
    if name not in ("taxi", "flights"):
        raise DataError(f"the data set {name!r} takes no source", remedy="give --data taxi=DIR or --data flights=DIR")
    if not path.exists():
        raise DataError("there is nothing here", file=path, remedy=f"give --data {name}=DIR with the streams of {name}")
    return path.resolve()
