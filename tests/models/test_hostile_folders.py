"""Saved models, smoothers and posteriors that were tampered with: refused in words, or accepted and right."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import retrodict as rd
from retrodict.errors import ModelError
from retrodict.models.model_folder import load_model
from retrodict.models.tensors import write_tensors
from retrodict.proposals.proposal_folder import load_proposal
from tests.conftest import KINDS, example_model

STREAMS = rd.StreamSet([rd.EventStream([0.5, 1.0], [0, 2], end=2.0, id="a")], types=["0", "1", "2"])
Damage = Callable[[Path], object]


def edit(change: Callable[[dict[str, Any]], object], name: str = "model.json") -> Damage:
    def apply(path: Path) -> None:
        about = json.loads((path / name).read_text())
        change(about)
        (path / name).write_text(json.dumps(about))

    return apply


def put(key: str, value: Any, name: str = "model.json") -> Damage:
    return edit(lambda about: about.__setitem__(key, value), name)


def argument(key: str, value: Any, name: str = "model.json") -> Damage:
    return edit(lambda about: about["config"].__setitem__(key, value), name)


def weights(change: Callable[[dict[str, torch.Tensor]], object], name: str = "model.safetensors") -> Damage:
    from safetensors.torch import load_file

    def apply(path: Path) -> None:
        tensors = load_file(path / name)
        change(tensors)
        write_tensors(path / name, tensors, "tampered")

    return apply


def fill(value: float, name: str = "model.safetensors") -> Damage:
    """One number of every tensor replaced."""

    def change(tensors: dict[str, torch.Tensor]) -> None:
        for tensor in tensors.values():
            tensor.view(-1)[:1] = value

    return weights(change, name)


def scale(value: float) -> Damage:
    return weights(lambda tensors: tensors.__setitem__("time_scale", torch.tensor(value, dtype=torch.float64)))


def header(text: bytes, length: int | None = None, name: str = "model.safetensors") -> Damage:
    size = len(text) if length is None else length
    return lambda path: (path / name).write_bytes(struct.pack("<Q", size) + text)


def link(name: str) -> Damage:
    def apply(path: Path) -> None:
        (path / name).rename(path / "elsewhere")
        (path / name).symlink_to("elsewhere")

    return apply


def pipe(name: str) -> Damage:
    def apply(path: Path) -> None:
        (path / name).unlink()
        os.mkfifo(path / name)

    return apply


FIELDS = ["kind", "config", "types", "time_unit", "start_atom", "training", "version", "format"]
ODD: list[Any] = [None, True, -1, 10**9, 10**400, 1.5, "x", ["x"], {"x": 1}, [], [[[]]]]
ANY: dict[str, Damage] = {
    **{f"{key} is {value!r}"[:60]: put(key, value)
       for key, value in itertools.product(FIELDS, ODD)
       if not (key == "types" and value is None) and not (key == "time_unit" and value in (None, "x"))
       and not (key == "training" and isinstance(value, dict))},
    "no weights": lambda path: (path / "model.safetensors").unlink(),
    "no description": lambda path: (path / "model.json").unlink(),
    "empty weights": lambda path: (path / "model.safetensors").write_bytes(b""),
    "cut weights": lambda path: os.truncate(path / "model.safetensors", 90),
    "no tensors": header(b"{}"),
    "a blank header of 99 MB": header(b" " * 99_000_000),
    "a header of 4 exabytes": header(b"{}", 2**62),
    "a header that is a list": header(b"[]"),
    "a header nested deeply": header(b"[" * 100_000),
    "a tensor beyond the file": header(b'{"log_rates": {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}}'),
    "a tensor of 1e18 numbers": header(b'{"log_rates": {"dtype": "F64", "shape": [%d], "data_offsets": []}}' % 10**18),
    "weights that are a link": link("model.safetensors"),
    "a description that is a link": link("model.json"),
    "weights that are a pipe": pipe("model.safetensors"),
    "a description that is a pipe": pipe("model.json"),
    "weights that are a folder": lambda path: (link("model.safetensors")(path), (path / "elsewhere").unlink(),
                                               (path / "elsewhere").mkdir()),
    "a description of deep lists": lambda path: (path / "model.json").write_text("[" * 100_000),
    "a description of 5,000 digits": lambda path: (path / "model.json").write_text('{"version": ' + "9" * 5000 + "}"),
    "a description of 20 MB": lambda path: (path / "model.json").write_text(" " * 20_000_000),
    "a description that is no text": lambda path: (path / "model.json").write_bytes(b"\xff\xfe\x00"),
    "NaN weights": fill(float("nan")),
    "infinite weights": fill(float("inf")),
    "weights of 1e38": fill(1e38),
    "integer tensors": weights(lambda t: [t.__setitem__(k, v.long()) for k, v in list(t.items())]),
    "half precision": weights(lambda t: [t.__setitem__(k, v.half()) for k, v in list(t.items())]),
    "other shapes": weights(lambda t: [t.__setitem__(k, v.reshape(-1)[:2]) for k, v in list(t.items())]),
    "a foreign tensor": weights(lambda t: t.__setitem__("foreign", torch.zeros(2))),
    "a tensor too few": weights(lambda t: t.popitem()),
    "renamed tensors": weights(lambda t: [t.__setitem__(k + "x", t.pop(k)) for k in list(t)]),
    "an unknown argument": edit(lambda about: about["config"].__setitem__("sizes", 7)),
    "types of another number": put("types", ["a"]),
    "types twice": put("types", ["a", "a", "a"]),
    "an atom that is not there": put("start_atom", True),
}  # fmt: skip
NEURAL: dict[str, Damage] = {
    **{f"num_types {value!r}": argument("num_types", value) for value in (10**9, 10**30, -3, 0, 4, "3", None, [3])},
    **{f"hidden_size {value!r}": argument("hidden_size", value) for value in (10**9, 10**5, -3, 0, 9, "8", None, [8])},
    **{f"time_scale {value}": scale(value) for value in (-1.0, 0.0, float("inf"), float("nan"), 1e-300, 1e300)},
    "time_scale in the description": argument("time_scale", "x"),
}  # fmt: skip
HAWKES: dict[str, Damage] = {
    "a decay of 0": argument("decay", 0),
    "a base that is text": argument("base", "abc"),
    "excitation of another shape": argument("excitation", [[1]]),
    "negative rates": argument("base", [-1, 1, 1]),
}
SMOOTHER: dict[str, Damage] = {
    **{f"{key} is {value!r}"[:60]: put(key, value, "proposal.json")
       for key, value in itertools.product(["kind", "config", "missingness", "version", "model"], ODD)},
    "a tensor too few": weights(lambda t: t.pop("readout"), "proposal.safetensors"),
    "a foreign tensor": weights(lambda t: t.__setitem__("model.readout", torch.zeros(2)), "proposal.safetensors"),
    "NaN weights": fill(float("nan"), "proposal.safetensors"),
    "weights of 1e38": fill(1e38, "proposal.safetensors"),
    "another mechanism": edit(lambda about: about["missingness"].__setitem__("kind", "os.system"), "proposal.json"),
    "a rate of 2": edit(lambda about: about["missingness"].__setitem__("config", {"rates": 2}), "proposal.json"),
    "hidden_size 1e9": argument("hidden_size", 10**9, "proposal.json"),
    "mixing 1e9": argument("mixing", 10**9, "proposal.json"),
    "a very long argument": argument("mixing", "a" * 10_000, "proposal.json"),
    "another model": lambda path: example_model("poisson").save(path / "model"),
    "a model trained further": weights(lambda t: t["readout"].add_(0.1), "model/model.safetensors"),
    "weights that are a pipe": pipe("proposal.safetensors"),
    "a model that is a link": lambda path: link("model.json")(path / "model"),
}  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    for kind in KINDS:
        example_model(kind).save(folder / kind)
    rd.Smoothing(example_model("neural_hawkes"), rd.ByType(0.5), 4).save(folder / "smoother")
    return folder


CASES = [(kind, name, damage) for kind in ("poisson", "neural_hawkes") for name, damage in ANY.items()]
CASES += [("neural_hawkes", name, damage) for name, damage in NEURAL.items()]
CASES += [("hawkes", name, damage) for name, damage in HAWKES.items()]
CASES += [("smoother", name, damage) for name, damage in SMOOTHER.items()]


@pytest.mark.parametrize(("kind", "name", "damage"), CASES, ids=[f"{kind}: {name}" for kind, name, _ in CASES])
def test_tampered_folders(kind, name, damage, good, tmp_path):
    path = tmp_path / "folder"
    shutil.copytree(good / kind, path)
    damage(path)
    if kind == "smoother":
        with pytest.raises(ModelError) as error:
            load_proposal(path)
    else:
        with pytest.raises(ModelError) as error:
            load_model(path)
    assert len(str(error.value)) < 1000
    assert str(path) in str(error.value)


def test_there_are_many_cases():
    assert len(CASES) >= 137


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_matter_is_accepted(kind, good, tmp_path):
    """A unit, names, a record of training: a model with others is right."""
    path = tmp_path / "folder"
    shutil.copytree(good / kind, path)
    expected = load_model(path).log_likelihood(STREAMS)
    for damage in (put("time_unit", "x"), put("training", {"x": 1}), put("types", None), put("note", [[1]])):
        damage(path)
        assert torch.equal(load_model(path).log_likelihood(STREAMS), expected)


SAVE = """
import sys, torch
import retrodict as rd
from tests.conftest import example_model
torch.manual_seed(0)
rd.Smoothing(example_model("neural_hawkes"), rd.ByType(0.5), 4).save(sys.argv[1])
"""


def test_the_same_model_is_saved_as_the_same_bytes(tmp_path):
    for number in range(3):
        environment = {**os.environ, "PYTHONHASHSEED": str(number)}
        subprocess.run([sys.executable, "-c", SAVE, str(tmp_path / str(number))], env=environment, check=True)
    files = sorted(p.relative_to(tmp_path / "0") for p in (tmp_path / "0").rglob("*") if p.is_file())
    assert len(files) == 4
    for file, number in itertools.product(files, "12"):
        assert (tmp_path / number / file).read_bytes() == (tmp_path / "0" / file).read_bytes(), file


def test_tampered_posteriors(good, tmp_path):
    posterior = rd.impute(STREAMS, rd.Filtering(load_model(good / "poisson"), rd.ByType(0.5)), 4)
    posterior.save(tmp_path / "p")
    assert np.array_equal(rd.load_posterior(tmp_path / "p").all_weights, posterior.all_weights)
    for name, value in itertools.product(["particles", "version", "format"], [None, 3, -4, 10**9, "x", [4]]):
        shutil.copytree(tmp_path / "p", tmp_path / "q")
        put(name, value, "posterior.json")(tmp_path / "q")
        with pytest.raises(rd.DataError, match=r"not a saved posterior, or it is damaged"):
            rd.load_posterior(tmp_path / "q")
        shutil.rmtree(tmp_path / "q")


def test_a_model_of_a_billion_types_is_refused_before_memory_is_asked_for():
    with pytest.raises(rd.LimitError, match=r"an LSTM of 64 cells and 1,000,000,001 inputs would need about 1\.6 TiB"):
        rd.NeuralHawkes(10**9)
