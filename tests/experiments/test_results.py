"""What is measured and what becomes of it: numbers that must agree, figures, and an honest page."""

from __future__ import annotations

import numpy as np
import pytest

from retrodict.evaluate import transport_score
from retrodict.experiments.baselines import nothing
from retrodict.experiments.collect import collect
from retrodict.experiments.data import test_pair as pair_of
from retrodict.experiments.findings import MOST_PROBABLE, NOTHING, Findings
from retrodict.experiments.log_q import log_probs
from retrodict.experiments.place import Place, read_json
from retrodict.experiments.scale import AVERSE, LOOKAHEAD, SETTINGS, costs_of
from retrodict.experiments.shortfalls import shortfalls, together
from retrodict.experiments.summary import summarise
from retrodict.experiments.training import between
from tests.experiments.conftest import TINY


@pytest.fixture(scope="module")
def findings(finished):
    return Findings(finished[0])


def test_chunks_are_put_together_in_order(findings):
    observed, missing = pair_of(findings.place, "flights", "rho-0.5")
    decoded = findings.decoded("flights", "rho-0.5", "smoothing", 12)
    assert len(findings.under("decoding/flights.rho-0.5.smoothing.12.")) == 3  # of five streams at most
    assert decoded.missing.tolist() == missing.lengths.tolist()
    assert decoded.about["observed"].tolist() == observed.lengths.tolist()


def test_a_chunk_that_is_absent_leaves_no_number(finished):
    partial = Findings(finished[0])
    del partial.jobs["decoding/flights.rho-0.5.smoothing.12.0005"]
    assert partial.decoded("flights", "rho-0.5", "smoothing", 12) is None
    assert partial.decoded("flights", "rho-0.5", MOST_PROBABLE, 12) is None
    assert partial.decoded("flights", "rho-0.5", "smoothing", 6) is not None


def test_predicting_nothing_costs_an_insertion_for_each_missing_event(findings):
    _, missing = pair_of(findings.place, "flights", "deterministic")
    decoded = findings.decoded("flights", "deterministic", NOTHING, 6)
    for cost, distance in zip(costs_of("flights"), decoded.distance, strict=True):
        np.testing.assert_allclose(distance, transport_score(missing, nothing(missing), cost).distance_by_stream)


def test_every_baseline_is_in_every_table(findings):
    table = summarise(findings)["decoding"]
    for dataset in TINY.datasets:
        for setting in SETTINGS:
            words = " ".join(table[dataset][setting]["methods"])
            for label in ("predict nothing", "constant rate", "most probable", "configuration, smoothing"):
                assert label in words
    assert "median time" in " ".join(table["flights"]["deterministic"]["methods"])


def test_more_quadrature_points_are_more_accurate_than_random_ones(findings):
    errors = {name: row["log_weight_rms"] for name, row in summarise(findings)["integrals"]["flights"].items()}
    assert errors["quadrature-8"] < errors["quadrature-2"] < errors["monte-carlo-1"]
    assert errors["quadrature-8"] < errors["monte-carlo-20"] < errors["monte-carlo-1"]


def test_averse_smoothers_start_between_filtering_and_the_one_that_looks_ahead(findings):
    place, cell = findings.place, ("synthetic-0", "rho-0.5")
    averse, start = place.smoother(*cell, AVERSE), between(place.smoother(*cell, LOOKAHEAD), TINY.aversion)
    record = averse.training_record
    assert record["start"] == start.training_record["start"]
    assert averse.strength == start.strength == pytest.approx(1 / 3)
    assert record["aversion"] == TINY.aversion == 2
    assert record["learning_rate"] < start.learning_rate
    assert findings.result("smoothers/synthetic-0.rho-0.5.averse")["dev_risk"] == pytest.approx(
        record["dev_risk_per_event"], rel=1e-4
    )
    observed, missing = pair_of(place, *cell)
    found = findings.result("log-q/synthetic-0.rho-0.5")
    for name, q in (("between", start), ("averse", averse), ("damped", averse.damped(TINY.damping))):
        np.testing.assert_allclose(found[f"{name}_smoothing"], log_probs(q, observed, missing), rtol=1e-4, atol=1e-4)


