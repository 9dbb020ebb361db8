"""What is to be done with each chunk, by whom, and what only all chunks together settle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from retrodict.cli import common
from retrodict.cli.kept_check import calibration_by, find_check
from retrodict.jobs.complete import is_complete, made_from
from retrodict.jobs.folder import JobFolder
from retrodict.jobs.identity import Input, describe_proposal, digest_of_json
from retrodict.jobs.plan import Plan
from retrodict.jobs.work import Work
from retrodict.jobs.workers import Here, OnCluster, Workers
from retrodict.proposals.base import Proposal
from retrodict.smc.afford import Means, settle_events, settle_particles
from retrodict.smc.engines import choose, place
from retrodict.smc.options import Options
from retrodict.smc.ray_pool import RayPool

ZONE = "the time zone"  # of the input, by which it was read what goes missing


class Choices(NamedTuple):
    """How to impute: which proposal (given the time zone), where and with which options it runs, at which cost, and
    whether probabilities are calibrated by the check that is kept."""

    proposal: Callable[[str | None], tuple[Proposal, Path]]
    check: Callable[[], None]  # refuses what is wrong with it whatever the streams are
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

    def placed(self, proposal: Proposal) -> Proposal:
        """The proposal where it runs on this machine, or where workers take it from."""
        if self.away:
            return proposal
        return place(proposal, self.device if self.cluster is None else "cpu", self.options["engine"], self.smc)


def workers_for(how: Choices) -> Workers:
    """This process, or a cluster."""
    if how.cluster is None:
        return Here()
    return OnCluster(RayPool(how.cluster, how.workers, how.device if how.away else "cpu"))


def prepare(
    plan: Plan, columns: common.Columns, how: Choices, form: str, job: JobFolder, workers: Workers, keeps_draws: bool
) -> tuple[Work, dict[str, Any]]:
    """The work to be done, and what makes it this run and no other."""
    proposal, folder = how.proposal(plan.axis.timezone)
    checked = find_check(proposal.model, folder, how.model)
    about = {"command": common.command_line(), "file": plan.parts.file.name, "check": checked}
    about |= calibration_by(checked, proposal) if how.calibrate else {}
    proposal = how.placed(proposal)
    work = Work(job.path.resolve(), plan, proposal, how.options, form, columns["unit"], about, job.hold(), keeps_draws)
    with common.notes():
        means = workers.means(work, how.smc)
        settled = _settle(plan, proposal, how, means, job)
    identity = _identity(proposal, means.engine, how, checked)
    return replace(work, options=how.options | {"engine": means.engine} | settled), identity


def was_made_so(output: Path, source: Input, how: Choices) -> bool:
    """Whether the output is a complete folder of parts that this very run made; that of another one is an error."""
    found = made_from(output)
    if found is None:
        return False
    zone, engine = found.get(ZONE), str(found.get("the engine"))
    proposal, folder = how.proposal(None if zone is None else str(zone))
    proposal = how.placed(proposal)
    if not how.away:
        engine = choose(how.options["engine"], proposal, how.smc).name
    checked = find_check(proposal.model, folder, how.model)
    return is_complete(output, source.identity | {ZONE: zone} | _identity(proposal, engine, how, checked))


def _identity(proposal: Proposal, engine: str, how: Choices, checked: dict[str, Any] | None) -> dict[str, Any]:
    """What a run must have in common with another one beside its input."""
    identity: dict[str, Any] = describe_proposal(proposal, engine)
    identity |= {f"--{name}": value for name, value in how.options.items() if name != "engine"}
    identity |= {"--cost": how.cost, "--calibrate": how.calibrate}
    return identity | ({"the check that --calibrate goes by": digest_of_json(checked)} if how.calibrate else {})


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
