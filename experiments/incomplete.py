"""A neural Hawkes process learned from incomplete streams: Monte Carlo EM between the naive and the complete-data fit.

    python experiments/incomplete.py synthetic
    python experiments/incomplete.py taxi --from nyc_taxi_2013

Half of the events of the training and dev streams are hidden. Three models are fitted: to the streams before that
(complete), to what is left as if it were all (naive), and by EM, which knows the rate. All are scored on complete test
streams, in nats per event with 20 quadrature nodes a gap; for EM the evidence and the ELBO of every epoch are kept.
Fits are kept in --runs and resumed; results go to ``incomplete_NAME.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from functools import partial
from pathlib import Path

import torch
from taxi_likelihood import score

import retrodict as rd
from retrodict.datasets import load, synthetic
from retrodict.events.stream_set import Splits


def _streams(name: str, source: Path | None, process: int) -> Splits:
    if name == "synthetic":
        return synthetic(0, process).streams
    return load(name, **({"source": source} if source else {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["synthetic", "taxi", "elevator", "flights"])
    parser.add_argument("--from", dest="source", type=Path, help="where the taxi streams are")
    parser.add_argument("--process", type=int, default=32, help="cells of the process of the synthetic streams")
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--particles", type=int, default=30)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--em-epochs", type=int, help="if other than --epochs")
    parser.add_argument("--patience", type=int, default=12)
    parser.add_argument("--most", type=int, help="use only so many training streams")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=Path, default=Path("runs/incomplete"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore", rd.DataNotice)
    train, dev, test = _streams(options.name, options.source, options.process)
    train = train[: options.most]
    missing = rd.ByType(options.rate)
    seen, seen_dev = (missing.censor(streams, seed)[0] for seed, streams in enumerate((train, dev)))
    make = partial(rd.NeuralHawkes.from_streams, hidden_size=options.hidden)
    common = {"epochs": options.epochs, "patience": options.patience, "device": options.device, "progress": False}
    process = {"process": options.process} if options.name == "synthetic" else {}
    folder = options.runs / "_".join([options.name, *map(str, process.values()), f"{options.hidden}_{options.rate:g}"])
    result: dict[str, object] = {
        "data": options.name,
        **process,
        "rate": options.rate,
        "hidden": options.hidden,
        "streams": {"train": len(train), "dev": len(dev), "test": len(test)},
        "particles": options.particles,
        "draws": options.draws,
    }
    scores: dict[str, dict[str, float]] = {}
    for name in ("complete", "naive", "em"):
        began = time.perf_counter()
        if name == "em":
            fitted = rd.fit_incomplete(
                make, seen, missing, seen_dev, particles=options.particles, draws=options.draws,
                directory=folder / name, **{**common, "epochs": options.em_epochs or options.epochs},
            )  # fmt: skip
            model, result["history"] = fitted.model, fitted.history
        else:
            pair = (train, dev) if name == "complete" else (seen, seen_dev)
            model = rd.fit(make, *pair, directory=folder / name, **common)
        scores[name] = {**score(model.cpu(), test), "seconds": round(time.perf_counter() - began, 1)}
        print(name, json.dumps(scores[name]), flush=True)
    result["test"] = scores
    for key in ("per_event", "without_first"):
        gap = scores["complete"][key] - scores["naive"][key]
        result[f"share_of_the_gap_closed_{key}"] = round((scores["em"][key] - scores["naive"][key]) / gap, 3)
    out = options.out or Path(__file__).with_name(f"incomplete_{options.name}.json")
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print({k: v for k, v in result.items() if k.startswith("share")})


if __name__ == "__main__":
    main()
