"""A real server: it starts, answers, puts up with bad clients, and stops in good order."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from retrodict.cli import app
from retrodict.errors import RetrodictError
from retrodict.serve.run import open_socket
from tests.serve.serving import STREAMS

ASKED = json.dumps({"streams": STREAMS, "missing": "in=0.5", "particles": 50}).encode()


class Process:
    """``retrodict serve`` in a process of its own."""

    def __init__(self, *words: str | Path, **environment: str) -> None:
        command = [sys.executable, "-m", "retrodict", "serve", *map(str, words), "--port", "0"]
        own = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=own)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"on http://127\.0\.0\.1:(\d+)", line)
        assert found, line + self.process.stderr.read()
        self.port = int(found[1])

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        own = {"content-type": "application/json", **headers}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, own)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def end(self) -> str:
        """What it said; it is killed if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        self.process.stderr.close()
        self.process.wait()
        return said


@pytest.fixture(scope="module")
def server(folders: list[Path]) -> Iterator[Process]:
    process = Process(folders[0], "--patience", "1", "--max-bytes", "40000000")
    yield process
    process.stop()
    assert "Traceback" not in process.end()


def test_start_ask_and_stop_when_what_runs_is_done(folders, tmp_path):
    process = Process(folders[0], "--online", tmp_path / "runs", RETRODICT_TOKEN="correct-horse-battery")
    try:
        assert process.ask("/v1/models")[0] == 401
        token = {"authorization": "Bearer correct-horse-battery"}
        assert process.ask("/v1/impute", ASKED, **token)[0] == 200
        long = json.dumps({"streams": [{**STREAMS[0], "id": i} for i in range(80)], "missing": "in=0.5"}).encode()
        found: list[Any] = []
        asking = threading.Thread(target=lambda: found.append(process.ask("/v1/impute", long, **token)))
        asking.start()
        time.sleep(0.2)
        assert process.stop() == 0
        asking.join(60)
        assert found[0][0] == 200
        assert len(found[0][1]["streams"]) == 80
    finally:
        said = process.end()
    assert said.splitlines()[-1] == "stopped"
    assert "Traceback" not in said


def test_headers_that_come_too_slowly_end_the_connection(server):
    begin = time.monotonic()
    with server.connect() as slow:
        slow.sendall(b"POST /v1/impute HTTP/1.1\r\nHost: x\r\n")
        assert slow.recv(100) == b""
    with server.connect() as silent:
        assert silent.recv(100) == b""
    assert 1.5 < time.monotonic() - begin < 10


def test_headers_that_drip_are_not_waited_for(server):
    begin = time.monotonic()
    with server.connect() as slow, pytest.raises(OSError):  # noqa: PT012
        slow.sendall(b"GET /health/live HTTP/1.1\r\n")
        while time.monotonic() - begin < 20:
            slow.sendall(b"X-A: b\r\n")
            time.sleep(0.2)
            if slow.recv(1, socket.MSG_DONTWAIT) == b"":
                raise OSError
    assert time.monotonic() - begin < 10


def test_a_body_that_comes_too_slowly_is_refused(server):
    with server.connect() as slow:
        slow.sendall(
            b"POST /v1/impute HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


def test_an_answer_that_is_not_taken_ends_the_connection(server):
    asked = json.dumps({"streams": [{**STREAMS[0], "note": "x" * 20_000_000}], "missing": "in=0.5", "particles": 20})
    head = "POST /v1/impute HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with server.connect() as idle:
        idle.sendall(f"{head}Content-Length: {len(asked)}\r\n\r\n{asked}".encode())
        assert idle.recv(15) == b"HTTP/1.1 200 OK"
        time.sleep(3)
        taken = 15
        with contextlib.suppress(ConnectionError):
            while piece := idle.recv(1 << 20):
                taken += len(piece)
    assert taken < 20_000_000


def test_clients_that_leave_do_no_harm(server):
    head = (
        f"POST /v1/impute HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(ASKED)}\r\n\r\n"
    )
    for body in (b"", ASKED[:20], ASKED):
        for _ in range(5):
            with server.connect() as gone:
                gone.sendall(head.encode() + body)
    for rubbish in (
        b"\0\1\2",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 100_000,
        b"GET /\xff HTTP/1.1\r\n\r\n",
    ):
        with server.connect() as client:
            client.sendall(rubbish)
    assert server.ask("/v1/impute", ASKED)[0] == 200


def test_no_part_of_an_answer_waits_for_the_one_before_to_be_acknowledged():
    with open_socket("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_what_cannot_be_served_is_said(folders, tmp_path, monkeypatch):
    def why(*words: str | Path) -> str:
        with pytest.raises(RetrodictError) as error:
            CliRunner().invoke(app, ["serve", *map(str, words)], catch_exceptions=False)
        return str(error.value)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen on 127.0.0.1, port {port}" in why(folders[0], "--port", port)
    assert "nothing" in why(tmp_path / "nothing")
    assert "two folders are called 'doors'" in why(folders[0], folders[0])
    for wrong in ("short", "two words of some length", "é" * 20, "x" * 5000):
        (tmp_path / "token").write_text(wrong)
        assert wrong not in why(folders[0], "--token-file", tmp_path / "token")
    monkeypatch.setenv("RETRODICT_TOKEN", "short")
    assert "at least 16 plain characters" in why(folders[0])
