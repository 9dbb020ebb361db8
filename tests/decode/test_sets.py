"""A set decoded in one call equals its streams decoded one by one, whatever the threads and the order of particles."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.decode import (
    Charges,
    Ensembles,
    consensus,
    decode_set,
    distances,
    expected_distance_set,
    thin_set,
    tradeoff,
)
from retrodict.decode.ensemble import own_order
from retrodict.errors import DataError
from retrodict.events.stream import EventStream
from tests.decode.examples import posterior_like

COSTS = (0.2, (1.0, 0.4))


def flat(streams: list[list[EventStream]], weights: list[np.ndarray]) -> Ensembles:
    every = [s for particles in streams for s in particles]
    times, types = np.concatenate([s.times for s in every]), np.concatenate([s.types for s in every])
    return Ensembles(times, types, np.array([0, *map(len, every)]).cumsum(), np.array(weights))


def example(streams: int = 5, particles: int = 12) -> tuple[list[list[EventStream]], list[np.ndarray]]:
    pairs = [posterior_like(3 * (i + 1), 3, particles, i) for i in range(streams)]
    return [p for p, _ in pairs], [w for _, w in pairs]


def same(a, b) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def charges(streams: int) -> Charges:
    return Charges(np.tile([0.0, 1.0, 2.0], streams), np.linspace(0, 0.6, 3 * streams), 3 * np.arange(streams + 1))


def test_a_set_is_decoded_as_its_streams_are_one_by_one() -> None:
    streams, weights = example()
    for method in ("exact", "local"):
        found = decode_set(flat(streams, weights), COSTS, method=method, level=0.8)
        for i, (particles, w) in enumerate(zip(streams, weights, strict=True)):
            for decodes, one in zip(found, tradeoff(particles, w, COSTS, method, level=0.8), strict=True):
                own = slice(decodes.offsets[i], decodes.offsets[i + 1])
                assert np.array_equal(decodes.times[own], one.stream.times)
                assert np.array_equal(decodes.types[own], one.stream.types)
                assert decodes.probability[own] == pytest.approx(one.probability, rel=1e-12)
                assert np.array_equal(np.stack([decodes.earliest, decodes.latest], 1)[own], one.interval)
                assert decodes.gap[i] == pytest.approx(one.gap, abs=1e-12)
                for name in ("risk", "lower_bound", "moved", "inserted", "deleted"):
                    assert getattr(decodes, name)[i] == pytest.approx(getattr(one, name), rel=1e-12)
                assert decodes.charged[i] == 0


def test_threads_and_other_streams_of_the_set_change_no_bit() -> None:
    streams, weights = example()
    every, last = flat(streams, weights), flat(streams[-1:], weights[-1:])
    one, four = (decode_set(every, COSTS, charges(5), threads=n) for n in (1, 4))
    of_last = Charges(*(part[-3:] for part in charges(5)[:2]), np.array([0, 3]))
    for a, b, alone in zip(one, four, decode_set(last, COSTS, of_last), strict=True):
        assert same(a, b)
        assert alone.times.tobytes() == a.times[a.offsets[-2] :].tobytes()
        assert alone.risk[0] == a.risk[-1]


def test_the_order_of_equally_heavy_particles_changes_no_bit() -> None:
    streams, _ = example(2, 16)
    order = np.random.default_rng(0).permutation(16)
    equal = [np.full(16, 1 / 16)] * 2
    given = decode_set(flat(streams, equal), COSTS, charges(2))
    mixed = decode_set(flat([[p[m] for m in order] for p in streams], equal), COSTS, charges(2))
    assert all(same(a, b) for a, b in zip(given, mixed, strict=True))


def test_particles_are_ordered_by_weight_then_bytes() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        particles = [rng.integers(0, 3, size=n) / 7 - 0.2 for n in rng.integers(0, 4, size=9)]
        types = [rng.integers(0, 300, size=len(p)) for p in particles]
        weights = rng.choice([0.0, 1e-17, 0.1, 0.2], size=9)
        kept = [m for m in range(9) if weights[m] >= 2.0**-50]
        expected = sorted(kept, key=lambda m: (-weights[m], particles[m].tobytes(), types[m].tobytes()))
        offsets = np.array([0, *map(len, particles)]).cumsum()
        assert own_order(np.concatenate(particles), np.concatenate(types), offsets, weights).tolist() == expected


@pytest.mark.parametrize("cost", COSTS)
def test_expected_distance_under_other_particles(cost) -> None:
    streams, weights = example()
    others, theirs = example(5, 7)[0], [np.random.default_rng(i).dirichlet(np.ones(7)) for i in range(5)]
    theirs[0] = np.array([0.0, *theirs[0][1:]])
    found = decode_set(flat(streams, weights), [cost])[0]
    events = found.times, found.types, found.offsets
    assert expected_distance_set(*events, flat(streams, weights), cost) == pytest.approx(found.risk, rel=1e-12)
    crossed = expected_distance_set(*events, flat(others, theirs), cost, threads=3)
    for i in range(5):
        decode = consensus(streams[i], weights[i], cost).stream
        w = theirs[i] / theirs[i].sum()
        assert crossed[i] == pytest.approx(w @ distances([decode] * 7, others[i], cost), rel=1e-12)
    nothing = expected_distance_set(found.times[:0], found.types[:0], np.zeros(6, np.int64), flat(others, theirs), cost)
    insert = cost if isinstance(cost, float) else cost[0]
    sizes = np.array([[len(p) for p in particles] for particles in others])
    shares = np.array(theirs) / np.sum(theirs, axis=1, keepdims=True)
    assert nothing == pytest.approx(insert * (shares * sizes).sum(1))


def test_thinning_picks_each_particle_in_proportion_to_its_weight() -> None:
    streams, weights = example(3, 12)
    weights[1] = np.array([0.0] * 4 + [1.0] + [0.0] * 7)
    ensembles = flat(streams, weights)
    picked, grid = np.zeros((3, 12)), (np.arange(4000) + 0.5) / 4000
    own = [{p.times.tobytes(): m for m, p in enumerate(particles)} for particles in streams]
    for u in grid[::10]:
        thin = thin_set(ensembles, 5, [u, u, 1 - u])
        assert thin.weights.shape == (3, 5)
        assert (thin.weights == 0.2).all()
        for row in range(15):
            events = thin.event_times[thin.offsets[row] : thin.offsets[row + 1]]
            picked[row // 5, own[row // 5][events.tobytes()]] += 1
    shares = np.array(weights) / np.sum(weights, axis=1, keepdims=True)
    assert picked / len(grid[::10]) == pytest.approx(5 * shares, abs=0.01)
    assert same(thin_set(ensembles, 5, 0.3), thin_set(ensembles, 5, np.full(3, 0.3)))
    assert same(thin_set(ensembles, 12, 0.3)[:3], ensembles[:3])


def test_empty_sets_and_empty_particles() -> None:
    none = Ensembles(np.empty(0), np.empty(0, np.int64), np.zeros(1, np.int64), np.empty((0, 4)))
    assert len(decode_set(none, [1.0])[0].risk) == 0
    assert len(expected_distance_set(np.empty(0), np.empty(0, np.int64), np.zeros(1, np.int64), none, 1.0)) == 0
    assert thin_set(none, 2, 0.5).weights.shape == (0, 2)
    empty = Ensembles(np.empty(0), np.empty(0, np.int64), np.zeros(9, np.int64), np.ones((2, 4)))
    found = decode_set(empty, [1.0], charges(2))[0]
    assert found.risk.tolist() == found.gap.tolist() == [0.0, 0.0]
    assert found.offsets.tolist() == [0, 0, 0]


def good() -> tuple[Ensembles, Charges]:
    return flat(*example(2, 3)), charges(2)


@pytest.mark.parametrize(
    ("ensembles", "charged", "message"),
    [
        ({"weights": np.ones(6)}, {}, r"shape \(6,\)"),
        ({"weights": np.ones((2, 4))}, {}, "8 particles, but offsets"),
        ({"weights": np.array([[1.0, 1, 1], [1, np.nan, 1]])}, {}, "stream 1: weight 1 is nan"),
        ({"weights": np.array([[0.0, 0, 0], [1, 1, 1]])}, {}, "stream 0: all weights are zero"),
        ({}, {"offsets": np.array([0, 6])}, "charges of 2 streams"),
        ({}, {"values": np.array([0, 0, 0, 0, -1.0, 0])}, "stream 1: segment 1 starts at 1 and is charged -1"),
        ({}, {"starts": np.array([0, 2.0, 1.0, 0, 1, 2])}, "stream 0: segment 2 starts at 1"),
    ],
)
def test_bad_arrays_are_refused_with_the_stream_and_a_remedy(ensembles, charged, message) -> None:
    given, charging = good()
    with pytest.raises(DataError, match=message) as error:
        decode_set(given._replace(**ensembles), [1.0], charging._replace(**charged))
    assert "Remedy" in str(error.value)


def test_other_bad_input() -> None:
    ensembles, _ = good()
    with pytest.raises(DataError, match="draws is 0"):
        thin_set(ensembles, 0, 0.5)
    with pytest.raises(DataError, match="ensembles of 2 streams"):
        expected_distance_set(np.empty(0), np.empty(0, np.int64), np.zeros(2, np.int64), ensembles, 1.0)
