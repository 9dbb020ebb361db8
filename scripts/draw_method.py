"""Draw the pictures of README and docs/method.md into docs/images, from the flights and the smoother in the package.

One aircraft: its arrivals are on record, its departures were hidden. Colours are those of Okabe and Ito, which most
people can tell apart; marks differ in shape too.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import retrodict as rd
from retrodict.datasets import flights_demo, flights_sample
from retrodict.events.batch import make_batch

matplotlib.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SEEN, GUESS, TRUTH, MODEL = "#0072B2", "#D55E00", "#000000", "#009E73"
COST = 1.0  # hours


class Story(NamedTuple):
    """One aircraft, before and after its departures were hidden, and what is believed of them."""

    complete: rd.EventStream
    observed: rd.EventStream
    hidden: rd.EventStream
    types: tuple[str, ...]
    posterior: rd.Posterior
    smoother: rd.Proposal


def tell() -> Story:
    """The first test aircraft with seven departures, all from one airport, so that there is one row to draw."""
    _, _, test = flights_demo.sample_splits(flights_sample())
    smoother = flights_demo.flights_smoother()
    observed, hidden = smoother.missingness.censor(test, 0)
    pick = next(i for i, stream in enumerate(hidden) if len(stream) == 7 and len(set(stream.types)) == 1)
    posterior = rd.impute(observed[[pick]], smoother, seed=0)
    return Story(test[pick], observed[pick], hidden[pick], tuple(test.types), posterior, smoother)


def canvas(rows: int, height: float, sharex: bool = True) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(rows, 1, figsize=(9, height), sharex=sharex, layout="constrained", squeeze=False)
    for one in axes[:, 0]:
        for side in ("top", "right", "left"):
            one.spines[side].set_visible(False)
        one.tick_params(left=False)
    return figure, list(axes[:, 0])


def keep(figure: Figure, name: str) -> None:
    target = IMAGES / name
    figure.savefig(target, dpi=110, metadata={"Software": None})
    plt.close(figure)
    assert target.stat().st_size < 120_000


def lay_out(axes: Axes, story: Story, labels: dict[str, float], top: float) -> None:
    stream = story.observed
    axes.set_yticks(list(labels.values()), list(labels))
    axes.set_ylim(-0.6, top)
    axes.set_xlim(stream.start, stream.end + 0.02 * stream.duration)


def departures(story: Story) -> list[int]:
    return [k for k, name in enumerate(story.types) if name.startswith("depart")]


def is_departure(story: Story, stream: rd.EventStream) -> np.ndarray:
    return np.isin(stream.types, departures(story))


def draw_problem(story: Story) -> None:
    """Only arrivals are on record, and an aircraft cannot arrive twice without leaving in between."""
    figure, (axes,) = canvas(1, 1.9)
    lay_out(axes, story, {"arrivals": 1, "departures": 0}, 1.6)
    axes.scatter(story.observed.times, np.ones(len(story.observed)), marker="s", s=60, color=SEEN)
    gaps = np.concatenate([[story.observed.start], story.observed.times])
    for start, stop in itertools.pairwise(gaps):
        if stop - start > 0.5:
            axes.text((start + stop) / 2, 0, "?", ha="center", va="center", fontsize=15, color=GUESS)
    axes.set_xlabel("hours")
    axes.set_title("What was recorded of one aircraft: arrivals. When did it leave, and how often?", loc="left")
    keep(figure, "problem.png")


def draw_answer(story: Story) -> None:
    """Belief, one answer, and the truth."""
    figure, (axes,) = canvas(1, 2.3)
    lay_out(axes, story, {"arrivals": 1, "departures": 0}, 1.6)
    axes.scatter(story.observed.times, np.ones(len(story.observed)), marker="s", s=60, color=SEEN, label="recorded")
    draw_belief(axes, story, 0.35)
    axes.scatter(story.hidden.times, np.full(len(story.hidden), -0.28), marker="|", s=150, linewidths=2, color=TRUTH,
                 label="truth, not used")  # fmt: skip
    answer = story.posterior.consensus(COST)[0]
    columns = answer.columns
    axes.hlines(np.zeros(len(answer)), columns["earliest"], columns["latest"], color=GUESS, lw=2)
    axes.scatter(answer.times, np.zeros(len(answer)), s=60, color=GUESS, label="imputed, with 90 % interval", zorder=3)
    for t, p in zip(answer.times, columns["probability"], strict=True):
        axes.text(t, 0.42, f"{100 * p:.0f} %", ha="center", fontsize=8)
    axes.set_xlabel("hours")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=4, frameon=False)
    axes.set_title("What retrodict answers", loc="left")
    keep(figure, "answer.png")


def draw_belief(axes: Axes, story: Story, height: float) -> None:
    """Expected departures per hour, whatever the airport; the start, where the model has an atom, may rise above."""
    grid = np.linspace(story.observed.start, story.observed.end, 181)
    rate = story.posterior.intensity(grid)[0].sum(1)
    middle = (grid[1:] + grid[:-1]) / 2
    curve = np.minimum(height * rate / rate[1:].max(), 1.1 * height)
    axes.fill_between(middle, 0, curve, color=GUESS, alpha=0.3, lw=0, label="belief")


def draw_model(story: Story) -> None:
    """The model's intensities along the complete stream: each event changes what is expected next."""
    figure, axes = canvas(2, 3.2)
    model, stream = story.smoother.model, story.complete
    batch = make_batch(model.matched(stream), dtype=model.dtype)
    grid = np.linspace(0, stream.duration, 600)
    rates = np.zeros((len(grid), len(story.types)))
    with torch.no_grad():
        state, last = model.initial((1,)), 0.0
        events = [*zip(batch.types[0], batch.times[0], strict=True), (None, torch.tensor(stream.duration + 1.0))]
        for kind, time in events:
            inside = (grid > last) & (grid <= float(time)) if last else grid <= float(time)
            if inside.any():
                rates[inside] = model.intensity(state, torch.from_numpy(grid[inside])[None])[0].numpy()
            if kind is not None:
                state, last = model.update(state, kind[None], time[None]), float(time)
    leaves = is_departure(story, stream)
    for one, columns, events, name in (
        (axes[0], [k for k in range(len(story.types)) if k not in departures(story)], ~leaves, "arrivals"),
        (axes[1], departures(story), leaves, "departures"),
    ):
        one.fill_between(stream.start + grid, 0, rates[:, columns].sum(1), color=MODEL, alpha=0.4, lw=0)
        one.scatter(stream.times[events], np.zeros(events.sum()), marker="s", s=45, color=SEEN, zorder=3, clip_on=False)
        one.set_ylabel(f"{name}\nper hour")
        one.set_ylim(0)
        one.tick_params(left=True)
    axes[1].set_xlim(stream.start, stream.end + 0.02 * stream.duration)
    axes[1].set_xlabel("hours")
    axes[0].set_title("A complete stream (squares), and what the model expects at each moment (green)", loc="left")
    keep(figure, "method-model.png")


