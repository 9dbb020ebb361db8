"""Kill -9 at random moments, and full disks: after ``--resume`` the output is that of an undisturbed run.

    python benchmarks/faults.py --kills 50         # ten minutes
    python benchmarks/faults.py --kills 0 --full 10

``--kills``: a run is killed at a moment that is random between its first and its last, and gone on with until it ends;
a quarter of those that go on are killed, too. The outputs take turns: a CSV file of streams in any order, a Parquet
file, a folder. ``--full``: the output lies on a disk (a tmpfs, which root alone can make) that is too small by a random
amount; the run must end with an error in words, and go on once the disk is larger.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import retrodict as rd

MODEL = rd.Hawkes([0.5, 0.3], [[0.3, 0.2], [0.1, 0.2]], 1.5)
OPTIONS = ["-m", "0.5", "--particles", "10"]


def prepare(root: Path, streams: int) -> dict[str, tuple[Path, str]]:
    """The model, and for each kind of output its input and its name."""
    rd.save_model(MODEL, root / "model")
    observed, _ = rd.ByType(0.5).censor(rd.simulate(MODEL, streams, end=6.0, seed=0), seed=1)
    rd.write_events(observed, root / "in.parquet")
    (root / "tables").mkdir()
    for part, first in enumerate(range(0, streams, streams // 3)):
        rd.write_events(observed[first : first + streams // 3], root / "tables" / f"{part}.parquet")
    observed.to_frame().sample(frac=1.0, random_state=0).to_csv(root / "any-order.csv", index=False)
    return {
        "csv": (root / "any-order.csv", "out.csv"),
        "parquet": (root / "in.parquet", "out.parquet"),
        "folder": (root / "tables", "out"),
    }


def command(root: Path, source: Path, output: Path, chunk: int) -> list[str]:
    words = ["impute", str(root / "model"), str(source), "-o", str(output), "--chunk-streams", str(chunk)]
    return [sys.executable, "-m", "retrodict", *words, *OPTIONS, "--resume"]


def start(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def digest(path: Path) -> str:
    """Of a file, or of all files of a folder and their names."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = hashlib.sha256()
    for file in files:
        found.update(file.name.encode() + file.read_bytes())
    return found.hexdigest()


def finish(words: list[str]) -> None:
    process = start(words)
    said = process.communicate()[1]
    if process.returncode:
        raise SystemExit(f"--resume failed:\n{said}")


def undisturbed(root: Path, kinds: dict[str, tuple[Path, str]], chunk: int) -> tuple[dict[str, str], float]:
    """The digests of outputs that nothing happened to, and how long a run takes."""
    found, seconds = {}, 0.0
    (root / "whole").mkdir()
    for kind, (source, name) in kinds.items():
        begin = time.perf_counter()
        finish(command(root, source, root / "whole" / name, chunk))
        seconds = time.perf_counter() - begin
        found[kind] = digest(root / "whole" / name)
    return found, seconds


def killed(root: Path, kinds: dict[str, tuple[Path, str]], number: int, chunk: int, rng: random.Random) -> int:
    """Kill runs at ``number`` moments; how many of them were still running."""
    wanted, seconds = undisturbed(root, kinds, chunk)
    print(f"an undisturbed run takes {seconds:.1f} s")
    hits = trial = 0
    while hits < number:
        kind = list(kinds)[trial % 3]
        trial += 1
        (root / "now").mkdir()
        source, name = kinds[kind]
        words = command(root, source, root / "now" / name, chunk)
        again = True
        while again:
            process, moment = start(words), rng.uniform(0.0, seconds)
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                hits += 1
            process.communicate()
            again = rng.random() < 0.25
        finish(words)
        left = sorted(path.name for path in (root / "now").iterdir())
        if digest(root / "now" / name) != wanted[kind] or left != [name, f"{name}.draws"]:
            raise SystemExit(f"trial {trial} ({kind}) differs; there is {left}")
        shutil.rmtree(root / "now")
    return hits


def full(root: Path, kinds: dict[str, tuple[Path, str]], number: int, chunk: int, rng: random.Random) -> int:
    """Run on a disk that is too small, then on a larger one; how often it was full."""
    wanted, _ = undisturbed(root, kinds, chunk)
    disk, times = root / "disk", 0
    disk.mkdir()
    while times < number:
        kind = list(kinds)[times % 3]
        source, name = kinds[kind]
        words = command(root, source, disk / name, chunk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={rng.randint(100, 8000)}k", "tmpfs", disk], check=True)
        try:
            process = start(words)
            said = " ".join(process.communicate()[1].split())
            if process.returncode:
                space = "No space left" in said or "are free" in said  # the latter is said before the disk is full
                if not space or "--resume" not in said or "Traceback" in said:
                    raise SystemExit(f"not in words: {said}")
                times += 1
                subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
                finish(words)
            if digest(disk / name) != wanted[kind]:
                raise SystemExit(f"the output ({kind}) differs after a full disk")
        finally:
            subprocess.run(["umount", disk], check=True)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--full", type=int, default=0)
    parser.add_argument("--streams", type=int, default=1500)
    parser.add_argument("--chunk", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    root, rng = Path(tempfile.mkdtemp()), random.Random(options.seed)
    try:
        kinds = prepare(root, options.streams)
        if options.kills:
            hits = killed(root, kinds, options.kills, options.chunk, rng)
            print(f"{hits} runs were killed: every output equals that of an undisturbed run")
            shutil.rmtree(root / "whole")
        if options.full:
            times = full(root, kinds, options.full, options.chunk, rng)
            print(f"the disk was full {times} times: every output equals that of an undisturbed run")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
