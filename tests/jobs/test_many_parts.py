"""There may be more parts than a process may have files open."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retrodict.jobs import assemble
from retrodict.jobs.work import ANCHOR

PARTS, ROWS = 400, 12


def test_more_parts_than_files_may_be_open_are_merged(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource", reason="limits of a process as POSIX has them")
    monkeypatch.setattr(assemble, "_WINDOW", 1000)  # so that every part is come back to
    rows = np.random.default_rng(0).permutation(PARTS * ROWS).reshape(PARTS, ROWS)
    paths = [tmp_path / f"{number:05d}.arrow" for number in range(PARTS)]
    for path, own in zip(paths, rows, strict=True):
        table = pa.table({"row": np.sort(own), ANCHOR: np.sort(own)})
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + PARTS // 2, hard))
    try:
        assemble.assemble(paths, "parquet", False, tmp_path / "out.parquet", lambda done: None)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert pq.read_table(tmp_path / "out.parquet")["row"].to_pylist() == [*range(PARTS * ROWS)]