def test_figures_and_the_page(finished, tmp_path):
    place, _, _ = finished
    written = [path for path, _ in collect(place, tmp_path / "docs" / "page.md")]
    figures = [path for path in written if path.suffix == ".png"]
    expected = {"clouds-deterministic", "clouds-rho-0.5", "tradeoff-deterministic", "tradeoff-rho-0.5"}
    expected |= {"tradeoff-synthetic-deterministic", "sensitivity", "baselines", "runtime", "integrals"}
    assert expected <= {path.stem for path in figures}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures)
    page = (tmp_path / "docs" / "page.md").read_text(encoding="utf-8")
    assert "not run yet" not in page
    assert "these are tiny runs" in page.lower()
    for line in page.splitlines():
        if line.startswith("!["):
            linked = tmp_path / "docs" / line.split("(", 1)[1].rstrip(")").split("](")[-1].rstrip(")")
            assert linked.resolve() in {path.resolve() for path in figures}
    summary = read_json(place.folder / "summary.json")
    distance = summary["decoding"]["flights"]["rho-0.5"]["methods"]["smoothing, M = 12"]["distance"][3]
    assert f"{distance:.4g}" in page


def test_a_page_of_nothing_says_so(tmp_path):
    collect(Place(tmp_path, TINY))
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert page.count("not run yet") > 20
    assert "Not run yet, log q: NYC Flights" in page
    assert not (tmp_path / "figures").exists()


def test_what_fell_short_is_said():
    cell = {"smoothing_better": 0.7, "data_better": 0.75, "damped_better": 0.81, "exact_better": 0.72}
    cell |= {"lookahead_better": 0.76, "between_better": 0.78, "averse_better": 0.8}
    methods = {"smoothing, M = 6": {"distance": [1.0, 3.0]}, "predict nothing": {"distance": [2.0, 2.5]}}
    methods["smoothing taught by data, M = 6"] = {"distance": [0.0, 0.0]}
    tests = {"smoothing, M = 6": {"dominates": False, "p": 0.2}}
    bad = {"costs": [0.1, 0.5], "particles": [6], "methods": methods, "tests": tests}
    table = {f"synthetic-{i}": {"rho-0.5": bad} for i in range(3)}
    log_q = {"synthetic-0": {"rho-0.5": cell}}
    cut = {
        f"smoothers/taxi.{setting}.data": {"ended": "time was up", "epochs": 10, "best_epoch": best}
        for setting, best in (("rho-0.5", 10), ("deterministic", 5))
    }
    text = " ".join(shortfalls({"smoothers": cut, "log_q": log_q, "decoding": table, "sensitivity": {}}))
    assert "smoothing taught by data: NYC Taxi (ρ = 0.5)." in text
    for share in (
        "70.0%",
        "75.0%",
        "looks ahead on 76.0%",
        "damped on 78.0%; then made averse on 80.0%",
        "81.0% (below 95%: Synthetic 0 (ρ = 0.5))",
        "72.0%",
    ):
        assert share in text
    assert "frontier does not lie everywhere to the left of filtering's, smoothing, M = 6: Synthetic 0-2 (ρ" in text
    assert "Synthetic 1 (ρ = 0.5) 0.2" in text
    assert "Synthetic (ρ = 0.5): smoothing is beaten by predict nothing at 0.5 (3 of 3 sets)." in text


def test_data_sets_are_named_in_few_words():
    cells = [(f"synthetic-{i}", setting) for setting in ("deterministic", "rho-0.5") for i in (0, 1, 2, 3, 5, 7, 8)]
    assert together(cells) == "Synthetic 0-3, 5, 7, 8 (deterministic, ρ = 0.5)"
    assert together([("taxi", "rho-0.1"), ("taxi", "rho-0.9"), ("flights", "rho-0.9")]) == (
        "NYC Taxi (ρ = 0.1, ρ = 0.9); NYC Flights (ρ = 0.9)"
    )
