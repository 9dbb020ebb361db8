"""How fast NeuralHawkes and its smoother train: events per second of a training epoch, beside the floor and a peer.

    python benchmarks/train.py ../shared/data/nyc_taxi_2013/train_long.jsonl.gz --hidden 256
    python benchmarks/train.py ../shared/data/nyc_taxi_2013/train_long.jsonl.gz --hidden 64 --peer
    python benchmarks/train.py STREAMS --hidden 256 --device cuda --batch 50 256 1024
    python benchmarks/train.py STREAMS --hidden 256 --device cuda --smoother

The floor is the matrix products alone that one epoch cannot do without (recurrent weights forwards, their
two gradients, and the readout), at the same shapes, in the same run; for a smoother (in the paper's form, half of the
events hidden afresh every epoch; complete events count) those of the frozen model forwards and of the right-to-left
LSTM. The peer is EasyTPP's NHP (``pip install easy-tpp==0.3.0``) on the same streams, with its default of 20
integration points a gap.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable

import numpy as np
import torch
from timing import timed

import retrodict as rd
from retrodict.events.batch import batches_by_length, make_batch
from retrodict.train.divergence import Divergence
from retrodict.train.objective import Likelihood, Objective

NODES = 4


def ours(streams: rd.StreamSet, hidden: int, batch_size: int, device: str) -> Callable[[], None]:
    torch.manual_seed(0)
    model = rd.NeuralHawkes.from_streams(streams, hidden).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=device == "cuda")
    objective, number = Likelihood(model, streams, streams[:2]), iter(range(1_000_000))
    return lambda: train(objective, optimizer, batch_size, next(number))


def our_smoother(streams: rd.StreamSet, hidden: int, batch_size: int, device: str) -> Callable[[], None]:
    torch.manual_seed(0)
    model = rd.NeuralHawkes.from_streams(streams, hidden)
    proposal = rd.Smoothing(model, rd.ByType(0.5), hidden, mixing=0).to(device)
    objective = Divergence(proposal, streams, streams[:2], learn_from="data")
    optimizer = torch.optim.Adam((p for p in proposal.parameters() if p.requires_grad), 1e-3, fused=device == "cuda")
    number = iter(range(1_000_000))
    return lambda: train(objective, optimizer, batch_size, next(number))


def train(objective: Objective, optimizer: torch.optim.Optimizer, batch_size: int, epoch: int) -> None:
    """One epoch, as ``rd.fit`` takes its steps."""
    for index in objective.epoch_batches(batch_size, 0, epoch):
        optimizer.zero_grad(set_to_none=True)
        total, events = objective.loss(objective.batch(index, epoch), True)
        (total / events).backward()
        optimizer.step()


def smoother_floor(streams: rd.StreamSet, hidden: int, batch_size: int, device: str) -> Callable[[], None]:
    D, K = hidden, streams.num_types
    weights = torch.randn(D, 7 * D, device=device)
    back, readout = weights.t().contiguous(), torch.randn(D, K, device=device)
    groups = batches_by_length(streams.lengths, batch_size)
    shapes = [(len(g), int(streams.lengths[g].max()) + 1) for g in groups]
    widest = max(b * n for b, n in shapes)
    h, gates = torch.randn(widest, D, device=device), torch.randn(widest, 7 * D, device=device)
    states, rates = torch.randn(widest * NODES, D, device=device), torch.randn(widest * NODES, K, device=device)

    def epoch() -> None:
        for rows, steps in shapes:
            for _ in range(steps):
                h[:rows] @ weights
            for _ in range(steps // 2):
                h[:rows] @ weights
                gates[:rows] @ back
            half, total = rows * (steps // 2), rows * steps
            h[:half].t() @ gates[:half]
            states[: total * NODES] @ readout
            states[: total * NODES] @ readout
            rates[: total * NODES] @ readout.t()
            rates[: total * NODES].t() @ states[: total * NODES]

    return epoch


def floor(streams: rd.StreamSet, hidden: int, batch_size: int, device: str) -> Callable[[], None]:
    D, K = hidden, streams.num_types
    weights = torch.randn(D, 7 * D, device=device)
    back = weights.t().contiguous()
    readout = torch.randn(D, K, device=device)
    groups = batches_by_length(streams.lengths, batch_size)
    shapes = [(len(g), int(streams.lengths[g].max()) + 1) for g in groups]
    widest = max(b * n for b, n in shapes)
    h = torch.randn(widest, D, device=device)
    gates = torch.randn(widest, 7 * D, device=device)
    states = torch.randn(widest * NODES, D, device=device)
    rates = torch.randn(widest * NODES, K, device=device)

    def epoch() -> None:
        for rows, steps in shapes:
            for _ in range(steps):
                h[:rows] @ weights
                gates[:rows] @ back
            total = rows * steps
            h[:total].t() @ gates[:total]
            states[: total * NODES] @ readout
            rates[: total * NODES] @ readout.t()
            rates[: total * NODES].t() @ states[: total * NODES]

    return epoch


def peer(streams: rd.StreamSet, hidden: int, batch_size: int, device: str) -> Callable[[], None]:
    from easy_tpp.config_factory.model_config import ModelConfig
    from easy_tpp.model.nhp import NHP

    K = streams.num_types
    config = ModelConfig(
        hidden_size=hidden,
        num_event_types=K,
        num_event_types_pad=K + 1,
        event_pad_index=K,
        loss_integral_num_sample_per_step=20,
        gpu=0 if device == "cuda" else -1,
    )
    torch.manual_seed(0)
    model = NHP(config).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    generator = np.random.default_rng(0)

    def epoch() -> None:
        for index in batches_by_length(streams.lengths, batch_size, generator):
            batch = make_batch(streams, index, device=device)
            times, mask = batch.times.float(), batch.mask
            gaps = torch.where(mask, batch.gaps[:, :-1], 0.0)
            types = torch.where(mask, batch.types, K)
            optimizer.zero_grad(set_to_none=True)
            loss, events = model.loglike_loss(
                time_seqs=times, time_delta_seqs=gaps, type_seqs=types, seq_non_pad_mask=mask, attention_mask=None
            )
            (loss / events).backward()
            optimizer.step()

    return epoch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, nargs="+", default=[50])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3, help="timed epochs; the median counts")
    parser.add_argument("--most", type=int, help="use only so many streams")
    parser.add_argument("--repeat", type=int, default=1, help="repeat the streams so often (to fill large batches)")
    parser.add_argument("--precision", default="highest", choices=["highest", "high"], help="high: tf32 on a GPU")
    parser.add_argument("--smoother", action="store_true", help="train a smoother instead of a model")
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision(options.precision)
    streams = rd.read_events(options.streams)[: options.most]
    if options.repeat > 1:
        streams = rd.StreamSet(
            (rd.EventStream(s.times, s.types, s.start, s.end) for _ in range(options.repeat) for s in streams),
            types=streams.types,
        )
    contenders = {"retrodict": ours, "floor": floor} | ({"easytpp": peer} if options.peer else {})
    if options.smoother:
        contenders = {"retrodict": our_smoother, "floor": smoother_floor}
    for batch_size in options.batch:
        epochs = {n: make(streams, options.hidden, batch_size, options.device) for n, make in contenders.items()}
        seconds: dict[str, list[float]] = {name: [] for name in epochs}
        for run in epochs.values():
            run()
        for _ in range(options.epochs):  # interleaved, so that a busy moment hits all alike
            for name, run in epochs.items():
                seconds[name].append(timed(run, options.device))
        rate = {name: streams.num_events / statistics.median(times) for name, times in seconds.items()}
        result = {
            "trained": "smoother in the paper's form (mixing 0)" if options.smoother else "model",
            "hidden": options.hidden,
            "batch": batch_size,
            "device": torch.cuda.get_device_name() if options.device == "cuda" else f"cpu, {options.threads} thread",
            "precision": options.precision,
            "events": streams.num_events,
            "events_per_second": {name: round(value) for name, value in rate.items()},
            "times_the_floor": round(rate["floor"] / rate["retrodict"], 2),
        }
        if options.peer:
            result["times_faster_than_easytpp"] = round(rate["retrodict"] / rate["easytpp"], 2)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
