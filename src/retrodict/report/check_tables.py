"""The tables of a check as they come back from a file: every number a number, every list of a sensible length."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from retrodict.errors import DataError
from retrodict.events.plain import read_json

_LONGEST, _MOST = 4000, 100_000  # characters of a text, rows of a table


def read_check(path: Path) -> dict[str, Any]:
    """The check that ``retrodict check -o`` or a fit wrote; a DataError where the file holds none."""
    try:
        return clean_check(read_json(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        remedy = "give a file that 'retrodict check -o' wrote, or check.json of a model's folder"
        raise DataError(f"this is not a check ({reason})", file=path, remedy=remedy) from error


def clean_check(found: Any) -> dict[str, Any]:
    """What pictures and pages need of a check, and nothing else; ValueError if it is none."""
    try:
        result: dict[str, Any] = {
            "verdict": _text(found["verdict"]),
            "flagged": bool(found["flagged"]),
            "about": {key: _plain(value) for key, value in found["about"].items()},
            "goodness": {
                "counts": _counts(found["goodness"]["counts"]),
                "gaps": int(_number(found["goodness"]["gaps"])),
                "levels": _numbers(found["goodness"]["levels"]),
                "share_below": [_maybe(value) for value in _rows(found["goodness"]["share_below"])],
            },
        }
        if len(result["goodness"]["levels"]) != len(result["goodness"]["share_below"]):
            raise ValueError("its tables do not fit together")
        if "counts" in found:
            result |= _calibration(found)
        if "observed" in found:
            result["observed"] = _counts(found["observed"])
    except (KeyError, TypeError, AttributeError, OverflowError, IndexError) as error:
        raise ValueError(f"its tables are not those of a check: {type(error).__name__} {error}"[:200]) from error
    return result


def _calibration(found: dict[str, Any]) -> dict[str, Any]:
    """The tables about hidden events."""
    _number(found["about"]["imputed_streams"])
    ranks = {name: _numbers(found["ranks"][name]) for name in ("first half", "second half", "by type")}
    if len({len(bars) for bars in ranks.values()}) != 1 or not ranks["by type"]:
        raise ValueError("its ranks do not fit together")
    coverage: dict[str, Any] = {key: _maybe(found["coverage"][key]) for key in ("cost", "aligned", "value", "error")}
    coverage["nominal"] = _number(found["coverage"]["nominal"])
    coverage["by_type"] = [
        {"type": _text(row["type"]), "events": _number(row["events"]), **_estimate(row)}
        for row in _rows(found["coverage"].get("by_type", []))  # earlier checks have none
    ]
    return {
        "counts": _counts(found["counts"]),
        "coverage": coverage,
        "reliability": [
            {"events": _number(row["events"]), "probability": _number(row["probability"]), **_estimate(row)}
            for row in _rows(found["reliability"])
        ],
        "ranks": ranks,
        "distance": [
            {"cost": _number(row["cost"])}
            | {key: _estimate(row[key]) for key in ("share_of_nothing", "constant_rates")}
            for row in _rows(found["distance"])
        ],
        "families": _maybe(found.get("families")),
    }


def _counts(rows: Any) -> list[dict[str, Any]]:
    keys = ("true", "expected", "error")
    return [
        {"type": None if row["type"] is None else _text(row["type"]), **{key: _number(row[key]) for key in keys}}
        for row in _rows(rows)
    ]


def _estimate(row: Any) -> dict[str, float | None]:
    return {"value": _maybe(row["value"]), "error": _maybe(row["error"])}


def _rows(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MOST:
        raise ValueError("a table is no list, or a very long one")
    return value


def _numbers(value: Any) -> list[float]:
    return [_number(each) for each in _rows(value)]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is not a number")
    return value


def _maybe(value: Any) -> float | None:
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else _number(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is missing")
    return value[:_LONGEST]


def _plain(value: Any) -> Any:
    if isinstance(value, bool):  # such as whether a limit of time had stopped the fit
        return value
    return _text(value) if isinstance(value, str) else _maybe(value)
