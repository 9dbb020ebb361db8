"""A Ray cluster gives the answer of one process, also when workers die on the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import retrodict as rd
from retrodict.errors import DataError, ModelError
from retrodict.events.combine import join
from retrodict.smc import ray_pool
from retrodict.smc.ray_pool import RayPool
from tests.cli.test_long_steps import run
from tests.jobs.ray_items import own_gpu, same, with_gpu, work

MODEL = rd.Hawkes([0.5, 0.3], [[0.3, 0.2], [0.1, 0.2]], 1.5)
OBSERVED, _ = rd.ByType(0.5).censor(rd.simulate(MODEL, 24, end=5.0, seed=0), seed=1)
FILTERING = rd.Filtering(MODEL, rd.ByType(0.5))


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """One cluster of two workers for all tests."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'retrodict[ray]'")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield "local"
    ray.shutdown()


@pytest.mark.slow
def test_work_of_a_worker_that_was_killed_is_done_by_another(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_pool, "_MOST_TRIES", 2)
    with RayPool(cluster, 2).open(tmp_path, same) as session:
        assert sorted(session.each(work, range(6))) == [(i, i * i) for i in range(6)]
        assert len(list(tmp_path.iterdir())) == 2
        with pytest.raises(DataError, match=r"a\.csv, row 7: bad row. Remedy: drop it"):
            list(session.each(work, [100]))
        with pytest.raises(ModelError, match=r"2 workers died of 200 .*smaller chunks"):
            list(session.each(work, [200]))


@pytest.mark.slow
def test_impute_gives_the_same_posterior(cluster, monkeypatch):
    monkeypatch.setattr("retrodict.smc.cluster._PER_CHUNK", 5)
    here, there = (rd.impute(OBSERVED, FILTERING, 6, seed=3, cluster=where) for where in (None, cluster))
    assert np.array_equal(here.log_evidence, there.log_evidence)
    for name in ("full", "lagged"):
        one, other = getattr(here, name), getattr(there, name)
        assert np.array_equal(one.event_times, other.event_times)
        assert np.array_equal(one.offsets, other.offsets)
        assert np.array_equal(one.families, other.families, equal_nan=True)
    assert there.observed.ids == OBSERVED.ids
    assert np.array_equal(here.consensus(1.0).event_times, there.consensus(1.0).event_times)


@pytest.mark.slow
def test_one_long_stream_settles_the_particles_of_all_workers(cluster, monkeypatch):
    """Workers have no limit of memory, and chunks of short streams would take all the particles that there are."""
    monkeypatch.setattr("retrodict.smc.cluster._PER_CHUNK", 2)
    poisson = rd.Poisson([0.5, 0.5])
    observed = join([rd.simulate(poisson, 4, end=8.0, seed=0), rd.simulate(poisson, 1, end=900.0, seed=1)], range(5))
    with rd.limits(memory=1e8), pytest.warns(rd.DataNotice, match="particles are used for each stream"):
        there = rd.impute(observed, rd.Filtering(poisson, rd.ByType(0.3)), cluster=cluster)
    here = rd.impute(observed, rd.Filtering(poisson, rd.ByType(0.3)), there.num_particles)
    assert there.num_particles < 1000
    assert np.array_equal(here.log_evidence, there.log_evidence)
    assert np.array_equal(here.full.event_times, there.full.event_times)


@pytest.mark.slow
def test_the_command_writes_the_same_bytes(cluster, tmp_path):
    rd.save_model(MODEL, tmp_path / "model")
    rd.write_events(OBSERVED, tmp_path / "in.parquet")
    for name, more in (("one", []), ("many", ["--cluster", cluster, "--chunk-streams", "5"])):
        run("impute", tmp_path / "model", tmp_path / "in.parquet", "-o", tmp_path / f"{name}.parquet", "-m", 0.5,
            "--particles", 6, "--no-draws", *more)  # fmt: skip
    assert (tmp_path / "many.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "many.parquet", "model", "one.parquet"]


@pytest.mark.slow
def test_with_cuda_each_worker_has_a_gpu_of_its_own(tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'retrodict[ray]'")
    ray.shutdown()
    ray.init(
        num_cpus=4, num_gpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )  # no real ones
    try:
        with RayPool("local", None, "cuda").open(tmp_path, with_gpu) as session:
            found = dict(session.each(own_gpu, range(6)))
        assert len(session._all()) <= 2
    finally:
        ray.shutdown()
    assert {gpus for gpus, _ in found.values()} == {("0",), ("1",)}
    assert {device for _, device in found.values()} == {"cuda"}


def test_a_cluster_that_is_not_there_is_an_error_in_words():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'retrodict[ray]'")
    ray.shutdown()
    with pytest.raises(ModelError, match="cannot reach a Ray cluster at 'auto'"):
        rd.impute(OBSERVED, FILTERING, 6, cluster="auto")


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ModelError, match=r"pip install 'retrodict\[ray\]'"):
        rd.impute(OBSERVED, FILTERING, 6, cluster="local")
