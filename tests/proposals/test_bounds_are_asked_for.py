"""A proposal that says what the future adds must also bound it, or its particles would be weighed wrongly."""

import pytest
import torch

import retrodict as rd


class Forgetful(rd.Filtering):
    def future_drive(self, ahead, t, past):
        return torch.ones(*t.shape, self.model.num_types)


def test_a_proposal_without_its_bound_is_refused():
    with pytest.raises(rd.ModelError, match="Forgetful defines future_drive without future_drive_bound"):
        Forgetful(rd.Poisson([1.0]), rd.ByType(0.5))
