"""Online runs are there again whenever the server was killed, and a run that is damaged harms no other."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serve.serving import BEGIN, FEEDS, AskRequest, OnlineRequest, feed, kept, serve

MORE = [{"events": {"a": [[7.0 + i, "out"]], "b": [[7.5 + i, "in"]]}} for i in range(3)]
ASKED = {"questions": [{"type": "in"}], "ahead": 1.0}


def ask(client: Any) -> bytes:
    answer = client.post("/v1/online/run/ask", json=ASKED)
    assert answer.status_code == 200, answer.text
    return bytes(answer.content)


class Killed:
    """What a server that is killed leaves behind: copies of a folder from before every change in it."""

    def __init__(self, folder: Path, copies: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.copies, self.count = folder, copies, 0
        for name in ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync"):
            patch.setattr(os, name, self.watched(getattr(os, name)))

    def watched(self, do: Callable[..., Any]) -> Callable[..., Any]:
        def copy_and_do(*given: Any, **more: Any) -> Any:
            self.copy()
            return do(*given, **more)

        return copy_and_do

    def copy(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self, "copy", lambda: None)  # of what is done to copy
            shutil.copytree(self.folder, self.copies / str(self.count))
        self.count += 1

    def all(self) -> list[Path]:
        return [self.copies / str(i) for i in range(self.count)]


def test_a_run_goes_on_after_a_restart(models, tmp_path):
    with serve(models, online=tmp_path / "kept") as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, FEEDS[0])
        client.put("/v1/online/gone", json=BEGIN)
        client.delete("/v1/online/gone")
        assert client.app.state.server.runs.num_streams == 2
        size = client.app.state.server.runs.num_bytes
    with serve(models, online=tmp_path / "kept") as client:  # nothing was saved at the end: all of it was before
        assert client.get("/v1/online").json() == {"runs": ["run"]}
        again = client.app.state.server.runs
        assert (again.num_streams, again.num_bytes) == (2, size)
        feed(client, FEEDS[1])
        answer = ask(client)
    with serve(models) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, *FEEDS)
        assert ask(client) == answer


def test_a_server_that_is_killed_leaves_what_was_answered(models, tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "_LEAST", 4)  # so that all of the run is written now and then
    (tmp_path / "kept").mkdir()
    answers, first = [], []
    with serve(models, online=tmp_path / "kept") as client, monkeypatch.context() as patch:
        killed = Killed(tmp_path / "kept", tmp_path, patch)
        client.put("/v1/online/run", json=BEGIN)
        for each in [*FEEDS, *MORE]:
            first.append(killed.count)  # copies from here on have all that was answered by now
            feed(client, each)
            answers.append(ask(client))
        first.append(killed.count)
        killed.copy()
        deleted = killed.count
        client.delete("/v1/online/run")
    assert deleted < killed.count
    states = set()
    for number, copy in enumerate(killed.all()):
        runs = serve(models, online=copy).app.state.server.runs
        assert runs.num_unusable == 0
        done = sum(number >= count for count in first[1:])  # feeds that had been answered
        if runs.num_streams:
            states |= {path.name for path in (copy / "run").iterdir()}
            answer = runs.ask("run", AskRequest.model_validate(ASKED))
            assert answer in answers[max(0, done - 1) : done + 1]  # the next feed may be there already
        else:
            assert done == 0 or number >= deleted
        if not runs.names:
            runs.create("run", OnlineRequest.model_validate(BEGIN))
    assert {"0", "1", "2"} <= states


def test_a_feed_writes_what_it_brings_and_not_the_run(models, tmp_path):
    names = [f"door-{i}" for i in range(50)]
    with serve(models, online=tmp_path) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, {"events": {name: [] for name in names}, "start": 0.0, "until": 1.0})
        before = sizes(tmp_path)
        feed(client, {"events": {"door-7": [[2.0, "out"]]}})
        after = sizes(tmp_path)
        assert [name for name in after if after[name] != before.get(name)] == ["run/0/since.jsonl"]
        assert after["run/0/since.jsonl"] - before["run/0/since.jsonl"] < 200
        for time in range(3, 20):  # what is written of feeds does not grow for ever
            feed(client, {"until": float(time)})
        assert sum(size for name, size in sizes(tmp_path).items() if name.endswith("since.jsonl")) < 1000


@pytest.mark.parametrize(("limit", "value"), [("_LEAST", 10), ("_MOST", 1000)])
def test_feeds_that_bring_nothing_do_not_pile_up(models, tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(kept, limit, value)
    with serve(models, online=tmp_path) as client:
        client.put("/v1/online/run", json=BEGIN)
        for _ in range(40):
            feed(client, {"until": 1.0})
    assert sum(size for name, size in sizes(tmp_path).items() if name.endswith("since.jsonl")) < 1200


def sizes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def test_what_a_full_disk_kept_from_being_written_was_not_done(models, tmp_path, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def refused(send: Callable[..., Any], *given: Any, **more: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            answer = send(*given, **more)
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "storage"
        assert str(tmp_path) not in answer.text

    with serve(models, online=tmp_path) as client:
        refused(client.put, "/v1/online/run", json=BEGIN)
        assert client.get("/v1/online").json() == {"runs": []}
        assert client.put("/v1/online/run", json=BEGIN).status_code == 201
        before = feed(client, FEEDS[0])
        refused(client.post, "/v1/online/run/feed", json=FEEDS[1])
        assert client.get("/v1/online/run").json() == before
        feed(client, FEEDS[1])
        refused(client.post, "/v1/online/run/close", json={"streams": ["b"]})
        answer = ask(client)
    with serve(models, online=tmp_path) as client:
        assert ask(client) == answer


def test_a_run_that_cannot_be_gone_on_with_harms_no_other(models, tmp_path, caplog):
    names = ("mechanism", "empty", "lines", "run")
    with serve(models, online=tmp_path) as client:
        for name in names:
            client.put(f"/v1/online/{name}", json=BEGIN)
            for each in FEEDS:
                client.post(f"/v1/online/{name}/feed", json=each)
        answer = ask(client)
    asked = tmp_path / "mechanism" / "asked.json"
    asked.write_text(asked.read_text().replace("in=0.5", "in=0.4"))
    shutil.rmtree(tmp_path / "empty" / "0")
    lines = tmp_path / "lines" / "0" / "since.jsonl"
    lines.write_bytes(lines.read_bytes().replace(b"2.5", b"2.6"))
    (tmp_path / "other").mkdir()
    with serve(models, online=tmp_path) as client:
        assert sorted(client.get("/v1/online").json()["runs"]) == sorted(names)
        assert ask(client) == answer
        assert client.app.state.server.runs.num_unusable == 3
        for name, why in (("mechanism", "another mechanism"), ("empty", "no state"), ("lines", "damaged")):
            assert any(name in line and why in line for line in caplog.messages)
            refused = client.get(f"/v1/online/{name}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (500, "storage")
            assert client.post(f"/v1/online/{name}/feed", json=FEEDS[0]).status_code == 500
            assert client.put(f"/v1/online/{name}", json=BEGIN).status_code == 409
            assert client.delete(f"/v1/online/{name}").status_code == 204
            assert client.put(f"/v1/online/{name}", json=BEGIN).status_code == 201
    assert any("other is no online run" in line for line in caplog.messages)


def test_half_a_line_was_never_answered(models, tmp_path):
    with serve(models, online=tmp_path) as client:
        client.put("/v1/online/run", json=BEGIN)
        feed(client, FEEDS[0])
    with (tmp_path / "run" / "0" / "since.jsonl").open("ab") as file:
        file.write(b"0123456789abcdef {")
    with serve(models, online=tmp_path) as client:
        feed(client, FEEDS[1])
        answer = ask(client)
    with serve(models, online=tmp_path) as client:
        assert ask(client) == answer
