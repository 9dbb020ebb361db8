"""What incomplete streams say about missing rates by type: score and information of the evidence, from particles.

On the scale of log odds, θ_k = log ρ_k / (1 - ρ_k), a completed stream with n_k observed and m_k missing events has
score m_k - ρ_k (m_k + n_k) and information ρ_k (1 - ρ_k) (m_k + n_k). Of the evidence log p(x; θ), summed over streams,

    score        Σ E[m_k | x] - ρ_k (E[m_k | x] + n_k)                                                Fisher's identity
    information  Σ ρ_k (1 - ρ_k) (E[m_k | x] + n_k) - (1 - ρ_j) (1 - ρ_k) Cov[m_j, m_k | x]           Louis' identity

Particles of one run share ancestors, so that their own spread is too small. Independent runs, pooled by their evidence,
say how much: the variance of the pooled mean is added to the covariance, and gives the Monte Carlo error of the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodict.events.stream_set import StreamSet
from retrodict.smc.posterior import Posterior

_AT_ONCE = 1 << 22  # counts of particles that are worked on at once


class Moments(NamedTuple):
    """Of the numbers of missing events of P types in each of N streams, under the particles of some runs together."""

    log_evidence: NDArray[np.float64]  # [N]
    mean: NDArray[np.float64]  # [N, P]
    covariance: NDArray[np.float64]  # [N, P, P]
    runs: int = 1


class Information(NamedTuple):
    """Of the evidence, on the scale of log odds of P rates."""

    score: NDArray[np.float64]  # [P]
    matrix: NDArray[np.float64]  # [P, P]; it need not be positive where the streams say little
    complete: NDArray[np.float64]  # [P]: what it would be if it were known which events are missing
    noise: NDArray[np.float64]  # [P, P]: Monte Carlo covariance of the score
    missing: NDArray[np.float64]  # [P]: expected missing events
    observed: NDArray[np.float64]  # [P]: observed events


def moments(posterior: Posterior, types: NDArray[np.int64]) -> Moments:
    """Means and covariances of the numbers of missing events of some ``types`` [P]."""
    N, M, P = len(posterior), posterior.num_particles, len(types)
    mean, covariance = np.zeros((N, P)), np.zeros((N, P, P))
    position = np.full(posterior.observed.num_types, -1)
    position[types] = np.arange(P)
    step = max(1, _AT_ONCE // (M * max(P, 1)))
    for first in range(0, N, step):
        part = slice(first, min(first + step, N))
        spans = posterior.offsets[part.start * M : part.stop * M + 1]
        which = position[posterior.event_types[spans[0] : spans[-1]]]
        particle = np.repeat(np.arange(len(spans) - 1), np.diff(spans))
        cells = (particle * P + which)[which >= 0]
        counts = np.bincount(cells, minlength=(len(spans) - 1) * P).reshape(-1, M, P)
        weights = posterior.all_weights[part]
        mean[part] = np.einsum("nm,nmp->np", weights, counts)
        centred = counts - mean[part][:, None]
        covariance[part] = np.einsum("nm,nmp,nmq->npq", weights, centred, centred, optimize=True)
    return Moments(posterior.log_evidence, mean, covariance)


def pool(parts: Sequence[Moments]) -> Moments:
    """The moments under all particles of several parts, whose weights are their shares of the evidence."""
    shares, log_evidence = _shares(parts)
    mean = np.einsum("rn,rnp->np", shares, [part.mean for part in parts])
    covariance = np.zeros_like(parts[0].covariance)
    for share, part in zip(shares, parts, strict=True):
        apart = part.mean - mean
        covariance += share[:, None, None] * (part.covariance + apart[:, :, None] * apart[:, None])
    return Moments(log_evidence, mean, covariance, sum(part.runs for part in parts))


def information(
    parts: Sequence[Moments], streams: StreamSet, types: NDArray[np.int64], rates: NDArray[np.float64]
) -> Information:
    """Score and information at ``rates`` [P] of ``types`` [P], from at least two independent parts."""
    shares, _ = _shares(parts)
    together = pool(parts)
    apart = np.stack([part.mean for part in parts]) - together.mean  # [R, N, P]
    freedom = len(parts) / (len(parts) - 1)  # for the mean that was taken off
    of_mean = freedom * np.einsum("rn,rnp,rnq->pq", shares**2, apart, apart, optimize=True)
    missing = together.mean.sum(0)
    observed = np.bincount(streams.event_types, minlength=streams.num_types)[types].astype(np.float64)
    seen = 1 - rates
    complete = rates * seen * (missing + observed)
    return Information(
        missing - rates * (missing + observed),
        np.diag(complete) - np.outer(seen, seen) * (together.covariance.sum(0) + of_mean),
        complete,
        np.outer(seen, seen) * of_mean,
        missing,
        observed,
    )


def _shares(parts: Sequence[Moments]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each part's share of the evidence of each stream, [R, N], and the log of the mean evidence, [N]."""
    logs = np.stack([part.log_evidence + np.log(part.runs) for part in parts])
    possible = np.isfinite(logs).any(0)
    peak = np.where(possible, logs.max(0), 0.0)
    weights = np.where(possible, np.exp(logs - peak), 1.0)
    total = weights.sum(0)
    runs = sum(part.runs for part in parts)
    return weights / total, np.where(possible, peak + np.log(total) - np.log(runs), -np.inf)
