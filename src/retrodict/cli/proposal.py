"""Which proposal ``retrodict impute`` uses, and why: the smoother for what goes missing, else the one for anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from retrodict.cli import common
from retrodict.errors import ModelError
from retrodict.events.io.date_forms import FIRST
from retrodict.missingness.base import Missingness
from retrodict.missingness.spec import example, parse_missing
from retrodict.missingness.words import in_words
from retrodict.models.base import Model
from retrodict.models.model_folder import load_model
from retrodict.proposals import Filtering, Proposal
from retrodict.proposals.proposal_folder import load_proposal
from retrodict.proposals.smoothers import KeptSmoother, smoothers_of, type_names

_MISSING = "Missing rates or a YAML file; by default what the only smoother was trained for."
Missing = Annotated[list[str] | None, typer.Option("--missing", "-m", help=_MISSING)]
Name = Annotated[str | None, typer.Option(help="Name of the smoother to use, where there are several.")]
Blind = Annotated[bool, typer.Option("--filtering", help="Do not look ahead, even if there is a smoother.")]


def choose_proposal(
    folder: Path,
    missing: Sequence[str] | None,
    name: str | None,
    filtering: bool,
    zone: str | None = None,
    dates: str | None = None,
) -> tuple[Proposal, Path]:
    """The smoother in a model's folder that is for what goes missing, or the one of that name; else filtering.

    Also the folder it is from, which is the model's for filtering. ``zone`` is that of the streams, ``dates`` the form
    of dates in files.
    """
    model = load_model(folder)
    wanted = parse_missing(missing, type_names(model), model.time_unit, zone, dates) if missing else None
    if filtering and wanted is not None and name is None:
        return _filter(model, wanted, "as --filtering asks"), folder
    smoothers = smoothers_of(folder, model)
    kept = _named(smoothers, name, folder) if name is not None else _fitting(smoothers, wanted, folder, model)
    if kept is None:
        assert wanted is not None
        return _filter(model, wanted, _why_none(smoothers, wanted, folder)), folder
    assert kept.missing is not None
    if kept.is_for_any and wanted is None:
        raise ModelError(_say_what(kept, model))
    if filtering:
        return _filter(model, wanted or kept.missing, "as --filtering asks"), folder
    reason = f"trained for {in_words(kept.missing)}"
    if wanted is not None and not kept.is_for(wanted):
        reason += f" and used for {in_words(wanted)}"
        if not kept.is_for_any:
            reason += ", as --smoother asks; the weights of the particles allow for that"
    _say(f"the smoother in {kept.path}, {reason}")
    return load_proposal(kept.path, missing=wanted), kept.path


def check_choice(folder: Path, missing: Sequence[str] | None, name: str | None, dates: str | None = None) -> None:
    """Refuse a model, rates or a smoother's name that are wrong whatever the streams are, before they are read."""
    model = load_model(folder)
    if missing:
        parse_missing(missing, type_names(model), model.time_unit, dates=dates)
    smoothers = smoothers_of(folder, model)
    if name is not None:
        _named(smoothers, name, folder)
    elif not missing:
        _fitting(smoothers, None, folder, model)


def say_other_dates(model: Model, dates: str | None) -> None:
    """Say that the table is read with days first where the model's was read with months first, or the reverse."""
    before = model.training_record.get("dates")
    if {before, dates} == set(FIRST):
        common.note(
            f"this table is read with --dates {dates}, but the model was fitted to one that was read with --dates "
            f"{before}: if both are written alike, one of the two was read wrongly"
        )


def _filter(model: Model, missing: Missingness, why: str) -> Proposal:
    _say(f"filtering for {in_words(missing)}, which sees only the past: {why}")
    return Filtering(model, missing)


def _say(text: str) -> None:
    common.err.print(f"proposal: {text}", soft_wrap=True, highlight=False, markup=False)


def _named(smoothers: Sequence[KeptSmoother], name: str, folder: Path) -> KeptSmoother:
    """The smoother of this name, if it can be used."""
    found = next((kept for kept in smoothers if kept.name == name), None)
    if found is None:
        there = ", ".join(kept.name for kept in smoothers) or "none"
        raise ModelError(f"{folder} has no smoother {name!r}; there is {there}. Name one of these, or leave it out.")
    if found.problem is not None:
        raise ModelError(f"the smoother in {found.path} cannot be used: {found.problem.rstrip('.')}.")
    return found


def _fitting(
    smoothers: Sequence[KeptSmoother], wanted: Missingness | None, folder: Path, model: Model
) -> KeptSmoother | None:
    """The one smoother that is for the mechanism, or the only one there is, or one for any; None if there is none."""
    good = [kept for kept in smoothers if kept.problem is None]
    fits = [kept for kept in good if not kept.is_for_any and (wanted is None or kept.is_for(wanted))]
    fits = fits or [kept for kept in good if kept.is_for_any][:1]
    if len(fits) > 1:
        lists = "; ".join(f"--smoother {kept.name} (for {in_words(kept.missing)})" for kept in fits if kept.missing)
        raise ModelError(f"{folder} has {len(fits)} smoothers that could be meant. Choose one: {lists}.")
    if fits or wanted is not None:
        return fits[0] if fits else None
    if smoothers:
        reasons = "; ".join(f"{kept.path}: {kept.problem}" for kept in smoothers)
        remedy = "Give --missing to do without a smoother."
        raise ModelError(f"no smoother in {folder} can be used. {reasons.rstrip('.')}. {remedy}")
    raise ModelError(
        f"{folder} has no smoother, so it is not known which events go missing. Give --missing, such as "
        f"--missing {example(type_names(model))}, or train one with 'retrodict smoother'."
    )


def _say_what(kept: KeptSmoother, model: Model) -> str:
    return (
        f"the smoother in {kept.path} is for whatever goes missing: say what does with --missing, such as --missing "
        f"{example(type_names(model))}."
    )


def _why_none(smoothers: Sequence[KeptSmoother], wanted: Missingness, folder: Path) -> str:
    """Why no smoother is used, and what could be done."""
    for kept in smoothers:
        if kept.is_for(wanted):
            return f"the smoother in {kept.path} is for these, but {kept.problem}"
        if kept.is_for_any:
            return f"the smoother in {kept.path} is for whatever goes missing, but {kept.problem}"
    good = [kept for kept in smoothers if kept.problem is None]
    there = [f"--smoother {kept.name} (for {in_words(kept.missing)})" for kept in good if kept.missing is not None]
    other = f", or use one for others: {', '.join(there)}" if there else ""
    return f"no smoother in {folder} was trained for that. 'retrodict smoother {folder} FILE -m ...' trains one{other}"
