"""Scans on a GPU: a matrix product and a kernel a step, and for short ones a CUDA graph of all steps.

A step takes a GPU a few microseconds, less than it takes Python to ask for it. The launches of a whole scan are
therefore recorded once for each shape and replayed. What goes into a recording and what comes out is copied, so that
any number of scans may be under way at once; what recordings need in between they share, being played one by one.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor

from retrodict.models.ctlstm_fused import read_step, unread_step
from retrodict.models.ctlstm_scan import Scanned

_SHARE = 0.1  # of the GPU's memory that recordings may take
_BYTES = 22 * 4  # of a recording for each step, stream and cell, at most


class Fused:
    """The scan in fused kernels, launched one by one."""

    @staticmethod
    def forward(gates: Tensor, by_hidden: Tensor, gaps: Tensor) -> Scanned:
        """As ``Plain.forward``."""
        N, B, _ = gates.shape
        D = by_hidden.shape[0]
        cells = gates.new_zeros(N + 1, B, D)
        scanned = Scanned(gates, cells, *(gates.new_empty(N, B, D) for _ in range(6)))
        _read_all(scanned, by_hidden, gaps)
        return scanned

    @staticmethod
    def backward(scanned: Scanned, by_hidden: Tensor, gaps: Tensor, grads: tuple[Tensor, ...]) -> Tensor:
        """As ``Plain.backward``."""
        g_gates = torch.empty_like(scanned.gates)
        _unread_all(scanned, by_hidden, gaps, tuple(g.contiguous() for g in grads), g_gates)
        return g_gates


def _read_all(s: Scanned, by_hidden: Tensor, gaps: Tensor) -> None:
    zero = s.cells[0]
    for n in range(len(s.gates)):
        if n:
            s.gates[n].addmm_(s.hidden[n - 1], by_hidden)
        out = (s.start[n], s.target[n], s.decay[n], s.fade[n], s.cells[n + 1], s.squashed[n], s.hidden[n])
        read_step(s.gates[n], s.cells[n], s.target[n - 1] if n else zero, gaps[n], out)


def _unread_all(s: Scanned, by_hidden: Tensor, gaps: Tensor, grads: tuple[Tensor, ...], g_gates: Tensor) -> None:
    carried = tuple(torch.zeros_like(s.cells[0]) for _ in range(3))
    back = by_hidden.t()
    for n in range(len(s.gates) - 1, -1, -1):
        bar = s.target[n - 1] if n else s.cells[0]
        kept = (s.gates[n], s.cells[n], bar, gaps[n], s.start[n], s.target[n], s.fade[n], s.squashed[n])
        unread_step(kept, tuple(g[n] for g in grads), carried, g_gates[n])
        if n:
            torch.mm(g_gates[n], back, out=carried[0])


class Graphed:
    """The same, as recordings where that pays."""

    @staticmethod
    def forward(gates: Tensor, by_hidden: Tensor, gaps: Tensor) -> Scanned:
        """As ``Plain.forward``."""
        N, B, _ = gates.shape
        if not _pays(N, B, len(by_hidden)):
            return Fused.forward(gates, by_hidden, gaps)
        recording = _recorded("forward", _length(N), gates, by_hidden, gaps)
        return Scanned(*recording.play((gates, by_hidden, gaps), N))

    @staticmethod
    def backward(scanned: Scanned, by_hidden: Tensor, gaps: Tensor, grads: tuple[Tensor, ...]) -> Tensor:
        """As ``Plain.backward``."""
        N, B, _ = scanned.gates.shape
        if not _pays(N, B, len(by_hidden)):
            return Fused.backward(scanned, by_hidden, gaps, grads)
        recording = _recorded("backward", _length(N), scanned.gates, by_hidden, gaps)
        (g_gates,) = recording.play((*_needed(scanned), by_hidden, gaps, *grads), N)
        return g_gates


def _pays(N: int, B: int, D: int) -> bool:
    return 0 < N * B * D <= _room() // 4 and not torch.cuda.is_current_stream_capturing()


@functools.cache
def _room() -> int:
    """N B D of all recordings together."""
    return int(_SHARE * torch.cuda.get_device_properties().total_memory / _BYTES)


def _length(N: int) -> int:
    """Lengths are rounded up by an eighth at most, so that few shapes need recording."""
    step = 1 << max(0, N.bit_length() - 4)
    return -(-N // step) * step


class _Recording:
    """Launches on inputs and outputs in fixed places, whose first dimension may be longer than asked for.

    Steps beyond the real ones come last forwards and first backwards, where their gradients are zero: either way they
    do not touch the real ones.
    """

    def __init__(self, inputs: tuple[Tensor, ...], steps: Callable[[], tuple[Tensor, ...]]) -> None:
        self.inputs, self.size = inputs, inputs[0].numel() // 7
        steps()  # compiles what needs compiling
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=_keeper(inputs[0].device).pool()):
            self.outputs = steps()

    def play(self, given: tuple[Tensor, ...], N: int) -> list[Tensor]:
        """Run on these inputs; outputs are cut to N steps (and one, where they hold the state before the first)."""
        for place, value in zip(self.inputs, given, strict=True):
            short = len(place) - len(value)
            place[: len(value)].copy_(value)
            if short:
                place[len(value) :].zero_()
        self.graph.replay()
        short = len(self.outputs[0]) - N
        return [out[: len(out) - short].clone() for out in self.outputs]


@functools.cache
def _keeper(device: torch.device) -> torch.cuda.CUDAGraph:
    """A recording of next to nothing, which is never forgotten: others share its memory.

    Matrix products take their workspace from the recording that first asks for one, and others go on to use it. If that
    one had memory of its own, the workspace would be gone with it once somebody (Lightning, after every fit) clears
    workspaces, while others still write there.
    """
    keeper = torch.cuda.CUDAGraph()
    with torch.cuda.device(device), torch.cuda.graph(keeper):
        torch.zeros(1, device=device)
    return keeper


_recordings: OrderedDict[tuple[object, ...], _Recording] = OrderedDict()


def _recorded(direction: str, length: int, gates: Tensor, by_hidden: Tensor, gaps: Tensor) -> _Recording:
    B, D = gates.shape[1], len(by_hidden)
    key = (direction, length, B, D, gates.dtype, gates.device, torch.get_float32_matmul_precision())
    if key not in _recordings:
        _recordings[key] = _record(direction, length, B, D, gates)
        while len(_recordings) > 1 and sum(r.size for r in _recordings.values()) > _room():
            _recordings.popitem(last=False)
    _recordings.move_to_end(key)
    return _recordings[key]


def _record(direction: str, length: int, B: int, D: int, like: Tensor) -> _Recording:
    gates, by_hidden, gaps = like.new_zeros(length, B, 7 * D), like.new_zeros(D, 7 * D), like.new_zeros(length, B)
    cells = like.new_zeros(length + 1, B, D)
    scanned = Scanned(gates, cells, *(like.new_zeros(length, B, D) for _ in range(6)))
    if direction == "forward":

        def read() -> tuple[Tensor, ...]:
            _read_all(scanned, by_hidden, gaps)
            return tuple(scanned)

        return _Recording((gates, by_hidden, gaps), read)
    grads = tuple(like.new_zeros(length, B, D) for _ in range(5))
    g_gates = like.new_zeros(length, B, 7 * D)

    def unread() -> tuple[Tensor, ...]:
        _unread_all(scanned, by_hidden, gaps, grads, g_gates)
        return (g_gates,)

    return _Recording((*_needed(scanned), by_hidden, gaps, *grads), unread)


def _needed(s: Scanned) -> tuple[Tensor, ...]:
    """What the backward pass looks at."""
    return s.gates, s.cells, s.start, s.target, s.fade, s.squashed
