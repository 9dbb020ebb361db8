"""Saved models come back the same, and damaged ones are refused in words."""

from __future__ import annotations

import json

import pytest
import torch

from retrodict.errors import ModelError
from retrodict.models.model_folder import load_model, save_model
from retrodict.models.simulate import simulate
from retrodict.models.start import StartAtom
from tests.conftest import KINDS, example_model


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_comes_back_the_same(kind, dtype, tmp_path):
    model = example_model(kind).to(dtype)
    streams = simulate(model, 5, end=4.0, seed=1)
    model.types, model.time_unit = ("a", "b", "c"), "hour"
    model.start_atom = StartAtom(torch.full((4,), 0.25, dtype=dtype).log())
    model.training_record = {"epochs": 3}
    save_model(model, tmp_path / "deep" / "model")
    loaded = load_model(tmp_path / "deep" / "model")
    assert type(loaded) is type(model)
    assert (loaded.dtype, loaded.types, loaded.time_unit) == (dtype, model.types, "hour")
    assert loaded.training_record == {"epochs": 3}
    assert torch.equal(loaded.log_likelihood(streams), model.log_likelihood(streams))
    assert sorted(p.name for p in (tmp_path / "deep" / "model").iterdir()) == [
        "model.json",
        "model.safetensors",
    ]


def test_a_model_without_its_time_scale_comes_back_so(tmp_path):
    from retrodict.models import NeuralHawkes

    NeuralHawkes(2, 4).save(tmp_path)
    assert load_model(tmp_path).config()["time_scale"] is None


def damage_json(path):
    (path / "model.json").write_text("{")


def damage_weights(path):
    data = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(data[: len(data) // 2])


def change(**fields):
    def apply(path):
        about = json.loads((path / "model.json").read_text())
        (path / "model.json").write_text(json.dumps({**about, **fields}))

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_json, "model.json is damaged"),
        (damage_weights, "model.safetensors cannot be read"),
        (lambda path: (path / "model.safetensors").unlink(), "model.safetensors cannot be read"),
        (lambda path: (path / "model.json").unlink(), "is not a saved model"),
        (change(format="something else"), "does not describe a retrodict model"),
        (change(version=99), "has version 99, this retrodict reads version 1"),
        (change(kind="transformer"), "unknown kind of model 'transformer'"),
        (change(config={"num_types": 7, "hidden_size": 8}), "weights do not fit"),
        (change(config={"sizes": 7}), "arguments"),
    ],
)
def test_damaged_models_are_refused_in_words(damage, message, tmp_path):
    example_model("neural_hawkes").save(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelError, match=message):
        load_model(tmp_path)


def test_casting_and_saving_do_not_round_the_clock(tmp_path):
    from retrodict.models import NeuralHawkes

    torch.manual_seed(0)
    model = NeuralHawkes(2, 4, time_scale=1 / 3)
    assert float(model.float().time_scale) == float(model.double().time_scale) == 1 / 3
    model.float().save(tmp_path)
    loaded = load_model(tmp_path)
    assert float(loaded.time_scale) == 1 / 3
    assert simulate(loaded, 20, end=5.0, seed=1) == simulate(model, 20, end=5.0, seed=1)
