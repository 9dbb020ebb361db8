"""Processes that train together take the steps of one, agree on everything, and refuse in words."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

import retrodict as rd
from retrodict.errors import ModelError, TrainingError
from retrodict.models import Hawkes, NeuralHawkes, Poisson
from retrodict.models.simulate import simulate
from retrodict.train.asked import streams_a_step
from retrodict.train.divergence import Divergence
from retrodict.train.fitting import fit
from retrodict.train.objective import dev_loss
from retrodict.train.together import trains_together

TRUTH = Hawkes([0.3, 0.2], [[0.1, 0.6], [0.5, 0.0]], 2.0)
BATCH = 17  # 103 streams: the last step of an epoch has one stream, and none for the second process


@pytest.fixture(scope="module")
def data():
    return simulate(TRUTH, 103, end=10.0, seed=1), simulate(TRUTH, 41, end=10.0, seed=2)


def settings(**more: Any) -> dict[str, Any]:
    return {"batch_size": BATCH, "learning_rate": 0.01, "seed": 3, "progress": False, **more}


def history(folder: Path) -> list[tuple[float, ...]]:
    names = ("epoch", "train_loss", "dev_loss", "learning_rate")
    return [tuple(float(row[name]) for name in names) for row in csv.DictReader((folder / "metrics.csv").open())]


def weights(model: Any) -> torch.Tensor:
    return torch.cat([value.detach().double().flatten() for value in model.parameters()])


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    return fit(NeuralHawkes, *data, directory=folder, **settings(epochs=3)), folder


def test_two_processes_take_the_steps_of_one(data, alone, tmp_path):
    """Weights, losses of all training streams and scores of all dev streams, up to rounding."""
    model, folder = alone
    pair = fit(NeuralHawkes, *data, directory=tmp_path, devices=2, **settings(epochs=3))
    assert float((weights(model) - weights(pair)).abs().max()) < 1e-5
    assert history(tmp_path) == [pytest.approx(row, abs=1e-6) for row in history(folder)]
    assert pair.types == model.types
    assert not dist.is_initialized()


def test_a_run_goes_on_with_another_number_of_processes(data, alone, tmp_path):
    _, folder = alone
    fit(NeuralHawkes, *data, directory=tmp_path, devices=2, **settings(epochs=2))
    more = fit(NeuralHawkes, *data, directory=tmp_path, **settings(epochs=3))
    assert float((weights(alone[0]) - weights(more)).abs().max()) < 1e-5
    assert history(tmp_path) == [pytest.approx(row, abs=1e-6) for row in history(folder)]
    again = fit(NeuralHawkes, *data, directory=tmp_path, devices=2, **settings(epochs=5))
    assert [row[0] for row in history(tmp_path)] == [0, 1, 2, 3, 4]
    assert again.training_record["epochs"] == 5


@trains_together
def two_smoothers(model: Any, data: Any, *, devices: int = 1, num_nodes: int = 1) -> list[Any]:
    """By the same two processes; for one mechanism with both divergences, and for all mechanisms."""
    found = []
    for missing, beta in ((rd.ByType(0.5), 0.5), (None, 1.0)):
        torch.manual_seed(0)
        smoother = rd.Smoothing(model, missing, 8)
        fit(smoother, *data, epochs=2, beta=beta, devices=devices, **{**settings(), "learning_rate": 3e-3})
        found.append(smoother)
    return found


def test_smoothers_train_together(data, alone):
    """Their score is that of all dev streams, and near that of one process, which draws other points of integrals."""
    model, _ = alone
    for pair, one in zip(two_smoothers(model, data, devices=2), two_smoothers(model, data), strict=True):
        record = pair.training_record
        objective = Divergence(pair, *data, seed=3, beta=record["beta"])
        total, count = dev_loss(objective, BATCH)
        assert record["dev_log_likelihood_per_event"] == pytest.approx(-total / count, abs=1e-5)
        assert record["dev_log_likelihood_per_event"] == pytest.approx(
            one.training_record["dev_log_likelihood_per_event"], abs=0.02
        )


class Faulty(NeuralHawkes):
    """A model whose second process fails."""

    def batch_log_likelihood(self, *args: Any, **options: Any) -> torch.Tensor:
        """As ever, or nothing at all."""
        if dist.is_initialized() and dist.get_rank() == 1:
            raise RuntimeError("this device is on fire")
        return super().batch_log_likelihood(*args, **options)


class Infinite(NeuralHawkes):
    """A model whose loss is infinite in the second process, and there alone."""

    def batch_log_likelihood(self, *args: Any, **options: Any) -> torch.Tensor:
        """As ever, times infinity."""
        found = super().batch_log_likelihood(*args, **options)
        return found * torch.inf if found.requires_grad and dist.get_rank() == 1 else found


@trains_together
def refused_then_fitted(data: Any, *, devices: int = 1, num_nodes: int = 1) -> Any:
    """What one process refuses all refuse, and are ready for more."""
    with pytest.raises(TrainingError, match=r"the loss is -?inf at epoch 0, batch 0 \(streams"):
        fit(Infinite(2, 4), *data, devices=devices, **settings(epochs=1))
    return fit(NeuralHawkes, *data, devices=devices, **settings(epochs=1))


def test_what_one_process_refuses_all_refuse(data):
    assert refused_then_fitted(data, devices=2).training_record["epochs"] == 1


def test_a_process_that_dies_ends_the_fit_in_words(data):
    with pytest.raises(TrainingError, match="a process that trained along failed: RuntimeError: this device is on"):
        fit(Faulty(2, 4), *data, devices=2, **settings(epochs=1))
    assert not dist.is_initialized()


def test_models_that_take_no_steps_start_no_processes(data, monkeypatch):
    monkeypatch.setattr("retrodict.train.together.Team._start", None)
    fitted = fit(Hawkes.from_streams(data[0], scales="auto"), *data, devices=2, progress=False)
    assert "nats_below_maximum" in fitted.training_record


def test_what_cannot_be_is_refused(data):
    class Local(NeuralHawkes):
        """Known to no other process."""

    for wrong in (0, "two"):
        with pytest.raises(ModelError, match="devices must be a whole number"):
            fit(Poisson, *data, devices=wrong)
    with pytest.raises(ModelError, match="torchrun --nnodes 2 --nproc-per-node 4"):
        fit(Poisson, *data, devices=4, num_nodes=2)
    with pytest.raises(ModelError, match="Define classes and functions at the top of a module"):
        fit(Local(2, 4), *data, devices=2, **settings(epochs=1))


def test_steps_have_as_many_streams_for_each_process(data):
    many = simulate(TRUTH, 4000, end=10.0, seed=1)
    assert [streams_a_step(many, count) for count in (1, 2, 4)] == [50, 100, 200]
    assert streams_a_step(data[0], 200) == 200


SCRIPT = """
import sys, torch, retrodict as rd
train = rd.simulate(rd.Hawkes([0.3, 0.2], [[0.1, 0.6], [0.5, 0.0]], 2.0), 40, end=10.0, seed=1)
model = rd.fit(rd.NeuralHawkes, train, epochs=2, batch_size=9, devices=int(sys.argv[1]), directory=sys.argv[2])
smoother = rd.Smoothing(model, rd.ByType(0.5))
assert rd.fit(smoother, train, epochs=1, devices=int(sys.argv[1]), progress=False) is smoother
with open(sys.argv[2] + "/" + __import__("os").environ["RANK"], "w") as file:
    file.write(str([p.tolist() for p in smoother.parameters()]))
