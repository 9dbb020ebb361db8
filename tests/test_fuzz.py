"""A small part of ``python -m tests.fuzz``."""

from tests.fuzz import fuzz


def test_mutated_inputs_are_accepted_or_refused_in_words():
    found = fuzz(range(1500), seed=1)
    assert found["problems"] == []
    assert sum(found["counts"].values()) == 1500
    assert found["counts"]["accepted"] > 50
    assert found["peak_mib"] < 1024
