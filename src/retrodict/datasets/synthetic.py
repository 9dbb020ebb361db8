"""The paper's synthetic streams (appendix G.3): ten sets, each drawn from a neural Hawkes process at random.

    train, dev, test = synthetic_set(3)
    model, streams = synthetic(seed=3)  # the same streams, and the process they came from

All weights of the process are uniform in [-1, 1] (softplus scales are 1) and there are 4 types. A stream is the first
I events of the process, I uniform in {11, ..., 20}, and ends at the last of them: the recipe ends
every stream with an event, which the process itself does not. The paper does not say how many hidden cells its
processes had; 256 is the size of the models that did best on them. Size matters: in a process of 32 cells with such
weights, later events say almost nothing about the missing ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from retrodict.errors import DataError
from retrodict.events.stream_set import Splits, StreamSet
from retrodict.missingness import ByType
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.models.simulate import simulate

NUM_TYPES = 4
DETERMINISTIC = ByType([0.0, 0.0, 1.0, 1.0])  # types 3 and 4 are never seen
STOCHASTIC = ByType(0.5)
SIZES = (5000, 500, 500)
NUM_SETS = 10
HIDDEN_SIZE = 256


class Synthetic(NamedTuple):
    """The process the streams were drawn from, and the streams."""

    model: NeuralHawkes
    streams: Splits


def synthetic_set(number: int = 0, sizes: tuple[int, int, int] = SIZES) -> Splits:
    """Train, dev and test streams of one of the ten sets, 0 to 9; a set's number is its seed."""
    if number not in range(NUM_SETS):
        raise DataError(f"there is no synthetic set {number}", remedy=f"give a number from 0 to {NUM_SETS - 1}")
    return synthetic(number, sizes=sizes).streams


def synthetic(seed: int = 0, hidden_size: int = HIDDEN_SIZE, sizes: tuple[int, int, int] = SIZES) -> Synthetic:
    """A random process and its train, dev and test streams."""
    model = random_neural_hawkes(NUM_TYPES, hidden_size, seed)
    streams = draw(model, sum(sizes), seed)
    return Synthetic(model, Splits.cut(streams, sizes[0], sizes[0] + sizes[1]))


def draw(model: NeuralHawkes, count: int, seed: int) -> StreamSet:
    """Streams of a process as the recipe has them: the first 11 to 20 events."""
    lengths = np.random.default_rng([seed, 1]).integers(11, 21, count)
    return simulate(model, count, num_events=lengths, seed=seed)


def random_neural_hawkes(num_types: int, hidden_size: int, seed: int, spread: float = 1.0) -> NeuralHawkes:
    """A neural Hawkes process with parameters uniform in [-spread, spread]; softplus scales are 1."""
    generator = torch.Generator().manual_seed(seed)
    model = NeuralHawkes(num_types, hidden_size, time_scale=1.0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-spread, spread, generator=generator)
        model.log_scale.zero_()
    return model
