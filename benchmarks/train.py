"""How fast a NeuralHawkes and its smoother train: events per second of a training epoch, beside floors and a peer.

    python benchmarks/train.py ../shared/data/nyc_taxi_2013/train_long.jsonl.gz
    python benchmarks/train.py ../shared/data/nyc_taxi_2013/train_long.jsonl.gz --hidden 256 --mixing 0 32 64 256
    python benchmarks/train.py ../shared/data/nyc_taxi_2013/train_long.jsonl.gz --hidden 64 --peer
    python benchmarks/train.py STREAMS --hidden 256 --device cuda --batch 50 256 1024

Both are trained as ``rd.fit`` does by default, in one run: the smoother on streams that the model draws, half of the
events hidden, both afresh every epoch. Complete events count for both. The floor is the matrix products alone that one
epoch cannot do without, at the same shapes: of the model, recurrent weights forwards, their two gradients, and
the readout; of the smoother, the frozen model forwards (drawing the streams, and reading them), the right-to-left LSTM,
and the products of mixing. The peer is EasyTPP's NHP (``pip install easy-tpp==0.3.0``) on the same streams, with its
default of 20 integration points a gap.
"""

from __future__ import annotations

import argparse
import copy
import itertools
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

NODES, POINTS = 4, 2  # of each gap's integral in training: of a model, of a smoother
Epoch = Callable[[], int]  # trains one epoch and says how many events it was on


def ours(model: rd.NeuralHawkes, streams: rd.StreamSet, batch_size: int) -> Epoch:
    model = copy.deepcopy(model)
    return trainer(Likelihood(model, streams, streams[:2]), lambda: streams.num_events, batch_size)


def our_smoother(model: rd.NeuralHawkes, mixing: int | None, streams: rd.StreamSet, batch_size: int) -> Epoch:
    proposal = rd.Smoothing(copy.deepcopy(model), rd.ByType(0.5), mixing=mixing)
    objective = Divergence(proposal, streams, streams[:2])
    return trainer(objective, lambda: objective.streams.of_epoch(objective._epoch).num_events, batch_size)


def trainer(objective: Objective, events: Epoch, batch_size: int) -> Epoch:
    """Epochs one after another, in the steps that ``rd.fit`` takes."""
    parameters = [p for p in objective.module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, 1e-3, fused=parameters[0].is_cuda)
    number = itertools.count()

    def train() -> int:
        epoch = next(number)
        for index in objective.epoch_batches(batch_size, 0, epoch):
            optimizer.zero_grad(set_to_none=True)
            total, scored = objective.loss(objective.batch(index, epoch), True)
            (total / scored).backward()
            optimizer.step()
        return events()

    return train


def floor(model: rd.NeuralHawkes, streams: rd.StreamSet, batch_size: int) -> Epoch:
    products = Products(model, streams, batch_size, model.hidden_size)

    def epoch() -> int:
        for rows, steps in products.shapes:
            products.scan(rows, steps)
            products.unscan(rows, steps)
            products.layer(rows * steps * NODES, products.readout, inputs=True)
        return streams.num_events

    return epoch


