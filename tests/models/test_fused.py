"""The fused GPU kernels of the LSTM compute what the plain operations compute.

They run on a GPU, and without one where Triton interprets its kernels (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import importlib.util
import os

import pytest
import torch

from retrodict.models.ctlstm import Cells
from retrodict.models.ctlstm_project import _Project
from retrodict.models.ctlstm_scan import Plain

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CUDA = torch.cuda.is_available()
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or not (CUDA or INTERPRETED), reason="no GPU here"
)
DEVICE = "cpu" if INTERPRETED else "cuda"
N, B, D, K = 5, 3, 20, 4


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).to(DEVICE)


def scan_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return random(N, B, 7 * D, seed=1), random(D, 7 * D, seed=2) / 4, random(N, B, seed=3).abs()


def both_ways() -> list[tuple[type, type]]:
    from retrodict.models.ctlstm_graphs import Fused, Graphed

    return [(Plain(), Fused)] + ([] if INTERPRETED else [(Plain(), Graphed)])


def test_a_scan_and_its_gradient():
    gates, by_hidden, gaps = scan_inputs()
    grads = tuple(random(N, B, D, seed=10 + i) for i in range(5))
    for plain, other in both_ways():
        theirs = plain.forward(gates.clone(), by_hidden, gaps)
        ours = other.forward(gates.clone(), by_hidden, gaps)
        for one, two in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-9)
        expected = plain.backward(theirs, by_hidden, gaps, grads)
        torch.testing.assert_close(other.backward(ours, by_hidden, gaps, grads), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.skipif(not CUDA, reason="no GPU here")
def test_recordings_are_used_again_and_do_not_mix():
    """Two scans under way at once, of lengths that share a recording, give what they give alone."""
    from retrodict.models.ctlstm_graphs import Graphed

    gates, by_hidden, gaps = random(40, B, 7 * D, seed=1), random(D, 7 * D, seed=2) / 4, random(40, B, seed=3).abs()
    first = Graphed.forward(gates[:37].clone(), by_hidden, gaps[:37])
    second = Graphed.forward(gates[:39].clone(), by_hidden, gaps[:39])
    for length, ours in ((37, first), (39, second)):
        grads = tuple(random(length, B, D, seed=10 + i) for i in range(5))
        theirs = Plain().forward(gates[:length].clone(), by_hidden, gaps[:length])
        torch.testing.assert_close(ours.hidden, theirs.hidden, rtol=1e-6, atol=1e-9)
        expected = Plain().backward(theirs, by_hidden, gaps[:length], grads)
        torch.testing.assert_close(
            Graphed.backward(ours, by_hidden, gaps[:length], grads), expected, rtol=1e-6, atol=1e-9
        )


@pytest.mark.skipif(not CUDA, reason="no GPU here")
def test_recordings_outlive_the_first_and_cleared_workspaces(monkeypatch):
    """As after a fit: Lightning clears the workspaces of matrix products, one of which a recording long gone had made.

    Sizes are of the kind that needs a workspace; memory that was freed is filled with other things.
    """
    from retrodict.models import ctlstm_graphs

    torch._C._cuda_clearCublasWorkspaces()  # those of other tests' recordings
    B, D, lengths = 200, 128, (16, 18, 20)
    monkeypatch.setattr(ctlstm_graphs, "_recordings", type(ctlstm_graphs._recordings)())
    monkeypatch.setattr(ctlstm_graphs, "_room", lambda: 4 * lengths[-1] * B * D)  # four of them at most
    single = torch.float32
    gates, by_hidden = random(20, B, 7 * D, seed=1, dtype=single), random(D, 7 * D, seed=2, dtype=single) / 12
    gaps = random(20, B, seed=3, dtype=single).abs()

    def check(N: int) -> None:
        grads = tuple(random(N, B, D, seed=10 + i, dtype=single) for i in range(5))
        found = []
        for way in (Plain(), ctlstm_graphs.Graphed):
            scanned = way.forward(gates[:N].clone(), by_hidden, gaps[:N])
            found.append((scanned.hidden, way.backward(scanned, by_hidden, gaps[:N], grads)))
        for one, two in zip(*found, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-3)

    for N in lengths:  # the last drives out the first
        check(N)
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    filled = [torch.full((1 << 20,), torch.nan, device="cuda") for _ in range(64)]
    for N in lengths[1:]:
        check(N)
    assert len(filled) == 64


@pytest.mark.parametrize(("rows", "points"), [(7, 4), (70, 3), (1, 1)])
def test_projections_and_their_gradient(rows, points):
    from retrodict.models.ctlstm_fused import project_fused, unproject_fused

    single = torch.float32
    cells = Cells(*(random(rows, D, seed=i, dtype=single) for i in range(4)))
    cells = cells._replace(decay=cells.decay.abs())
    elapsed, readout = random(rows, points, seed=4, dtype=single).abs(), random(K, D, seed=5, dtype=single)
    grad = random(rows, points, K, seed=6, dtype=single)
    plain = [x.clone().requires_grad_() for x in (*cells, readout)]
    expected = _Project.apply(*plain[:4], elapsed, plain[4])
    expected.backward(grad)
    exact = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(project_fused(tuple(cells), elapsed, readout), expected.detach(), **exact)
    ours, g_readout = unproject_fused(tuple(cells), elapsed, readout, grad)
    for one, other in zip((*ours, g_readout), plain, strict=True):
        torch.testing.assert_close(one, other.grad, **exact)


@pytest.mark.skipif(not CUDA, reason="no GPU here")
def test_a_readout_of_more_rows_than_the_kernel_holds():
    """300 types, say: taken in parts, with the gradients of the whole."""
    from retrodict.models.ctlstm_project import project

    inputs = [random(6, D, seed=i, dtype=torch.float32).abs() for i in range(4)]
    elapsed, readout = random(6, 5, seed=8, dtype=torch.float32).abs(), random(300, D, seed=9, dtype=torch.float32)
    grad = random(6, 5, 300, seed=10, dtype=torch.float32)
    found = []
    for way in (lambda *x: project(Cells(*x[:4]), x[4], x[5]), _Project.apply):
        leaves = [x.clone().requires_grad_(True) for x in (*inputs, readout)]
        result = way(*leaves[:4], elapsed, leaves[4])
        found.append([result, *torch.autograd.grad(result, leaves, grad)])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)
