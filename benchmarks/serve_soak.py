"""Many clients for minutes, some of which leave at any moment: no wrong answer, no error, and memory stays flat.

    python benchmarks/serve_soak.py --clients 64 --seconds 300

Most requests impute or ask; one in five is given up at a random moment, while it is sent or while it waits; one in ten
goes to an online run. Every answer is compared, byte by byte, with that of the same request to an idle server. Memory
that still grows when the same requests come again and again, one at a time, would be a leak.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from serving import Client, Server, make_models, message

from serve import as_request, flights, through_doors


def questions() -> list[bytes]:
    """Requests of several kinds, with few particles."""
    found = []
    for i in range(20):
        found.append(message("/v1/impute", as_request(flights(), i, {"model": "flights", "particles": 50})))
        asked = as_request(through_doors(), i, {"model": "doors", "missing": "in=0.5", "particles": 50})
        found.append(message("/v1/impute", asked))
        asked.pop("cost")
        found.append(message("/v1/query", {**asked, "questions": [{"type": "in", "start": 1, "end": 9}], "seed": i}))
    return found


class Soak:
    """Clients, what they saw, and how much memory the server had."""

    def __init__(self, server: Server, requests: list[bytes], expected: list[bytes], seconds: float) -> None:
        self.server, self.requests, self.expected = server, requests, expected
        self.until = time.monotonic() + seconds
        self.seen: collections.Counter[str] = collections.Counter()
        self.memory: list[tuple[float, float]] = []

    async def run(self, clients: int) -> None:
        await asyncio.gather(self.watch(), *(self.one(number) for number in range(clients)))

    async def watch(self) -> None:
        """The server's memory, every second."""
        while time.monotonic() < self.until:
            self.memory.append((time.monotonic(), self.server.memory()))
            await asyncio.sleep(1)

    async def one(self, number: int) -> None:
        """One client after another on the same seat."""
        chance, client, step = random.Random(number), Client(self.server.port), 0
        while time.monotonic() < self.until:
            try:
                which = chance.randrange(len(self.requests))
                what = chance.random()
                if what < 0.2:
                    await self.leave(client, chance, self.requests[which])
                elif what < 0.3:
                    step = await self.online(client, number, step)
                else:
                    status, body = await client.ask(self.requests[which])
                    right = body == self.expected[which]
                    self.seen[str(status) if status != 200 else "200" if right else "200 with other bytes"] += 1
            except (OSError, asyncio.IncompleteReadError) as error:
                self.seen[f"connection: {type(error).__name__}"] += 1
                client.leave()
        client.leave()

    async def leave(self, client: Client, chance: random.Random, sent: bytes) -> None:
        """Give up while sending, or a little later."""
        await client.connect()
        client.writer.write(sent[: chance.randrange(1, len(sent) + 1)] if chance.random() < 0.5 else sent)
        await asyncio.sleep(chance.choice([0, 0.01, 0.1, 0.5]))
        client.leave()
        self.seen["left"] += 1

    async def online(self, client: Client, number: int, step: int) -> int:
        """Feed an event to a stream of one's own, and ask about it."""
        name, time_ = f"seat-{number}", 1.0 + step
        more: dict[str, Any] = {"start": {name: 0.0}} if not step else {}
        feed = message("/v1/online/soak/feed", {"events": {name: [[time_, "out"]]}, **more})
        status, body = await client.ask(feed)
        self.seen[f"feed {status}"] += 1
        assert status == 200, body
        ask = {"streams": [name], "questions": [{"type": "in"}]}
        self.seen[f"ask {(await client.ask(message('/v1/online/soak/ask', ask)))[0]}"] += 1
        return step + 1


async def alone(port: int, requests: list[bytes]) -> list[bytes]:
    """Answers of an idle server."""
    client, answers = Client(port), []
    for sent in requests:
        status, body = await client.ask(sent)
        assert status == 200, body
        answers.append(body)
    client.leave()
    return answers


async def begin_online(port: int) -> None:
    """Create the online run that all clients feed."""
    client = Client(port)
    begin = {"lag": 5.0, "missing": "in=0.5", "particles": 20, "model": "doors"}
    status, body = await client.ask(message("/v1/online/soak", begin).replace(b"POST", b"PUT", 1))
    assert status == 201, body
    client.leave()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=300.0)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp())
    requests = questions()
    with Server(*make_models(place), log=place / "log") as server:
        expected = asyncio.run(alone(server.port, requests))
        asyncio.run(begin_online(server.port))
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before, {server.memory():.0f} MiB", flush=True)
        soak = Soak(server, requests, expected, given.seconds)
        asyncio.run(soak.run(given.clients))
        begin = soak.memory[0][0]
        for share in (0.1, 0.25, 0.5, 0.75, 1.0):
            index = min(len(soak.memory) - 1, int(share * len(soak.memory)))
            print(f"after {soak.memory[index][0] - begin:.0f} s: {soak.memory[index][1]:.0f} MiB")
        half = np.array(soak.memory[len(soak.memory) // 2 :])
        slope = np.polyfit(half[:, 0], half[:, 1], 1)[0] * 60
        print(f"in the second half: {half[:, 1].min():.0f} to {half[:, 1].max():.0f} MiB, {slope:+.2f} MiB a minute")
        print(json.dumps(dict(sorted(soak.seen.items()))))
        answered = asyncio.run(alone(server.port, requests))
        print("afterwards the same answers:", answered == expected)
        rounds = [(asyncio.run(alone(server.port, 5 * requests)), server.memory())[1] for _ in range(5)]
        sizes = ", ".join(f"{size:.1f}" for size in rounds)
        print(f"after rounds of the same {5 * len(requests)} requests, one at a time: {sizes} MiB")
        print("waiting", server.metric("retrodict_queue_length"), "held", server.metric("retrodict_held_bytes"))
    print(f"ended with {server.code}; log: {len(server.log.read_text().splitlines()) - 2} further lines")
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
