"""What the commands that train do: fit a model, train its smoothers, learn from incomplete streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from retrodict._sparing import Sparing
from retrodict.cli import common
from retrodict.cli.rates import show_rates
from retrodict.errors import ModelError, WriteError
from retrodict.events.plain import read_json
from retrodict.events.stream_set import StreamSet
from retrodict.events.suspicion import refuse_unix_time
from retrodict.missingness.anything import Anything
from retrodict.missingness.base import Missingness
from retrodict.missingness.spec import parse_missing
from retrodict.missingness.words import in_words
from retrodict.models import MODELS, Hawkes, Model, NeuralHawkes, NonlinearHawkes, StateSpace
from retrodict.models.base import TIME_WAS_UP
from retrodict.proposals import Smoothing
from retrodict.proposals.proposal_folder import load_proposal
from retrodict.proposals.smoothers import claim, place_for, smoothers_of

Maker = Callable[[StreamSet], Model]
Settings = Mapping[str, Any]
_GO_ON = "the same command goes on after the last whole epoch"
STOPPED = "stopped by --seconds"
_ROUNDS = 30  # of EM, for a mechanism


def maker(kind: str, hidden: int | None, scales: str | None = None) -> Maker:
    """A function that makes a model of this kind for training streams, with ``hidden`` cells or ``scales`` of time."""
    if scales is not None:
        if kind not in (Hawkes.kind, NonlinearHawkes.kind):
            raise ModelError(f"--scales is for Hawkes models, not for a {kind.replace('_', '-')} model.")
        if scales not in ("auto", "one") and not (scales.isdecimal() and int(scales) > 0):
            raise ModelError(f'--scales must be "auto", "one" or a number of at least 1, but is {scales!r}.')
        if hidden is None and kind == NonlinearHawkes.kind:
            return partial(NonlinearHawkes.from_streams, scales=_number(scales))
        if hidden is None and scales != "one":
            return partial(Hawkes.from_streams, scales=_number(scales))
    if hidden is None:
        return MODELS[kind].from_streams
    if kind == NeuralHawkes.kind:
        return partial(NeuralHawkes.from_streams, hidden_size=hidden)
    if kind == StateSpace.kind:
        return partial(StateSpace.from_streams, size=hidden)
    raise ModelError(f"--hidden is for neural models; a {kind.replace('_', '-')} model has no hidden cells.")


def _number(scales: str) -> Any:
    """How many scales, as ``from_streams`` takes it."""
    return {"auto": "auto", "one": 1}.get(scales) or int(scales)


def read(
    columns: common.Columns, *files: Path | None, types: Sequence[str] | None = None, more: Sequence[str] | None = None
) -> Any:
    """The streams of each file (None where there is none), over ``types``, or those of all files and ``more``."""
    found = [None if file is None else columns.read(file) for file in files]
    for streams in found:
        if streams is not None:
            refuse_unix_time(streams)
    seen = [name for streams in found if streams is not None for name in streams.types]
    if types is None:
        types = list(dict.fromkeys([*seen, *(more or ())]))
    return [None if streams is None else streams.with_types(types) for streams in found]


@dataclass(frozen=True)
class Smoother:
    """A smoother to train: for which mechanism (and how that was written), in what form, and where."""

    mechanism: Missingness
    written: Sequence[str]
    mixing: int | None
    learn_from: str
    name: str | None = None

    def make(self, model: Model, seed: int = 0) -> Smoothing:
        """The proposal before training."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Smoothing(model, self.mechanism, mixing=self.mixing)


def rehearse(make: Maker, train: StreamSet, smoother: Smoother) -> None:
    """Make what will be trained, so that whatever cannot be is refused before the model is."""
    import torch

    with torch.random.fork_rng(devices=[]):
        smoother.make(make(train))


def fit_model(make: Maker, streams: tuple[StreamSet, StreamSet | None], output: Path, settings: Settings) -> Model:
    """Fit a model to complete training streams, with their dev streams, into the folder."""
    from retrodict.train.fitting import fit

    with common.notes():
        fitted: Model = fit(make, *streams, directory=output, **settings)
    record = fitted.training_record
    score = f"{record['dev_log_likelihood_per_event']:.4f} nats per event on dev"
    common.wrote(output, f"{fitted.kind.replace('_', '-')} model, {score} ({_effort(record, settings)})")
    return fitted


def fit_smoother(
    model: Model,
    smoother: Smoother,
    streams: tuple[StreamSet, StreamSet | None],
    folder: Path,
    settings: Settings,
    stages: list[Path],
) -> Smoothing:
    """Train a smoothing proposal for the model into its place in the model's folder."""
    from retrodict.train.asked import check_data
    from retrodict.train.fitting import fit

    check_data(*streams, settings["seed"])
    place = place_for(folder, model, smoother.mechanism, smoother.name, smoother.written)
    resume = claim(place, model, smoother.mechanism, settings["resume"])
    if settings["resume"] and not resume:
        common.note(f"what is in {place} was trained for another model, or is damaged: the smoother is trained anew")
    stages.append(place)
    proposal = smoother.make(model, settings["seed"])
    _start_from_any(proposal, folder)
    with common.notes():
        own = {**settings, "resume": resume, "learn_from": smoother.learn_from}
        fit(proposal, *streams, directory=place, **own)
    record = proposal.training_record
    dev = "drawn streams" if record["learn_from"] == "model" else "dev"
    score = f"log q {record['dev_log_likelihood_per_event']:.4f} nats per missing event on {dev}"
    common.wrote(place, f"smoother for {in_words(smoother.mechanism)}, {score} ({_effort(record, settings)})")
    return proposal


