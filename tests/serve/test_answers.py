"""What is served is what the package says."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import retrodict as rd
from tests.serve.serving import STREAMS

ASKED = {"streams": STREAMS, "missing": "in=0.5", "particles": 200}


@pytest.fixture(scope="module")
def posterior(filtering, tmp_path_factory) -> rd.Posterior:
    file = tmp_path_factory.mktemp("streams") / "streams.jsonl"
    file.write_text("".join(json.dumps(value) + "\n" for value in STREAMS))
    streams = rd.read_events(file, types=["in", "out"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rd.impute(streams, filtering, particles=200)


def ask(client: Any, path: str, **asked: Any) -> Any:
    answer = client.post(path, json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_imputed_streams_are_those_of_the_command_line(client, posterior, tmp_path):
    answer = ask(client, "/v1/impute", **ASKED, cost=1.5)
    rd.write_events(rd.fill(posterior.observed, posterior.consensus(1.5)), tmp_path / "imputed.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "imputed.jsonl").read_text().splitlines()]
    assert answer["streams"] == lines
    assert sum(sum(stream["columns"]["imputed"]) for stream in lines) > 0
    assert answer["streams"][0]["shift"] == "early"
    assert answer["expected"] == posterior.expected_count().tolist()
    assert answer["log_evidence"] == posterior.log_evidence.tolist()


def test_questions_are_answered_as_by_the_posterior(client, posterior):
    questions = [{"type": "in", "start": 2, "end": 6}, {"type": 0}, {}]
    answer = ask(client, "/v1/query", **ASKED, questions=questions, grid=[0, 5, 12.5])
    for question, found in zip(questions, answer["answers"], strict=True):
        assert found["probability"] == posterior.probability(**question).tolist()
        assert found["expected"] == posterior.expected_count(**question).tolist()
    assert answer["intensity"] == posterior.intensity([0, 5, 12.5]).tolist()
    assert answer["ids"] == ["day-1", "day-2"]
    assert answer["types"] == ["in", "out"]


def test_numbers_are_in_the_unit_of_the_streams(client):
    minutes = [
        {
            **stream,
            "horizon": [60 * t for t in stream["horizon"]],
            "times": [60 * t for t in stream["times"]],
            "axis": {"unit": "minute"},
        }
        for stream in STREAMS
    ]
    hours = [{**stream, "axis": {"unit": "hour"}} for stream in STREAMS]
    same = {"missing": "in=0.5", "particles": 200}
    by_hour = ask(client, "/v1/query", streams=hours, **same, questions=[{"start": 2, "end": 6}], grid=[0, 5, 10])
    by_minute = ask(
        client, "/v1/query", streams=minutes, **same, questions=[{"start": 120, "end": 360}], grid=[0, 300, 600]
    )
    np.testing.assert_allclose(by_minute["answers"][0]["expected"], by_hour["answers"][0]["expected"], rtol=1e-9)
    np.testing.assert_allclose(np.array(by_minute["intensity"]) * 60, by_hour["intensity"], rtol=1e-9)
    in_hours = ask(client, "/v1/impute", streams=hours, **same, cost=1.5)
    in_minutes = ask(client, "/v1/impute", streams=minutes, **same, cost=90)
    assert in_minutes["cost"] == 90
    for one, other in zip(in_hours["streams"], in_minutes["streams"], strict=True):
        np.testing.assert_allclose(np.array(other["times"]) / 60, one["times"], rtol=1e-9)


def test_dates_are_asked_about_in_their_zone(client):
    axis = {"unit": "hour", "origin": 1_709_535_600_000_000_000, "timezone": "Europe/Paris"}  # 2024-03-04 08:00 there
    streams = [{**STREAMS[0], "axis": axis}]
    asked = {"streams": streams, "missing": "in=0.5", "particles": 100}
    by_date, by_number = [{"start": "2024-03-04T10:00", "end": "2024-03-04T14:00"}, {"start": 2, "end": 6}]
    answer = ask(client, "/v1/query", **asked, questions=[by_date, by_number])
    assert answer["answers"][0] == answer["answers"][1]


def test_the_smoother_for_what_goes_missing_is_used(client):
    (flights,) = [model for model in client.get("/v1/models").json()["models"] if model["name"] == "flights"]
    arrival = next(name for name in flights["types"] if name.startswith("arrive"))
    stream = {"id": 1, "horizon": [0, 8], "times": [1.0, 6.0], "types": [arrival, arrival]}
    answer = ask(client, "/v1/impute", model="flights", streams=[stream], particles=100, cost=1.0)
    assert answer["about"]["proposal"] == "smoothing"
    other = ask(
        client, "/v1/impute", model="flights", streams=[stream], particles=100, missing="depart*=1", filtering=True
    )
    assert other["about"]["proposal"] == "filtering"


@pytest.mark.parametrize(
    "missing",
    [
        "0.5",
        ["0.1", "in=0.5"],
        {"mechanism": "by_type", "rates": {"in": 0.5}},
        [{"mechanism": "by_type", "rates": 0.1}, {"mechanism": "windows", "windows": [[2, 3]]}],
        {"mechanism": "after", "trigger": "out", "within": 1.0, "rates": {"in": 0.9}},
        {"mechanism": "time_varying", "times": [0, 12], "rates": [0.1, 0.6], "every": 24, "clock": "stream"},
    ],
)
def test_mechanisms_as_in_files(client, missing):
    assert len(ask(client, "/v1/impute", streams=STREAMS, missing=missing, particles=50)["streams"]) == 2


def test_warnings_stand_in_the_answer(client):
    streams = [{"id": i, "horizon": [0, 9], "times": [3, 9], "types": ["out", "out"]} for i in range(12)]
    answer = ask(client, "/v1/impute", streams=streams, missing="0.5", particles=50)
    assert any("all 12 streams end exactly at an observed event" in text for text in answer["notices"])
