"""What was probably meant by a name or a folder that is not there."""

from __future__ import annotations

import pytest

from retrodict._near import correct_type, did_you_mean, nearest, why_no_folder

TYPES = ("admission", "lab_sample", "round")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ruond", "round"), ("ROUND", "round"), ("lab sample", "lab_sample"), ("lunch", None), ("", None), (7, None)],
)
def test_the_name_that_is_most_alike_was_meant(name, meant):
    assert nearest(name, TYPES) == meant
    assert did_you_mean(name, TYPES) == ("" if meant is None else f" Did you mean {meant!r}?")
    assert correct_type(name, TYPES) == "correct the type" + ("" if meant is None else f" (did you mean {meant!r}?)")


def test_numbers_and_endless_names_mean_nothing_else():
    assert nearest("12", [str(k) for k in range(12)]) is None
    assert nearest("x" * 10**6, ["x" * 10**6]) is None


def test_only_a_folder_that_holds_the_file_was_meant(tmp_path):
    (tmp_path / "mode").mkdir()
    wrong = tmp_path / "modle"
    assert why_no_folder(wrong, "model.json") == f"{wrong}: there is no such folder. Pass the folder that fit wrote."
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").write_text("{}")
    meant = f"{wrong}: there is no such folder. Did you mean {tmp_path / 'model'}/?"
    assert why_no_folder(wrong, "model.json") == meant
    assert why_no_folder(tmp_path / "model", "model.json") is None
    assert "is not a saved model: there is no model.json in it" in str(why_no_folder(tmp_path / "mode", "model.json"))
    assert "there is no such folder" in str(why_no_folder(wrong / "below" / "model", "model.json"))
    inside = str(why_no_folder(tmp_path / "model" / "model.json", "model.json"))
    assert inside.endswith("is a file, not the folder of a saved model. Pass the folder that it is in.")
