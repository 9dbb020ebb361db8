"""Where everything lies on the device: tensors at fixed addresses, named as the kernels' parameters are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from retrodict.smc.engines.gpu.draw import rule


@dataclass(frozen=True)
class Tiles:
    """How work is cut for the multiprocessors. The same cut for every batch, so that a stream's numbers are, too."""

    draw_rows: int = 4
    draw_depth: int = 32
    draw_warps: int = 1
    read_rows: int = 64
    read_columns: int = 16
    read_depth: int = 64
    read_warps: int = 4
    read_stages: int = 3
    end_rows: int = 16
    back_rows: int = 16
    back_columns: int = 32
    back_depth: int = 64
    back_warps: int = 4
    block: int = 1024
    units_a_warp: int = 32  # of those in which past and future interact, while rows draw

    def particles_at_once(self, particles: int) -> int:
        """How many particles of a slot are looked at together."""
        return min(self.block, max(16, 1 << (particles - 1).bit_length()))

    def warps_to_draw(self, padded_types: int, units: int) -> int:
        """So many that what all nodes of a cell sum up fits into registers."""
        return min(8, max(self.draw_warps * padded_types // 16, units // self.units_a_warp))


class Shape(NamedTuple):
    """What buffers and graphs are made for: capacities, model sizes (padded) and what is fixed in the kernels."""

    slots: int
    particles: int
    streams: int
    segments: int
    hidden: int
    types: int
    padded_types: int
    back_hidden: int  # 0: filtering
    units: int  # in which past and future interact, padded
    inputs: bool  # whether each input of the right-to-left LSTM has a share of the gates of its own
    pieces: int  # of missing rates a stream; 0: rates are constant
    after: int  # parts of the mechanism that look at last triggers
    scheme: int
    atom: bool  # whether first events can be at the start instant
    ends: int  # numbers of events that the end atom tells apart; 0: there is none
    exact: bool  # two half-precision numbers for each of the LSTM's, not one
    device: torch.device

    @property
    def rows(self) -> int:
        """All particles of all slots."""
        return self.slots * self.particles

    @property
    def width(self) -> int:
        """Columns of the table of each segment: types, then units."""
        return self.padded_types + self.units


def make_buffers(shape: Shape, tiles: Tiles) -> dict[str, Any]:
    """All tensors, zero at first, by the names of the kernels' parameters; sizes too."""
    R, M, B, S, D, D2 = shape.rows, shape.particles, shape.streams, shape.segments, shape.hidden, shape.back_hidden
    KP, parts = shape.padded_types, 2 if shape.exact else 1
    P, A, W = shape.pieces, shape.after, shape.units

    make = partial(torch.zeros, dtype=torch.float32, device=shape.device)
    whole, double = partial(make, dtype=torch.int32), partial(make, dtype=torch.float64)
    starts = B * M if shape.atom else 1
    buffers: dict[str, Any] = {
        # Rows; after the last one lie the states to begin with.
        "state": make(R + shape.types + 1, 4, D),
        "hidden": make(parts, R, D, dtype=torch.float16),
        "elapsed": make(R),
        **{name: whole(R) for name in ("kind", "head", "events", "rounds", "children", "extras", "updates")},
        **{name: double(R) for name in ("last", "log_weights", "cumulative")},
        "pending": whole(2, R),
        "copies": whole(2, R),
        "stand": double(R if P else 1),
        "piece": whole(R if P else 1),
        "ended": whole(R if shape.ends else 1),
        "triggers": double(max(A, 1), R if A else 1),
        # Slots.
        **{name: whole(shape.slots) for name in ("slot_stream", "slot_segment", "slot_open")},
        "slot_evidence": double(shape.slots),
        # Streams.
        "keys": make(B, dtype=torch.int64),
        **{name: whole(B) for name in ("counts", "order", "ending")},
        **{name: whole(B, S) for name in ("edge_kind", "edge_score")},
        **{name: double(B, S) for name in ("edges", "edge_log", "ess")},
        **{name: whole(B, S, M) for name in ("parents", "step_heads")},
        "step_weights": double(B, S, M),
        "resampled": make(B, S, dtype=torch.int8),
        "log_evidence": double(B),
        "start_kind": whole(starts),
        "start_log": double(starts),
        # Missing rates that change.
        "breaks": double(B, P + 1) if P else double(1),
        "controls": make(B, P, 4, KP) if P else make(1),
        "reach": double(max(A, 1)),
        "recent": double(max(A, 1), 2, KP),
        "is_trigger": whole(max(A, 1), KP),
        "P": P,
        # The model.
        "by_kind": make(shape.types + 1, 7, D),
        "recurrent": make(parts, D // tiles.read_columns, 8, tiles.read_columns, D, dtype=torch.float16),
        "readout": make(2, KP, D, dtype=torch.float16),
        "sizes": make(KP),
        "mix_past": make(max(W, 1), D, dtype=torch.float16),
        "mix_out": make(KP, max(W, 1), dtype=torch.float16),
        "by_type": make(5, KP),
        "end_counts": double(max(shape.ends, 1)),
        "end_types": double(KP),
        "end_features": make(D),
        "N": shape.ends,
        "rho": double(shape.types),
        "scores": double(2, shape.types),
        "fractions": rule().to(shape.device),
        "clock": double(5),
        # Lists and counts.
        "counters": whole(4),
        "tally": make(8, dtype=torch.int64),
        "steps": whole(2),
        "table": make(B, S, 9, 2, shape.width) if D2 else make(1),
        "R": R,
        "M": M,
        "S": S,
    }
    buffers["counts"].fill_(-1)
    return buffers


def make_back_buffers(shape: Shape, tiles: Tiles, shared: dict[str, Any]) -> dict[str, Any]:
    """Those of the right-to-left LSTM; streams, clock and table are shared."""
    D, B, columns, parts = shape.back_hidden, shape.streams, tiles.back_columns, 2 if shape.exact else 1
    make = partial(torch.zeros, dtype=torch.float32, device=shape.device)
    own: dict[str, Any] = {
        "cells": make(2, B, 4, D),
        "by_kind": make(shape.types + 1, 7, D),
        "inputs": make(B, shape.segments, 7, D) if shape.inputs else make(1),
        "recurrent": make(parts, D // columns, 8, columns, D, dtype=torch.float16),
        "readout": make(2, shape.width, D, dtype=torch.float16),
        "sizes": make(shape.width),
        "offsets": make(shape.width),
        "B": B,
        "end": shape.types,
    }
    names = ("steps", "edges", "edge_kind", "counts", "clock", "table", "S")
    return own | {name: shared[name] for name in names}


def make_nodes(count: int, device: torch.device) -> dict[str, Tensor]:
    """Room for ``count`` events."""
    return {
        "node_time": torch.zeros(count, dtype=torch.float64, device=device),
        "node_kind": torch.zeros(count, dtype=torch.int32, device=device),
        "node_parent": torch.zeros(count, dtype=torch.int32, device=device),
    }
