"""What requests about online runs look like, and what is answered."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, WithJsonSchema

from retrodict.serve.schemas import STREAM, Answer, Count, Missing, Question, Seed, Strict, Time

_PAIR = {
    "type": "array",
    "minItems": 2,
    "maxItems": 2,
    "items": {"anyOf": [{"type": "number"}, {"type": "string"}]},
    "description": "A time and a type.",
}
Pairs = Annotated[
    dict[str, list[Any]],
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "array", "items": _PAIR}}),
]
Times = Time | dict[str, Time] | None


class OnlineRequest(Strict):
    """A run of streams that are still going on. Numbers are in the model's unit of time."""

    lag: FiniteFloat = Field(gt=0, description="How much of the past can be asked about.")
    model: str | None = None
    missing: Missing = None
    smoother: str | None = None
    filtering: bool = False
    particles: Count = 200
    seed: Seed = 0
    axis: dict[str, Any] | None = Field(None, description="Of dated streams: unit, origin and timezone.")

    model_config = ConfigDict(json_schema_extra={"examples": [{"lag": 5.0, "missing": "in=0.5", "particles": 100}]})


class FeedRequest(Strict):
    """What was observed, in the order in which it happened: all of it is taken, or nothing."""

    events: Pairs = Field({}, description="Pairs of time and type by the name of the stream.")
    until: Times = Field(None, description="Up to when nothing more has happened: in all streams, or by name.")
    start: Times = Field(None, description="When new streams began to be watched: all, or by name.")

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"events": {"door-1": [[1.5, "out"]]}, "until": 2.0, "start": 0.0}]}
    )


class AskRequest(Strict):
    """Questions about the last lag of streams, their imputed events at a cost, and their future."""

    streams: list[str] | None = Field(None, description="Names; by default all.")
    questions: list[Question] = Field(default_factory=list)
    cost: FiniteFloat | None = Field(None, gt=0, description="Also impute the last lag, at this cost.")
    ahead: FiniteFloat | None = Field(None, gt=0, description="Also forecast the next stretch of this length.")

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"questions": [{"type": "in"}], "cost": 1.0, "ahead": 0.5}]}
    )


class CloseRequest(Strict):
    """Streams that have ended, to be forgotten."""

    streams: list[str] = Field(min_length=1)


class RunAbout(BaseModel):
    """An online run, and up to when each of its streams is known."""

    name: str
    model: str
    missing: str
    lag: float
    particles: int
    seed: int
    now: dict[str, float]


class RunList(BaseModel):
    """The names of all online runs."""

    runs: list[str]


class Expected(BaseModel):
    """By stream, then by type."""

    probability: list[list[float]]
    expected: list[list[float]]


class ForecastAnswer(BaseModel):
    """The next stretch: all events to come, and those of them that will be observed."""

    types: list[str]
    complete: Expected
    observed: Expected


class AskAnswer(BaseModel):
    """For each stream, in the order asked."""

    ids: list[str]
    now: list[float]
    log_evidence: list[float | None]
    answers: list[Answer]
    imputed: Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": STREAM})] | None = None
    forecast: ForecastAnswer | None = None
