"""What is measured and what becomes of it: numbers that must agree, figures, and an honest page."""

from __future__ import annotations

import numpy as np
import pytest

import retrodict as rd
from experiments.baselines import nothing
from experiments.collect import collect
from experiments.data import test_pair as pair_of
from experiments.findings import MOST_PROBABLE, NOTHING, Findings
from experiments.log_q import log_probs
from experiments.shortfalls import places, shortfalls
from experiments.sizes import SETTINGS
from experiments.store import Run, read_json
from experiments.summary import summarise
from retrodict.evaluate import transport_score
from tests.experiments.conftest import TINY

COSTS = TINY.kinds["flights"].costs


@pytest.fixture(scope="module")
def findings(finished):
    return Findings(finished)


def test_chunks_are_put_together_in_order(findings):
    _, missing = pair_of(findings.run, "flights", "rho-0.5")
    decoded = findings.decoded("flights", "rho-0.5", "smoothing", 12)
    assert len(findings.parts("flights", "rho-0.5", "smoothing", 12)) == 3  # of five streams at most
    assert decoded.missing.tolist() == missing.lengths.tolist()


def test_a_chunk_that_is_absent_leaves_no_number(finished):
    file = finished.result("impute/flights.rho-0.5.smoothing.12.0005")
    content = file.read_bytes()
    file.unlink()
    try:
        partial = Findings(finished)
        assert partial.decoded("flights", "rho-0.5", "smoothing", 12) is None
        assert partial.decoded("flights", "rho-0.5", MOST_PROBABLE, 12) is None
        assert partial.decoded("flights", "rho-0.5", "smoothing", 6) is not None
    finally:
        file.write_bytes(content)


def test_predicting_nothing_costs_an_insertion_for_each_missing_event(findings):
    _, missing = pair_of(findings.run, "flights", "deterministic")
    decoded = findings.decoded("flights", "deterministic", NOTHING, 6)
    for cost, distance in zip(COSTS, decoded.distance, strict=True):
        np.testing.assert_allclose(distance, transport_score(missing, nothing(missing), cost).distance_by_stream)


def test_distances_and_log_q_are_those_of_the_package(findings):
    run, cell = findings.run, ("flights", "rho-0.5")
    observed, missing = pair_of(run, *cell)
    smoother = rd.load_proposal(run.model("flights", "ours-rho-0.5"))
    posterior = rd.impute(observed[:10], smoother, particles=6)  # a chunk: its streams choose the ensemble together
    expected = [transport_score(missing[:10], posterior.consensus(cost), cost).distance_by_stream for cost in COSTS]
    np.testing.assert_allclose(findings.decoded(*cell, "smoothing", 6).distance[:, :10], expected, rtol=1e-4)
    log_q = findings.result("log-q/flights.rho-0.5")["smoothing"]
    np.testing.assert_allclose(log_q, log_probs(smoother, observed, missing), rtol=1e-4, atol=1e-4)


def test_every_baseline_is_in_every_table(findings):
    table = summarise(findings)["decoding"]
    for dataset in (*TINY.datasets, "synthetic"):
        for setting in SETTINGS:
            words = " ".join(table[dataset][setting]["methods"])
            for label in ("predict nothing", "constant rate", "most probable", "configuration, smoothing"):
                assert label in words
    assert "median time" in " ".join(table["flights"]["deterministic"]["methods"])


def test_synthetic_sets_together_are_the_mean_of_each(findings):
    table = summarise(findings)["decoding"]
    each = [table[f"synthetic-{i}"]["rho-0.5"]["methods"]["filtering, M = 6"] for i in (0, 1)]
    np.testing.assert_allclose(table["synthetic"]["rho-0.5"]["methods"]["filtering, M = 6"], np.mean(each, 0))


