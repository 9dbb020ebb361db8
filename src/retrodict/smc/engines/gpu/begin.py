"""A slot begins with a stream: its particles stand at the start, after BOS and what was drawn at the start instant."""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl

from retrodict.smc.engines.gpu.draw import COPIES, EVENTS, STREAMS


@triton.jit
def take_stream(
    slot, stream, last, log_weights, head, events, rounds, slot_stream, slot_segment, slot_open, slot_evidence,
    start_kind, start_log, node_time, node_kind, node_parent, counters, tally, pending, copies, stand, piece, triggers,
    is_trigger, R, M, into,
    ATOM: tl.constexpr, PIECES: tl.constexpr, AFTER: tl.constexpr, KP: tl.constexpr, MB: tl.constexpr,
):  # fmt: skip
    """Let a slot begin with a stream: M particles in the state after BOS and what was drawn at the start instant."""
    tl.store(slot_stream + slot, stream)
    tl.store(slot_segment + slot, 0)
    tl.store(slot_open + slot, M)
    tl.store(slot_evidence + slot, 0.0)
    to_copy = tl.atomic_add(counters + COPIES, M)
    to_wait = tl.atomic_add(counters + into, M)
    for m0 in range(0, M, MB):
        m = m0 + tl.arange(0, MB)
        on = m < M
        row = slot * M + m
        nothing = tl.zeros((MB,), tl.int32)
        kind = nothing
        log_weight = nothing.to(tl.float64)
        newest = nothing - 1
        if ATOM:
            drawn = stream.to(tl.int64) * M + m
            kind = tl.load(start_kind + drawn, mask=on, other=0)
            log_weight = tl.load(start_log + drawn, mask=on, other=0.0)
            some = (kind > 0) & on
            count = tl.sum(some.to(tl.int32), 0)
            node = tl.atomic_add(tally + EVENTS, count.to(tl.int64)) + tl.cumsum(some.to(tl.int32), 0) - 1
            tl.store(node_time + node, log_weight * 0.0, mask=some)
            tl.store(node_kind + node, kind - 1, mask=some)
            tl.store(node_parent + node, newest, mask=some)
            newest = tl.where(some, node.to(tl.int32), newest)
        tl.store(log_weights + row, log_weight, mask=on)
        tl.store(last + row, nothing.to(tl.float64), mask=on)
        if PIECES:
            tl.store(stand + row, nothing.to(tl.float64), mask=on)
            tl.store(piece + row, nothing, mask=on)
            for a in tl.static_range(AFTER):
                starts = (kind > 0) & (tl.load(is_trigger + a * KP + tl.maximum(kind - 1, 0)) != 0)
                when = tl.where(starts, 0.0, -float("inf")).to(tl.float64)
                tl.store(triggers + a * R.to(tl.int64) + row, when, mask=on)
        tl.store(head + row, newest, mask=on)
        tl.store(events + row, (kind > 0).to(tl.int32), mask=on)
        tl.store(rounds + row, nothing, mask=on)
        tl.store(copies + to_copy + m, row, mask=on)
        tl.store(copies + R + to_copy + m, R + kind, mask=on)
        tl.store(pending + into * R + to_wait + m, row, mask=on)


@triton.jit(do_not_specialize=["R", "M"])
def begin(
    order, last, log_weights, head, events, rounds, slot_stream, slot_segment, slot_open, slot_evidence, start_kind,
    start_log, node_time, node_kind, node_parent, counters, tally, pending, copies, stand, piece, triggers, is_trigger,
    R, M,
    ATOM: tl.constexpr, PIECES: tl.constexpr, AFTER: tl.constexpr, KP: tl.constexpr, MB: tl.constexpr,
):  # fmt: skip
    """Fill the slots for the first time."""
    slot = tl.program_id(0)
    if slot < tl.load(tally + STREAMS):
        stream = tl.load(order + slot)
        take_stream(
            slot, stream, last, log_weights, head, events, rounds, slot_stream, slot_segment, slot_open, slot_evidence,
            start_kind, start_log, node_time, node_kind, node_parent, counters, tally, pending, copies, stand, piece,
            triggers, is_trigger, R, M, 0, ATOM, PIECES, AFTER, KP, MB,
        )  # fmt: skip
    else:
        tl.store(slot_stream + slot, -1)
