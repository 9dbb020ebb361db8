"""The loop over rounds (Algorithm 1, line 7): kernels recorded once as CUDA graphs and replayed until all is done."""

from __future__ import annotations

from typing import Any

import torch
import triton

from retrodict.errors import RunawayError
from retrodict.models.ctlstm import Cells
from retrodict.proposals.smoothing import Smoothing
from retrodict.smc.engines.gpu import pack
from retrodict.smc.engines.gpu.backward import step_back, tabulate
from retrodict.smc.engines.gpu.begin import begin
from retrodict.smc.engines.gpu.buffers import Shape, Tiles, make_back_buffers, make_buffers, make_nodes
from retrodict.smc.engines.gpu.draw import DONE, EVENTS, RUNAWAY, STREAMS, draw
from retrodict.smc.engines.gpu.ends import weigh_ends
from retrodict.smc.engines.gpu.launch import launch, recorded
from retrodict.smc.engines.gpu.load import Job, Loader
from retrodict.smc.engines.gpu.meet import meet
from retrodict.smc.engines.gpu.read import copy, read
from retrodict.smc.options import Options, runaway_message
from retrodict.smc.particles import Forest, Result, Trace

_ROUNDS = 4  # a replay; even, since waiting rows are listed in two lists that take turns
_STEPS = 8  # of the right-to-left pass a replay
_COPIERS = 1056