def draw_particles(story: Story, count: int = 8) -> None:
    """Some guesses with their weights."""
    chosen = rd.impute(story.posterior.observed, story.smoother, particles=count, islands=1, resample=None, seed=3)
    weights, guesses = chosen.weights(0), chosen.particles(0)
    figure, (axes,) = canvas(1, 3.1)
    order = np.argsort(weights)
    for row, m in enumerate(order):
        guess = guesses[m]
        axes.scatter(
            guess.times,
            np.full(len(guess), row),
            s=38,
            color=GUESS,
            alpha=float(0.25 + 0.75 * weights[m] / weights.max()),
        )
    for t in story.observed.times:
        axes.axvline(t, color=SEEN, lw=1, alpha=0.6)
    axes.set_yticks(range(count), ["below 1 %" if w < 0.01 else f"{100 * w:.0f} %" for w in weights[order]])
    axes.set_ylabel("weight")
    axes.set_xlim(story.observed.start, story.observed.end + 0.02 * story.observed.duration)
    axes.set_xlabel("hours")
    axes.set_title(
        f"{count} guesses of the departures (circles) between the recorded arrivals (lines), weighed", loc="left"
    )
    keep(figure, "method-particles.png")


def draw_proposals(story: Story) -> None:
    """Where guesses are drawn before they are weighed, without and with a look at what comes next."""
    figure, axes = canvas(2, 3.0)
    observed, smoother = story.posterior.observed, story.smoother
    proposals = {
        "filtering: knows what came before": rd.Filtering(smoother.model, smoother.given_missingness),
        "smoothing: knows what comes next, too": smoother,
    }
    grid = np.linspace(story.observed.start, story.observed.end, 121)
    for one, (name, proposal) in zip(axes, proposals.items(), strict=True):
        drawn = rd.impute(observed, proposal, particles=2000, islands=1, resample=None, seed=0)
        counts = np.histogram(drawn.full.event_times, grid)[0] / 2000 / np.diff(grid)
        one.stairs(counts, grid, fill=True, color=GUESS, alpha=0.4)
        for t in story.observed.times:
            one.axvline(t, color=SEEN, lw=1.4)
        ess = 1 / float((drawn.weights(0) ** 2).sum())
        one.set_ylabel("drawn\nper hour")
        one.tick_params(left=True)
        one.set_title(f"{name} (2,000 guesses are worth {ess:,.0f})", loc="left", fontsize=10)
    axes[1].set_xlim(story.observed.start, story.observed.end + 0.02 * story.observed.duration)
    axes[1].set_xlabel("hours; lines are the recorded arrivals")
    keep(figure, "method-proposals.png")


def draw_costs(story: Story, costs: tuple[float, ...] = (0.25, 1.0, 4.0)) -> None:
    """Belief, and the answer at several costs."""
    figure, axes = canvas(2, 3.2)
    draw_belief(axes[0], story, 1.0)
    axes[0].set_yticks([])
    axes[0].set_title("Belief: expected departures per hour, from 1,000 weighted guesses", loc="left", fontsize=10)
    for row, cost in enumerate(costs):
        answer = story.posterior.consensus(cost)[0]
        axes[1].hlines(
            np.full(len(answer), row), answer.columns["earliest"], answer.columns["latest"], color=GUESS, lw=2
        )
        axes[1].scatter(answer.times, np.full(len(answer), row), s=50, color=GUESS)
    axes[1].scatter(story.hidden.times, np.full(len(story.hidden), -1), marker="|", s=150, linewidths=2, color=TRUTH)
    axes[1].set_yticks(range(-1, len(costs)), ["truth", *(f"{cost:g} h" for cost in costs)])
    axes[1].set_ylim(-1.6, len(costs) - 0.4)
    axes[1].set_title(
        "The one answer, if an event too many or too few is worth moving an event by", loc="left", fontsize=10
    )
    axes[1].set_xlim(story.observed.start, story.observed.end + 0.02 * story.observed.duration)
    axes[1].set_xlabel("hours")
    keep(figure, "method-costs.png")


def main() -> None:
    """Write all pictures."""
    torch.set_num_threads(1)
    story = tell()
    for draw in (draw_problem, draw_answer, draw_model, draw_particles, draw_proposals, draw_costs):
        draw(story)


if __name__ == "__main__":
    main()