def _start_from_any(proposal: Smoothing, folder: Path) -> None:
    """Give a smoother for one mechanism the weights of the one for anything in the model's folder, if that is alike."""
    kept = next((kept for kept in smoothers_of(folder, proposal.model) if kept.is_for_any and not kept.problem), None)
    if kept is None or isinstance(proposal.missingness, Anything):
        return
    known = load_proposal(kept.path, proposal.model.device)
    if known.config() == proposal.config():
        proposal.load_state_dict(known.state_dict())
        common.note(f"training starts from the smoother for anything in {kept.path}")


def warn_of_stale(folder: Path, model: Model) -> None:
    """Name the smoothers in the folder that were trained for a model that is no longer there."""
    for kept in smoothers_of(folder, model):
        if kept.is_stale:
            which = "" if kept.is_for_any else " --missing ..."
            common.note(
                f"the smoother in {kept.path} was trained for the model that was here before, and will be refused from "
                f"now on: train it again with 'retrodict smoother {folder} FILE{which}', or delete it"
            )


def fit_incomplete(
    make: Maker,
    streams: tuple[StreamSet, StreamSet | None, StreamSet | None],
    mechanism: Missingness,
    output: Path,
    settings: Settings,
) -> Model:
    """Monte Carlo EM on incomplete streams, with their dev streams and complete ones."""
    from retrodict.train.incomplete import fit_incomplete as run

    train, dev, complete = streams
    settings = {**settings, "epochs": settings["epochs"] or 200, "batch_size": settings["batch_size"] or 50}
    with common.notes():
        fitted = run(make, train, mechanism, dev, complete=complete, directory=output, **settings)
    if fitted.rates is not None:
        show_rates(fitted.rates)
    best = min(fitted.history, key=lambda row: row["dev_loss"])
    done, epochs = len(fitted.history), settings["epochs"]
    rest = "" if settings["seconds"] is None or done >= epochs else f"; {_GO_ON} if --seconds ended it"
    common.wrote(
        output,
        f"{fitted.model.kind} model and smoother from incomplete streams, log evidence {-best['dev_loss']:.4f} nats "
        f"per observed event on dev (best epoch {int(best['epoch']) + 1} of {done}{rest})",
    )
    return fitted.model


def learn_mechanism(
    known: Path, train: StreamSet, missing: list[str], dates: str | None, output: Path, *, seed: int, resume: bool
) -> None:
    """Learn how events go missing, for a model that stays as it is; a file has dates of the form ``dates``."""
    from retrodict.models.model_folder import load_model
    from retrodict.proposals import Filtering
    from retrodict.train.mechanism import learn_missing

    model = load_model(known)
    mechanism = parse_missing(missing, model.types or train.types, model.time_unit, train.axis.timezone, dates)
    proposal = Filtering(model, mechanism)
    with common.notes(), common.bar("learn", _ROUNDS, "rounds") as done:
        sparing = Sparing()

        def say(number: int, evidence: float) -> None:
            done(number + 1)
            if not (common.err.is_terminal or sparing.is_due((number + 1) / _ROUNDS)):
                return
            text = f"round {number + 1}: log evidence {evidence:.4f} nats per observed event"
            common.err.print(text, highlight=False)

        more: dict[str, Any] = {"rounds": _ROUNDS, "seed": seed, "resume": resume}
        learned = learn_missing(proposal, train, directory=output, progress=say, **more)
    if learned.rates is not None:
        show_rates(learned.rates)
    common.wrote(
        output / "missing.yaml",
        f"{learned.missing!r}, log evidence {learned.evidence[-1]:.4f} nats per observed event (use it with --missing)",
    )


def _effort(record: Mapping[str, Any], settings: Settings) -> str:
    """How long a fit took, and how to go on where the user ended it; of the default number of epochs `fit` speaks."""
    if "nats_below_maximum" in record:
        below, scales = record["nats_below_maximum"], len(record["decays"])
        return f"{scales} time scales, at most {below:.0e} nats per event below the maximum, {record['seconds']:g} s"
    text = f"best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:g} s"
    if record.get("ended") == TIME_WAS_UP:
        return f"{text}; {STOPPED}"
    is_last_best = record.get("ended") == "all epochs done" and record["best_epoch"] == record["epochs"]
    if is_last_best and settings["epochs"] is not None:
        return f"{text}; dev still improved in the last epoch: --epochs {2 * record['epochs']} would go on from here"
    return text


@contextmanager
def going_on() -> Iterator[list[Path]]:
    """Say what is kept and how to go on, after an interrupt or a full disk.

    Commands put the folder of each step into the list as they begin it.
    """
    stages: list[Path] = []

    def kept() -> str:
        if not stages:
            return "nothing was begun"
        parts = [f"{folder} is finished" for folder in stages[:-1]] + [f"{stages[-1]} keeps {_progress(stages[-1])}"]
        return "; ".join(parts) + ": run the same command again to go on"

    with common.when_interrupted(kept):
        try:
            yield stages
        except WriteError:
            common.note(f"what was finished is kept: when there is room, {_GO_ON}")
            raise


def _progress(folder: Path) -> str:
    """How far training in a folder has come: one row of a table is written for each epoch."""
    try:
        if (folder / "auto.json").exists():
            return f"the scores of {len(read_json(folder / 'auto.json')['scores'])} models"
        if (folder / "learned.json").exists():
            return f"{len(read_json(folder / 'learned.json')['evidence'])} rounds"
        lines = (folder / "metrics.csv").read_text(encoding="utf-8").count("\n") if _began(folder) else 1
    except (OSError, ValueError, LookupError, TypeError):
        lines = 1
    return f"{lines - 1} whole epoch{'s' if lines != 2 else ''}" if lines > 1 else "no whole epoch yet"


def _began(folder: Path) -> bool:
    return (folder / "checkpoints" / "last.safetensors").exists()
