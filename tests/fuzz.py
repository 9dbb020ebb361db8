"""Mutated inputs over every reader, mechanism file, saved folder and job: each is accepted or a RetrodictError.

    TMPDIR=/dev/shm python -m tests.fuzz --inputs 1000000 --workers 2    # all of it; a small part runs with the tests
    TMPDIR=/dev/shm python -m tests.fuzz --first 400000 --inputs 100000  # some more of the same

An input is a function of its number and the seed alone, so that what was found can be looked at again (``--only 12``).
Inputs run one after the other in a child process that is ended where one takes 5 seconds; the child's memory is
measured. What good inputs need is compiled before the first. Jobs that are damaged (``tests.fuzz_jobs``) must also come
to the right output where they are not refused.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import pickle
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import retrodict as rd
from retrodict.errors import RetrodictError
from retrodict.missingness.spec import parse_missing
from tests.fuzz_jobs import make_jobs, use_job

SECONDS = 5
STREAMS = rd.StreamSet(
    [
        rd.EventStream([1.0, 2.5], [0, 1], end=3.0, id="a", columns={"n": [1, 2], "note": ["x", "é"]}),
        rd.EventStream([], [], end=1.0, id="b"),
    ],
    types=["u", "v"],
)
CALENDAR = """stream,time,type,start,end,extra
a,2013-01-01T08:00:00+01:00,u,2013-01-01T00:00:00+01:00,2013-01-02T00:00:00+01:00,1
a,2013-01-01T09:30:00+01:00,v,2013-01-01T00:00:00+01:00,2013-01-02T00:00:00+01:00,
b,2013-01-01T10:00:00Z,u,2013-01-01T00:00:00Z,2013-01-02T00:00:00Z,x
"""
LOG = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org/"><extension name="Time" prefix="time" uri="x"/>
<trace><string key="concept:name" value="1"/><event><string key="concept:name" value="u"/><string
key="lifecycle:transition" value="start"/><date
key="time:timestamp" value="2013-01-01T08:00:00+01:00"/><int key="n" value="3"/></event><event>
<string key="concept:name" value="v"><list key="x"><values/></list></string><date key="time:timestamp"
value="2013-01-01T09:00:00.5+01:00"/><boolean key="b" value="true"/></event></trace><trace/></log>"""
MECHANISMS = [
    "mechanism: by_type\nrates: {u: 0.5, v: 0.1}\n",
    'mechanism: windows\nwindows: [["22:00", "06:00"]]\nevery: day\ntypes: [u]\n',
    "mechanism: windows\nwindows: [[0.5, 2]]\nby_stream: {a: [[1, 2]]}\ninside: 0.9\n",
    'mechanism: time_varying\ntimes: ["00:00", "12:00"]\nrates: [0.1, 0.6]\nevery: day\nsteps: true\n',
    "mechanism: reporting_delay\nfamily: gamma\nmean: {u: 2.0}\nshape: 1.5\nunit: hour\n",
    "mechanism: reporting_delay\nfamily: empirical\ndelays: [1, 2, 3.5]\nwait: 1 hour\n",
    "- mechanism: after\n  trigger: u\n  within: 2 hours\n  rates: {v: 0.9}\n- mechanism: by_type\n  rates: 0.1\n",
    "mechanism: contextual\ntypes: [u, v]\nscales: [1, 10]\nhidden: 4\nrate: 0.2\n",
]
TOKENS = [
    b"0", b"-1", b"1e308", b"1e-308", b"nan", b"NaN", b"Infinity", b"-Infinity", b"null", b"true", b"[]", b"{}", b'""',
    b"'", b'"', b",", b":", b"\n", b"\0", b"\xff\xfe", b"\\ud800", b"*a", b"&a ", b"!!python/object:os.system ",
    b"!!int x", b"9" * 20, b"9" * 400, b"9" * 5000, b"[" * 50, b"[" * 3000, b"1.5", b"2013-01-01", b"99999-01-01",
    b"0001-01-01T00:00:00Z", b"u", b"day", b"\x80\x04", b"cnumpy\nndarray\n", b"cnumpy\ndtype\n(S'O'\ntR", b"\x8a\xff",
    b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", b"<!DOCTYPE log []>", b"&e;", b"<event>", b"</trace>", b"<trace/>",
    b"<string",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, -1, 0, 1, 2, 10**9, 10**30, 10**400, 1e308, -1.5, float("nan"), float("inf"), "", "x", "day", "\ud800",
    [], [[]], {}, {"u": 1}, ["u", "v"], [1, 2], "a" * 10_000,
]  # fmt: skip


