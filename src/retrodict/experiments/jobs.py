"""A job: one small, independent piece of an experiment, known by its name and done when its JSON file is there."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch

from retrodict._version import __version__
from retrodict.errors import DataNotice, EngineNotice
from retrodict.experiments.place import Place, plain, read_json, write_json

STAGES = ("data", "models", "smoothers", "measure")


@dataclass(frozen=True)
class Job:
    """Calls ``function`` ("module:name" in this package) with ``options`` once all it ``needs`` is there.

    ``alone`` jobs measure time: nothing else runs beside them. ``on_cpu`` jobs gain nothing from a GPU.
    ``extra`` options are not part of what the job is: a finished job stays finished when they change.
    """

    name: str
    stage: str
    function: str
    options: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    alone: bool = False
    on_cpu: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    def is_done(self, place: Place) -> bool:
        """Whether this very job has left its result."""
        file = place.job_file(self.name)
        return file.exists() and read_json(file)["options"] == plain(dict(self.options))


def run_job(job: Job, place: Place, device: str) -> float:
    """Do a job, write what it found and on what machine; returns the seconds it took."""
    module, name = job.function.split(":")
    function: Callable[..., dict[str, Any]] = getattr(import_module(f"retrodict.experiments.{module}"), name)
    where = "cpu" if job.on_cpu else device
    began = time.perf_counter()
    with warnings.catch_warnings():
        for notice in (DataNotice, EngineNotice):
            warnings.simplefilter("ignore", notice)
        result = function(place, where, **job.options, **job.extra)
    seconds = time.perf_counter() - began
    about = {"options": dict(job.options), "seconds": seconds, "machine": machine(where), "result": result}
    write_json(place.job_file(job.name), about)
    return seconds


def machine(device: str) -> dict[str, Any]:
    """What a job ran on."""
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "retrodict": __version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
