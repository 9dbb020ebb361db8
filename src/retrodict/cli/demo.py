"""``retrodict demo``: the main job on embedded data, in under a minute."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from retrodict.cli import common
from retrodict.errors import SuspicionNotice
from retrodict.events.atomic import check_folder, make_folder
from retrodict.events.combine import fill
from retrodict.events.io.write import write_events
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet

_COST, _TOLERANCE = 1.0, 0.5  # hours


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for what the demo writes.")] = Path("demo"),
    streams: Annotated[int, typer.Option("--number", "-n", help="How many aircraft.", min=1)] = 40,
    particles: Annotated[
        int | None, typer.Option(help="Weighted guesses a stream; by default as many as for 'impute'.", min=1)
    ] = None,
    seed: common.Seed = 0,
) -> None:
    """Hide every departure of some aircraft, impute them, and compare with the truth.

    The data are flights out of New York in 2013, embedded in the package with a small trained model. Each stream is one
    aircraft: departures from three airports (hidden), arrivals in four regions (seen).
    """
    from retrodict.datasets import flights_sample
    from retrodict.datasets.flights_demo import flights_smoother, sample_splits
    from retrodict.evaluate import event_score, transport_score
    from retrodict.proposals import Filtering
    from retrodict.smc.impute import impute

    say = common.out.print
    check_folder(output)
    smoother = flights_smoother()
    train, _, test = sample_splits(flights_sample())
    test = test[:streams]
    observed, hidden = smoother.missingness.censor(test, seed)
    say(
        f"[bold]1. Hide[/]    every departure of {len(test)} aircraft the model never saw: "
        f"{hidden.num_events:,} of {test.num_events:,} events are gone (streams were cut at an arrival, so nothing is "
        "imputed after the last one)"
    )
    answers: dict[str, StreamSet] = {"predict nothing": hidden.keep(np.zeros(hidden.num_events, bool))}
    answers["median flight before each arrival"] = _median_rule(train, observed)
    runs = {"particle filtering": Filtering(smoother.model, smoother.given_missingness), "particle smoothing": smoother}
    say("[bold]2. Impute[/]  by two methods (the first time on a machine code is compiled, for half a minute) ...")
    with common.notes():
        warnings.simplefilter("ignore", SuspicionNotice)  # that streams end at an event, which was said
        for name, proposal in runs.items():
            begin = time.perf_counter()
            posterior = impute(observed, proposal, particles or "auto", seed)
            seconds = time.perf_counter() - begin
            say(
                f"[bold]2. Impute[/]  {name}: {posterior.num_particles:,} particles a stream in {seconds:.1f} s, "
                f"{posterior.expected_count().sum():,.1f} missing events expected, "
                f"effective sample size {np.nanmean(posterior.diagnostics.ess):.0f} on average"
            )
            answers[name] = posterior.consensus(_COST)
    table = Table("", title="against the truth", title_justify="left")
    for heading in ("distance an event (h)", "recall", "precision", "F1"):
        table.add_column(heading, justify="right")
    for name, answer in answers.items():
        distance = transport_score(hidden, answer, _COST).distance_per_event
        events = event_score(hidden, answer, _TOLERANCE)
        numbers = (distance, events.recall, events.precision, events.f1)
        table.add_row(name, *("-" if np.isnan(x) else f"{x:.2f}" for x in numbers))
    say(table)
    say(
        f"Distance: optimal transport to the hidden events, {_COST:g} h for an event too many or too few; recall and "
        f"precision count events of the right airport within {_TOLERANCE:g} h."
    )
    make_folder(output)
    decoded = answers["particle smoothing"]
    write_events(fill(observed, decoded), output / "imputed.csv")
    common.wrote(output / "imputed.csv", "the observed table with the imputed departures, probabilities and intervals")
    pick = int(np.argmin(np.abs(hidden.lengths - 8)))
    title = f"aircraft {test.ids[pick]}: arrivals seen, departures imputed"
    posterior.plot(pick, output / "imputed.png", cost=_COST, truth=hidden, title=title)
    common.wrote(output / "imputed.png", "a picture of one aircraft")
    posterior.report(output / "page.html", cost=_COST, truth=hidden, title="Departures of aircraft, hidden and imputed")
    common.wrote(output / "page.html", "a page to look at all of them with: open it in a browser")


def _median_rule(train: StreamSet, observed: StreamSet) -> StreamSet:
    """Before each arrival, a departure from that region's usual airport, the median flight time earlier."""
    departs, arrives = train.event_types[:-1], train.event_types[1:]
    names = np.array(train.types)
    legs = np.char.startswith(names[departs], "depart") & np.char.startswith(names[arrives], "arrive")
    legs &= np.diff(train.stream_of_event) == 0
    flight = np.diff(train.event_times)
    rule = {
        k: (float(np.median(flight[legs & (arrives == k)])), int(np.bincount(departs[legs & (arrives == k)]).argmax()))
        for k in np.unique(arrives[legs])
    }
    streams = []
    for stream in observed:
        guesses = sorted((max(t - rule[k][0], stream.start), rule[k][1]) for t, k in stream if k in rule)
        times, types = [t for t, _ in guesses], [k for _, k in guesses]
        streams.append(EventStream(times, np.array(types, dtype=np.int64), stream.start, stream.end, stream.id))
    return StreamSet(streams, types=observed.types, axis=observed.axis)
