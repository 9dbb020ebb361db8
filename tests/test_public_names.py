"""What ``import retrodict`` promises, and what it does not load."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import retrodict as rd
import retrodict.datasets

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "api.md"


def test_every_promised_name_is_there():
    for name in rd.__all__:
        assert getattr(rd, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'impute_all'"):
        rd.impute_all  # noqa: B018


HEAVY = {"torch", "pytorch_lightning", "numba", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "numpy"}


def loaded_by(code: str) -> set[str]:
    """The libraries that a new process has loaded once it has run the code."""
    code = f"import sys\ntry:\n    {code}\nfinally:\n    print('\\nloaded', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import retrodict",
        "sys.argv = ['retrodict', '--help']; import retrodict.cli; retrodict.cli.main()",
        "sys.argv = ['retrodict', '--version']; import retrodict.cli; retrodict.cli.main()",
    ],
)
def test_looking_around_loads_no_heavy_library(code):
    loaded = loaded_by(code)
    assert "retrodict" in loaded
    assert not loaded & HEAVY


def test_events_are_read_without_torch(tmp_path):
    (tmp_path / "a.csv").write_text("stream,time,type\n1,0.5,a\n")
    loaded = loaded_by(f"import retrodict as rd; rd.read_events({str(tmp_path / 'a.csv')!r}, end=1.0)")
    assert "pyarrow" in loaded
    assert not loaded & {"torch", "pytorch_lightning", "numba"}


def test_every_name_of_the_package_is_listed():
    assert set(rd.__all__) <= set(dir(rd))


CONTRACTS = (rd.Model, rd.Missingness, rd.Proposal)  # what their methods return only engines and trainers hold
INSIDE = {"Particles", "Source"}  # of a step, which the next one changes; of a stream set: its table


def own_classes() -> dict[str, type]:
    """All classes of the package by name, compiled engines and what needs a GPU left out."""
    found = {}
    for module in pkgutil.walk_packages(rd.__path__, "retrodict."):
        if not re.search(r"\._native|\.gpu\.|\.cli|_fused|_graphs", module.name):
            here = vars(import_module(module.name)).values()
            found |= {x.__name__: x for x in here if inspect.isclass(x) and x.__module__.startswith("retrodict.")}
    return found


def said_to_be(thing: Any) -> Iterator[str]:
    """What a function returns, or what a class has: its fields, and what its methods return, as annotated."""
    if not inspect.isclass(thing):
        yield str(inspect.signature(thing).return_annotation)
    elif not issubclass(thing, CONTRACTS):
        yield from (str(kind) for name, kind in vars(thing).get("__annotations__", {}).items() if name[0] != "_")
        for name, member in vars(thing).items():
            code = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if name[0] != "_" and inspect.isfunction(code):
                yield str(inspect.signature(code).return_annotation)


def held() -> dict[str, type]:
    """The classes without a public name whose objects users hold: returned by what is public, or parts of such."""
    classes, found = own_classes(), {}
    to_look_at = [getattr(rd, name) for name in rd.__all__ if name != "__version__"]
    while to_look_at:
        words = {word for kind in said_to_be(to_look_at.pop()) for word in re.findall(r"\b[A-Z]\w+", kind)}
        new = words & classes.keys() - INSIDE - set(rd.__all__) - found.keys()
        found |= {name: classes[name] for name in new}
        to_look_at += [classes[name] for name in new]
    return found


HELD = held()


def test_what_users_hold_is_found():
    assert {"Check", "Decision", "Scores", "Coverage", "Splits", "RateEstimates", "Diagnostics"} <= HELD.keys()
    assert not {"Terms", "HawkesState", "Particles"} & HELD.keys()


@pytest.mark.skipif(not REFERENCE.exists(), reason="no docs beside the tests")
def test_the_reference_has_every_name_and_every_class_that_users_hold_once_and_no_other():
    listed = re.findall(r"^::: retrodict\.([\w.]+)$", REFERENCE.read_text(encoding="utf-8"), re.M)
    held = {f"{kind.__module__}.{name}".removeprefix("retrodict.") for name, kind in HELD.items()}
    data = {f"datasets.{name}" for name in retrodict.datasets.__all__ if name not in ("DATASETS", "find")}
    data |= {f"datasets.flights_demo.{name}" for name in ("sample_splits", "flights_smoother", "hidden_departures")}
    assert sorted(listed) == sorted(held | data | set(rd.__all__) - {"__version__"})


@pytest.mark.parametrize("name", [*(name for name in rd.__all__ if name != "__version__"), *sorted(HELD)])
def test_every_name_and_every_public_method_says_what_it_does(name):
    thing = HELD[name] if name in HELD else getattr(rd, name)
    own = (thing.__doc__ or "").strip()
    assert own
    assert not own.startswith(f"{name}(")  # as that of a dataclass without a docstring
    if inspect.isclass(thing) and not issubclass(thing, BaseException | Warning):
        members = {key: value for key, value in vars(thing).items() if not key.startswith("_")}
        code = {k: v for k, v in members.items() if callable(v) or isinstance(v, property | classmethod | staticmethod)}
        assert [key for key in code if not inspect.getdoc(getattr(thing, key))] == []
