"""Pieces of Markdown: tables and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

NOT_RUN = "not run yet"
Picture = Callable[[str, str], str]


def table(heading: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value: float) -> str:
    """Four digits, never with an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def share(value: float | None) -> str:
    """A percentage, where there is a number."""
    return NOT_RUN if value is None else f"{value:.1%}"


def p_value(value: float) -> str:
    """A p-value."""
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def marked(value: float, least: float) -> str:
    """A number, in bold where it is the least."""
    text = number(value)
    return f"**{text}**" if value <= least else text
