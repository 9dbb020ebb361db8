"""Examples in docstrings, lines after ``>>>`` up to a blank one, are shown as code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^|\n\n)(>>> .*?)(?=\n\n|\Z)", re.S)


class Doctests(griffe.Extension):
    """Fences them."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Every documented object comes by once."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(r"\n\n```python\n\1\n```", obj.docstring.value)
