"""What every float64 model of three types promises: intensities, integrals, bounds and states agree with each other.

Each check takes a model; ``check_model`` makes all checks.
"""

from __future__ import annotations

import copy

import numpy as np
import torch

import retrodict as rd
from retrodict.events.batch import make_batch
from retrodict.models.state import put, take


def random_state(model: rd.Model, rows: int, events: int, generator: torch.Generator):
    """States of ``rows`` random histories of ``events`` events each."""
    state, time = model.initial((rows,)), torch.zeros(rows, dtype=torch.float64)
    for _ in range(events):
        time = time + torch.rand(rows, generator=generator, dtype=torch.float64)
        state = model.update(state, torch.randint(model.num_types, (rows,), generator=generator), time)
    return state


def compensator_is_the_integral_of_the_intensity(model: rd.Model) -> None:
    state = random_state(model, 6, 4, torch.Generator().manual_seed(0))
    start, stop = state.time + 0.1, state.time + 1.7
    nodes, weights = rd.GaussLegendre(40).nodes((), start)
    rates = model.intensity(state, start[:, None] + (stop - start)[:, None] * nodes)
    numeric = (rates * weights[:, None]).sum(1) * (stop - start)[:, None]
    torch.testing.assert_close(model.compensator(state, start, stop), numeric, rtol=1e-6, atol=1e-9)


def many_times_at_once_equal_one_time_each(model: rd.Model) -> None:
    state = random_state(model, 5, 3, torch.Generator().manual_seed(1))
    times = state.time[:, None] + torch.linspace(0, 2, 7, dtype=torch.float64)
    together = model.intensity(state, times)
    apart = torch.stack([model.intensity(state, times[:, i]) for i in range(7)], 1)
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-14)


def features_stay_within_their_range(model: rd.Model) -> None:
    state = random_state(model, 500, 4, torch.Generator().manual_seed(2))
    start, length = state.time + 0.1, torch.rand(500, dtype=torch.float64)
    times = start[:, None] + length[:, None] * torch.linspace(0, 1, 9, dtype=torch.float64)
    together = model.features(state, times)
    assert together.shape == (500, 9, model.num_features)
    apart = torch.stack([model.features(state, times[:, i]) for i in range(9)], 1)
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-14)
    if type(model).feature_range is rd.Model.feature_range:
        return  # the model does without, and so do its smoothers
    low, high = (end[:, None] for end in model.feature_range(state, start, start + length))
    assert (together >= low - 1e-12).all()
    assert (together <= high + 1e-12).all()


def drives_come_with_the_features_at_the_same_times(model: rd.Model) -> None:
    batch = make_batch(rd.simulate(model, 6, end=4.0, seed=2), dtype=torch.float64)
    same = rd.GaussLegendre(3).nodes((), batch.gaps)[0]
    for positions in (same, same * torch.rand(*batch.gaps.shape, 1, dtype=torch.float64)):
        at_events, inside, features = model.drives_and_features(batch, positions)
        for ours, theirs in zip((at_events, inside), model.drives(batch, positions), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        for i, (state, start, end) in enumerate(model.gaps(batch)):
            times = start[:, None] + (end - start)[:, None] * (positions if positions.dim() == 1 else positions[:, i])
            both = model.features(state, torch.cat([times, end[:, None]], 1))
            real = batch.gaps[:, i] > 0
            torch.testing.assert_close(features[real, i], both[real], rtol=0, atol=1e-12)


def terms_equal_the_five_methods_event_by_event(model: rd.Model) -> None:
    streams = rd.simulate(model, 12, end=9.0, seed=2)
    batch = make_batch(streams, dtype=torch.float64)
    fast, plain = model.terms(batch), rd.Model.terms(model, batch)
    torch.testing.assert_close(fast.log_intensities, plain.log_intensities, rtol=0, atol=1e-12)
    torch.testing.assert_close(fast.compensators, plain.compensators, rtol=0, atol=1e-12)


def gradients_equal_those_of_the_plain_computation(model: rd.Model) -> None:
    batch = make_batch(rd.simulate(model, 7, end=6.0, seed=3), dtype=torch.float64)
    gradients = []
    for terms in (model.terms(batch), rd.Model.terms(model, batch)):
        total = terms.log_intensities.sum() - terms.compensators.sum()
        gradients.append(torch.autograd.grad(total, list(model.parameters())))
    for fast, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-10)


