"""Engines: ways to run Algorithm 1, from the readable reference to compiled kernels, fastest first.

A new engine is one new file behind the contract in ``base.py``, listed in ``ENGINES``.
"""

from __future__ import annotations

from retrodict.errors import ModelError
from retrodict.proposals.base import Proposal
from retrodict.smc.engines.base import Engine
from retrodict.smc.engines.gpu.engine import TritonEngine
from retrodict.smc.engines.reference import TorchEngine
from retrodict.smc.sampler import Options

_ALL: tuple[Engine, ...] = (TritonEngine(), TritonEngine("triton-fp32", exact=True), TorchEngine())
ENGINES: dict[str, Engine] = {engine.name: engine for engine in _ALL}


def choose(name: str, proposal: Proposal, options: Options) -> Engine:
    """The engine of this name; "auto" is the fastest that can do the job here."""
    if name == "auto":
        return next(e for e in ENGINES.values() if not e.missing() and not e.refuses(proposal, options))
    if name not in ENGINES:
        raise ModelError(f"unknown engine {name!r}. Choose one of auto, {', '.join(ENGINES)}.")
    engine = ENGINES[name]
    why = engine.missing() or engine.refuses(proposal, options)
    if why:
        raise ModelError(f"the {name} engine cannot do this: {why} Use engine='auto', which picks one that can.")
    return engine