def corpora(folder: Path) -> dict[str, Any]:
    """Good inputs of every kind: bytes of files by suffix, texts of mechanisms, folders."""
    files: dict[str, list[bytes]] = {}
    for suffix in ("csv", "csv.gz", "parquet", "jsonl", "jsonl.gz", "json"):
        path = folder / f"good.{suffix}"
        rd.write_events(STREAMS, path)
        files[suffix] = [path.read_bytes()]
    files["csv"].append(CALENDAR.encode())
    dated = folder / "dated.csv"
    dated.write_text(CALENDAR.replace("Z", "+00:00"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rd.write_events(rd.read_events(dated, timezone="Europe/Paris"), folder / "dated.parquet")
    files["parquet"].append((folder / "dated.parquet").read_bytes())
    records = json.loads(files["json"][0])
    columns = {key: [record[key] for record in records] for key in records[0]}
    files["json"].append(json.dumps(columns).encode())
    events = [
        [{"time_since_start": np.float64(1.0), "type_event": np.int64(0)}],
        [{"time_since_start": 2, "type_event": 1}],
    ]
    arrays = [
        {"time_since_start": np.arange(3.0), "type_event": np.arange(3), "seq_len": np.int64(3), "dim_process": 3}
    ]
    for record in arrays:
        table = pa.table({key: [value.tolist()] for key, value in record.items() if isinstance(value, np.ndarray)})
        pq.write_table(table, folder / "records.parquet")
    files["parquet"].append((folder / "records.parquet").read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        days = rd.read_events(folder / "dated.parquet")
        for name in ("good.xes", "good.xes.gz", "good.meds"):
            rd.write_events(days, folder / name)
    files["xes"] = [(folder / "good.xes").read_bytes(), LOG.encode()]
    files["xes.gz"] = [(folder / "good.xes.gz").read_bytes()]
    files["parquet"].append((folder / "good.meds" / "data" / "0.parquet").read_bytes())
    old = {"seqs": events, "total_num": 2, "unit": b"h", "used": {1, 2}}
    files["pkl"] = [pickle.dumps(value, protocol) for value in (old, arrays) for protocol in range(6)]
    files["pkl.gz"] = [gzip.compress(files["pkl"][2])]
    folders = [folder / "good.meds"]
    torch.manual_seed(0)
    neural = rd.NeuralHawkes(2, 4, time_scale=1.0)
    for model in (rd.Poisson([0.5, 1.0]), rd.Hawkes([0.5, 0.3], [[0.3, 0.1], [0.0, 0.2]], 1.5), neural):
        model.types = ("u", "v")
        folders.append(folder / f"model-{model.kind}")
        model.save(folders[-1])
    for name, missing in (("plain", rd.ByType(0.5)), ("outage", rd.Windows([(0.5, 2)]) * rd.ByType({"u": 0.1}))):
        folders.append(folder / f"smoother-{name}")
        rd.Smoothing(neural, missing, 4).save(folders[-1])
    rd.impute(STREAMS, rd.Filtering(neural, rd.ByType(0.5)), 4).save(folder / "posterior")
    folders.append(folder / "posterior")
    jobs, finished = make_jobs(folder)
    return {"files": files, "folders": folders, "jobs": jobs, "finished": [finished]}


def mutate(data: bytes, choose: random.Random) -> bytes:
    """A few changes of the kinds that break readers."""
    for _ in range(choose.choice([1, 1, 1, 2, 5])):
        at, length = choose.randrange(len(data) + 1), choose.choice([0, 1, 2, 8, 40])
        kind = choose.randrange(7)
        if kind == 0 and data:
            at = choose.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ (1 << choose.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + choose.choice(TOKENS) + data[at + length :]
        elif kind == 2:
            data = data[:at]
        elif kind == 3:
            data = data[:at] + data[at + length :]
        elif kind == 4:
            data = data[:at] + data[at : at + length] * choose.choice([2, 3, 50]) + data[at:]
        elif kind == 5:
            data = data[:at] + choose.randbytes(choose.choice([1, 4, 8])) + data[at + length :]
        else:
            data = data[:at] + struct.pack("<q", choose.choice([-1, 2**31, 2**62, 2**40])) + data[at + 8 :]
    return data


def mutate_json(value: Any, choose: random.Random) -> Any:
    """Another value somewhere inside, a key fewer, or a key more."""
    if isinstance(value, dict) and value and choose.random() < 0.85:
        key = choose.choice(list(value))
        changed = dict(value)
        if choose.random() < 0.12:
            del changed[key]
        elif choose.random() < 0.1:
            changed[choose.choice(["kind", "config", "extra", "rates", "types"])] = choose.choice(VALUES)
        else:
            changed[key] = mutate_json(value[key], choose)
        return changed
    if isinstance(value, list) and value and choose.random() < 0.7:
        at = choose.randrange(len(value))
        return [*value[:at], mutate_json(value[at], choose), *value[at + 1 :]]
    return choose.choice(VALUES)


def mutate_file(data: bytes, suffix: str, choose: random.Random) -> bytes:
    """One file, changed as text or bytes, or as what it stands for."""
    packed = suffix.endswith(".gz") and choose.random() < 0.7
    data = gzip.decompress(data) if packed else data
    if "json" in suffix and choose.random() < 0.5:
        lines = data.split(b"\n") if "jsonl" in suffix else [data]
        at = choose.randrange(len(lines))
        try:
            lines[at] = json.dumps(mutate_json(json.loads(lines[at]), choose)).encode()
            data = b"\n".join(lines)
        except ValueError:
            data = mutate(data, choose)
    else:
        data = mutate(data, choose)
    return gzip.compress(data) if packed else data


def task(number: int, seed: int, good: dict[str, Any], folder: Path) -> Callable[[], object]:
    """What to do with input ``number``: a call that accepts it or raises."""
    choose = random.Random(f"{seed} {number}")
    kind = choose.random()
    if kind < 0.57:
        suffix = choose.choice(list(good["files"]))
        path = folder / f"bad.{suffix}"
        path.write_bytes(mutate_file(choose.choice(good["files"][suffix]), suffix, choose))
        some = [{"end": 9.0}, {"types": ["u", "v"]}, {"unit": "hour"}, {"dates": "day-first"}]
        options: dict[str, Any] = choose.choice([{}, {}, {}, *some])
        return partial(read, path, options)
    if kind < 0.77:
        text = choose.choice(MECHANISMS).encode()
        path = folder / "bad.yaml"
        path.write_bytes(mutate(text, choose))
        return partial(use_mechanism, path)
    source = choose.choice(good["folders" if kind < 0.95 else "finished" if kind < 0.99 else "jobs"])
    target = folder / "bad"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    files = sorted(path for path in target.rglob("*") if path.is_file())
    told = [path for path in files if path.suffix == ".json"]
    file = choose.choice(told if kind >= 0.95 and choose.random() < 0.4 else files)
    data = file.read_bytes()
    if file.suffix == ".json" and choose.random() < 0.7:
        file.write_text(json.dumps(mutate_json(json.loads(data), choose)))
    elif file.suffix == ".safetensors" and choose.random() < 0.5:
        file.write_bytes(mutate_tensors(data, choose))
    else:
        file.write_bytes(mutate(data, choose))
    if kind >= 0.95:
        return partial(use_job, target, source.name, source.parent)
    return partial(use_folder, target, source.name)


def mutate_tensors(data: bytes, choose: random.Random) -> bytes:
    """Another header, or other numbers, of the right length."""
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    if choose.random() < 0.5:
        text = json.dumps(mutate_json(header, choose)).encode()
        return struct.pack("<Q", len(text)) + text + bytes(body)
    at = choose.randrange(0, max(1, len(body) - 8))
    body[at : at + 4] = struct.pack(
        "<f", choose.choice([float("nan"), float("inf"), 1e38, -1e38, 0.0, 1e5, -1e5, 3e-39])
    )
    return data[: 8 + length] + bytes(body)


def read(path: Path, options: dict[str, Any]) -> object:
    """Read, and use what was read."""
    streams = rd.read_events(path, **options)
    if path.name.endswith((".xes", ".xes.gz")):
        rd.write_events(streams, path.with_name("again.xes"))
    return streams.to_frame(), list(streams)[:2]


def use_mechanism(path: Path) -> object:
    """Bind it and hide events by it."""
    mechanism = parse_missing([str(path)], STREAMS.types, "hour")
    return mechanism.censor(STREAMS, seed=0)


def use_folder(path: Path, name: str) -> object:
    """Load it and compute with it."""
    if name == "good.meds":
        return read(path, {})
    if name == "posterior":
        return rd.load_posterior(path).consensus(1.0)
    if name.startswith("smoother"):
        return rd.load_proposal(path).log_prob(STREAMS, STREAMS.keep(np.zeros(STREAMS.num_events, dtype=bool)))
    return rd.load_model(path).log_likelihood(STREAMS)


def outcome(job: Callable[[], object]) -> tuple[str, str]:
    """accepted, refused, or what else was raised, with where it was raised from."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            job()
    except RetrodictError as error:
        return "refused", "" if len(str(error)) < 3000 else "a very long message"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = next(
            (f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames) if "retrodict" in f.filename), "?"
        )
        return "other", f"{type(error).__name__} at {where}: {str(error)[:160]}"
    return "accepted", ""


def peak_memory() -> int:
    """The most memory of this process so far, in MiB (what getrusage tells includes the parent's)."""
    status = Path("/proc/self/status")
    if not status.exists():
        import resource  # of POSIX

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) // 1024


def work(numbers: list[int], seed: int, results: Any) -> None:
    """A child process: each input with an alarm, whose end of the process the parent notes."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        good = corpora(folder)
        for source in good["folders"]:
            use_folder(source, source.name)
        for number in numbers:
            results.send((number, "began", "", 0))
            job = task(number, seed, good, folder)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            found = outcome(job)
            signal.setitimer(signal.ITIMER_REAL, 0)
            results.send((number, *found, peak_memory()))
    results.close()


def run_some(numbers: list[int], seed: int) -> Iterator[tuple[int, str, str, int]]:
    """The results of inputs, a child process after the other as they end."""
    context, done = multiprocessing.get_context("spawn"), 0
    while done < len(numbers):
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=work, args=(numbers[done:], seed, sender))
        child.start()
        sender.close()
        last = -1
        try:
            while True:
                number, kind, what, memory = receiver.recv()
                last = number
                if kind != "began":
                    done += 1
                    yield number, kind, what, memory
        except EOFError:
            child.join()
        if child.exitcode and last >= 0:
            what = f"no end after {SECONDS} s" if child.exitcode == -signal.SIGALRM else f"exit code {child.exitcode}"
            yield last, "other", what, 0
            done += done < len(numbers) and numbers[done] == last
        elif child.exitcode:
            raise RuntimeError("a child process ended before its first input")


def fuzz(inputs: range, seed: int = 0, workers: int = 1, say: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Counts of what happened, everything that should not have, and the most memory of a child process in MiB."""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    peak, began = 0, time.time()

    def part(numbers: list[int]) -> None:
        nonlocal peak
        for number, kind, what, memory in run_some(numbers, seed):
            counts[kind] += 1
            peak = max(peak, memory)
            if kind == "other" or what:
                problems.append(f"input {number}: {what}")
                if say is not None:
                    say(problems[-1])
            if say is not None and sum(counts.values()) % 10_000 == 0:
                say(f"{dict(counts)}, {peak} MiB, {time.time() - began:.0f} s")

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(part, [list(inputs[i::workers]) for i in range(workers)]))
    return {"counts": dict(counts), "problems": problems, "peak_mib": peak, "seconds": round(time.time() - began, 1)}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", type=int, help="run one input in this process, with its traceback")
    given = parser.parse_args()
    if given.only is not None:
        with tempfile.TemporaryDirectory() as name:
            print(task(given.only, given.seed, corpora(Path(name)), Path(name))())
        return
    inputs = range(given.first, given.first + given.inputs)
    found = fuzz(inputs, given.seed, given.workers, partial(print, flush=True))
    print(json.dumps({**found, "problems": len(found["problems"])}))
    sys.exit(bool(found["problems"]))


if __name__ == "__main__":
    main()
