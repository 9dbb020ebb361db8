"""The largest of any run of consecutive rows, by two look-ups (a sparse table)."""

from __future__ import annotations

import torch
from torch import Tensor


class RangeMax:
    """Over ``values`` [N, K]: level l holds the largest of each 2^l rows from a row on."""

    def __init__(self, values: Tensor) -> None:
        self.levels = [values]
        while len(self.levels[-1]) > 1 << (len(self.levels) - 1):
            reach = 1 << (len(self.levels) - 1)
            own = self.levels[-1]
            self.levels.append(torch.maximum(own[:-reach], own[reach:]))
        sizes = torch.tensor([len(level) for level in self.levels], device=values.device)
        self.first = torch.cumsum(sizes, 0) - sizes
        self.table = torch.cat(self.levels)

    def over(self, first: Tensor, last: Tensor) -> Tensor:
        """The largest of rows first to last [...], both included, [..., K]."""
        level = torch.log2((last - first + 1).double() + 0.5).floor().long()
        begin = self.first[level]
        left, right = begin + first, begin + last + 1 - (torch.ones_like(level) << level)
        return torch.maximum(self.table[left], self.table[right])
