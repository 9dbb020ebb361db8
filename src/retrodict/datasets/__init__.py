"""Data sets to learn and measure with: real flights."""

from retrodict.datasets.flights import flights, flights_sample

__all__ = ["flights", "flights_sample"]
