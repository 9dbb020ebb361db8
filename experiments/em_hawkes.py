"""Monte Carlo EM on a Hawkes process of which half of the events are hidden: are the parameters recovered?

    python -m experiments.em_hawkes

The process is fitted by EM to what is left of 800 streams, to the same as if it were all (naive), and to the complete
streams. Standard errors come from the information Σ s sᵀ of each stream's score s at the estimate; for EM a stream's
score is the mean of the complete-data score over draws of its missing events (Fisher's identity). They are of the
logarithms of the parameters, which are what is estimated. Results go to runs/em/hawkes.json.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import retrodict as rd
from experiments.store import write_json
from retrodict.train.mechanism import completions

TRUTH = rd.Hawkes([0.4, 0.3], [[0.3, 0.4], [0.2, 0.2]], 2.0)
STREAMS, EPOCHS, PARTICLES = 800, 30, 60


def logs(model: rd.Hawkes) -> NDArray[np.float64]:
    """The logarithms of bases, excitations and decay, [7]."""
    parts = (model.log_base, model.log_excitation.reshape(-1), model.log_decay.reshape(-1))
    return torch.cat(parts).detach().double().numpy()


def scores(model: rd.Hawkes, streams: rd.StreamSet) -> NDArray[np.float64]:
    """The gradient of each stream's log-likelihood, [N, 7]."""
    rows = []
    for stream in range(len(streams)):
        model.zero_grad()
        model.log_likelihood(streams[stream : stream + 1]).sum().backward()
        grads = (model.log_base.grad, model.log_excitation.grad.reshape(-1), model.log_decay.grad.reshape(-1))
        rows.append(torch.cat(grads).double().numpy())
    return np.array(rows)


def report(model: rd.Hawkes, by_stream: NDArray[np.float64]) -> dict[str, Any]:
    """Estimates, standard errors, and the number of standard errors to the truth."""
    error = np.sqrt(np.diag(np.linalg.inv(by_stream.T @ by_stream)))
    estimate = np.exp(logs(model))
    from_truth = (logs(model) - logs(TRUTH)) / error
    return {"estimate": estimate, "standard_error": estimate * error, "errors_from_truth": from_truth}


def main(folder: Path = Path("runs/em")) -> None:
    """Fit in three ways."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", rd.DataNotice)
    missing = rd.ByType(0.5)
    complete = rd.simulate(TRUTH, STREAMS, end=20.0, seed=0)
    seen, _ = missing.censor(complete, seed=100)
    common: dict[str, Any] = {"epochs": EPOCHS, "patience": EPOCHS, "learning_rate": 0.03, "averaging": 0.99}
    common |= {"progress": False, "device": "cpu"}
    fitted = rd.fit_incomplete(
        rd.Hawkes,
        seen,
        missing,
        seen,
        filtering=True,
        particles=PARTICLES,
        draws=2,
        directory=folder / "hawkes",
        **common,
    )
    posterior = rd.impute(seen, rd.Filtering(fitted.model, missing), particles=300, seed=1)
    expected = np.mean([scores(fitted.model, part.streams) for part in completions(posterior, 4, 1)], 0)
    result = {"EM": report(fitted.model, expected)}
    for name, streams in (("naive", seen), ("complete", complete)):
        model = rd.fit(rd.Hawkes, streams, streams, directory=folder / f"hawkes_{name}", **common)
        result[name] = report(model, scores(model, streams))
    for name, row in result.items():
        print(name, {key: np.round(value, 3).tolist() for key, value in row.items()})
    write_json(folder / "hawkes.json", {**result, "evidence": [row["train_evidence"] for row in fitted.history]})


if __name__ == "__main__":
    main()
