"""The missing rate depends on the preceding events: a small network reads a summary of the history.

Every event, observed or missing, leaves a trace that fades at a few time scales; the summary is the sum of the traces
by type and scale. It costs little, is carried by every particle, and does not depend on the model of complete streams.
The network reads it on a log scale, and the time of day where a period is given, and gives the rate of each type.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from retrodict import _limits
from retrodict.errors import ModelError
from retrodict.events.stream_set import describe_types
from retrodict.events.time_axis import SECONDS
from retrodict.missingness.arguments import check_positive, check_probability, plain
from retrodict.missingness.base import Context, History, Missingness, between, history_of
from retrodict.missingness.schedule import check_unit, on_clock, period, to_unit
from retrodict.missingness.zones import Offsets, check_zone, offsets_of


class Contextual(Missingness):
    """A network of ``hidden`` units over traces of the types named, which fade at ``scales`` (times, in ``unit``).

    Before it is learned its rate is ``rate`` after any history; ``weights`` are those of a saved mechanism. ``every``
    ("day") lets it see the time of day, as clocks show it in ``zone``: by default that of the streams.
    """

    kind = "contextual"

    def __init__(
        self,
        types: Sequence[str] | int,
        scales: Sequence[float],
        hidden: int = 16,
        *,
        rate: float = 0.1,
        every: float | str | None = None,
        unit: str | None = None,
        zone: str | None = None,
        seed: int = 0,
        weights: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(types, int):
            _limits.check("types", types, f"a contextual mechanism of {types:,} types")
            types = [str(k) for k in range(types)]
        self.types = tuple(types)
        self.scales = [check_positive(scale, "a scale of the traces") for scale in scales]
        if not self.types or not self.scales:
            raise ModelError("a contextual mechanism needs types and at least one time scale of its traces.")
        if not (isinstance(hidden, int) and hidden > 0):
            raise ModelError(f"hidden must be a positive whole number, but is {hidden!r}.")
        check_unit(unit, "a contextual mechanism")
        period(every, None, "second", "every")
        self.hidden, self.every, self.unit, self.seed = hidden, every, unit, seed
        self.zone = check_zone(zone)
        self.rate = min(max(check_probability(rate, "rate"), 1e-6), 1 - 1e-6)
        units = hidden * len(self.types) * (1 + len(self.scales))
        _limits.ask_memory(8.0 * units, f"a contextual mechanism of {hidden:,} units", "choose fewer units")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            inputs = len(self.types) * len(self.scales) + (0 if every is None else 2)
            first, last = nn.Linear(inputs, hidden), nn.Linear(hidden, len(self.types))
        nn.init.zeros_(last.weight)
        nn.init.constant_(last.bias, math.log(self.rate / (1 - self.rate)))
        self.network = nn.Sequential(first, nn.Tanh(), last).double()
        if weights is not None:
            tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in weights.items()}
            self.network.load_state_dict(tensors)
        self.order = torch.arange(len(self.types))
        self.fading = torch.tensor(self.scales, dtype=torch.float64)
        self.period = None if isinstance(every, str) else period(every, None, None, "every")
        self.offsets: Offsets | None = None
        self.bound_to: tuple[Sequence[str], str | None] | None = None

    def config(self) -> dict[str, Any]:
        """The arguments and weights, with the zone it was found to be in."""
        names = ("types", "scales", "hidden", "rate", "every", "unit", "zone", "seed")
        given = {name: getattr(self, name) for name in names}
        return plain(given | {"weights": dict(self.network.state_dict())})

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The mechanism that ``config`` described; one from before there were zones was in UTC."""
        return cls(**{"zone": "UTC", **config})

    def in_zone(self, zone: str | None) -> Contextual:
        """The same with the clocks of the streams, where it looks at them and has no zone of its own."""
        if zone is None or self.zone is not None or self.every is None:
            return self
        there = copy.copy(self)
        there.zone = check_zone(zone)
        return there if self.bound_to is None else there.bind(*self.bound_to)

    def bind(self, types: Sequence[str], unit: str | None = None) -> Contextual:
        """The mechanism for these types in this order, and this unit; the network is shared."""
        bound = copy.copy(self)
        by_index = all(self.types[k] == str(k) for k in range(len(self.types))) and len(types) == len(self.types)
        unknown = [] if by_index else [name for name in types if name not in self.types]
        if unknown:
            raise ModelError(
                f"the contextual mechanism does not know the types {describe_types(unknown)}. It knows "
                f"{describe_types(self.types, 20)}."
            )
        bound.order = torch.tensor([k if by_index else self.types.index(name) for k, name in enumerate(types)])
        scales = [to_unit(scale, self.unit, unit, "a scale of the traces") for scale in self.scales]
        bound.fading = torch.tensor(scales, dtype=torch.float64)
        bound.period = period(self.every, self.unit, unit, "every")
        bound.bound_to, bound.offsets = (types, unit), None
        if bound.period is not None and unit in SECONDS:
            offsets = offsets_of(self.zone, SECONDS[unit])
            bound.offsets = offsets if offsets.ahead.any() else None
        return bound

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters of the network."""
        return self.network.parameters()

    def initial(self, shape: Sequence[int], device: torch.device | str = "cpu") -> History:
        """Traces of zero, [..., K, S], and the time of the sum, [...]."""
        sizes = (len(self.types), len(self.scales))
        traces = torch.zeros(*shape, *sizes, dtype=torch.float64, device=device)
        return traces, torch.zeros(tuple(shape), dtype=torch.float64, device=device)

    def update(self, history: History, type: Tensor, time: Tensor) -> History:
        """Traces fade until the event, which adds its own trace."""
        own = nn.functional.one_hot(self.order.to(type.device)[type], len(self.types)).to(torch.float64)
        return self._traces(history, time) + own[..., None], time

    def rates(self, t: Tensor, context: Context | None = None) -> Tensor:
        """The outputs of the network, [..., K]."""
        traces = self._traces(history_of(context), t).flatten(-2).log1p()
        inputs = traces if self.period is None else torch.cat([traces, self._time_of_day(t, context)], -1)
        self._move(t)
        return torch.sigmoid(self.network(inputs))[..., self.order.to(t.device)]

    def bound(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor:
        """Traces only fade until the next event: each input, unit and output lies in a known range, [..., K]."""
        history = history_of(context)
        high, low = (self._traces(history, t).flatten(-2).log1p() for t in (start, stop))
        if self.period is not None:
            any_time = torch.ones(*high.shape[:-1], 2, dtype=high.dtype, device=high.device)
            high, low = torch.cat([high, any_time], -1), torch.cat([low, -any_time], -1)
        self._move(start)
        low, high = _through(self.network[0], low, high)
        _, most = _through(self.network[2], torch.tanh(low), torch.tanh(high))
        return torch.sigmoid(most + 1e-9 * (1 + most.abs()))[..., self.order.to(start.device)]

    def breaks(self, start: Tensor, stop: Tensor, context: Context | None = None) -> Tensor | None:
        """Some of each time scale after the last event, eighths of the period, and changes of the clocks.

        The rate is smooth between.
        """
        last = history_of(context)[1]
        steps = (self.fading.to(start.device)[:, None] * torch.tensor([1.0, 3.0, 7.0], device=start.device)).flatten()
        times = last[..., None] + steps
        if self.period is None:
            return between(times, start, stop)
        longest = float((stop - start).max()) if start.numel() else 0.0
        eighths = torch.arange(1, math.ceil(8 * longest / self.period) + 1, device=start.device) * (self.period / 8)
        times = torch.cat([times.expand(*start.shape, -1), start[..., None] + eighths], -1)
        if self.offsets is not None:
            begin = on_clock(torch.zeros_like(start), context, "axis")[..., None]
            changes = between(self.offsets.changes.to(start.device) - begin, start, stop)
            times = times if changes is None else torch.cat([times, changes], -1)
        return between(times, start, stop)

    def _traces(self, history: History, t: Tensor) -> Tensor:
        traces, time = history
        return traces * torch.exp(-(t - time)[..., None] / self.fading.to(t.device))[..., None, :]

    def _time_of_day(self, t: Tensor, context: Context | None) -> Tensor:
        now = on_clock(t, context, "axis")
        if self.offsets is not None:
            now = now + self.offsets.at(now)
        angle = now * (2 * math.pi / (self.period or 1.0))
        return torch.stack([angle.sin(), angle.cos()], -1)

    def _move(self, like: Tensor) -> None:
        if self.network[0].weight.device != like.device:
            self.network.to(like.device)

    def __repr__(self) -> str:
        return f"Contextual({describe_types(self.types, 4)}, scales={self.scales}, hidden={self.hidden})"


def _through(layer: Any, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """The range of a linear layer's outputs for inputs between ``low`` and ``high``."""
    up, down = layer.weight.clamp(min=0).t(), layer.weight.clamp(max=0).t()
    return low @ up + high @ down + layer.bias, high @ up + low @ down + layer.bias
