"""Log-likelihood per event of Poisson, Hawkes and neural Hawkes processes on the New York taxi streams.

    python experiments/taxi_likelihood.py ../shared/data/nyc_taxi_2013 --hidden 64 128 256

Trains on train_long, test1 and extra_long, chooses the hidden size on dev, reports dev and test. Two
scores are given, in nats per event with 20 quadrature nodes a gap: of whole streams (the first event, which
always lies at the very start, is scored by the start atom), and with the first event's own factor left out
and not counted, as EasyTPP and the 2019 code score. Fits are kept in --runs and resumed; results go to
``taxi_likelihood.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import torch

import retrodict as rd

TRAIN = ("train_long", "test1", "extra_long")


def score(model: rd.Model, streams: rd.StreamSet) -> dict[str, float]:
    """Nats per event: whole streams, and without the first event of each."""
    exact = rd.GaussLegendre(20)
    with torch.no_grad():
        whole = model.log_likelihood(streams, integral=exact).double().sum()
        rest = model.log_likelihood(streams, integral=exact, score_first=False).double().sum()
    later = streams.num_events - int((streams.lengths > 0).sum())
    return {
        "per_event": round(float(whole) / streams.num_events, 4),
        "without_first": round(float(rest) / later, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the prepared taxi streams")
    parser.add_argument("--hidden", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--learning-rate", type=float, default=None)
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--patience", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=Path, default=Path("runs/taxi_likelihood"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()

    parts = [rd.read_events(options.data / f"{name}.jsonl.gz") for name in TRAIN]
    train = rd.StreamSet([s for part in parts for s in part], types=parts[0].types, axis=parts[0].axis)
    dev, test = (rd.read_events(options.data / f"{name}.jsonl.gz") for name in ("dev", "test"))
    common = {"seed": options.seed, "device": options.device, "patience": options.patience}
    warnings.simplefilter("ignore", rd.DataNotice)

    models: dict[str, rd.Model] = {"poisson": rd.Poisson.from_streams(train)}
    models["hawkes"] = rd.fit(
        rd.Hawkes, train, dev, directory=options.runs / "hawkes", epochs=options.epochs, batch_size=500, **common
    )
    for hidden in options.hidden:
        torch.manual_seed(options.seed)
        name = f"neural_hawkes_{hidden}"
        models[name] = rd.fit(
            rd.NeuralHawkes(train.num_types, hidden),
            train,
            dev,
            directory=options.runs / f"{name}_{options.seed}_{options.learning_rate}_{options.weight_decay}",
            epochs=options.epochs,
            learning_rate=options.learning_rate,
            weight_decay=options.weight_decay,
            **common,
        )
    results = {
        name: {"dev": score(model, dev), "test": score(model, test), "training": model.training_record}
        for name, model in models.items()
    }
    neural = [name for name in results if name.startswith("neural")]
    chosen = max(neural, key=lambda name: results[name]["dev"]["without_first"], default=None)
    report = {
        "data": {"train_streams": len(train), "train_events": train.num_events, "dev": len(dev), "test": len(test)},
        "chosen_on_dev": chosen,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "date": time.strftime("%Y-%m-%d"),
        "results": results,
    }
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    for name, result in results.items():
        print(name, {split: result[split] for split in ("dev", "test")}, flush=True)
    print("chosen on dev:", chosen)


if __name__ == "__main__":
    main()
