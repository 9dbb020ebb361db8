"""Messages that speak of Python arguments, in the words of the command line."""

from __future__ import annotations

import re

# Advice that no command can follow, up to the end of its clause.
_PYTHON_ONLY = re.compile(
    r"(?:[,;]| \()? ?(?:or )?(?:stream=False|(?:pass |add it to )(?:both )?(?:types|format)=)[^.;)]*\)?"
)

_NO_RATE = "(?<!--missing )(?<!NAME=RATE, such as )"  # a type may have the name of an option


def in_options(text: str) -> str:
    """A message that speaks of Python arguments, in the words of the command line."""
    text = (
        text.replace("resume=False", "--restart")
        .replace("cut=True", "--cut")
        .replace("source=", "--from")
        .replace("num_events=", "--events")
    )
    text = re.sub(r"give epochs=(\d+) and the same directory to go on", r"--epochs \1 would go on from here", text)
    text = _PYTHON_ONLY.sub("", text)
    text = re.sub(r"raise the limit: limits\((\w+)=(\d+)\)", r"raise the limit: retrodict --limit \1=\2 ...", text)
    words = "max_events|batch_size|learning_rate|learn_from|num_events"
    text = re.sub(rf"(?<!-)\b({words})\b", lambda name: "--" + name[0].replace("_", "-"), text)
    text = re.sub(r"\bdates=('%[^']*')", r"--dates \1", text)
    known = "stream|time|dates|encoding|type|start|end|unit|timezone|codes|lifecycle|dev|engine|device|cost|learn-from"
    text = re.sub(rf"{_NO_RATE}(?:--|\b)({known})=['\"]?([\w+-](?:[\w/:+.-]*[\w/:+-])?)['\"]?", r"--\1 \2", text)
    return re.sub(rf"{_NO_RATE}(?:--|\b)({known})=(\"\.\.\.\")?", r"--\1", text)