def smoother_floor(model: rd.NeuralHawkes, mixing: int | None, streams: rd.StreamSet, batch_size: int) -> Epoch:
    D = model.hidden_size
    units = D if mixing is None else mixing
    products = Products(model, streams, batch_size, max(D, units))
    past = torch.randn(D, units, device=model.device)
    future = torch.randn(D, model.num_types + units, device=model.device)
    mixed = torch.randn(units, model.num_types, device=model.device)

    def epoch() -> int:
        for rows, steps in products.shapes:
            products.scan(rows, steps)  # drawn, one event after another
            products.scan(rows, steps)  # read by the frozen model
            products.scan(rows, steps // 2)
            products.unscan(rows, steps // 2)
            points = rows * (steps * POINTS + steps // 2)  # in every gap, and at missing events
            products.product(points, products.readout)
            products.layer(points, future, inputs=True)
            if units:
                products.layer(points, past, inputs=False)
                products.layer(points, mixed, inputs=True)
        return streams.num_events

    return epoch


class Products:
    """Matrix products of an LSTM and of layers upon its states, at the shapes of an epoch's batches."""

    def __init__(self, model: rd.NeuralHawkes, streams: rd.StreamSet, batch_size: int, width: int) -> None:
        D, groups = model.hidden_size, batches_by_length(streams.lengths, batch_size)
        self.shapes = [(len(g), int(streams.lengths[g].max()) + 1) for g in groups]
        most = max(b * n for b, n in self.shapes)
        self.weights = torch.randn(D, 7 * D, device=model.device)
        self.back, self.readout = self.weights.t().contiguous(), model.readout.detach().t()
        self.gates = torch.randn(most, 7 * D, device=model.device)
        self.states = torch.randn(most * NODES, width, device=model.device)

    def scan(self, rows: int, steps: int) -> None:
        for _ in range(steps):
            self.product(rows, self.weights)

    def unscan(self, rows: int, steps: int) -> None:
        for _ in range(steps):
            self.gates[:rows] @ self.back
        self.states[: rows * steps, : len(self.weights)].t() @ self.gates[: rows * steps]

    def product(self, points: int, weights: torch.Tensor) -> torch.Tensor:
        return self.states[:points, : len(weights)] @ weights

    def layer(self, points: int, weights: torch.Tensor, *, inputs: bool) -> None:
        """Forwards, and the gradients of the weights and, if asked for, of the inputs."""
        result = self.product(points, weights)
        result.t() @ self.states[:points, : len(weights)]
        if inputs:
            result @ weights.t()


def peer(like: rd.NeuralHawkes, streams: rd.StreamSet, batch_size: int) -> Epoch:
    from easy_tpp.config_factory.model_config import ModelConfig
    from easy_tpp.model.nhp import NHP

    K, device = streams.num_types, like.device.type
    config = ModelConfig(
        hidden_size=like.hidden_size,
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

    def epoch() -> int:
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
        return streams.num_events

    return epoch


def rates(epochs: dict[str, Epoch], repeat: int, device: str) -> dict[str, float]:
    """Events per second of each, the median of ``repeat`` epochs; in turns, so that a busy moment hits all alike."""
    found: dict[str, list[float]] = {name: [] for name in epochs}
    for run in epochs.values():
        run()
    for _ in range(repeat):
        for name, run in epochs.items():
            events: list[int] = []
            seconds = timed(lambda run=run, events=events: events.append(run()), device)
            found[name].append(events[0] / seconds)
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams")
    parser.add_argument("--hidden", type=int, help="cells of the model; by default sized for the streams")
    parser.add_argument("--mixing", type=int, nargs="+", default=[None], help="mixing units of the smoother")
    parser.add_argument("--batch", type=int, nargs="+", default=[50])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3, help="timed epochs; the median counts")
    parser.add_argument("--most", type=int, help="use only so many streams")
    parser.add_argument("--repeat", type=int, default=1, help="repeat the streams so often (to fill large batches)")
    parser.add_argument("--precision", default="highest", choices=["highest", "high"], help="high: tf32 on a GPU")
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
    torch.manual_seed(0)
    model = rd.NeuralHawkes.from_streams(streams, options.hidden).to(options.device)
    for batch_size, mixing in itertools.product(options.batch, options.mixing):
        given = streams, batch_size
        epochs = {
            "model": ours(model, *given),
            "model_floor": floor(model, *given),
            "smoother": our_smoother(model, mixing, *given),
            "smoother_floor": smoother_floor(model, mixing, *given),
        }
        if options.peer:
            epochs["easytpp"] = peer(model, *given)
        rate = rates(epochs, options.epochs, options.device)
        result = {
            "hidden": model.hidden_size,
            "mixing": model.hidden_size if mixing is None else mixing,
            "batch": batch_size,
            "device": torch.cuda.get_device_name() if options.device == "cuda" else f"cpu, {options.threads} thread",
            "precision": options.precision,
            "events_per_second": {name: round(value) for name, value in rate.items()},
            "model_times_its_floor": round(rate["model_floor"] / rate["model"], 2),
            "smoother_times_its_floor": round(rate["smoother_floor"] / rate["smoother"], 2),
            "smoother_to_model": round(rate["smoother"] / rate["model"], 3),
        }
        if options.peer:
            result["model_times_faster_than_easytpp"] = round(rate["model"] / rate["easytpp"], 2)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
