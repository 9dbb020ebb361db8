"""DrawSegment on the device (Algorithm 1, lines 27-46): one event, or the end of the segment, for every waiting row.

The rest of the segment is cut into four cells that widen to the right, as what follows an event settles down, with four
Gauss-Legendre nodes each. The proposal is the line through the two values of λ^q in each half of a cell, kept positive;
it is drawn from by inversion and its integral is known exactly. Where an event is found, Radau's rule with three more
nodes and the event's own time completes the integral of λ^p. Types are drawn in proportion to λ^q_k at that time.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from retrodict.smc.engines.gpu.maths import (
    cell_at,
    exp2,
    inverse,
    log2,
    log_softplus,
    softplus2,
    split,
    tanh,
    uniform,
)
from retrodict.smc.engines.gpu.stretch import control_points, cubic, remember, seen_after, stretch
from retrodict.smc.engines.gpu.tilt import TABLE, future, mixed, place_of, project

HALVES = tl.constexpr(8)
COPIES = tl.constexpr(2)  # where the counters lie: 0 and 1 are the rows waiting in even and odd rounds
UPDATES = tl.constexpr(3)
EVENTS, DONE, NEXT, RUNAWAY, STREAMS, LIMIT, HIGHEST = (tl.constexpr(i) for i in range(7))  # where the tally's lie
_POINT, _WEIGHT, _LEFT, _WIDTH, _NEAR, _RADAU, _SHARE = (tl.constexpr(i) for i in (0, 4, 8, 17, 25, 33, 37))
CUT, SEEN, MISSING = (tl.constexpr(i) for i in range(3))  # how a stream ends (``smc/ending.py``)
_LEAST = tl.constexpr(1e-25)  # a rate that is never reached but keeps quotients of rates defined
_PER_HALF = tl.constexpr(1.9188139)  # one over the distance of the two nodes of a half, in its own width
_LOG2E, _LN2 = tl.constexpr(1.4426950408889634), tl.constexpr(0.6931471805599453)


def rule() -> Tensor:
    """The nodes as one list of fractions: points and weights in a cell, halves' edges and widths, where the first of a
    half's two nodes is, and Radau's points and weights."""
    edges = np.linspace(0, 1, 5) ** 2
    width = np.diff(edges)[:, None]
    points, weights = np.polynomial.legendre.leggauss(4)
    halves = np.sort(np.concatenate([edges, edges[:-1] + width[:, 0] / 2]))
    nodes = edges[:-1, None] + width * (points + 1) / 2
    near = (nodes.reshape(8, 2)[:, 0] - halves[:-1]) / np.diff(halves)
    radau = np.array([-0.822824080974592, -0.181066271118531, 0.575318923521694, 1.0])
    shares = np.array([0.440924422353537, 0.776386937686343, 0.657688639960120, 0.125])
    parts = ((points + 1) / 2, weights / 2, halves, np.diff(halves), near, (radau + 1) / 2, shares / 2)
    return torch.as_tensor(np.concatenate(parts), dtype=torch.float32)


@triton.jit
def _hidden_pair(output, minus, arg, other_arg):
    """h of two cells c, given 2 log2(e) c, with one division for both; ``minus`` is -2 times the output gate."""
    one = 1.0 + exp2(tl.minimum(arg, 60.0))
    two = 1.0 + exp2(tl.minimum(other_arg, 60.0))
    both = inverse(one * two)
    return output + minus * (both * two), output + minus * (both * one)


@triton.jit
def _rates(
    acc, sums, tau, ahead, whole, own, mix_out, sharp, soft, rho, k,
    BR: tl.constexpr, KP: tl.constexpr, UNITS: tl.constexpr, SMOOTH: tl.constexpr,
):  # fmt: skip
    """Σ_k λ^p_k and Σ_k λ^q_k at the nodes tau [R, 4] of a cell from the drives [4 R, K] and the units' sums."""
    x = tl.reshape(acc, (BR, 4, KP))
    rate = softplus2(x * sharp[None, None, :]) * soft[None, None, :]
    p = tl.sum(rate, 2)
    if SMOOTH:
        place = place_of(ahead[:, None] - tau, whole[:, None])
        x += future(own, place, k, KP + UNITS)
        if UNITS > 0:
            x += mixed(sums, own, place, mix_out, BR, KP, UNITS)
        rate = softplus2(x * sharp[None, None, :]) * soft[None, None, :]
    q = tl.sum(rate * rho, 2)
    return p, q


