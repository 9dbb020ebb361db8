"""What the benchmarks of the server share: models, a server in a process of its own, its memory, and a light client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import retrodict as rd

TOKEN = "a-token-for-benchmarks"


def doors() -> rd.Hawkes:
    """A Hawkes process of two types."""
    model = rd.Hawkes([0.4, 0.01], [[0.0, 0.9], [0.0, 0.0]], 1.5)
    model.types = ("in", "out")
    return model


def make_models(place: Path) -> list[Path]:
    """Folders of two models: the flights that come with the package, with their smoother, and a Hawkes process."""
    with as_file(files("retrodict.datasets") / "flights_smoother") as folder:
        shutil.copytree(folder / "model", place / "flights")
        shutil.copytree(folder, place / "flights" / "smoother")
    doors().save(place / "doors")
    return [place / "flights", place / "doors"]


class Server:
    """``retrodict serve`` in a process of its own, in a ``with`` block."""

    def __init__(self, *words: str | Path, log: Path) -> None:
        self.log = log
        command = [sys.executable, "-m", "retrodict", "serve", *map(str, words), "--port", "0"]
        own = {**os.environ, "OMP_NUM_THREADS": "1", "RETRODICT_TOKEN": TOKEN}
        with log.open("w") as file:
            self.process = subprocess.Popen(command, stderr=file, env=own)

    def __enter__(self) -> Server:
        while not (found := re.search(r":(\d+)$", self.log.read_text().split("\n")[0])):
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        self.port = int(found[1])
        while True:
            try:
                self.get("/health/ready")
                return self
            except OSError:
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.code = self.process.wait(60)

    def get(self, path: str) -> str:
        """The answer to GET."""
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def metric(self, name: str) -> float:
        """The sum of a counter over its labels."""
        lines = [line for line in self.get("/metrics").splitlines() if re.match(rf"{name}[ {{]", line)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def cpu(self) -> float:
        """Seconds of processor time that the process has had."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """MiB of memory that the process has."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


def message(path: str, asked: Any) -> bytes:
    """A POST with its headers."""
    body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None

    async def connect(self) -> None:
        """A new connection, if there is none."""
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)

    async def ask(self, sent: bytes) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        await self.connect()
        assert self.reader is not None
        self.writer.write(sent)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.I)
        body = await self.reader.readexactly(int(length[1])) if length else b""
        if b"connection: close" in head.lower():
            self.leave()
        return int(head[9:12]), body

    def leave(self) -> None:
        """End the connection at once, whatever is under way."""
        if self.reader is not None:
            self.writer.transport.abort()
            self.reader = None
