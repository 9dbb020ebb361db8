"""Fitting: it finds what there is to find, survives a kill, and says which batch broke it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from retrodict.errors import DataError, DataNotice, ModelError, TrainingError
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.events.time_axis import TimeAxis
from retrodict.models import Hawkes, NeuralHawkes, Poisson
from retrodict.models.model_folder import load_model
from retrodict.models.simulate import simulate
from retrodict.train.checkpoint import SafetensorsCheckpoints
from retrodict.train.fitting import fit

TRUTH = Hawkes([0.3, 0.2], [[0.1, 0.6], [0.5, 0.0]], 2.0)


@pytest.fixture(scope="module")
def data():
    return simulate(TRUTH, 120, end=15.0, seed=1), simulate(TRUTH, 60, end=15.0, seed=2)


def test_a_neural_hawkes_process_learns_what_a_poisson_process_cannot(data):
    train, dev = data
    neural = fit(NeuralHawkes(2, 16), train, dev, epochs=30, learning_rate=0.01, progress=False)
    per_event = lambda model: float(model.log_likelihood(dev).sum().detach()) / dev.num_events  # noqa: E731
    poisson = Poisson.from_streams(train)
    assert per_event(poisson) + 0.03 < per_event(neural) < per_event(TRUTH) + 0.01
    record = neural.training_record
    assert record["dev_log_likelihood_per_event"] == pytest.approx(per_event(neural), abs=1e-3)
    assert neural.types == train.types


def test_the_best_epoch_is_kept_not_the_last(data):
    train, dev = data
    model = fit(NeuralHawkes(2, 8), train[:10], dev, epochs=40, patience=5, learning_rate=0.1, progress=False)
    best = model.training_record["dev_log_likelihood_per_event"]
    assert model.training_record["epochs"] < 40
    assert float(model.log_likelihood(dev).sum().detach()) / dev.num_events == pytest.approx(best, abs=1e-3)


def test_same_seed_same_model_other_seed_other_model(data):
    train, dev = data
    fitted = [fit(NeuralHawkes, train, dev, epochs=2, seed=s, progress=False).state_dict() for s in (3, 3, 4)]
    assert all(torch.equal(fitted[0][k], fitted[1][k]) for k in fitted[0])
    assert not torch.equal(fitted[0]["readout"], fitted[2]["readout"])


SCRIPT = """
import sys, time
from retrodict.models import Hawkes, NeuralHawkes
from retrodict.models.simulate import simulate
from retrodict.train.fitting import fit
from retrodict.train.module import TrainingModule
truth = Hawkes([0.3, 0.2], [[0.1, 0.6], [0.5, 0.0]], 2.0)
train, dev = simulate(truth, 20, end=15.0, seed=1), simulate(truth, 60, end=15.0, seed=2)
step = TrainingModule.training_step
def slow(self, batch, index):
    print(f"epoch {self.current_epoch} batch {index}", flush=True)
    time.sleep(float(sys.argv[2]))
    return step(self, batch, index)
