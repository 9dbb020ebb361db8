"""A neural Hawkes process learned from incomplete streams: Monte Carlo EM between the naive and the complete-data fit.

    python -m experiments.em_neural synthetic
    python -m experiments.em_neural taxi

Half of the events of the training and dev streams are hidden. Three models are fitted: to the streams before that
(complete), to what is left as if it were all (naive), and by EM, which knows the rate. All are scored on complete test
streams (``likelihood.score``). Fits are kept in runs/em and resumed; results go to runs/em/NAME.json.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch

import retrodict as rd
from experiments.data import source_of
from experiments.likelihood import score
from experiments.store import write_json
from retrodict.datasets import synthetic, taxi

HIDDEN = {"synthetic": 32, "taxi": 64}
EM_EPOCHS = {"synthetic": 15, "taxi": 60}


def main(name: str, folder: Path = Path("runs/em")) -> None:
    """Fit in three ways and score."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", rd.DataNotice)
    train, dev, test = taxi(source_of("taxi")) if name == "taxi" else synthetic(0, HIDDEN["synthetic"]).streams
    missing = rd.ByType(0.5)
    seen, seen_dev = (missing.censor(streams, seed)[0] for seed, streams in enumerate((train, dev)))
    make = partial(rd.NeuralHawkes.from_streams, hidden_size=HIDDEN[name])
    common: dict[str, Any] = {"patience": 12, "progress": False}
    result: dict[str, Any] = {}
    for way, pair in {"complete": (train, dev), "naive": (seen, seen_dev), "EM": (seen, seen_dev)}.items():
        began, directory = time.perf_counter(), folder / f"{name}_{way}"
        if way == "EM":
            options = {"epochs": EM_EPOCHS[name], "particles": 50, "draws": 2, **common}
            fitted = rd.fit_incomplete(make, seen, missing, seen_dev, directory=directory, **options)
            model, result["history"] = fitted.model, fitted.history
        else:
            model = rd.fit(make, *pair, directory=directory, epochs=60, **common)
        result[way] = {**score(model.cpu(), test), "seconds": time.perf_counter() - began}
        print(way, result[way], flush=True)
    naive, em, complete = (result[way]["whole"] for way in ("naive", "EM", "complete"))
    print(f"share of the gap closed: {(em - naive) / (complete - naive):.0%}")
    write_json(folder / f"{name}.json", result)


if __name__ == "__main__":
    main(sys.argv[1])
