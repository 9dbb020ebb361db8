"""Workers that are killed and a node that is lost: the output of a Ray cluster is that of one process.

    python benchmarks/cluster.py                     # 20,000 streams on four simulated nodes, a worker killed every 4 s

The nodes are processes of this machine (``ray.cluster_utils``), each with one worker. One process imputes the same
folder of Parquet files first. Whatever the workers die of, no part may be lost, doubled or different.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from capacity import MISSING, MODEL, make
from ray.cluster_utils import Cluster

import retrodict as rd


def command(root: Path, output: Path, particles: int, more: list[str]) -> list[str]:
    words = ["impute", str(root / "model"), str(root / "in"), "-o", str(output), *MISSING, "--no-draws"]
    return [sys.executable, "-m", "retrodict", *words, "--particles", str(particles), "--chunk-streams", "500", *more]


def workers_of(raylets: set[int]) -> list[int]:
    """The processes that have a chunk to work on, of these nodes."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                name = (entry / "cmdline").read_bytes()
            except (OSError, ValueError, IndexError):
                continue
            if parent in raylets and name.startswith(b"ray::_Worker.do"):
                found.append(int(entry.name))
    return found


def raylets_of(nodes: list[object]) -> set[int]:
    return {each.process.pid for node in nodes for each in node.all_processes["raylet"]}  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two kills")
    parser.add_argument("--particles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, root = random.Random(options.seed), Path(tempfile.mkdtemp())
    cluster = None
    try:
        rd.save_model(MODEL, root / "model")
        make(options.streams, root / "in")
        begin = time.perf_counter()
        subprocess.run(command(root, root / "one", options.particles, []), check=True, capture_output=True)
        print(f"one process: {time.perf_counter() - begin:.0f} s", flush=True)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        nodes = [cluster.add_node(num_cpus=1) for _ in range(options.nodes)]
        begin = time.perf_counter()
        words = command(root, root / "many", options.particles, ["--cluster", cluster.address])
        words += ["--workers", str(options.nodes)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        kills, lost = 0, 0
        while process.poll() is None:
            time.sleep(options.every)
            alive = workers_of(raylets_of(nodes))
            if alive and process.poll() is None:
                os.kill(rng.choice(alive), signal.SIGKILL)
                kills += 1
            if kills == 3 and not lost:
                cluster.remove_node(nodes.pop(), allow_graceful=False)
                lost = 1
        assert process.stderr is not None
        if process.returncode:
            raise SystemExit(process.stderr.read())
        print(
            f"{options.nodes} nodes: {time.perf_counter() - begin:.0f} s, {kills} workers killed, {lost} node removed"
        )
        compare(root / "one", root / "many", options.streams)
    finally:
        if cluster is not None:
            cluster.shutdown()
        shutil.rmtree(root)


def compare(one: Path, many: Path, streams: int) -> None:
    """Every part is there once, with the same bytes, and every stream in one part."""
    import pyarrow.parquet as pq

    names = sorted(path.name for path in one.iterdir())
    if names != sorted(path.name for path in many.iterdir()):
        raise SystemExit("the parts are not the same")
    if any((one / name).read_bytes() != (many / name).read_bytes() for name in names):
        raise SystemExit("a part has other bytes")
    ids = [name for path in sorted(many.glob("*.parquet")) for name in set(pq.read_table(path)["stream"].to_pylist())]
    if len(ids) != streams or len(set(ids)) != streams:
        raise SystemExit(f"{len(ids)} streams, of which {len(set(ids))} differ, and there were {streams}")
    print(f"{len(names) - 1} parts of {streams:,} streams: complete, none twice, byte by byte those of one process")


if __name__ == "__main__":
    main()
