"""A Ray cluster gives the answer of one process, also when workers die on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

import retrodict as rd
from retrodict.cli import chunk_work
from retrodict.errors import DataError, ModelError
from retrodict.events.combine import join
from retrodict.jobs import run as jobs_run
from retrodict.jobs.work import Work
from retrodict.smc import ray_pool
from retrodict.smc.ray_pool import RayPool
from tests.cli.test_long_steps import run
from tests.jobs.ray_items import get_up, own_gpu, same, who, with_gpu, work

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
@pytest.mark.parametrize("error", ["OutOfMemoryError", "NodeDiedError"])
def test_work_of_a_worker_that_was_ended_for_memory_is_done_by_another(cluster, tmp_path, monkeypatch, error):
    import ray

    told: list[object] = []

    def get(future: object) -> object:
        result = original(future)
        if not told and result is not None:  # it is not a worker's start
            told.append(result)
            raise getattr(ray.exceptions, error)("killed due to the node running low on memory")
        return result

    with RayPool(cluster, 2).open(tmp_path, same) as session:
        original = session._get
        monkeypatch.setattr(session, "_get", get)
        assert sorted(session.each(work, [0, 3, 6])) == [(0, 0), (3, 9), (6, 36)]
    assert told


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
def test_what_workers_began_on_gpus_that_the_driver_has_not_is_gone_on_with_by_one_process(
    cluster, tmp_path, monkeypatch
):
    """A worker is asked which engine it has; these only believe that they are elsewhere."""
    rd.save_model(MODEL, tmp_path / "model")
    rd.write_events(OBSERVED, tmp_path / "in.parquet")
    given = ["impute", tmp_path / "model", tmp_path / "in.parquet", "-m", 0.5, "--particles", 6, "--no-draws"]
    run(*given, "-o", tmp_path / "one.parquet")
    given += ["-o", tmp_path / "many.parquet", "--chunk-streams", 5]
    with monkeypatch.context() as patch:
        patch.setattr(chunk_work, "RayPool", lambda address, workers, device: RayPool(address, workers, "cpu:0"))
        patch.setattr(jobs_run, "decide_for_all", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        run(*given, "--cluster", cluster, "--workers", 2, "--device", "cuda", code=130)
    monkeypatch.setattr(Work, "sample", None)  # nothing is sampled again
    run(*given, "--resume")
    assert (tmp_path / "many.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()


@pytest.mark.slow
def test_a_driver_that_is_killed_is_gone_on_with_at_once(tmp_path):
    """By a cluster of its own, while workers of the first may still be at their chunks."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'retrodict[ray]'")
    rd.save_model(MODEL, tmp_path / "model")
    rd.write_events(OBSERVED, tmp_path / "in.parquet")
    given = ["impute", tmp_path / "model", tmp_path / "in.parquet", "-m", 0.5, "--particles", 2000, "--no-draws"]
    run(*given, "-o", tmp_path / "one.parquet")
    given += ["-o", tmp_path / "many.parquet", "--cluster", "local", "--workers", 2, "--chunk-streams", 1]
    command = [sys.executable, "-m", "retrodict", *map(str, given), "--resume"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = tmp_path / "many.parquet.unfinished" / "done"
    while process.poll() is None and len([*done.glob("sampled-*")]) < 3:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "the run ended before it was killed"
    subprocess.run(command, check=True, capture_output=True)
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


@pytest.mark.slow
def test_workers_of_an_own_cluster_import_before_they_are_told_what_they_share(tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'retrodict[ray]'")
    ray.shutdown()
    with RayPool("local", 2).connect() as session:
        session.warm(get_up)
        session.share(tmp_path, same)
        found = {seen for _, seen in session.each(who, range(4))}
    assert len(found) == 2
    assert {mark for _, mark in found} == {"yes"}
    assert not ray.is_initialized()


def test_a_cluster_that_is_not_there_is_an_error_in_words():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'retrodict[ray]'")
    ray.shutdown()
    with pytest.raises(ModelError, match="cannot reach a Ray cluster at 'auto'"):
        rd.impute(OBSERVED, FILTERING, 6, cluster="auto")


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ModelError, match=r"pip install 'retrodict\[ray\]'"):
        rd.impute(OBSERVED, FILTERING, 6, cluster="local")
