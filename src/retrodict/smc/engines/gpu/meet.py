"""Particles meet at each observed event (Algorithm 1, lines 10 and 12-20); at the end of a stream its slot is free.

One program a slot, over M particles in blocks. Which particles have how many children is decided as in
``smc/resampling.py``; then those with any keep their place, and the places of the others are filled with the remaining
children in the order of their parents. So only survivors read the observed event, and the rest copy them afterwards.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl

from retrodict.smc.engines.gpu.begin import take_stream
from retrodict.smc.engines.gpu.draw import COPIES, DONE, NEXT, STREAMS, UPDATES
from retrodict.smc.engines.gpu.maths import split, uniform

NONE, MULTINOMIAL, STRATIFIED, SYSTEMATIC, RESIDUAL = (tl.constexpr(i) for i in range(5))


@triton.jit
def _first_above(values, wanted, M, LOG: tl.constexpr):
    """How many of M increasing ``values`` are at most ``wanted``, for each of those."""
    low = tl.zeros_like(wanted).to(tl.int32)
    high = low + M
    for _ in range(LOG):
        middle = (low + high) // 2
        open_ = low < high
        at_most = tl.load(values + middle, mask=open_, other=0) <= wanted
        low = tl.where(open_ & at_most, middle + 1, low)
        high = tl.where(open_ & ~at_most, middle, high)
    return low


@triton.jit
def _children(
    log_weights, row0, top, total, key, segment, cumulative, children, M,
    SCHEME: tl.constexpr, MB: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """How many children each particle has, into ``children``."""
    given = total * 0.0
    kept = total * 0.0
    if SCHEME == RESIDUAL:
        for m0 in range(0, M, MB):
            m = m0 + tl.arange(0, MB)
            weight = tl.exp(tl.load(log_weights + row0 + m, mask=m < M, other=-float("inf")) - top)
            shares = weight / total * M
            certain = tl.minimum(tl.floor(shares + 1e-9), M)
            given += tl.sum(certain, 0)
            kept += tl.sum(tl.maximum(shares - certain, 0.0), 0)
    summed = total * 0.0
    highest = 0
    for m0 in range(0, M, MB):
        m = m0 + tl.arange(0, MB)
        on = m < M
        weight = tl.exp(tl.load(log_weights + row0 + m, mask=on, other=-float("inf")) - top)
        sure = tl.zeros((MB,), tl.int32)
        if SCHEME == RESIDUAL:
            shares = weight / total * M
            certain = tl.minimum(tl.floor(shares + 1e-9), M)
            sure = certain.to(tl.int32)
            # A share that is whole but for rounding counts as whole; with nothing left over, shares decide.
            weight = tl.where(kept > 0, tl.maximum(shares - certain, 0.0), shares)
        tl.store(cumulative + row0 + m, summed + tl.cumsum(weight, 0), mask=on)
        tl.store(children + row0 + m, sure, mask=on)
        summed += tl.sum(weight, 0)
        highest = tl.maximum(highest, tl.max(tl.where((weight > 0) & on, m, 0), 0))
    tl.debug_barrier()
    for m0 in range(0, M, MB):
        m = m0 + tl.arange(0, MB)
        on = m < M
        counter = segment.to(tl.int64) * M + m
        if SCHEME == SYSTEMATIC:
            counter = segment.to(tl.int64) * M + m * 0
        point = uniform(key, counter)
        if (SCHEME == SYSTEMATIC) | (SCHEME == STRATIFIED):
            point = (m + point) / M
        parent = tl.minimum(_first_above(cumulative + row0, point * summed, M, LOG), highest)
        if SCHEME == RESIDUAL:
            on = on & (m >= given)
        tl.atomic_add(children + row0 + parent, 1, mask=on)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["R", "M", "S", "parity"])
def meet(
    last, log_weights, head, events, rounds, slot_stream, slot_segment, slot_open, slot_evidence, start_kind, start_log,
    node_time, node_kind, node_parent, counters, tally, pending, copies, updates, keys, counts, order, clock,
    cumulative, children, extras, ess, parents, resampled, step_weights, step_heads, log_evidence, stand, piece,
    triggers, is_trigger, R, M, S, parity,
    SCHEME: tl.constexpr, ATOM: tl.constexpr, PIECES: tl.constexpr, AFTER: tl.constexpr, KP: tl.constexpr,
    MB: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Where all particles of a slot have reached the observed event: resample if need be, and go on."""
    slot = tl.program_id(0)
    stream = tl.load(slot_stream + slot)
    ready = (stream >= 0) & (tl.load(slot_open + slot) == 0)
    if ready:
        segment = tl.load(slot_segment + slot)
        is_last = segment == tl.load(counts + stream)
        row0 = slot * M
        top = tl.load(log_weights + row0)
        for m0 in range(0, M, MB):
            m = m0 + tl.arange(0, MB)
            top = tl.maximum(top, tl.max(tl.load(log_weights + row0 + m, mask=m < M, other=-float("inf")), 0))
        possible = top > -float("inf")
        top = tl.where(possible, top, 0.0)
        total = top * 0.0
        squares = top * 0.0
        for m0 in range(0, M, MB):
            m = m0 + tl.arange(0, MB)
            weight = tl.exp(tl.load(log_weights + row0 + m, mask=m < M, other=-float("inf")) - top)
            total += tl.sum(weight, 0)
            squares += tl.sum(weight * weight, 0)
        size = tl.where(possible, total * total / tl.maximum(squares, 1e-300), 0.0)
        at = stream.to(tl.int64) * S + segment
        tl.store(ess + at, size)
        for m0 in range(0, M, MB):
            m = m0 + tl.arange(0, MB)
            on = m < M
            tl.store(step_weights + at * M + m, tl.load(log_weights + row0 + m, mask=on), mask=on)
            tl.store(step_heads + at * M + m, tl.load(head + row0 + m, mask=on), mask=on)
        log_mean = tl.where(possible, top + tl.log(tl.maximum(total, 1e-300) / M), -float("inf"))
        if is_last:
            tl.store(log_evidence + stream, tl.load(slot_evidence + slot) + log_mean)
            tl.debug_barrier()
            tl.atomic_add(tally + DONE, 1)
            next_ = tl.atomic_add(tally + NEXT, 1)
            if next_ < tl.load(tally + STREAMS):
                take_stream(
                    slot, tl.load(order + next_), last, log_weights, head, events, rounds, slot_stream, slot_segment,
                    slot_open, slot_evidence, start_kind, start_log, node_time, node_kind, node_parent, counters, tally,
                    pending, copies, stand, piece, triggers, is_trigger, R, M, 1 - parity, ATOM, PIECES, AFTER, KP, MB,
                )  # fmt: skip
            else:
                tl.store(slot_stream + slot, -1)
        else:
            low = (size < tl.load(clock + 1) * M) & (size > 0) & (SCHEME != NONE)
            if low:
                key = split(tl.load(keys + stream), 6)
                _children(log_weights, row0, top, total, key, segment, cumulative, children, M, SCHEME, MB, LOG)
                tl.store(slot_evidence + slot, tl.load(slot_evidence + slot) + log_mean)
                tl.store(resampled + at, 1)
                more = 0
                for m0 in range(0, M, MB):
                    m = m0 + tl.arange(0, MB)
                    on = m < M
                    extra = tl.maximum(tl.load(children + row0 + m, mask=on, other=0) - 1, 0)
                    tl.store(extras + row0 + m, more + tl.cumsum(extra, 0), mask=on)
                    more += tl.sum(extra, 0)
                tl.debug_barrier()
            to_wait = tl.atomic_add(counters + (1 - parity), M)
            dead = 0
            for m0 in range(0, M, MB):
                m = m0 + tl.arange(0, MB)
                on = m < M
                row = row0 + m
                tl.store(pending + (1 - parity) * R + to_wait + m, row, mask=on)
                lives = on
                if low:
                    lives = on & (tl.load(children + row, mask=on, other=1) > 0)
                    dies = on & ~lives
                    gone = tl.cumsum(dies.to(tl.int32), 0)
                    parent = _first_above(extras + row0, dead + gone - 1, M, LOG)
                    parent = tl.where(dies, parent, m)
                    dead += tl.sum(dies.to(tl.int32), 0)
                    tl.store(parents + at * M + m, parent, mask=on)
                    tl.store(head + row, tl.load(head + row0 + parent, mask=on), mask=dies)
                    tl.store(events + row, tl.load(events + row0 + parent, mask=on), mask=dies)
                    for a in tl.static_range(AFTER):
                        past = triggers + a * R.to(tl.int64)
                        tl.store(past + row, tl.load(past + row0 + parent, mask=on), mask=dies)
                    tl.store(log_weights + row, top * 0.0 + tl.zeros((MB,), tl.float64), mask=on)
                    count = tl.sum(dies.to(tl.int32), 0)
                    to_copy = tl.atomic_add(counters + COPIES, count) + gone - 1
                    tl.store(copies + to_copy, row, mask=dies)
                    tl.store(copies + R + to_copy, row0 + parent, mask=dies)
                new = lives.to(tl.int32)
                to_read = tl.atomic_add(counters + UPDATES, tl.sum(new, 0)) + tl.cumsum(new, 0) - 1
                tl.store(updates + to_read, row, mask=lives)
            tl.store(slot_segment + slot, segment + 1)
            tl.store(slot_open + slot, M)
