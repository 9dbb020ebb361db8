"""JSON and small files from untrusted sources: only regular files of bounded size are read."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str | bytes, *, strict: bool = False) -> Any:
    """The value of a JSON text; ValueError, in words, if it has none that can be used.

    NaN and Infinity, which are no JSON, are read nevertheless, unless it is to be ``strict``.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant if strict else None)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError("a number has too many digits" if "digits" in str(error) else str(error)) from None
    if _SURROGATE.search(text if isinstance(text, str) else text.decode("utf-8", "replace")):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("it holds half of a character (a lone surrogate)") from None
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a file that is not a link, a pipe or a device, at most ``most`` of them; else an OSError."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if path.is_symlink():
        raise OSError(None, "it is a link")
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(None, "it is not a regular file")
        if about.st_size > most:
            raise OSError(None, f"it has {about.st_size:,} bytes, more than the {most:,} that such a file may have")
        return file.read(most)


def read_json(path: Path, most: int = 16 << 20) -> Any:
    """The value in a small JSON file; OSError or ValueError where there is none."""
    return parse_json(read_regular(path, most).decode("utf-8"))
