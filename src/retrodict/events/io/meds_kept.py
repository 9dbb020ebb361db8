"""What is kept of a MEDS data set besides its rows: the shards' names and schemas, and the files of ``metadata``.

It travels in the schema of a table in memory or of a posterior folder, and so may come from anybody: a name that could
leave the folder is never written to, and a file grows no larger than one that is read.
"""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrodict.errors import DataError, show
from retrodict.events.io.request import Request
from retrodict.events.plain import parse_json, read_regular

KEY = b"retrodict.meds"
_MOST_METADATA = 64 << 20  # bytes of all files of metadata
_ODD = r"\x00-\x1f\x7f-\x9f\ud800-\udfff/\\:"  # control characters, half characters, and what parts paths or drives
SAFE = re.compile(rf"[^.{_ODD}][^{_ODD}]*(?:/[^.{_ODD}][^{_ODD}]*)*")  # a path within a folder, nothing hidden
_REMEDY = "read the data set again"


def pack_schema(schema: pa.Schema) -> str:
    """The schema of a shard as text."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def pack_files(folder: Path, request: Request) -> dict[str, str]:
    """The files of ``metadata``, to be written again."""
    files: dict[str, str] = {}
    left = _MOST_METADATA
    if folder.is_symlink():
        request.notices.append("metadata will not be written again: it is a link")
        return files
    for file in sorted(folder.rglob("*")) if folder.is_dir() else ():
        name = file.relative_to(folder).as_posix()
        if file.is_dir() or not SAFE.fullmatch(name):
            continue
        try:
            content = read_regular(file, left)
        except OSError as error:
            request.notices.append(f"metadata/{name} will not be written again: {error.strerror}")
            continue
        left -= len(content)
        files[name] = base64.b64encode(zlib.compress(content)).decode()
    return files


def unpack_file(name: str, content: str, left: int = _MOST_METADATA) -> bytes:
    """The bytes of a file of ``metadata``, at most ``left`` of them."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(base64.b64decode(content), max(left, 0) + 1)
    except (zlib.error, ValueError, TypeError) as error:
        raise DataError(f"what was kept of metadata/{show(name)} is damaged", remedy=_REMEDY) from error
    if len(found) > left:
        problem = f"the files of metadata expand to more than the {_MOST_METADATA:,} bytes that they may have"
        raise DataError(problem, remedy=_REMEDY)
    if not stream.eof:
        raise DataError(f"what was kept of metadata/{show(name)} is cut off", remedy=_REMEDY)
    return found


def write_files(files: dict[str, str], folder: Path) -> None:
    """Write the files of ``metadata`` into a data set's folder."""
    left = _MOST_METADATA
    for name, content in files.items():
        file = inside(folder, f"metadata/{name}")
        data = unpack_file(name, content, left)
        left -= len(data)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def inside(folder: Path, name: str) -> Path:
    """The file of this name below a folder; an error where it would lie elsewhere."""
    root, file = folder.resolve(), (folder / name).resolve()
    if not SAFE.fullmatch(name) or not file.is_relative_to(root):
        raise DataError(f"the file {show(name)} would lie outside of the folder", file=folder, remedy=_REMEDY)
    return file


def facts_of(table: pa.Table, rows: int) -> dict[str, Any]:
    """The shards that a table of ``rows`` rows was read from: name, rows and schema; one where there were none."""
    nothing: dict[str, Any] = {"root": "data", "shards": [("0.parquet", table.num_rows, pa.schema([]))], "files": {}}
    written = (table.schema.metadata or {}).get(KEY)
    if written is None:
        return nothing
    try:
        facts = parse_json(written)
        root, files = facts["root"], dict(facts["files"])
        shards = [
            (name, int(number), pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema))))
            for name, number, schema in facts["shards"]
        ]
        names = [name for name, _, _ in shards]
        if root not in ("", "data") or not all(SAFE.fullmatch(name) for name in [*names, *files]):
            return nothing
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError, pa.ArrowException) as error:
        raise DataError("what was kept of the MEDS shards is damaged", remedy=_REMEDY) from error
    numbers = [number for _, number, _ in shards]
    fits = len(numbers) == 1 or (min(numbers, default=-1) >= 0 and sum(numbers) == rows)
    if not fits or len({*names}) < len(names):  # the rows are no longer those of the shards
        return nothing
    return {"root": root, "shards": shards, "files": files}