def test_more_quadrature_points_are_more_accurate_than_random_ones(findings):
    errors = {name: row["log_weight_rms"] for name, row in findings.result("integrals/flights")["rules"].items()}
    assert errors["quadrature 8"] < errors["quadrature 2"] < errors["Monte Carlo 1"]
    assert errors["quadrature 8"] < errors["Monte Carlo 20"] < errors["Monte Carlo 1"]


def test_figures_and_the_page(finished):
    written = collect(finished)
    figures = {path.stem for path in written if path.suffix == ".png"}
    assert figures == {f"results-{name}" for name in ("log-q", "distance", "baselines", "sensitivity")}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written if path.suffix == ".png")
    page = (finished.folder / "results.md").read_text(encoding="utf-8")
    assert "Not measured" not in page
    assert "this is a tiny run" in page.lower()
    assert len(page.splitlines()) < 250
    for line in page.splitlines():
        if line.startswith("!["):
            assert (finished.folder / line.rsplit("(", 1)[1].rstrip(")")).exists()
    summary = read_json(finished.folder / "summary.json")
    distance = summary["decoding"]["flights"]["rho-0.5"]["methods"]["smoothing, M = 12"][3]
    assert f"{distance:.4g}" in page


def test_a_page_of_nothing_says_so(tmp_path):
    assert [path.name for path in collect(Run(tmp_path, TINY))] == ["summary.json", "results.md"]
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "Not measured, log q: NYC Flights (deterministic; ρ = 0.5), Synthetic (deterministic; ρ = 0.5)." in page
    assert "Not measured, distances: NYC Flights (deterministic; ρ = 0.5; ρ = 0.9)" in page


def test_what_fell_short_is_said():
    log_q = {"synthetic": {"rho-0.5": {"smoothing_higher": 0.7, "exact_higher": 0.72}}}
    methods = {"predict nothing": [2.0, 2.5], "filtering, M = 6": [0.0, 0.0], "smoothing, M = 6": [1.0, 3.0]}
    bad = {"costs": [0.1, 0.5], "methods": methods, "tests": {"6": {"dominates": False, "p": 0.2}}}
    good = {"costs": [0.1, 0.5], "methods": methods, "tests": {"6": {"dominates": True, "p": 0.001}}}
    decoding = {f"synthetic-{i}": {"deterministic": good, "rho-0.5": bad} for i in range(3)}
    decoding |= {"synthetic": {"deterministic": good, "rho-0.5": good}, "taxi": {"deterministic": None, "rho-0.5": bad}}
    cut = {"ended": "time was up", "epochs": 10, "best_epoch": 10}
    smoothers = {"taxi": {"ours-rho-0.5": cut, "ours-deterministic": {**cut, "best_epoch": 5}, "paper-rho-0.5": cut}}
    ess = {"taxi": {"rho-0.5": {"smoothing unresampled": 0.1, "filtering unresampled": 0.2}}}
    text = shortfalls({"smoothers": smoothers, "log_q": log_q, "decoding": decoding, "ess": ess})
    assert "Not measured, distances: NYC Taxi (deterministic)." in text
    assert "Smoothers whose training ran out of time while dev still improved: NYC Taxi (1 of 2)." in text
    assert any("95% of the streams: Synthetic (ρ = 0.5: 70.0%, the exact posterior 72.0%)." in line for line in text)
    assert any("is no larger than filtering's: NYC Taxi (ρ = 0.5)." in line for line in text)
    alone = "Synthetic (3 of 3 sets alone, ρ = 0.5)."
    assert any(f"left of filtering's: NYC Taxi (ρ = 0.5, M = 6), {alone}" in line for line in text)
    assert any(f"p < 0.01: NYC Taxi (ρ = 0.5, M = 6: p = 0.2), {alone}" in line for line in text)
    assert any("NYC Taxi (ρ = 0.5 at 0.5: predict nothing)" in line for line in text)


def test_data_sets_are_named_in_few_words():
    assert places([("taxi", "a"), ("flights", "b"), ("taxi", "c")]) == "NYC Taxi (a; c), NYC Flights (b)"
