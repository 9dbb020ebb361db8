"""Engines: ways to run Algorithm 1, from the readable reference to compiled kernels, fastest first.

A new engine is one new file behind the contract in ``base.py``, listed in ``ENGINES``.
"""

from __future__ import annotations

import functools
import warnings

from retrodict.errors import EngineNotice, ModelError
from retrodict.models.device import find_device
from retrodict.proposals.base import Proposal
from retrodict.smc.engines.base import Engine, TorchEngine
from retrodict.smc.engines.gpu.engine import TritonEngine
from retrodict.smc.engines.native import NativeEngine
from retrodict.smc.options import Options

_ALL: tuple[Engine, ...] = (TritonEngine(), TritonEngine("triton-fp32", exact=True), NativeEngine(), TorchEngine())
ENGINES: dict[str, Engine] = {engine.name: engine for engine in _ALL}


def choose(name: str, proposal: Proposal, options: Options) -> Engine:
    """The engine of this name; "auto" is the fastest that can do the job here."""
    if name == "auto":
        able = [engine for engine in ENGINES.values() if not engine.refuses(proposal, options)]
        chosen = next(engine for engine in able if not engine.unavailable())
        if chosen is not able[0]:
            _say_once(able[0].name, chosen.name)
        return chosen
    check_name(name)
    engine = ENGINES[name]
    why = engine.unavailable() or engine.refuses(proposal, options)
    if why:
        raise ModelError(f"the {name} engine cannot do this: {why} Use engine='auto', which picks one that can.")
    return engine


def check_name(name: str) -> None:
    """Refuse an engine that there is not."""
    if name != "auto" and name not in ENGINES:
        raise ModelError(f"unknown engine {name!r}. Choose one of auto, {', '.join(ENGINES)}.")


def place(proposal: Proposal, device: str, engine: str, options: Options) -> Proposal:
    """The proposal on a device; "auto" is a GPU where there is one, unless compiled code runs on the CPU alone."""
    where = find_device(device)
    if device == "auto" and where == "cuda" and engine in ("auto", "native"):
        on_gpu = choose("auto", proposal.to("cuda"), options).name
        on_cpu = choose("auto", proposal.to("cpu"), options).name
        where = "cpu" if engine == "native" or (on_gpu == "torch" and on_cpu != "torch") else "cuda"
    return proposal.to(where)


@functools.cache
def _say_once(wanted: str, used: str) -> None:
    text = f"the {used} engine is used; the {wanted} engine would be faster, but {ENGINES[wanted].unavailable()}"
    warnings.warn(text, EngineNotice, stacklevel=4)