"""


def by_torchrun(script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=300)


def test_torchrun_starts_all_processes(tmp_path):
    """Each has the same model and smoother in the end; one of them writes and speaks."""
    script, folder = tmp_path / "script.py", tmp_path / "run"
    script.write_text(SCRIPT)
    done = by_torchrun(script, "2", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("model, epoch 2") == 1
    assert (folder / "0").read_text() == (folder / "1").read_text()
    wrong = by_torchrun(script, "3", str(folder))
    assert "torchrun started 2 processes on this machine and 2 in all, but devices is 3" in wrong.stderr


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script), "2", str(tmp_path)], capture_output=True, text=True)
    assert "has to stand under: if __name__ == '__main__':" in done.stderr.splitlines()[-1]


def test_the_command(data, tmp_path):
    """Model and smoother by two processes, as by Python; then another smoother."""
    rd.write_events(data[0], tmp_path / "train.csv")
    rd.write_events(data[1], tmp_path / "dev.csv")
    common = ["--dev", "dev.csv", "--end", "10", "--devices", "2", "--epochs", "2", "--batch-size", "17"]
    steps = [
        ["fit", "train.csv", "--model", "neural-hawkes", "-m", "0.5", "-o", "model", *common],
        ["smoother", "model", "train.csv", "-m", "0=0.9", *common],
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for step in steps:
        done = subprocess.run(
            [sys.executable, "-m", "retrodict", *step], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("smoother for") == 1
    assert len(history(tmp_path / "model")) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
def test_an_interrupt_ends_all_processes(data, tmp_path, how):
    """Asked to end, the leader says what is kept; whatever it dies of, nobody is left."""
    rd.write_events(data[0], tmp_path / "train.csv")
    command = ["fit", "train.csv", "--end", "10", "--model", "neural-hawkes", "--model-only", "-o", "model"]
    process = subprocess.Popen(
        [sys.executable, "-m", "retrodict", *command, "--devices", "2"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    metrics = tmp_path / "model" / "metrics.csv"
    while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") > 2):
        time.sleep(0.1)
    os.kill(process.pid, getattr(signal, how))
    _, said = process.communicate(timeout=60)
    if how == "SIGTERM":
        assert process.returncode == 130
        assert "whole epochs: run the same command again to go on" in said
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a process is left")
