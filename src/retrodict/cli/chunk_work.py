"""What is to be done with each chunk, by whom, and what only all chunks together settle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from retrodict.cli import common
from retrodict.cli.kept_check import calibration_by, repeat_verdict
from retrodict.jobs.folder import JobFolder
from retrodict.jobs.identity import describe_proposal
from retrodict.jobs.plan import Plan
from retrodict.jobs.work import Work
from retrodict.jobs.workers import Here, OnCluster, Workers
from retrodict.proposals.base import Proposal
from retrodict.smc.afford import Means, settle_events, settle_particles
from retrodict.smc.engines import place
from retrodict.smc.options import Options
from retrodict.smc.ray_pool import RayPool


class Choices(NamedTuple):
    """How to impute: which proposal (given the time zone), where and with which options it runs, at which cost, and
    whether probabilities are calibrated by the check that is kept."""

    proposal: Callable[[str | None], tuple[Proposal, Path]]
    missing: list[str]  # what goes missing and the smoother, as it was typed
    model: Path
    device: str
    smc: Options
    options: dict[str, Any]
    cost: float | None
    calibrate: bool
    cluster: str | None
    workers: int | None

    @property
    def away(self) -> bool:
        """Whether it runs on GPUs of a cluster, which this machine need not have."""
        return self.cluster is not None and self.device.startswith("cuda")


def workers_for(how: Choices) -> Workers:
    """This process, or a cluster."""
    if how.cluster is None:
        return Here()
    return OnCluster(RayPool(how.cluster, how.workers, how.device if how.away else "cpu"))


def prepare(
    plan: Plan, columns: common.Columns, how: Choices, form: str, job: JobFolder, workers: Workers, keeps_draws: bool
) -> tuple[Work, dict[str, Any]]:
    """The work to be done, and what it must have in common with an unfinished run."""
    proposal, folder = how.proposal(plan.axis.timezone)
    checked = repeat_verdict(proposal.model, folder, how.model)
    about = {"command": common.command_line(), "file": plan.parts.file.name, "check": checked}
    about |= calibration_by(checked, proposal) if how.calibrate else {}
    if not how.away:
        proposal = place(proposal, how.device if how.cluster is None else "cpu", how.options["engine"], how.smc)
    work = Work(job.path.resolve(), plan, proposal, how.options, form, columns["unit"], about, keeps_draws)
    with common.notes():
        means = workers.means(work, how.smc)
        settled = _settle(plan, proposal, how, means, job)
    identity: dict[str, Any] = describe_proposal(proposal, means.engine)
    identity |= {f"--{name}": value for name, value in how.options.items() if name != "engine"}
    identity |= {"--cost": how.cost, "--calibrate": how.calibrate, "the format of --output": form}
    identity |= {} if keeps_draws else {"--no-draws": True}
    return replace(work, options=how.options | {"engine": means.engine} | settled), identity


def _settle(plan: Plan, proposal: Proposal, how: Choices, means: Means, job: JobFolder) -> dict[str, int]:
    """Particles and their most events as for all streams at once; a run that goes on keeps what it began with."""
    found = job.read("settled.json")
    if found is None:
        sizes = plan.num_streams, plan.longest
        found = {
            "particles": settle_particles(how.options["particles"], means, proposal, *sizes, held=0),
            "max_events": settle_events(how.options["max_events"], plan.longest),
        }
        job.write("settled.json", found)
    return found
