"""``retrodict demo``: the main job on embedded data, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from retrodict.cli import common
from retrodict.events.atomic import make_folder
from retrodict.events.io.write import write_events
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for what the demo writes.")] = Path("demo"),
    epochs: Annotated[int, typer.Option(help="Training epochs of the neural model.", min=1)] = 25,
    seed: common.Seed = 0,
) -> None:
    """Fit, simulate and censor on an embedded sample of flights out of New York in 2013.

    Each stream is one aircraft: departures from three airports, arrivals in four regions.
    """
    import torch

    from retrodict.datasets import flights_sample
    from retrodict.models import Hawkes, Model, NeuralHawkes, Poisson
    from retrodict.models.simulate import simulate
    from retrodict.train.fitting import fit

    say = common.out.print
    streams = flights_sample()
    train, dev, test = streams.split(0.7, 0.15, seed=seed)
    say(f"[bold]1. Data[/]  {len(streams):,} aircraft, {streams.num_events:,} departures and arrivals, times in hours")
    say(f"[bold]2. Fit[/]   {len(train)} streams to train on, {len(dev)} to stop early by, {len(test)} to test")
    models: dict[str, Model] = {"Poisson": Poisson.from_streams(train)}
    models["Hawkes"] = fit(Hawkes, train, dev, epochs=60, batch_size=200, patience=8, seed=seed, progress=False)
    torch.manual_seed(seed)
    models["neural Hawkes"] = fit(
        NeuralHawkes(streams.num_types, 48), train, dev, epochs=epochs, learning_rate=0.01, seed=seed
    )
    say(_scores(models, test))

    neural = models["neural Hawkes"]
    make_folder(output)
    neural.save(output / "model")
    drawn = simulate(neural, len(test), end=test.durations, seed=seed)
    say("[bold]3. Simulate[/]  as many new streams as there are test streams, of the same durations")
    say(_comparison(test, {"test": test, "simulated": drawn}))
    observed, hidden = ByType({t: 1.0 for t in streams.types if t.startswith("depart")}).censor(test, seed)
    say(f"[bold]4. Censor[/]  every departure hidden: {hidden.num_events:,} of {test.num_events:,} events")
    for name, part in (("simulated", drawn), ("observed", observed), ("hidden", hidden)):
        write_events(part, output / f"{name}.csv")
        common.wrote(output / f"{name}.csv", f"{part.num_events:,} events")
    common.wrote(output / "model", "the neural Hawkes process")


def _scores(models: dict, test: StreamSet) -> Table:
    import torch

    table = Table("model", title="log-likelihood of the test streams", title_justify="left")
    table.add_column("nats per event", justify="right")
    for name, model in models.items():
        with torch.no_grad():
            table.add_row(name, f"{float(model.log_likelihood(test).sum()) / test.num_events:.3f}")
    return table


def _comparison(test: StreamSet, sets: dict[str, StreamSet]) -> Table:
    table = Table("", *sets, title_justify="left")
    table.add_row("events a stream", *(f"{s.lengths.mean():.1f}" for s in sets.values()))
    for k, name in enumerate(test.types):
        table.add_row(name, *(f"{np.mean(s.event_types == k):.1%}" for s in sets.values()))
    return table
