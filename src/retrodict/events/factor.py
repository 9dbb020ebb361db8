"""How many times as much, as a person reads it: three digits, and no powers of ten."""

from __future__ import annotations

MOST, LEAST = 1e6, 1e-3  # beyond which a factor is no more than large, or small


def in_times(factor: float) -> str:
    """A factor in words, such as "3.16 times", "12,300 times" or "more than a million times"."""
    if not factor <= MOST:
        return "more than a million times"
    if factor < LEAST:
        return "less than 0.001 times"
    rounded = float(f"{factor:.3g}")
    return f"{rounded:,.0f} times" if rounded >= 100 else f"{rounded:g} times"
