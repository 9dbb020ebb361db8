"""The bearer token, if there is one: from the environment or a file, compared in constant time."""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from retrodict.errors import ModelError
from retrodict.events.plain import read_regular

VARIABLE = "RETRODICT_TOKEN"
_LEAST = 16  # characters


def find_token(file: Path | None) -> str | None:
    """The token in a file, else in the environment variable RETRODICT_TOKEN; None for an open server."""
    if file is None:
        token, where = os.environ.get(VARIABLE), VARIABLE
    else:
        try:
            token, where = read_regular(Path(os.path.realpath(file)), 4096).decode("ascii"), str(file)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no plain text"
            raise ModelError(f"cannot read the token in {file}: {why}. Give a text file with one line.") from None
    if token is None:
        return None
    token = token.strip()
    if len(token) < _LEAST or not token.isascii() or len(token.split()) != 1:
        raise ModelError(f"the token in {where} is no word of at least {_LEAST} plain characters. Give a longer one.")
    return token


def is_right(header: str | None, token: str) -> bool:
    """Whether an Authorization header carries the token."""
    scheme, _, given = (header or "").partition(" ")
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    return same and scheme.lower() == "bearer"