@triton.jit
def _pick(values, index, k):
    """``values`` [R, K] at ``index`` [R]."""
    return tl.sum(tl.where(k[None, :] == index[:, None], values, 0.0), 1)


@triton.jit(do_not_specialize=["R", "M", "S", "P", "parity"])
def draw(
    state, last, log_weights, hidden, elapsed, kind, head, events, rounds, slot_stream, slot_segment, slot_open, keys,
    edges, edge_kind, edge_score, edge_log, table, readout, sizes, by_type, fractions, clock, node_time, node_kind,
    node_parent, counters, tally, pending, updates, mix_past, mix_out, stand, piece, breaks, controls, triggers, reach,
    recent, is_trigger, counts, ending, ended, R, M, S, P, parity,
    D: tl.constexpr, KP: tl.constexpr, UNITS: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr, SMOOTH: tl.constexpr,
    PIECES: tl.constexpr, AFTER: tl.constexpr, ENDS: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """One round for BR of the waiting rows."""
    first = tl.program_id(0) * BR
    if first == 0:
        tl.store(counters + COPIES, 0)
    waiting = tl.load(counters + parity)
    if first < waiting:
        lane = first + tl.arange(0, BR)
        on = lane < waiting
        row = tl.load(pending + parity * R + lane, mask=on, other=0)
        slot = row // M
        stream = tl.maximum(tl.load(slot_stream + slot), 0).to(tl.int64)
        segment = tl.load(slot_segment + slot)
        edge = stream * S + segment
        right = tl.load(edges + edge)
        row = row.to(tl.int64)
        i, k = tl.arange(0, 4), tl.arange(0, KP)
        origin = tl.load(last + row)
        now, stop = origin, right
        if PIECES:
            now = tl.load(stand + row)
            here, stop, part, pace = stretch(
                row, stream, now, right, clock, piece, breaks, triggers, reach, R, P, AFTER
            )  # fmt: skip
            passed = ((now - origin) * tl.load(clock)).to(tl.float32)
        length = ((stop - now) * tl.load(clock)).to(tl.float32)
        ahead = ((right - now) * tl.load(clock)).to(tl.float32)
        own = table + edge[:, None, None] * ((TABLE + 1) * 2 * (KP + UNITS))
        whole = length
        if SMOOTH:
            left = tl.load(edges + edge - 1, mask=segment > 0, other=0.0)
            whole = 1.0 / tl.maximum(((right - left) * tl.load(clock)).to(tl.float32), 1e-30)

        # Cell g of four goes from g² to (g + 1)² sixteenths of the way: the decays at its nodes follow from those of
        # the first cell, a at its nodes and b at its end, by products alone.
        unit = length * 0.0625
        point = tl.load(fractions + _POINT + i)
        zero = tl.zeros((BR * 4, KP), tl.float32)
        acc0, acc1, acc2, acc3 = zero, zero, zero, zero
        none = zero
        if UNITS > 0:
            none = tl.zeros((BR * 4, UNITS), tl.float32)
        sums0, sums1, sums2, sums3 = none, none, none, none
        for d0 in range(0, D, BD):
            d = d0 + tl.arange(0, BD)
            at = state + row[:, None] * (4 * D) + d[None, :]
            start, target, decay, output = tl.load(at), tl.load(at + D), tl.load(at + 2 * D), tl.load(at + 3 * D)
            if PIECES:
                start = cell_at(start, target, decay, passed[:, None])
            fall = ((start - target) * (2.0 * _LOG2E))[:, None, :]
            target = (target * (2.0 * _LOG2E))[:, None, :]
            speed = (decay * (-_LOG2E))[:, None, :]
            minus = (output * -2.0)[:, None, :]
            output = output[:, None, :]
            a = exp2(speed * (unit[:, None] * point[None, :])[:, :, None])
            b = exp2(speed * (unit[:, None] + point[None, :] * 0.0)[:, :, None])
            step = a * a * b
            first_arg = target + fall * a
            a = a * step
            h0, h1 = _hidden_pair(output, minus, first_arg, target + fall * a)
            v_at = readout + k[:, None] * D + d[None, :]
            v, v_rest = tl.trans(tl.load(v_at)), tl.trans(tl.load(v_at + KP * D))
            past = v
            if UNITS > 0:
                past = tl.trans(tl.load(mix_past + tl.arange(0, UNITS)[:, None] * D + d[None, :]))
            acc0, sums0 = project(tl.reshape(h0, (BR * 4, BD)), v, v_rest, acc0, past, sums0, UNITS)
            acc1, sums1 = project(tl.reshape(h1, (BR * 4, BD)), v, v_rest, acc1, past, sums1, UNITS)
            b = b * b
            step = step * b
            a = a * step
            first_arg = target + fall * a
            a = a * (step * b)
            h0, h1 = _hidden_pair(output, minus, first_arg, target + fall * a)
            acc2, sums2 = project(tl.reshape(h0, (BR * 4, BD)), v, v_rest, acc2, past, sums2, UNITS)
            acc3, sums3 = project(tl.reshape(h1, (BR * 4, BD)), v, v_rest, acc3, past, sums3, UNITS)

        size = tl.load(sizes + k)[None, :]
        sharp, soft = tl.load(by_type + k), tl.load(by_type + KP + k)
        rho = tl.load(by_type + 2 * KP + k)[None, None, :]
        if PIECES:
            c0, c1, c2, c3 = control_points(
                row, stream, here, now, controls, triggers, reach, recent, R, P, KP, AFTER
            )  # fmt: skip
        tau = unit[:, None] * point[None, :]
        if PIECES:
            rho = cubic(c0, c1, c2, c3, part[:, None] + tau * pace[:, None])
        p0, q0 = _rates(acc0 * size, sums0, tau, ahead, whole, own, mix_out, sharp, soft, rho, k, BR, KP, UNITS, SMOOTH)
        tau = unit[:, None] * (1.0 + 3.0 * point)[None, :]
        if PIECES:
            rho = cubic(c0, c1, c2, c3, part[:, None] + tau * pace[:, None])
        p1, q1 = _rates(acc1 * size, sums1, tau, ahead, whole, own, mix_out, sharp, soft, rho, k, BR, KP, UNITS, SMOOTH)
        tau = unit[:, None] * (4.0 + 5.0 * point)[None, :]
        if PIECES:
            rho = cubic(c0, c1, c2, c3, part[:, None] + tau * pace[:, None])
        p2, q2 = _rates(acc2 * size, sums2, tau, ahead, whole, own, mix_out, sharp, soft, rho, k, BR, KP, UNITS, SMOOTH)
        tau = unit[:, None] * (9.0 + 7.0 * point)[None, :]
        if PIECES:
            rho = cubic(c0, c1, c2, c3, part[:, None] + tau * pace[:, None])
        p3, q3 = _rates(acc3 * size, sums3, tau, ahead, whole, own, mix_out, sharp, soft, rho, k, BR, KP, UNITS, SMOOTH)
        rate_q = tl.reshape(tl.permute(tl.join(tl.join(q0, q1), tl.join(q2, q3)), (0, 3, 2, 1)), (BR, 16))

        # The proposal on half j of a cell is a line: its mean, and its slope, kept from reaching zero.
        j = tl.arange(0, HALVES)
        one, two = tl.split(tl.reshape(rate_q, (BR, HALVES, 2)))
        near = tl.load(fractions + _NEAR + j)[None, :]
        slope = (two - one) * _PER_HALF
        mean = one + slope * (0.5 - near)
        slope = tl.minimum(tl.maximum(slope, -1.8 * mean), 1.8 * mean)
        upto = tl.cumsum(mean * (tl.load(fractions + _WIDTH + j)[None, :] * length[:, None]), 1)

        number = tl.load(rounds + row).to(tl.int64)
        key = split(tl.load(keys + stream), 8 + row % M)
        wanted = tl.maximum(-_LN2 * log2(uniform(split(key, 0), number).to(tl.float32)), 1e-20)
        half = tl.sum((upto <= wanted[:, None]).to(tl.int32), 1)
        hit = half < HALVES
        mine = j[None, :] == tl.minimum(half, HALVES - 1)[:, None]
        before = tl.sum(tl.where(j[None, :] == half[:, None] - 1, upto, 0.0), 1)
        mean, slope = tl.sum(tl.where(mine, mean, 0.0), 1), tl.sum(tl.where(mine, slope, 0.0), 1)
        width = tl.load(fractions + _WIDTH + tl.minimum(half, HALVES - 1)) * length
        lowest = mean - 0.5 * slope
        share = (wanted - before) / tl.maximum(width, 1e-37)
        root = tl.sqrt(tl.maximum(lowest * lowest + 2.0 * slope * share, 0.0))
        inside = tl.minimum(tl.maximum(2.0 * share / tl.maximum(lowest + root, 1e-37), 0.0), 1.0)
        density = lowest + slope * inside
        begin = tl.load(fractions + _LEFT + half) * length
        time = tl.where(hit, begin + inside * width, length)

        # Radau's nodes from the start of the cell to the event; the last of them is the event itself.
        begin = tl.load(fractions + _LEFT + 2 * (half // 2)) * length
        tau = begin[:, None] + (time - begin)[:, None] * tl.load(fractions + _RADAU + i)[None, :]
        tau = tl.where(i[None, :] == 3, time[:, None], tau)
        acc0, sums0 = zero, none
        for d0 in range(0, D, BD):
            d = d0 + tl.arange(0, BD)
            at = state + row[:, None] * (4 * D) + d[None, :]
            start, target, decay, output = tl.load(at), tl.load(at + D), tl.load(at + 2 * D), tl.load(at + 3 * D)
            if PIECES:
                start = cell_at(start, target, decay, passed[:, None])
            at_event = output * tanh(cell_at(start, target, decay, time[:, None]))
            high = at_event.to(tl.float16)
            put = hidden + row[:, None] * D + d[None, :]
            tl.store(put, high, mask=on[:, None])
            if EXACT:
                tl.store(put + R.to(tl.int64) * D, (at_event - high.to(tl.float32)).to(tl.float16), mask=on[:, None])
            cell = cell_at(start[:, None, :], target[:, None, :], decay[:, None, :], tau[:, :, None])
            h = output[:, None, :] * tanh(cell)
            v_at = readout + k[:, None] * D + d[None, :]
            v, v_rest = tl.trans(tl.load(v_at)), tl.trans(tl.load(v_at + KP * D))
            past = v
            if UNITS > 0:
                past = tl.trans(tl.load(mix_past + tl.arange(0, UNITS)[:, None] * D + d[None, :]))
            acc0, sums0 = project(tl.reshape(h, (BR * 4, BD)), v, v_rest, acc0, past, sums0, UNITS)
        x = tl.reshape(acc0 * size, (BR, 4, KP))
        partial = tl.sum(softplus2(x * sharp[None, None, :]) * soft[None, None, :], 2)
        area_p = tl.sum(partial * tl.load(fractions + _SHARE + i)[None, :], 1) * (time - begin)
        weight = tl.load(fractions + _WEIGHT + i)[None, :]
        area_p += tl.where(half > 1, tl.sum(p0 * weight, 1), 0.0) * unit
        area_p += tl.where(half > 3, tl.sum(p1 * weight, 1), 0.0) * (3.0 * unit)
        area_p += tl.where(half > 5, tl.sum(p2 * weight, 1), 0.0) * (5.0 * unit)
        area_p += tl.where(half > 7, tl.sum(p3 * weight, 1), 0.0) * (7.0 * unit)
        area_q = tl.where(hit, wanted, tl.sum(tl.where(j[None, :] == HALVES - 1, upto, 0.0), 1))

        drive = tl.sum(tl.where((i == 3)[None, :, None], x, 0.0), 1)
        tilted = drive
        if SMOOTH:
            place = place_of(ahead - time, whole)[:, None]
            tilted += tl.reshape(future(own, place, k, KP + UNITS), (BR, KP))
            if UNITS > 0:
                more = mixed(sums0, own, place, mix_out, BR, KP, UNITS)
                tilted += tl.sum(tl.where((i == 3)[None, :, None], more, 0.0), 1)
        rho = tl.load(by_type + 2 * KP + k)[None, :]
        top = tl.load(tally + HIGHEST).to(tl.int32)
        if PIECES:
            c0, c1, c2, c3 = control_points(
                row, stream, here, now, controls, triggers, reach, recent, R, P, KP, AFTER
            )  # fmt: skip
            rho = tl.reshape(cubic(c0, c1, c2, c3, (part + time * pace)[:, None]), (BR, KP))
            top = tl.max(tl.where(rho > 0.0, k[None, :], 0), 1)
        rates = (softplus2(tilted * sharp[None, :]) * soft[None, :] + _LEAST) * rho
        climb, total = tl.cumsum(rates, 1), tl.sum(rates, 1)
        u = uniform(split(key, 2), number).to(tl.float32)
        drawn = tl.minimum(tl.sum((climb <= (u * total)[:, None]).to(tl.int32), 1), top)
        score = tl.load(edge_score + edge)
        closes = half == HALVES
        if PIECES:
            closes = closes & (stop >= right)
        if ENDS:
            # The event that ended the stream and went missing is drawn at T, once, as any other is, but for the density
            # of its time; the segment closes when the LSTM has read it.
            ends = closes & (tl.load(ending + stream) == MISSING) & (segment == tl.load(counts + stream))
            ends = ends & (tl.load(ended + row) == 0)
            tl.store(ended + row, ends.to(tl.int32), mask=on & closes)
            closes = closes & ~ends
            hit = hit | ends
            density = tl.where(ends, tl.load(clock + 3).to(tl.float32), density)  # the evidence is per user's unit
        scored = tl.where(hit, drawn, tl.maximum(score, 0))
        own_sharp = tl.load(by_type + scored) * _LN2
        log_p = log_softplus(_pick(drive, scored, k) * own_sharp) + tl.load(by_type + 4 * KP + scored)
        chance = _pick(rates, scored, k) / tl.maximum(total, 1e-37) * density
        log_rho = tl.load(by_type + 3 * KP + scored)
        if PIECES:
            log_rho = tl.log(_pick(rho, scored, k))
        log_ratio = log_p + log_rho - tl.log(tl.maximum(chance, 1e-37))
        at_edge = tl.load(edge_log + edge) + tl.where(score >= 0, log_p, 0.0).to(tl.float64)
        found = tl.minimum(now + time.to(tl.float64) * tl.load(clock + 3), stop)
        if ENDS:
            found = tl.where(ends, right, found)
        new_kind = tl.where(hit, drawn, tl.load(edge_kind + edge))
        moved, elapse = tl.where(hit, found, right), time
        if PIECES:
            if AFTER > 0:
                kept = seen_after(row, right, scored, triggers, reach, recent, R, KP, AFTER)
                at_edge += tl.where(score >= 0, kept, 0.0)
                remember(row, moved, new_kind, on & (hit | closes), triggers, is_trigger, R, KP, AFTER)
            at_edge = tl.where(closes, at_edge, 0.0)
            tl.store(stand + row, tl.where(hit, found, stop), mask=on)
            tl.store(piece + row, here, mask=on)
            moved, elapse = tl.where(hit | closes, moved, origin), passed + time
        gain = (area_q - area_p).to(tl.float64) + tl.where(hit, log_ratio.to(tl.float64), at_edge)
        tl.store(log_weights + row, tl.load(log_weights + row) + gain, mask=on)
        tl.store(elapsed + row, elapse, mask=on)
        tl.store(kind + row, new_kind, mask=on)
        tl.store(last + row, moved, mask=on)
        tl.store(rounds + row, (number + 1).to(tl.int32), mask=on)
        tl.atomic_add(slot_open + slot, -1, mask=on & closes)

        hit = hit & on
        new = hit.to(tl.int32)
        count = tl.sum(new, 0)
        row32 = row.to(tl.int32)
        if PIECES:
            waits = on & ~closes
            rank = tl.cumsum(waits.to(tl.int32), 0) - 1
            after = tl.atomic_add(counters + (1 - parity), tl.sum(waits.to(tl.int32), 0))
            tl.store(pending + (1 - parity) * R + after + rank, row32, mask=waits)
        if count > 0:
            rank = tl.cumsum(new, 0) - 1
            tl.store(updates + tl.atomic_add(counters + UPDATES, count) + rank, row32, mask=hit)
            if not PIECES:
                after = tl.atomic_add(counters + (1 - parity), count)
                tl.store(pending + (1 - parity) * R + after + rank, row32, mask=hit)
            node = tl.atomic_add(tally + EVENTS, count.to(tl.int64)) + rank
            tl.store(node_time + node, found, mask=hit)
            tl.store(node_kind + node, drawn, mask=hit)
            tl.store(node_parent + node, tl.load(head + row), mask=hit)
            tl.store(head + row, node.to(tl.int32), mask=hit)
            many = tl.load(events + row) + 1
            tl.store(events + row, many, mask=hit)
            if tl.max(tl.where(hit, many, 0), 0) > tl.load(tally + LIMIT):
                tl.store(tally + RUNAWAY, 1)
