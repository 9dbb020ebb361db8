"""Models that are served, and a client of the server."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

import retrodict as rd


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two model folders: doors without a smoother, and flights with one for hidden departures."""
    from tests.serve.serving import doors

    place = tmp_path_factory.mktemp("models")
    doors().save(place / "doors")
    with as_file(files("retrodict.datasets") / "flights_smoother") as folder:
        shutil.copytree(folder / "model", place / "flights")
        shutil.copytree(folder, place / "flights" / "smoother")
    return [place / "doors", place / "flights"]


@pytest.fixture(scope="session")
def models(folders: list[Path]) -> Any:
    from tests.serve.serving import Models

    return Models(folders)


@pytest.fixture(scope="session")
def client(models: Any) -> Iterator[Any]:
    from tests.serve.serving import serve

    with serve(models) as client:
        for _ in range(600):
            if client.get("/health/ready").status_code == 200:
                break
            time.sleep(0.1)
        yield client


@pytest.fixture(scope="session")
def filtering() -> rd.Proposal:
    from tests.serve.serving import doors

    return rd.Filtering(doors(), rd.ByType({"in": 0.5}))