def rows_of_a_state_can_be_gathered_and_written_back(model: rd.Model) -> None:
    state = random_state(model, 5, 3, torch.Generator().manual_seed(4))
    order = torch.tensor([4, 0, 0, 2])
    later = state.time.max() + 1
    at = later.expand(4)
    torch.testing.assert_close(model.intensity(take(state, order), at), model.intensity(state, later.expand(5))[order])
    back = put(state, torch.tensor([1, 3]), take(state, torch.tensor([0, 2])))
    for field, old in zip(back, state, strict=True):
        assert torch.equal(field[1], old[0])
        assert torch.equal(field[3], old[2])
        assert torch.equal(field[4], old[4])


def empty_streams_and_events_at_both_ends(model: rd.Model) -> None:
    streams = rd.StreamSet(
        [rd.EventStream([], [], end=2.0), rd.EventStream([0.0, 1.0, 1.0, 2.0], [0, 1, 1, 2], end=2.0)],
        types=["a", "b", "c"],
    )
    values = model.log_likelihood(streams)
    state = model.initial((1,))
    zero, end = torch.zeros(1, dtype=torch.float64), torch.full((1,), 2.0, dtype=torch.float64)
    torch.testing.assert_close(values[:1], -model.compensator(state, zero, end).sum(-1))
    assert torch.isfinite(values).all()
    assert model.log_likelihood(rd.StreamSet([], types=["a", "b", "c"])).shape == (0,)


def likelihood_does_not_depend_on_the_start_or_the_batch(model: rd.Model) -> None:
    streams = rd.simulate(model, 30, end=7.0, seed=5)
    shifted = rd.StreamSet(
        [rd.EventStream(s.times + 100, s.types, start=100.0, end=107.0, id=s.id) for s in streams],
        types=streams.types,
    )
    values = model.log_likelihood(streams)
    torch.testing.assert_close(model.log_likelihood(shifted), values, rtol=0, atol=1e-9)
    torch.testing.assert_close(model.log_likelihood(streams, batch_size=4), values, rtol=0, atol=1e-9)
    torch.testing.assert_close(model.log_likelihood(streams[::-1]).flip(0), values, rtol=0, atol=1e-9)


def single_precision_agrees_with_double_even_late_on_the_axis(model: rd.Model) -> None:
    streams = rd.simulate(model, 20, end=20.0, seed=6)
    late = rd.StreamSet(
        [rd.EventStream(s.times + 1e7, s.types, start=1e7, end=1e7 + 20.0, id=s.id) for s in streams],
        types=streams.types,
    )
    exact = model.log_likelihood(late)
    single = model.float().log_likelihood(late)
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single.detach(), exact.detach(), rtol=2e-5, atol=2e-4)


CHECKS = (
    compensator_is_the_integral_of_the_intensity,
    many_times_at_once_equal_one_time_each,
    features_stay_within_their_range,
    drives_come_with_the_features_at_the_same_times,
    terms_equal_the_five_methods_event_by_event,
    gradients_equal_those_of_the_plain_computation,
    rows_of_a_state_can_be_gathered_and_written_back,
    empty_streams_and_events_at_both_ends,
    likelihood_does_not_depend_on_the_start_or_the_batch,
    single_precision_agrees_with_double_even_late_on_the_axis,
)


def check_model(model: rd.Model) -> None:
    """All checks, each on a copy of the model."""
    for check in CHECKS:
        check(copy.deepcopy(model))
