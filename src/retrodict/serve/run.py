"""The process: a socket, uvicorn, clients that are too slow, and an end in good order."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from retrodict.errors import ModelError
from retrodict.serve.limits import ServeLimits

_CONNECTIONS = 1_000  # beyond, 503
_LEAST_TAKEN = 64 << 10  # bytes that a client has to take of an answer while the server's patience lasts


class Patient(H11Protocol):
    """HTTP that ends a connection whose next request does not arrive in time, or whose answer is not taken.

    uvicorn would wait for ever.
    """

    patience = 10.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """From here on, time is counted."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """What arrives may end the wait, or begin the next one."""
        super().data_received(data)
        if self._is_idle():
            self._wait()
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to wait for."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The answer lies in a buffer, from which the client has to take it."""
        super().on_response_complete()
        if left := self.transport.get_write_buffer_size():
            self.loop.call_later(self.patience, self._look_after, left)

    def _look_after(self, before: int) -> None:
        """Go on waiting as long as the client takes something."""
        left = self.transport.get_write_buffer_size()
        if left and before - left < _LEAST_TAKEN:
            self.transport.abort()
        elif left:
            self.loop.call_later(self.patience, self._look_after, left)

    def _is_idle(self) -> bool:
        """Whether no request is in hand."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.patience, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    """Ends with 0 when it was told to stop: first no new connections, then what runs, then the rest."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], object]) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM stop the server; they are not raised again afterwards."""

        def stop(number: int, frame: object) -> None:
            self._stopping()
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.should_exit = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; says in words why there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"cannot listen on {host}, port {port}: {why}. Give another --host or --port.") from None
    # Connections take this over; asyncio sets it for sockets of its own alone. Without it the body of an answer waits
    # some 40 ms until the client has acknowledged the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def run(app: FastAPI, listening: socket.socket, limits: ServeLimits, access_log: bool = False) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    protocol = type("Protocol", (Patient,), {"patience": limits.patience})
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_level="info" if access_log else "warning",
        access_log=access_log,
        server_header=False,
        timeout_keep_alive=max(1, int(limits.patience)),
        timeout_graceful_shutdown=max(1, int(limits.grace)),
        limit_concurrency=_CONNECTIONS,
        h11_max_incomplete_event_size=64 << 10,
    )

    _Server(config, app.state.server.stop).run(sockets=[listening])
