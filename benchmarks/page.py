"""The page of many streams: how large the file is, how long it takes to make, and how soon a browser shows it.

    python benchmarks/page.py --streams 2000

Streams are the embedded flights, departures hidden, over and over until there are enough, imputed by the embedded
smoother. The browser is Chromium without a window, a new one each time; first paint is the browser's own
``first-contentful-paint``, and "ready" is when the list, the first timeline and all charts are drawn.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import torch
from playwright.sync_api import sync_playwright

import retrodict as rd
from retrodict.datasets import flights_demo, flights_sample


def many(streams: rd.StreamSet, number: int) -> rd.StreamSet:
    """The streams again and again, each time under other names."""
    some = [streams[i % len(streams)] for i in range(number)]
    again = [rd.EventStream(s.times, s.types, s.start, s.end, f"{s.id}/{i}") for i, s in enumerate(some)]
    return rd.StreamSet(again, types=streams.types, axis=streams.axis)


def open_page(path: Path) -> tuple[float, float]:
    """Milliseconds to the first paint and until all is drawn."""
    program = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        ready = page.evaluate("performance.now()")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.close()
    return paint, ready


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--particles", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="where the page is kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    smoother = flights_demo.flights_smoother()
    observed, hidden = smoother.missingness.censor(many(flights_sample(), options.streams))
    posterior = rd.impute(observed, smoother, particles=options.particles, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "page.html"
        begin = time.perf_counter()
        posterior.report(path, cost=1.0, truth=hidden)
        took, size = time.perf_counter() - begin, path.stat().st_size / 1e6
        paints, readies = zip(*(open_page(path) for _ in range(options.repeat)), strict=True)
    print(
        f"{options.streams:,} streams, {observed.num_events:,} observed events: {size:.2f} MB, made in {took:.0f} s; "
        f"first paint {statistics.median(paints):.0f} ms (worst {max(paints):.0f}), ready "
        f"{statistics.median(readies):.0f} ms (worst {max(readies):.0f}), of {options.repeat}"
    )


if __name__ == "__main__":
    main()
