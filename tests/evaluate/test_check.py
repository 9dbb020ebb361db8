"""A check passes a model that is right, and names what is wrong with one that is not.

Seeds are fixed. ``benchmarks/check_alarms.py`` measures how often each alarm is raised over many data sets.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import retrodict as rd
from retrodict.cli import check_table
from retrodict.datasets.synthetic import random_neural_hawkes
from retrodict.evaluate.calibration import RELIABILITY, TENTHS, TOP, WIDE, rank_among
from retrodict.evaluate.evidence import Evidence
from retrodict.evaluate.finding_words import in_words
from retrodict.evaluate.findings import Finding, mean_finding, raise_alarms, worst
from retrodict.evaluate.goodness import goodness
from retrodict.evaluate.verdict import give_verdict
from retrodict.events.factor import in_times
from tests.conftest import KINDS, example_model

HALF = rd.ByType(0.5)


def hawkes() -> rd.Hawkes:
    return rd.Hawkes([0.5, 0.3, 0.2], [[0.3, 0.2, 0.0], [0.1, 0.2, 0.3], [0.4, 0.0, 0.1]], [1.5, 0.8, 3.0])


def alarms(result) -> set[str]:
    return {f"{f.part}: {f.name}" for f in result.findings if f.alarm}


@pytest.fixture(scope="module")
def complete() -> rd.StreamSet:
    return rd.simulate(hawkes(), 120, end=10.0, seed=1)


@pytest.fixture(scope="module")
def incomplete() -> rd.StreamSet:
    return HALF.censor(rd.simulate(hawkes(), 200, end=10.0, seed=2), seed=3)[0]


@pytest.fixture(scope="module")
def passed(complete, incomplete):
    return rd.check(rd.Filtering(hawkes(), HALF), complete, incomplete=incomplete, particles=100)


def test_a_right_model_passes(passed):
    assert not passed.flagged
    assert passed.decision.startswith("Use it: counts held on 120 streams like these")
    assert passed.decision == passed.verdict.splitlines()[0] == repr(passed)[len("<Check: ") : -1]
    assert "Why: incomplete streams are as predicted, " in passed.verdict
    assert "Next" not in passed.verdict


def test_a_check_is_kept_as_json_and_drawn(passed, tmp_path):
    kept = json.loads(passed.to_json(tmp_path / "check.json"))
    assert kept == json.loads((tmp_path / "check.json").read_text())
    assert kept["counts"][-1]["true"] == sum(row["true"] for row in kept["counts"][:-1])
    assert all(sum(shares) == pytest.approx(1.0) for shares in kept["ranks"].values())
    assert [row["cost"] for row in kept["distance"]] == passed.costs
    assert kept["about"]["imputed_streams"] == 120
    passed.plot(tmp_path / "check.png")
    assert (tmp_path / "check.png").stat().st_size > 50_000


def test_the_same_seed_gives_the_same_check(complete):
    once, again = (rd.check(rd.Filtering(hawkes(), HALF), complete[:10], particles=10, seed=3) for _ in range(2))
    assert once.to_json() == again.to_json()


def test_a_model_trained_on_other_data_is_flagged(complete):
    other = rd.Hawkes([0.3, 0.4, 0.3], [[0.1, 0.0, 0.3], [0.4, 0.1, 0.0], [0.0, 0.3, 0.2]], [1.0, 2.0, 1.0])
    result = rd.check(rd.Filtering(other, HALF), complete, particles=50, costs=[0.2])
    assert "model: events of a type, more than expected" in alarms(result)
    assert "Why: the model does not fit these streams" in result.verdict
    assert "Next: fit it to streams like them" in result.verdict


def test_the_table_with_missing_events_is_told_from_a_model_that_does_not_fit(complete):
    """Three quarters of one type are gone, and the mechanism says so: nobody should fit to such streams."""
    name, other = complete.types[:2]
    missing = rd.ByType({name: 0.75})
    holes, _ = missing.censor(complete, seed=3)

    def verdict_of(missing: rd.Missingness, streams: rd.StreamSet) -> str:
        return rd.check(rd.Filtering(hawkes(), missing), streams, particles=20, costs=[0.2]).verdict

    said = verdict_of(missing, holes)
    first, why, after = said.splitlines()
    assert first == "Not known yet: this looks like the table with missing events, and a check needs complete streams."
    assert f"fewer events of type {name!r} than the model expects, and {name!r} is what --missing says goes" in why
    assert after.startswith("Next: check on complete streams that were kept out of the fit")
    for rates in ({other: 0.75}, {name: 0.05}):  # these say nothing of what is lacking
        assert "looks like the table with missing events" not in verdict_of(rd.ByType(rates), holes)
    assert "looks like the table with missing events" not in verdict_of(missing, complete)


def test_a_row_says_fewer_instead_of_minus_more():
    found = Finding("model", "events of a type, more than expected", -0.818, 0.0, 0.012, 0.1, 0.0, of="x", alarm=True)
    row = check_table._row(found)
    assert row[:3] == ("events of 'x', fewer than expected", "81.8 ± 1.2 %", "-10 to 10 %")
    assert check_table._row(replace(found, value=0.3))[:2] == ("events of 'x', more than expected", "30.0 ± 1.2 %")
    probability = replace(found, part="imputation", name="probability of 0.9 or more, more than true", of=None)
    assert check_table._row(probability)[0] == "probability of 0.9+, less than true"


def test_what_the_picture_shows_outside_of_its_bars_is_an_alarm_or_named_as_a_doubt():
    """30 streams of a model some of whose rates are off: too few for an alarm, and more than chance at one look."""
    other = rd.Hawkes([0.4, 0.3, 0.2], [[0.3, 0.2, 0.0], [0.1, 0.2, 0.3], [0.2, 0.0, 0.1]], [1.5, 0.8, 3.0])
    result = rd.check(other, rd.simulate(hawkes(), 30, end=10.0, seed=11))
    assert not result.flagged
    counts = result.to_dict()["goodness"]["counts"]
    outside = {
        row["type"]
        for row in counts
        if abs(row["true"] - row["expected"]) > max(2 * row["error"], 0.1 * row["expected"])
    }
    (by_type,) = (f for f in result.findings if f.name.startswith("events of a type"))
    assert outside
    assert by_type.judgement == "doubtful"
    assert outside <= {by_type.of, *by_type.others}
    assert "in doubt is that " in result.verdict
    assert result.decision.startswith("Not known yet: ")  # of imputed events
    assert all(repr(name) in result.verdict for name in outside)


def judged(passed, share_at_top: float, share_below: float):
    """Findings and verdict on 2,000 events given 0.95 and 2,000 given 0.7, of which these shares were there."""
    rng, owner = np.random.default_rng(2), np.tile(np.arange(120), 34)[:4000]
    given = np.tile([0.95, 0.7], 2000)
    there = rng.random(4000) < np.tile([share_at_top, share_below], 2000)
    owner = rng.permutation(owner)
    found = replace(passed.calibration, probability=given, found=there, held=there, owner=owner, kind=0 * owner)
    findings = raise_alarms(found.findings(passed.types, passed.costs))
    return {f.name: f for f in findings}, give_verdict(Evidence(findings, passed.about, found, None, None))


def test_probabilities_too_high_at_the_top_are_not_made_up_for_by_ones_too_low_below(passed):
    found, verdict = judged(passed, 0.8, 0.85)
    assert not found[RELIABILITY].alarm
    assert found[TOP].alarm
    assert found[TENTHS].alarm
    assert verdict.startswith("Use ")
    assert "; do not take probabilities at their word: events given a probability of " in verdict.splitlines()[0]
    assert verdict.endswith("'retrodict impute --calibrate' gives probabilities as they came true here.")
    right, _ = judged(passed, 0.95, 0.7)
    assert not any(right[name].alarm or right[name].doubt for name in (RELIABILITY, TOP, TENTHS))


def test_doubts_in_the_same_words_are_named_once_and_many_are_counted(passed):
    doubted = [replace(f, doubt=not f.harmless, chance=1.0) for f in passed.findings]
    verdict = give_verdict(Evidence(doubted, passed.about, passed.calibration, None, None))
    gaps = [replace(f, doubt=f.name.startswith("gaps"), chance=1.0) for f in passed.findings if f.part == "model"]
    once = give_verdict(Evidence(gaps, passed.about, None, None, None))
    assert once.count("times between events are not as the model expects") == 1
    assert re.search(r"; 2 of \d+ comparisons with 120 streams are further off than chance makes 1 in 20", once)
    assert re.search(r"in doubt is also that .*, and \d+ more; \d+ of \d+ comparisons", verdict)


def test_fewer_than_a_hundred_streams_show_no_more_than_that_no_fault_could_be_told_from_chance(passed):
    about = passed.about | {"streams": 99, "imputed_streams": 99}
    calibration = replace(passed.calibration, hidden=passed.calibration.hidden[:99])
    few = give_verdict(Evidence(passed.findings, about, calibration, None, None))
    assert re.match("Use it: .* held on 99 streams like these, as far as so few can show", few)
    assert "Next: 100 held-out streams or more would show smaller faults" in few


def test_a_training_that_was_stopped_is_mentioned_in_every_verdict(passed):
    """With and without alarms, of a model and of a smoother, and never twice of the same."""

    def said(findings, **about) -> str:
        return give_verdict(Evidence(findings, passed.about | about, passed.calibration, None, None))

    for about, which in (("unfinished", "the model"), ("unfinished_smoother", "the smoother")):
        stopped = f"Next: give the fit more time (training of {which} was stopped by a limit"
        assert stopped in said(passed.findings, **{about: True})
    alarmed = [replace(f, alarm=f.name.startswith("gaps,")) for f in passed.findings]
    assert said(alarmed, unfinished=True).count("stopped by a limit") == 1
    assert "stopped" not in said(passed.findings)


def test_a_model_whose_training_was_cut_short_is_to_be_trained_on(complete):
    other = rd.Hawkes([30.0, 30.0, 30.0], [[0.0] * 3] * 3, 2.0)
    for ended, is_cut_short in (("time was up", True), ("dev no longer improved", False)):
        other.training_record = {"ended": ended}
        assert ("training was stopped by a limit of time" in rd.check(other, complete).verdict) == is_cut_short


def test_swapped_types_are_named(complete):
    swapped = complete.replace(event_types=np.array([2, 1, 0])[complete.event_types])
    result = rd.check(rd.Filtering(hawkes(), HALF), swapped, particles=50, costs=[0.2])
    assert "the model takes types '0' and '2' for each other" in result.verdict


@pytest.mark.parametrize("rate", [0.35, 0.65])
def test_missing_rates_that_are_30_percent_wrong_are_flagged_given_the_incomplete_streams(complete, incomplete, rate):
    proposal = rd.Filtering(hawkes(), rd.ByType(rate))
    result = rd.check(proposal, complete, incomplete=incomplete, particles=50, costs=[0.2])
    assert {name.split(":")[0] for name in alarms(result)} == {"observed"}
    assert "the missing rates are wrong (with " in result.verdict
    assert 0.4 < result.observed.implied_rate(None) < 0.6
    assert not rd.check(proposal, complete, particles=50, costs=[0.2]).flagged


def test_streams_cut_to_16_events_are_flagged():
    bursts = rd.Hawkes([0.1], [[0.85]], [3.0])
    cut = rd.simulate(bursts, 60, num_events=16, seed=4)
    result = rd.check(rd.Filtering(bursts, HALF), cut, particles=50, costs=[0.2])
    assert "model: streams that end at an event" in alarms(result)
    assert "lengths of streams were chosen by a cut" in result.verdict


def test_too_few_particles_are_told_apart_from_a_model_that_does_not_fit():
    model = random_neural_hawkes(4, 64, seed=0)
    end = float(np.median(rd.simulate(model, 20, num_events=30, seed=5).durations))
    streams = rd.simulate(model, 60, end=end, seed=6)
    result = rd.check(rd.Filtering(model, HALF), streams, particles=20, costs=[0.3])
    assert not any(name.startswith("model") for name in alarms(result))
    assert "the model itself fits, but its particles are too few and too alike" in result.verdict
    assert "use more particles (80 instead of 20)" in result.verdict


def test_intervals_that_are_far_too_wide_are_a_remark_and_no_alarm():
    """Events at about half past each hour, always missing, imputed as if they came at any time."""
    rng = np.random.default_rng(0)
    times = np.arange(8) + 0.5 + rng.normal(0, 0.02, (80, 8))
    clockwork = rd.StreamSet([rd.EventStream(row, [0] * 8, end=8.0, id=i) for i, row in enumerate(times)])
    result = rd.check(rd.Filtering(rd.Poisson([1.0]), rd.ByType(1.0)), clockwork, particles=100, costs=[3.0])
    (wide,) = (f for f in result.findings if f.name == WIDE)
    assert (wide.remark, wide.alarm, wide.judgement) == (True, False, "remark")
    assert WIDE in [each["name"] for each in result.to_dict()["findings"] if each["remark"]]


@pytest.mark.parametrize(("extra", "is_wide"), [(0.0, False), (0.05, False), (0.09, True)])
def test_a_remark_needs_more_than_95_percent_and_does_not_fail_the_check(passed, extra, is_wide):
    """4,000 intervals of which 90 %, 95 % and 99 % hold the truth."""
    inside = np.random.default_rng(1).binomial(40, 0.9 + extra, 120)
    found = replace(passed.calibration, aligned=np.full(120, 40), covered=inside, inside=inside)
    findings = raise_alarms(found.findings(passed.types, passed.costs))
    verdict = give_verdict(Evidence(findings, passed.about, found, None, None))
    assert not any(f.alarm for f in findings)
    assert verdict.startswith("Use it: ")
    assert ("intervals are wider than they need be" in verdict) == is_wide


def test_times_that_are_certain_are_not_said_to_have_wide_intervals(passed):
    """An interval of no width holds a certain time always, and rightly."""
    found = replace(passed.calibration, aligned=np.full(120, 40), covered=np.full(120, 40), inside=np.zeros(120, int))
    assert not any(f.remark for f in raise_alarms(found.findings(passed.types, passed.costs)))


@pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")
def test_nothing_hidden_is_no_agreement_with_the_truth(complete):
    """Windows after the end of all streams, and a model that does not fit."""
    other = rd.Filtering(rd.Poisson([0.2, 0.2, 0.2]), rd.Windows([(1000.0, 1001.0)]))
    verdict = rd.check(other, complete, particles=20).verdict
    assert verdict.startswith("Do not use it: ")
    assert "held" not in verdict


def test_few_events_in_few_streams_are_no_alarm():
    """20 incomplete streams of few shocks happen to have no large burst: the draws say that this is nothing unusual."""
    bursts = rd.Hawkes([0.1], [[0.85]], [3.0])
    draws = [rd.simulate(bursts, 20, end=20.0, seed=seed) for seed in (0, 1_000_000)]
    incomplete, _ = HALF.censor(draws[1], seed=1)
    result = rd.check(rd.Filtering(bursts, HALF), draws[0], incomplete=incomplete, particles=20, costs=[0.2])
    assert result.observed.counts.sum() < 0.6 * result.observed.predicted.sum()
    assert not any(name.startswith("observed") for name in alarms(result))


def test_what_is_suspicious_of_all_streams_is_said_once():
    """Streams that end at an event, imputed in four groups."""
    bursts = rd.Hawkes([0.1], [[0.85]], [3.0])
    cut = rd.simulate(bursts, 40, num_events=16, seed=4)
    with pytest.warns(rd.SuspicionNotice) as said:
        rd.check(rd.Filtering(bursts, HALF), cut, particles=10, costs=[0.2])
    assert len([each for each in said if "end exactly at an event" in str(each.message)]) == 1
    assert all("all 40 streams" in str(each.message) for each in said)


def test_a_model_alone_is_checked_for_its_fit(complete):
    right = rd.check(hawkes(), complete)
    assert right.decision.startswith("Not known yet: no misfit of the model was found in 120 streams")
    assert "Why: the model fits: " in right.verdict
    assert right.calibration is None
    wrong = rd.check(rd.Poisson.from_streams(complete), complete)
    assert "model: gaps of each type, the same" in alarms(wrong)
    with pytest.raises(rd.ModelError, match="how events go missing is not known"):
        rd.check(hawkes(), complete, incomplete=complete)


def test_a_check_stops_when_its_time_is_up(complete):
    done: list[int] = []
    result = rd.check(rd.Filtering(hawkes(), HALF), complete, particles=200, seconds=1e-9, progress=done.append)
    assert done == [4]
    assert result.about["imputed_streams"] == 4
    assert result.decision.startswith("Not known yet: no clear fault on 4 streams, which are few to judge by")
    assert "'retrodict check' on 20 or more held-out streams tells more" in result.decision
    doubted = [replace(f, doubt=f.part == "imputation", chance=1.0) for f in result.findings]
    about = result.about | {"imputed_streams": 30}
    many = result.calibration.concatenate([result.calibration] * 8)
    said = give_verdict(Evidence(doubted, about, many, None, None))
    assert "comparisons with the 30 streams that time allowed to impute" in said


def test_an_alarm_on_few_streams_says_on_how_many_it_rests_and_what_to_do(complete):
    """Alarms are raised as ever; words claim no more than 6 streams can show, and nowhere contradict each other."""
    other = rd.Hawkes([30.0, 30.0, 30.0], [[0.0] * 3] * 3, 2.0)
    few, many = rd.check(other, complete[:6]), rd.check(other, complete)
    assert few.flagged
    assert many.flagged
    assert few.decision.startswith("Do not use it yet: ")
    assert ", on 6 streams, which are few to judge by; 'retrodict check' on 20 or more held-out" in few.decision
    assert "Next: if more streams show the same, fit it" in few.verdict
    assert many.decision.startswith("Do not use it: ")
    assert few.verdict.endswith(many.verdict.partition("Next: ")[2])  # the same remedy
    imputed = rd.check(rd.Filtering(other, HALF), complete[:6], particles=20)
    assert imputed.decision.startswith("Do not use it yet: ")


def decided(passed, **of) -> str:
    """The verdict with findings of these names as alarms (True) or doubts (False); 2,000 imputed events, as given."""
    owner = np.arange(2000) % 120
    found = replace(
        passed.calibration, probability=np.full(2000, 0.8), found=owner >= 0, held=owner >= 0, owner=owner,
        kind=0 * owner, aligned=np.full(120, 16), covered=np.full(120, 15),
    )  # fmt: skip
    names = {name.replace("_", " "): is_alarm for name, is_alarm in of.items()}
    marked = []
    for f in passed.findings:
        is_alarm = next((is_alarm for name, is_alarm in names.items() if f.name.startswith(name)), None)
        value = 0.3 if f.name.startswith("expected") else f.value
        marked.append(
            f if is_alarm is None else replace(f, value=value, alarm=is_alarm, doubt=not is_alarm, chance=0.1)
        )
    return give_verdict(Evidence(marked, passed.about, found, passed.observed, None))


@pytest.mark.parametrize(
    ("of", "decision"),
    [
        ({}, "Use it: counts, times and probabilities held on 120 streams like these."),
        (
            {"expected_events_of_a_type": True},
            "Use the imputed events, their times and probabilities; do not add up expected numbers of type '.': they "
            "were 30% too high.",
        ),
        (
            {"expected_events_of_a_type": False},
            "Use the imputed events, their times and probabilities; do not add up expected numbers of type '.' yet: "
            "they were 30% too high, which may be chance.",
        ),
        (
            {"90_%_intervals_that_hold": True, "probability,_more": True},
            "Use the imputed events and expected numbers; do not go by intervals: only .* of the 90 % intervals hold "
            "the true time; do not take probabilities at their word: .*",
        ),
        ({"spread_of_the_ranks,_all": True}, "Use .* and expected numbers; do not go by how sure numbers are: .*"),
        ({"distance": True}, "Do not use it: it is worse than predicting nothing .*"),
        ({"distance": False}, "Do not use it yet: it is worse than predicting nothing .*, which may be chance."),
        ({"events,_more_than_predicted": True}, "Do not use it: incomplete streams have .*"),
        ({"events,_more_than_predicted": False}, "Use .* and probabilities; do not add up expected numbers yet: .*"),
        ({"gaps,": False}, "Use it: counts, times and probabilities held on 120 streams like these."),
        (
            {"gaps,": True},
            "Use it for streams like these alone: counts, times and probabilities held on 120 streams like these, but "
            "times between events are not as the model expects.",
        ),
        (
            {"gaps,": True, "90_%_intervals_that_hold": False},
            "Use the imputed events, probabilities and expected numbers for streams like these alone; do not go by "
            "intervals yet: .*, which may be chance; times between events are not as the model expects.",
        ),
    ],
)
def test_the_first_line_says_what_can_be_used_and_what_not(passed, of, decision):
    verdict = decided(passed, **of)
    assert re.fullmatch(decision, verdict.splitlines()[0])
    if set(of.values()) == {False}:  # no finding is lost
        assert re.search(r"\d+ of \d+ comparisons with 120 streams (is|are) further off than chance", verdict)


def test_the_verdict_says_whether_more_time_or_more_streams_would_settle_a_doubt(passed):
    def next_of(**about) -> str:
        doubted = [replace(f, doubt=f.name.startswith("gaps,"), chance=1.0) for f in passed.findings]
        verdict = give_verdict(Evidence(doubted, passed.about | about, passed.calibration, None, None))
        return verdict.partition("Next: ")[2]

    assert next_of().startswith("check by more held-out streams than 120 (480 halve what may be chance); if the doubt ")
    assert "fit by more complete streams than 900 (more training time would not help" in next_of(
        fitted_to=900, finished=True
    )
    stopped = next_of(unfinished=True)
    assert stopped.startswith("give the fit more time (training of the model was stopped by a limit")
    assert "check by more held-out streams" in stopped
    assert "fit by more" not in stopped


def test_numbers_that_no_one_can_read_are_said_in_words():
    far = Finding("model", "events, more than expected", 1.16e19, 0.0, 1.0, 0.1, 0.0)
    assert in_words(far) == "complete streams have more than a million times as many events as the model expects"
    near = replace(far, value=0.3)
    assert in_words(near) == "complete streams have 30% more events than the model expects"
    worse = replace(far, part="imputation", name="distance at cost 1, share of predicting nothing")
    assert "more than a million times as far from the truth" in in_words(worse)
    assert [in_times(x) for x in (3.156, 12_345.0, 1.16e19)] == [
        "3.16 times", "12,300 times", "more than a million times",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_counts_less_compensators_are_centred_and_gaps_exponential(kind):
    """400 streams: residuals of each type within four standard errors; an intensity that is 30 % off is noticed."""
    model = example_model(kind)
    streams = rd.simulate(model, 400, end=5.0, seed=7)
    found = goodness(model, streams)
    assert found.counts.sum() == streams.num_events == len(found.gaps) == sum(map(len, found.gaps_by_type))
    error = np.sqrt(found.expected.sum(0))
    assert (np.abs(found.counts.sum(0) - found.expected.sum(0)) < 4 * error).all()
    assert not any(f.alarm for f in raise_alarms(found.findings()))
    stretched = streams.replace(event_times=1.3 * streams.event_times, ends=1.3 * streams.ends)
    assert any(f.alarm for f in raise_alarms(goodness(model, stretched).findings()))


def test_the_end_of_a_stream_cuts_no_gap_short():
    """Streams of one event on average: gaps that the end cut short would make all of them look short."""
    model = rd.Poisson([1.0])
    gaps = goodness(model, rd.simulate(model, 3000, end=1.0, seed=8)).gaps
    assert gaps.mean() == pytest.approx(1.0, abs=4 / np.sqrt(len(gaps)))


def test_deviations_within_the_tolerance_are_no_alarm_however_sure():
    rows = np.full(10_000, 0.04) + np.random.default_rng(0).normal(0, 0.01, 10_000)
    assert mean_finding("", "", rows, tolerance=0.05).p_value == 1.0
    assert mean_finding("", "", rows, tolerance=0.03).p_value < 1e-9
    assert mean_finding("", "", -rows, tolerance=0.03, side=1).p_value == 1.0
    nothing = mean_finding("", "", np.full(50, -0.02), np.full(50, 0.02), tolerance=0.1, least=0.02)
    assert nothing.p_value > 0.3  # one event was expected and none came: that is no wonder


def test_familywise_errors_are_bounded():
    values = [0.0007, 0.02, 0.03, 0.9]
    found = raise_alarms([Finding("", "", 0.0, 0.0, 1.0, 0.0, p) for p in values], level=0.05)
    assert [f.alarm for f in found] == [True, False, False, False]
    assert worst(found)[0].p_value == pytest.approx(4 * 0.0007)


def test_ranks_among_independent_draws_are_uniform_whatever_the_ties():
    """Counts of mean 2 among 19 draws, 4,000 times; level 0.001. Draws of mean 2.3 are noticed."""
    rng = np.random.default_rng(9)
    actual, weights = rng.poisson(2.0, (4000, 1)), np.full((4000, 19, 1), 1 / 19)
    for mean, is_uniform in ((2.0, True), (2.3, False)):
        guess = rng.poisson(mean, (4000, 19, 1))
        found = rank_among(weights, guess, actual, np.full((4000, 1), 19.0), rng.random((4000, 1)))
        assert (stats.kstest(found[:, 0], "uniform").pvalue > 1e-3) == is_uniform


@pytest.mark.parametrize(
    ("value", "side", "alarm", "said"),
    [
        (1.05, 0, False, "fine"),
        (0.85, 0, False, "may be chance"),
        (0.85, 1, False, "fine"),
        (0.85, -1, False, "may be chance"),
        (2.0, 0, True, "ALARM"),
        (float("nan"), 0, False, "too few to tell"),
    ],
)
def test_each_finding_is_judged_in_words(value, side, alarm, said):
    finding = Finding("model", "rate", value, 1.0, 0.1, 0.1, 0.2, side, None, alarm)
    assert finding.judgement == said
