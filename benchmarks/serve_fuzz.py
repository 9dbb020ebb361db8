"""Thousands of requests that schemathesis makes from the server's own description: no crash, hang, leak, wrong status.

    python benchmarks/serve_fuzz.py --requests 10000

All of its checks run, on requests that follow the description and on such that do not. Well-formed requests whose
streams contradict themselves are to be answered with 422, which a description cannot foresee. Rounds with new seeds go
on until there were enough requests; each prints what was found. Needs schemathesis.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serving import TOKEN, Server, make_models

CONFIG = '[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", "401", "404", "409", "422"]\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--examples", type=int, default=100, help="of each operation in a round")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    place, found, seed = Path(tempfile.mkdtemp()), 0, given.seed
    (place / "schemathesis.toml").write_text(CONFIG)
    models = make_models(place / "models")
    with Server(models[1], "--online", place / "runs", log=place / "log") as server:
        begin, before = time.monotonic(), server.memory()
        while (count := server.metric("retrodict_requests_total")) < given.requests:
            done = subprocess.run(
                [
                    Path(sys.executable).with_name("schemathesis"), "--config-file", place / "schemathesis.toml", "run",
                    f"http://127.0.0.1:{server.port}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}",
                    "--max-examples", str(given.examples), "--seed", str(seed), "--request-timeout", "60",
                    "--continue-on-failure",
                ],
                cwd=place, capture_output=True, text=True,
            )  # fmt: skip
            failures = re.search(r"=+ FAILURES =+(.*?)(?:=+ WARNINGS|=+ SUMMARY)", done.stdout, re.S)
            found += done.returncode != 0
            print(f"seed {seed}: exit {done.returncode}, memory {server.memory():.0f} MiB", flush=True)
            print(failures[1] if failures else "", end="", flush=True)
            if done.returncode > 1:
                print(done.stdout[-2000:], done.stderr[-2000:])
                return 2
            seed += 1
        kinds = re.findall(r'retrodict_requests_total\{.*status="(\d+)"\} ([\d.]+)', server.get("/metrics"))
        statuses = {kind: sum(int(float(n)) for k, n in kinds if k == kind) for kind in sorted({k for k, _ in kinds})}
        print(f"{count:,.0f} requests in {time.monotonic() - begin:.0f} s, statuses {statuses}")
        print(
            f"memory {before:.0f} MiB before, {server.memory():.0f} after; still ready: {server.get('/health/ready')}"
        )
    log = server.log.read_text()
    print(f"ended with {server.code}; {log.count('Traceback')} tracebacks in the log; {found} rounds with findings")
    return int(found > 0 or "Traceback" in log or server.code != 0)


if __name__ == "__main__":
    sys.exit(main())
