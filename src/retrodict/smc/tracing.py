"""From what an engine ran, batch by batch, to the ensembles of a posterior, in the order of the observed streams.

A batch is traced back (``smc/genealogy.py``) while the engine runs the next one, so that only the last has nothing to
hide behind: it waits until somebody asks for the ensembles. One draw of the first streams is at hand before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from retrodict.events.stream_set import StreamSet
from retrodict.random import split
from retrodict.smc.diagnostics import Diagnostics
from retrodict.smc.guesses import Guesses, join, pick
from retrodict.smc.islands import unite_sizes, unite_weights
from retrodict.smc.particles import Result, unroll
from retrodict.smc.resampling import log_mean

if TYPE_CHECKING:
    from retrodict.smc.genealogy import Paths

FIRST = 50  # streams of which one draw is at hand, to be looked at for types that surprise the model
_LAGGED = 7  # a branch of each stream's random numbers: which particles make up the lagged ensemble


class Traced(NamedTuple):
    """What is known of N streams: the full and the lagged ensemble, and how far to trust them."""

    full: Guesses
    lagged: Guesses
    diagnostics: Diagnostics


class EngineRun(NamedTuple):
    """What an engine ran: B streams, ``which`` [B] of the set, on I islands each."""

    which: NDArray[np.int64]  # [B]
    result: Result  # of B I runs
    keys: Tensor  # [B I]
    starts: NDArray[np.float64]  # [B]
    islands: int


class Tracing:
    """Collects runs in a ``with`` block, then gives their ensembles when it is called."""

    def __init__(self, observed: StreamSet, islands: int) -> None:
        self.observed, self.islands = observed, islands
        self.log_evidence = np.zeros(len(observed))
        self._traced: list[Future[Traced]] = []
        self._last: EngineRun | None = None
        self._order: list[NDArray[np.int64]] = []
        self._drawn: dict[int, tuple[NDArray[np.float64], NDArray[np.int64]]] = {}
        self._uniforms = np.random.default_rng(0).random(min(FIRST, len(observed)))
        self._lock = threading.Lock()
        self._done: Traced | None = None

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(1, "retrodict-trace")
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=error[0] is not None)

    def beside(self, work: Callable[[], str]) -> Future[str]:
        """Do what does not depend on the engine while it runs."""
        return self._pool.submit(work)

    def add(self, index: NDArray[np.int64], result: Result, keys: Tensor, is_last: bool) -> None:
        """What an engine drew for the streams at ``index`` [B], with ``keys`` [B I]."""
        run = EngineRun(index, result.on_host(), keys.cpu(), self.observed.starts[index], self.islands)
        self.log_evidence[index] = log_mean(run.result.log_evidence.view(len(index), self.islands)).numpy()
        self._order.append(index)
        self._draw(run)
        if is_last:
            self._last = run
            return
        if self._traced:
            self._traced[-1].result()  # two at a time would take more memory
        self._traced.append(self._pool.submit(trace_run, run))

    def __call__(self) -> Traced:
        """Both ensembles of all streams, whoever asks first."""
        with self._lock:
            if self._done is None:
                parts = [future.result() for future in self._traced]
                assert self._last is not None
                parts.append(trace_run(self._last))
                self._traced.clear()
                self._last = None
                self._done = _join(parts, np.argsort(np.concatenate([np.sort(index) for index in self._order])))
            return self._done

    def first_draw(self) -> StreamSet:
        """One guess of each of the ``FIRST`` streams, picked by its weight in the full ensemble."""
        o = self.observed[:FIRST]
        times, types = ([self._drawn[i][part] for i in range(len(o))] for part in (0, 1))
        offsets = np.cumsum([0, *map(len, times)])
        events = np.concatenate([np.empty(0), *times]), np.concatenate([np.empty(0, np.int64), *types])
        return StreamSet.trusted(*events, offsets, o.starts, o.ends, o.ids, o.types, axis=o.axis)

    def _draw(self, run: EngineRun) -> None:
        """Draw one guess of those of the first streams that were run."""
        few, islands = np.flatnonzero(run.which < FIRST), run.islands
        if not len(few):
            return
        rows = torch.from_numpy((few[:, None] * islands + np.arange(islands)).reshape(-1))
        last = run.result.steps[rows] - 1
        weights, _ = unite_weights(run.result.trace.log_weights[rows, last], run.result.log_evidence[rows], islands)
        picked = pick(weights.numpy(), self._uniforms[run.which[few]])
        heads = run.result.trace.heads[rows, last].reshape(weights.shape)
        paths = unroll(run.result.forest, heads[np.arange(len(few)), picked][:, None])
        times, types, counts = (x[:, 0].numpy() for x in paths)
        for stream, t, k, count, start in zip(run.which[few], times, types, counts, run.starts[few], strict=True):
            self._drawn[int(stream)] = start + t[:count], k[:count]


@torch.no_grad()
def trace_run(run: EngineRun) -> Traced:
    """What the islands of B streams drew, in the order of the set."""
    from retrodict.smc.genealogy import trace_back  # loads Numba

    result, islands, order = run.result, run.islands, np.argsort(run.which)
    final = result.trace.log_weights[torch.arange(len(run.keys)), result.steps - 1]
    weights, _ = unite_weights(final, result.log_evidence, islands)
    ess = unite_sizes(result.trace.ess, weights, islands)
    runs = (order[:, None] * islands + np.arange(islands)).reshape(-1)
    starts = np.repeat(run.starts[order], islands)
    full, lagged, reach = trace_back(result, split(run.keys, _LAGGED), starts, runs)
    (B, M), S = weights.shape, ess.shape[1]
    resamplings = result.trace.resampled.view(B, islands, S).any(1).sum(1)
    ahead = (reach - np.arange(S)).reshape(B, islands, S).min(1, initial=S)

    def guesses(paths: Paths, weights: NDArray[np.float64]) -> Guesses:
        return Guesses(paths.times, paths.types, paths.offsets, weights, paths.families.reshape(B, islands, S))

    return Traced(
        guesses(full, weights.numpy()[order]),
        guesses(lagged, np.full((B, M), 1.0 / M)),
        Diagnostics(ess.numpy()[order], ahead, resamplings.numpy()[order]),
    )


def _join(parts: list[Traced], order: NDArray[np.int64]) -> Traced:
    """The ensembles of parts of a set, put together in its order; ``parts`` is emptied, to save memory."""
    diagnostics = Diagnostics.concatenate([part.diagnostics for part in parts], order)
    full, lagged = [part.full for part in parts], [part.lagged for part in parts]
    parts.clear()
    return Traced(join(full, order), join(lagged, order), diagnostics)
