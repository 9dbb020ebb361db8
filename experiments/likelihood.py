"""Log-likelihood per event of Poisson, Hawkes and neural Hawkes processes on the New York taxi streams.

    python -m experiments.likelihood

Two scores, in nats per event with 20 quadrature nodes a gap: of whole streams (the first event, which always lies at
the very start, is scored by the start atom), and without the first event, as EasyTPP and the 2019 code score. Fits are
kept in runs/likelihood and resumed.
"""

from __future__ import annotations

import warnings

import torch

import retrodict as rd
from experiments.data import source_of
from retrodict.datasets import taxi

HIDDEN = (64, 128, 256)


def score(model: rd.Model, streams: rd.StreamSet) -> dict[str, float]:
    """Nats per event: whole streams, and without the first event of each."""
    exact = rd.GaussLegendre(20)
    with torch.no_grad():
        whole = model.log_likelihood(streams, integral=exact, score_end=False).double().sum()
        rest = model.log_likelihood(streams, integral=exact, score_first=False, score_end=False).double().sum()
    later = streams.num_events - int((streams.lengths > 0).sum())
    return {"whole": round(float(whole) / streams.num_events, 4), "without first": round(float(rest) / later, 4)}


def main() -> None:
    """Fit and score each model."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", rd.DataNotice)
    train, dev, test = taxi(source_of("taxi"))
    options = {"epochs": 300, "patience": 15, "device": "cpu"}
    models = {"Poisson": rd.Poisson.from_streams(train)}
    models["Hawkes"] = rd.fit(rd.Hawkes, train, dev, directory="runs/likelihood/hawkes", batch_size=500, **options)
    for hidden in HIDDEN:
        torch.manual_seed(0)
        model = rd.NeuralHawkes(train.num_types, hidden)
        models[f"neural Hawkes, {hidden}"] = rd.fit(
            model, train, dev, directory=f"runs/likelihood/neural_hawkes_{hidden}", **options
        )
    for name, model in models.items():
        print(f"{name}: dev {score(model, dev)}, test {score(model, test)}", flush=True)


if __name__ == "__main__":
    main()
