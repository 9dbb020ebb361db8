"""The exact consensus is optimal and proves it; the local search is an honest upper bound."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

from retrodict.decode import certify, consensus, distances, tradeoff, transport
from retrodict.errors import DataError
from tests.decode.examples import golden, least_risk, of_one_type, posterior_like, stream


def random_instance(rng: np.random.Generator) -> tuple[list[list[float]], np.ndarray, tuple[float, float]]:
    """Few particles on a coarse or fine grid: ties, repeated times, empty particles, zero weights."""
    grid = int(rng.choice([3, 5, 40]))
    sizes = rng.integers(0, 4, size=rng.integers(1, 4))
    particles = [sorted((rng.integers(0, grid + 1, size=n) / grid * 4).tolist()) for n in sizes]
    if rng.random() < 0.3 and sizes.sum() + sizes[0] <= 9:
        particles.append(list(particles[0]))
    w = rng.random(len(particles)) if rng.random() < 0.7 else np.ones(len(particles))
    if rng.random() < 0.3 and len(w) > 1:
        w[rng.integers(len(w))] = 0.0
    insert = float(rng.choice([0.1, 0.5, 1.0, 3.0]))
    delete = insert if rng.random() < 0.5 else float(rng.choice([0.0, 0.2, 0.8, 5.0]))
    return particles, w / w.sum(), (insert, delete)


def test_exact_equals_brute_force_and_proves_it() -> None:
    rng = np.random.default_rng(4)
    for _ in range(500):
        particles, w, cost = random_instance(rng)
        streams = [of_one_type(p) for p in particles]
        best = least_risk(particles, w, *cost)
        result = consensus(streams, w, cost)
        assert result.risk == pytest.approx(best, rel=1e-9, abs=1e-12), (particles, w, cost)
        assert result.risk - result.lower_bound <= 1e-9 * result.risk + 1e-15
        local = consensus(streams, w, cost, "local")
        assert local.lower_bound <= best + 1e-12
        assert local.risk >= best - 1e-12


def linear_program(particles: list[np.ndarray], w: np.ndarray, insert: float, delete: float) -> float:
    """The least risk by the linear program of docs/consensus.md, with a general-purpose solver."""
    tau = np.unique(np.concatenate(particles))
    n, M = len(tau), len(particles)
    # Variables: y [n]; per particle deleted d [n], inserted i [n], excess |flow| across gaps up, down [n].
    size = n + M * 4 * n
    objective, rows, right = np.zeros(size), [], []
    for m, p in enumerate(particles):
        count = np.array([(p == t).sum() for t in tau])
        base = n + m * 4 * n
        gaps = np.append(np.diff(tau), 0.0)
        objective[base : base + 4 * n] = w[m] * np.r_[[delete] * n, [insert] * n, gaps, gaps]
        for j in range(n):  # y_j - d_j + i_j - n_j carried on: net_j = net_(j-1) + ...
            row = np.zeros(size)
            row[j], row[base + j], row[base + n + j] = 1.0, -1.0, 1.0
            if j > 0:
                row[base + 2 * n + j - 1], row[base + 3 * n + j - 1] = 1.0, -1.0
            if j < n - 1:
                row[base + 2 * n + j], row[base + 3 * n + j] = -1.0, 1.0
            rows.append(row)
            right.append(count[j])
    return float(linprog(objective, A_eq=np.array(rows), b_eq=right, method="highs").fun)


@pytest.mark.parametrize("seed", range(6))
def test_exact_equals_the_linear_program_on_larger_instances(seed: int) -> None:
    streams, w = posterior_like(6, 1, 8, seed)
    cost = [(0.3, 0.3), (1.0, 1.0), (3.0, 0.5)][seed % 3]
    result = consensus(streams, w, cost)
    assert result.risk == pytest.approx(linear_program([s.times for s in streams], w, *cost), rel=1e-8)
    assert result.gap <= 1e-9


def test_golden_ensembles_are_beaten_with_a_certificate() -> None:
    data = golden("consensus_ensembles.json")
    better = 0
    for ensemble in data["ensembles"]:
        particles = [stream(p) for p in ensemble["particles"]]
        costs = [row["C"] for row in ensemble["by_C"]]
        for row, result in zip(ensemble["by_C"], tradeoff(particles, ensemble["weights"], costs), strict=True):
            old = min(value for key, value in row.items() if key.startswith("bayes_risk"))
            assert result.risk <= old + 1e-9
            assert result.gap <= 1e-9
            better += result.risk < old - 1e-9
    assert better > len(data["ensembles"])


@pytest.mark.parametrize("cost", [0.1, 0.5, 2.0, (0.2, 1.0), (3.0, 0.4)])
@pytest.mark.parametrize("method", ["exact", "local"])
def test_reported_risk_is_the_expected_distance(method, cost) -> None:
    particles, w = posterior_like(20, 3, 30, 1)
    result = consensus(particles, w, cost, method)
    assert result.risk == pytest.approx(w @ distances([result.stream] * 30, particles, cost), rel=1e-12)
    terms = result.cost.insert * result.inserted + result.cost.delete * result.deleted + result.moved
    assert result.risk == pytest.approx(terms, rel=1e-12)
    assert 0 <= result.lower_bound <= result.risk


@pytest.mark.parametrize("seed", range(5))
def test_exact_is_never_worse_than_anything_else(seed: int) -> None:
    particles, w = posterior_like(24, 3, 25, seed)
    for cost in (0.2, 1.0, (0.5, 3.0)):
        best = consensus(particles, w, cost)
        assert best.gap <= 1e-9
        for other in [consensus(particles, w, cost, "local").stream, *particles]:
            certificate = certify(other, particles, w, cost)
            assert certificate.lower_bound <= best.risk + 1e-12
            assert certificate.risk >= best.risk * (1 - 1e-12)


def test_more_starts_and_more_rounds_never_hurt() -> None:
    particles, w = posterior_like(30, 2, 30, 7)
    risks = [consensus(particles, w, 1.0, "local", starts=n).risk for n in (1, 2, 4, 8)]
    assert risks == sorted(risks, reverse=True)
    short = [consensus(particles, w, 1.0, rounds=n) for n in (1, 2, 4, 100)]
    assert [r.risk for r in short] == sorted((r.risk for r in short), reverse=True)
    assert short[-1].gap <= 1e-9 < short[0].gap
    assert all(r.lower_bound <= short[-1].risk + 1e-12 for r in short)


def test_a_looser_tolerance_is_kept_too() -> None:
    particles, w = posterior_like(60, 2, 40, 3)
    rough = consensus(particles, w, 1.0, tolerance=1e-2)
    assert rough.gap <= 1e-2
    assert rough.lower_bound <= consensus(particles, w, 1.0).risk + 1e-12


def test_order_and_copies_of_particles_do_not_matter() -> None:
    particles, w = posterior_like(12, 2, 10, 5)
    first = consensus(particles, w, 1.0)
    order = np.random.default_rng(0).permutation(10)
    assert consensus([particles[i] for i in order], w[order], 1.0).stream == first.stream
    halves = consensus(particles * 2, np.concatenate([w, w]) / 2, 1.0)
    assert halves.risk == pytest.approx(first.risk, rel=1e-12)
    assert consensus(particles, 7 * w, 1.0).stream == first.stream
    ghost = stream([(0, 1.0)] * 50, end=particles[0].end)
    padded = consensus([*particles, ghost], [*w, 1e-17], 1.0)
    assert padded.stream == first.stream


def test_probability_and_interval_of_each_event() -> None:
    times = [4.0, 4.5, 5.0, 5.5, 6.0]
    particles = [of_one_type([t, 50.0], end=99.0) for t in times] + [of_one_type([50.0], end=99.0)]
    w = [0.1, 0.2, 0.2, 0.2, 0.1, 0.2]
    result = consensus(particles, w, 3.0, level=0.5)
    assert result.stream.times.tolist() == [5.0, 50.0]
    assert result.probability == pytest.approx([0.8, 1.0])
    assert result.interval.tolist() == [[4.5, 5.5], [50.0, 50.0]]
    assert result.stream.columns["probability"] is result.probability
    assert consensus(particles, w, 3.0, level=0.9).interval[0].tolist() == [4.0, 6.0]


def test_tradeoff_moves_more_and_edits_less_as_the_cost_grows() -> None:
    """Scaling the cost of edits up makes the optimum buy fewer of them (eq. decomp)."""
    particles, w = posterior_like(20, 2, 40, 11)
    curve = tradeoff(particles, w, [0.05, 0.2, 0.6, 2.0, 8.0])
    edits = [r.inserted + r.deleted for r in curve]
    moved = [r.moved for r in curve]
    assert all(b <= a + 1e-9 for a, b in pairwise(edits))
    assert all(b >= a - 1e-9 for a, b in pairwise(moved))


@pytest.mark.parametrize("method", ["exact", "local"])
def test_degenerate_ensembles(method) -> None:
    empty = of_one_type([])
    assert len(consensus([empty], None, 1.0, method).stream) == 0
    assert consensus([empty, empty], [0.3, 0.7], 1.0, method).risk == 0
    one = stream([(2, 1.0), (0, 1.0), (0, 1.0)])
    result = consensus([one, one], [1.0, 0.0], 0.5, method)
    assert (result.risk, result.gap) == (0.0, 0.0)
    assert transport(result.stream, one, 0.5).distance == 0
    twins = consensus([of_one_type([1.0, 1.0])] * 3 + [of_one_type([1.0])], None, 1.0, method)
    assert twins.stream.times.tolist() == [1.0, 1.0]


def test_far_from_zero_and_nearly_identical_particles() -> None:
    """Calendar seconds and tiny jitter leave enough digits for a certificate."""
    rng = np.random.default_rng(0)
    base = np.sort(rng.uniform(0, 100, 10))
    shifted = [of_one_type(1.6e9 + base + rng.normal(0, 1, 10), end=2e9) for _ in range(20)]
    assert consensus(shifted, None, 3.0).gap <= 1e-9
    near = [of_one_type(np.sort(base + rng.normal(0, 1e-5, 10))) for _ in range(20)]
    assert consensus(near, None, 1.0).gap <= 1e-9


def test_a_thousand_particles() -> None:
    particles, w = posterior_like(16, 5, 1000, 0)
    local = consensus(particles, w, 0.3, "local")
    exact = consensus(particles, w, 0.3)
    assert exact.gap <= 1e-9
    assert exact.risk <= local.risk
    assert exact.risk == pytest.approx(w @ distances([exact.stream] * 1000, particles, 0.3))


@pytest.mark.parametrize(
    ("particles", "weights", "cost", "options", "message"),
    [
        ([], None, 1.0, {}, "no particles"),
        ([of_one_type([1.0])], [0.5, 0.5], 1.0, {}, "1 particles but weights of shape"),
        ([of_one_type([1.0])] * 2, [0.5, float("nan")], 1.0, {}, "weight 1 is nan"),
        ([of_one_type([1.0])] * 2, [0.5, float("inf")], 1.0, {}, "weight 1 is inf"),
        ([of_one_type([1.0])] * 2, [-1.0, -2.0], 1.0, {}, "exponentiate log weights"),
        ([of_one_type([1.0])] * 2, [0.0, 0.0], 1.0, {}, "all weights are zero"),
        ([of_one_type([1.0])], None, -1.0, {}, "not negative"),
        ([of_one_type([1.0])], None, 1.0, {"method": "magic"}, "unknown method 'magic'"),
        ([of_one_type([1.0])], None, 1.0, {"level": 1.0}, "level is 1.0"),
        ([of_one_type([1.0])], None, 1.0, {"tolerance": -1.0}, "tolerance is -1.0"),
        ([of_one_type([1.0])], None, 1.0, {"rounds": 0}, "rounds=0"),
        ([[1.0, 2.0]], None, 1.0, {}, "not an EventStream"),
        (3, None, 1.0, {}, "must be a list of EventStream"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(particles, weights, cost, options, message) -> None:
    with pytest.raises(DataError, match=message) as error:
        consensus(particles, weights, cost, **options)
    assert "Remedy" in str(error.value)