TrainingModule.training_step = slow
settings = dict(epochs=9, batch_size=5, seed=5, learning_rate=0.8, patience=5, averaging=0.5)
fit(NeuralHawkes, train, dev, directory=sys.argv[1], progress=False, **settings)
"""


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_model(folder).state_dict()


COMMAND = [sys.executable, "-c", SCRIPT]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    subprocess.run([*COMMAND, str(folder), "0"], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("how", [getattr(signal, "SIGKILL", None), signal.SIGINT])
def test_a_killed_fit_resumes_to_the_same_result(uninterrupted, tmp_path, how):
    process = subprocess.Popen([*COMMAND, str(tmp_path), "0.1"], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("epoch 3 batch 2"):
            os.kill(process.pid, how)
            break
    process.stdout.close()
    assert process.wait(60) != 0
    assert not (tmp_path / "model.json").exists()
    again = subprocess.run([*COMMAND, str(tmp_path), "0"], check=True, capture_output=True, text=True)
    assert again.stdout.splitlines()[0] == "epoch 3 batch 0"
    whole, cut = weights(uninterrupted), weights(tmp_path)
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    strip = lambda rows: [(r["epoch"], r["train_loss"], r["dev_loss"], r["learning_rate"]) for r in rows]  # noqa: E731
    tables = [strip(csv.DictReader((folder / "metrics.csv").open())) for folder in (uninterrupted, tmp_path)]
    assert tables[0] == tables[1]
    assert len({row[3] for row in tables[0]}) > 1  # the schedule is part of what must survive


def test_a_finished_fit_is_not_repeated_and_another_is_refused(data, tmp_path):
    train, dev = data
    arguments = {"epochs": 2, "directory": tmp_path, "progress": False}
    first = fit(NeuralHawkes, train, dev, **arguments)
    before = time.perf_counter()
    with pytest.warns(DataNotice, match="this fit had finished"):
        second = fit(NeuralHawkes, train, dev, **arguments)
    assert time.perf_counter() - before < 5
    assert torch.equal(first.readout, second.readout)
    with pytest.raises(TrainingError, match=r"holds a run with another .*data\. Fit into another directory"):
        fit(NeuralHawkes, train[:50], dev, **arguments)
    with pytest.raises(TrainingError, match=r"holds a run with another settings"):
        fit(NeuralHawkes, train, dev, seed=9, **arguments)
    fit(NeuralHawkes, train, dev, seed=9, resume=False, **arguments)
    longer = fit(NeuralHawkes, train, dev, seed=9, **{**arguments, "epochs": 3})
    assert longer.training_record["epochs"] == 3
    with (tmp_path / "metrics.csv").open() as table:
        assert len(list(csv.DictReader(table))) == 3
    assert json.loads((tmp_path / "run.json").read_text())["epochs"] == 3


def test_no_pickle_is_written(data, tmp_path):
    train, dev = data
    fit(NeuralHawkes, train, dev, epochs=1, directory=tmp_path, progress=False)
    checkpoints = sorted(p.name for p in (tmp_path / "checkpoints").iterdir())
    assert checkpoints == ["best.safetensors", "last.safetensors"]
    content = SafetensorsCheckpoints().load_checkpoint(tmp_path / "checkpoints" / "last.safetensors")
    assert content["optimizer_states"][0]["state"][0]["exp_avg"].shape
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert path.read_bytes()[:2] not in (b"PK", b"\x80\x02", b"\x80\x04"), path


def test_a_nan_loss_names_the_batch():
    """An infinite excitation cannot be built, but a weight can turn NaN."""
    streams = StreamSet([EventStream([0.5, 1.0], [0, 0], end=2.0, id=f"s{i}") for i in range(4)], types=["a"])
    model = NeuralHawkes(1, 4)
    with torch.no_grad():
        model.readout.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"the loss is nan at epoch 0, batch 0 \(streams 's\d', .*8 events"):
        fit(model, streams, streams, progress=False)


def test_divergence_names_the_batch_and_the_remedy(data):
    train, dev = data
    with pytest.raises(TrainingError, match=r"diverged.*learning rate below 1e\+04|loss is .* learning rate below"):
        fit(NeuralHawkes(2, 8), train, dev, learning_rate=1e4, epochs=20, progress=False)


def test_bad_requests_are_refused_before_any_work(data, tmp_path):
    train, dev = data
    empty = StreamSet([EventStream([], [], end=1.0)], types=["0", "1"])
    with pytest.raises(DataError, match="no events to train on"):
        fit(NeuralHawkes, empty, dev)
    with pytest.raises(DataError, match="no dev streams"):
        fit(NeuralHawkes, train, train[:0])
    with pytest.raises(DataError, match="one stream is not enough"):
        fit(NeuralHawkes, train[:1])
    with pytest.raises(ModelError, match="epochs must be at least 1"):
        fit(NeuralHawkes, train, dev, epochs=0)
    with pytest.raises(ModelError, match="the model has 5 types but the streams have 2"):
        fit(NeuralHawkes(5, 4), train, dev)
    (tmp_path / "run.json").write_text("not json")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "last.safetensors").write_bytes(b"junk")
    fit(Poisson, train, dev, epochs=1, directory=tmp_path, progress=False)
    (tmp_path / "checkpoints" / "last.safetensors").write_bytes(b"junk")
    with pytest.raises(TrainingError, match=r"last.safetensors cannot be read .* resume=False"):
        fit(Poisson, train, dev, epochs=2, directory=tmp_path, progress=False)


def test_without_dev_a_tenth_is_set_aside(data):
    train, _ = data
    model = fit(Poisson, train, epochs=1, progress=False)
    assert model.training_record["train_streams"] == 108


def test_where_nobody_watches_progress_shows_the_last_epoch_and_one_every_half_minute(data, capsys, monkeypatch):
    train, dev = data
    fit(Poisson, train, dev, epochs=2)
    shown = capsys.readouterr().err
    assert "epoch 1:" not in shown
    assert "epoch 2: nats per event: train" in shown
    assert "events/s" in shown
    assert np.all([word not in shown for word in ("GPU available", "TPU", "Trainer")])
    monkeypatch.setattr("retrodict._sparing.SECONDS", 0.0)
    fit(Poisson, train, dev, epochs=2)
    assert "epoch 1:" in capsys.readouterr().err


def test_default_batches_reach_the_maximum_of_the_likelihood():
    """Streams of very unequal lengths, some empty, in batches of like length: no stream may count for more."""
    truth = Hawkes([0.15], [[0.5]], 1.0)
    streams = simulate(truth, 2000, end=10.0, seed=1)
    assert (streams.lengths == 0).any()
    small = fit(Hawkes, streams, streams, epochs=30, patience=6, progress=False)
    full = fit(Hawkes, streams, streams, epochs=300, patience=30, batch_size=2000, progress=False)
    gain = float((full.log_likelihood(streams).sum() - small.log_likelihood(streams).sum()).detach())
    assert abs(gain) < 2  # nats in all: a fraction of a standard error
    for ours, best in zip(small.parameters(), full.parameters(), strict=True):
        torch.testing.assert_close(ours, best, rtol=0, atol=0.15)


def test_streams_in_another_unit_of_time_are_converted():
    truth = Hawkes([0.3, 0.2], [[0.1, 0.6], [0.5, 0.0]], 2.0)
    train, dev = simulate(truth, 60, end=15.0, seed=1), simulate(truth, 60, end=15.0, seed=2)
    hours = [StreamSet(list(s), types=s.types, axis=TimeAxis("hour")) for s in (train, dev)]
    minutes = hours[1].with_unit("minute")
    assert minutes.ends[0] == 900.0
    model = fit(Poisson, hours[0], minutes, epochs=1, progress=False)
    assert model.time_unit == "hour"
    torch.testing.assert_close(model.log_likelihood(minutes), model.log_likelihood(hours[1]))
    onwards = simulate(model, history=minutes[:5], end=1000.0)
    assert onwards.axis.unit == "minute"
    assert (onwards.starts == 900.0).all()
    np.testing.assert_allclose(onwards.ends, 1000.0)
    expected = float(model.rates.sum().detach()) * 5 * 100 / 60
    assert abs(onwards.num_events - expected) < 4 * expected**0.5
    odd = StreamSet(list(dev), types=dev.types, axis=TimeAxis("fortnight"))
    with pytest.raises(DataError, match="cannot convert times from 'fortnight' to 'hour'"):
        model.log_likelihood(odd)


def test_a_fit_that_had_stopped_early_does_not_go_on_when_killed_before_its_end(data, tmp_path):
    train, dev = data
    arguments = {"epochs": 60, "patience": 2, "learning_rate": 0.3, "progress": False}
    first = fit(NeuralHawkes, train[:20], dev, directory=tmp_path / "a", **arguments)
    epochs = first.training_record["epochs"]
    assert epochs < 60
    run = json.loads((tmp_path / "a" / "run.json").read_text())
    del run["epochs"], run["stopped_early"]
    (tmp_path / "a" / "run.json").write_text(json.dumps(run))
    (tmp_path / "a").rename(tmp_path / "b")  # and a folder may move
    again = fit(NeuralHawkes, train[:20], dev, directory=tmp_path / "b", **arguments)
    assert again.training_record["epochs"] == epochs
    assert torch.equal(first.readout, again.readout)


def test_a_fit_whose_time_is_up_goes_on_with_the_next_call(data, tmp_path):
    train, dev = data
    arguments = {"epochs": 3, "progress": False}
    whole = fit(NeuralHawkes, train, dev, **arguments)
    for epochs in (1, 2, 3):
        part = fit(NeuralHawkes, train, dev, directory=tmp_path, seconds=1e-3, **arguments)
        assert part.training_record["epochs"] == epochs
    assert torch.equal(part.readout, whole.readout)


def test_files_that_are_not_ours_are_left_alone(data, tmp_path):
    train, dev = data
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "mine.pt").write_text("precious")
    fit(Poisson, train, dev, epochs=1, directory=tmp_path, progress=False)
    assert (tmp_path / "checkpoints" / "mine.pt").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learning_rate": -1.0}, "learning_rate must be a positive number"),
        ({"seconds": 0.0}, "seconds must be a positive number"),
        ({"device": "abacus"}, "unknown device 'abacus'"),
    ],
)
def test_impossible_settings_are_refused(data, arguments, message):
    with pytest.raises(ModelError, match=message):
        fit(Poisson, *data, **arguments)
    with pytest.raises(ModelError, match="cannot fit a str"):
        fit("poisson", *data)
    with pytest.raises(ModelError, match="must be stream sets"):
        fit(Poisson, list(data[0]))
