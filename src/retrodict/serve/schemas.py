"""What requests and answers look like, for the server and for its OpenAPI description.

Envelopes are checked here, and streams by the package's own readers, whose errors name the stream and the event.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, WithJsonSchema

STREAM: dict[str, Any] = {
    "title": "Stream",
    "type": "object",
    "description": "One stream, as a line of a JSON Lines file has it. Further keys come back as they were.",
    "required": ["horizon", "times", "types"],
    "properties": {
        "id": {
            "anyOf": [{"type": "string"}, {"type": "integer"}],
            "description": "Random numbers follow from it and the seed; by default the place in the list, from 0.",
        },
        "horizon": {
            "type": "array",
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": 2,
            "description": "From when to when the stream was watched.",
        },
        "times": {"type": "array", "items": {"type": "number"}, "description": "When events were seen."},
        "types": {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": "array", "items": {"type": "integer"}},
            ],
            "description": "Their types, by name or by index into the model's.",
        },
        "columns": {
            "type": "object",
            "additionalProperties": {"type": "array"},
            "description": "Further lists, one entry for each event.",
        },
        "axis": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                        "origin": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                        "timezone": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    },
                    "additionalProperties": False,
                },
                {"type": "null"},
            ],
            "description": "The unit of times and, for dates, the instant of 0 in nanoseconds since 1970 and the zone.",
        },
    },
}
_MECHANISM = {"type": "object", "description": "A mechanism as in a YAML file.", "required": ["mechanism"]}
_MISSING = {
    "anyOf": [
        {"type": "string", "description": "A rate for every type, or NAME=RATE."},
        _MECHANISM,
        {"type": "array", "minItems": 1, "maxItems": 100, "items": {"anyOf": [{"type": "string"}, _MECHANISM]}},
        {"type": "null"},
    ],
    "description": "What goes missing; by default what the model's only smoother was trained for. No files are read.",
}
_EXAMPLE: dict[str, Any] = {
    "streams": [
        {"id": "day-1", "horizon": [0, 10], "times": [1.5, 4.0, 7.25], "types": ["out", "in", "out"]},
        {"id": "day-2", "horizon": [0, 10], "times": [], "types": []},
    ],
    "missing": "in=0.5",
}

Streams = Annotated[
    list[dict[str, Any]],
    Field(min_length=1),
    WithJsonSchema({"type": "array", "minItems": 1, "items": STREAM}),
]
Text = str | dict[str, Any]
Missing = Annotated[
    str | dict[str, Any] | Annotated[list[Text], Field(min_length=1, max_length=100)] | None,
    WithJsonSchema(_MISSING),
]


def _whole(value: Any) -> Any:
    """5.0 is a whole number in JSON."""
    return int(value) if type(value) is float and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Count = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
Seed = Annotated[int, Field(ge=0, lt=2**63), BeforeValidator(_whole)]
Time = FiniteFloat | Annotated[str, Field(max_length=100)]


class Strict(BaseModel):
    """No further keys, and no text for numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Asked(Strict):
    """What all requests about streams have."""

    streams: Streams
    model: str | None = Field(None, description="A name from /v1/models; by default the first.")
    missing: Missing = None
    smoother: str | None = Field(None, description="Name of the smoother to use, where there are several.")
    filtering: bool = Field(False, description="Do not look ahead, even if there is a smoother.")
    particles: Count | None = Field(None, description="Weighted guesses a stream; by default what is affordable.")
    seed: Seed = Field(0, description="Same seed and id, same answer.")
    cut: bool = Field(
        False, description="Streams without an event at their end were cut there; else their last event went missing."
    )


class ImputeRequest(Asked):
    """Streams to impute, and the cost at which to decode."""

    cost: FiniteFloat | None = Field(
        None,
        gt=0,
        description="What an event too many or too few costs, in time moved, in the unit of the streams; by default "
        "half a gap.",
    )
    level: FiniteFloat = Field(0.9, gt=0, lt=1, description="Of the intervals from 'earliest' to 'latest'.")

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE | {"cost": 1.0, "particles": 200}]})


class Question(Strict):
    """A type, and a stretch of time; what is left out is any."""

    type: str | Whole | None = None
    start: Time | None = None
    end: Time | None = None


class QueryRequest(Asked):
    """Streams, and what is asked about their missing events."""

    questions: list[Question] = Field(default_factory=list)
    grid: Annotated[list[Time], Field(min_length=2, max_length=10_001)] | None = Field(
        None, description="Increasing times, between which intensities by type are wanted."
    )

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _EXAMPLE
                | {"questions": [{"type": "in", "start": 2, "end": 4}, {}], "grid": [0, 5, 10], "particles": 200}
            ]
        }
    )


class About(BaseModel):
    """How an answer was made."""

    model: str = Field(description="Digest of the model.")
    missing: str
    proposal: str
    engine: str
    particles: int
    seed: int
    version: str


class ImputeAnswer(BaseModel):
    """The streams with imputed events put in; columns imputed, probability, earliest and latest tell them apart."""

    streams: Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": STREAM})]
    cost: float
    expected: list[float] = Field(description="Missing events of each stream.")
    log_evidence: list[float | None] = Field(description="log p of what was observed; null where it is impossible.")
    notices: list[str] = Field(description="What should keep one from trusting the answer.")
    about: About


class Answer(BaseModel):
    """For each stream, in the order of the request."""

    probability: list[float] = Field(description="Of at least one missing event.")
    expected: list[float] = Field(description="Number of missing events.")


class QueryAnswer(BaseModel):
    """Answers in the order of the questions."""

    ids: list[str | int]
    answers: list[Answer]
    types: list[str] | None = Field(None, description="The last axis of 'intensity'.")
    intensity: list[list[list[float]]] | None = Field(
        None, description="Missing events per unit of time: by stream, stretch of the grid, type."
    )
    notices: list[str]
    about: About


class Smoother(BaseModel):
    """A smoother, and what it was trained for."""

    name: str
    missing: str


class ModelAbout(BaseModel):
    """A model that is served."""

    name: str
    kind: str
    digest: str
    types: list[str]
    unit: str | None
    smoothers: list[Smoother]


class ModelList(BaseModel):
    """The models that are served, the default first."""

    models: list[ModelAbout]


class Health(BaseModel):
    """Whether the server lives, or takes requests."""

    status: str


class ErrorDetails(BaseModel):
    """What is wrong, where and what would be right."""

    model_config = ConfigDict(extra="allow")
    code: str
    message: str
    stream: str | int | None = None
    row: int | None = Field(None, description="The place of the stream in the request, from 1, or of the event.")
    remedy: str | None = None


class Error(BaseModel):
    """The body of every answer that is no success."""

    error: ErrorDetails