class Sweep:
    """Buffers and graphs of one shape; ``run`` may be called again and again."""

    def __init__(self, shape: Shape, tiles: Tiles) -> None:
        self.shape, self.tiles = shape, tiles
        self.on_gpu = shape.device.type == "cuda"
        self.buffers = make_buffers(shape, tiles)
        self.back = make_back_buffers(shape, tiles, self.buffers) if shape.back_hidden else None
        self.per_round = shape.rows * (2 if shape.atom else 1)  # events added in a round at most
        expected = shape.streams * shape.particles * shape.segments
        self.buffers |= make_nodes(max(expected, 4 * _ROUNDS * self.per_round), shape.device)
        self.loader = Loader(shape, tiles, self.buffers, self.back)
        if self.on_gpu:
            self.looks = [torch.zeros(8, dtype=torch.int64, pin_memory=True) for _ in range(2)]
            self.events = [torch.cuda.Event() for _ in range(2)]
            # With nothing listed the kernels do nothing: run them once so that they are compiled.
            self._begin()
            self._round(0)
            self._round(1)
            self.start = recorded(self._begin)
            self.rounds = self._record()
            if self.back is not None:
                self._step_back(1)
                self.steps = recorded(lambda: self._step_back(_STEPS))

    def run(self, job: Job) -> Result:
        """Algorithm 1 for B streams, at most as many as the shape has room for."""
        segments = job.observed.types.shape[1] + 1
        self.loader.load(job)
        if self.back is not None:
            self._read_back(segments)
        if self.shape.atom:
            first = self._first_cells(job)
            kinds, weights = pack.draw_starts(job.observed, job.proposal, first, job.keys, self.shape.particles)
            self.buffers["start_kind"][: len(kinds)] = kinds
            self.buffers["start_log"][: len(weights)] = weights
        self.start.replay() if self.on_gpu else self._begin()
        self._loop(job.options)
        return self._result(len(job.keys), segments)

    def _read_back(self, segments: int) -> None:
        """The right-to-left pass and its table."""
        if not self.on_gpu:
            return self._step_back(segments)
        for _ in range(-(-segments // _STEPS)):
            self.steps.replay()
        return None

    def _first_cells(self, job: Job) -> Cells | None:
        """The right-to-left LSTM's cells in each stream's first segment, [B, D']."""
        if self.back is None:
            return None
        assert isinstance(job.proposal, Smoothing)
        turn = job.observed.mask.sum(1) % 2
        fields = self.back["cells"][turn, torch.arange(len(turn), device=turn.device), :, : job.proposal.hidden_size]
        return Cells(*fields.unbind(1))

    def _step_back(self, steps: int) -> None:
        shape, t = self.shape, self.tiles
        D, width = shape.back_hidden, shape.width
        groups = (D // t.back_columns, triton.cdiv(shape.streams, t.back_rows))
        cut = {"D": D, "BM": t.back_rows, "BN": t.back_columns, "BK": min(D, t.back_depth)}
        cut |= {"INPUTS": shape.inputs, "EXACT": shape.exact}
        columns = min(64, triton.next_power_of_2(width)) if shape.units else width
        table = {"D": D, "WIDTH": width, "BB": 1, "BC": columns, "BD": min(D, 64)}
        for _ in range(steps):
            launch(step_back, groups, self.back, cut, t.back_warps)
            launch(tabulate, (shape.streams, triton.cdiv(width, columns)), self.back, table, t.back_warps)

    def _begin(self) -> None:
        cut = {"MB": self.tiles.particles_at_once(self.shape.particles), **self._rates()}
        launch(begin, (self.shape.slots,), self.buffers, cut | {"ATOM": self.shape.atom}, 4)
        self._copy(parity=1)

    def _rates(self) -> dict[str, Any]:
        """What kernels must know of the missing rates."""
        return {"PIECES": self.shape.pieces > 0, "AFTER": self.shape.after, "KP": self.shape.padded_types}

    def _copy(self, parity: int) -> None:
        width = 4 * self.shape.hidden
        cut = {"parity": parity, "WIDTH": width, "BLOCK": min(width & -width, 1024), "ENDS": self.shape.ends > 0}
        launch(copy, (min(self.shape.rows, _COPIERS),), self.buffers, cut, 4)

    def _round(self, parity: int) -> None:
        """Rows draw, particles meet, the LSTM reads, ends are weighed, copies follow."""
        shape, t, b = self.shape, self.tiles, self.buffers
        D, block = shape.hidden, t.particles_at_once(shape.particles)
        cut: dict[str, Any] = {"D": D, "UNITS": shape.units, "BR": t.draw_rows, "BD": min(D, t.draw_depth)}
        cut |= {"parity": parity, "SMOOTH": bool(shape.back_hidden), "EXACT": shape.exact, **self._rates()}
        cut |= {"ENDS": shape.ends > 0}
        warps = t.warps_to_draw(shape.padded_types, shape.units)
        launch(draw, (triton.cdiv(shape.rows, t.draw_rows),), b, cut, warps)
        cut = {"parity": parity, "SCHEME": shape.scheme, "ATOM": shape.atom, **self._rates()}
        cut |= {"MB": block, "LOG": shape.particles.bit_length()}
        launch(meet, (shape.slots,), b, cut, 1 if block <= 64 else 4)
        cut = {"D": D, "BM": t.read_rows, "BN": t.read_columns, "BK": min(D, t.read_depth)}
        groups = (D // t.read_columns, triton.cdiv(shape.rows, t.read_rows))
        launch(read, groups, b, cut | {"EXACT": shape.exact}, t.read_warps, 2 if shape.exact else t.read_stages)
        if shape.ends:
            cut = {"D": D, "BE": t.end_rows, "BD": min(D, t.draw_depth)}
            launch(weigh_ends, (triton.cdiv(shape.rows, t.end_rows),), b, cut, 1)
        self._copy(parity)

    def _record(self) -> Any:
        def rounds() -> None:
            for i in range(_ROUNDS):
                self._round(i % 2)

        return recorded(rounds)

    def _loop(self, options: Options) -> None:
        """Rounds until every stream is done; the host looks at the tally of one replay while the next one runs."""
        number = 0
        while True:
            if not self.on_gpu:
                self._round(0)
                self._round(1)
                seen = self.buffers["tally"]
            else:
                self.rounds.replay()
                self.looks[number % 2].copy_(self.buffers["tally"], non_blocking=True)
                self.events[number % 2].record()
                number += 1
                if number == 1:
                    continue
                self.events[number % 2].synchronize()
                seen = self.looks[number % 2]
            tally = seen.tolist()
            if tally[RUNAWAY.value]:
                raise RunawayError(runaway_message(options.max_events))
            if tally[DONE.value] >= tally[STREAMS.value]:
                return
            self._make_room(tally[EVENTS.value])

    def _make_room(self, used: int) -> None:
        """More nodes before they run out: two replays may be under way before the next look."""
        room = len(self.buffers["node_time"])
        if used + 3 * _ROUNDS * self.per_round <= room:
            return
        for name, more in make_nodes(2 * room, self.shape.device).items():
            more[:room] = self.buffers[name]
            self.buffers[name] = more
        if self.on_gpu:
            self.start, self.rounds = recorded(self._begin), self._record()

    def _result(self, B: int, S: int) -> Result:
        b = self.buffers
        used = int(b["tally"][EVENTS.value])
        forest = Forest(*(b[name][:used].clone() for name in ("node_time", "node_kind", "node_parent")))
        ess, parents, log_weights, heads = (
            b[name][:B, :S].clone() for name in ("ess", "parents", "step_weights", "step_heads")
        )
        trace = Trace(ess, parents, b["resampled"][:B, :S].bool(), log_weights, heads)
        return Result(forest, trace, b["log_evidence"][:B].clone())
