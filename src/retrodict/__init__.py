"""Fill in the events missing from continuous-time event streams, with honest uncertainty."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from retrodict._limits import limits
from retrodict._version import __version__
from retrodict.errors import (
    BusyError,
    DataError,
    DataNotice,
    EngineNotice,
    LimitError,
    ModelError,
    RetrodictError,
    RunawayError,
    SuspicionNotice,
    TrainingError,
    WriteError,
)

if TYPE_CHECKING:
    from retrodict.decode import consensus, transport
    from retrodict.evaluate import score
    from retrodict.evaluate.check import check
    from retrodict.evaluate.sensitivity import sensitivity
    from retrodict.events.combine import combine, fill
    from retrodict.events.io.read import read_events
    from retrodict.events.io.write import write_events
    from retrodict.events.jitter import spread
    from retrodict.events.stream import EventStream
    from retrodict.events.stream_set import StreamSet
    from retrodict.events.suspicion import suspicions
    from retrodict.missingness import (
        After,
        ByType,
        Contextual,
        Custom,
        Either,
        Missingness,
        ReportingDelay,
        TimeVarying,
        Windows,
    )
    from retrodict.missingness.spec import read_missing
    from retrodict.models import Hawkes, Model, NeuralHawkes, NonlinearHawkes, Poisson, StateSpace
    from retrodict.models.calendar import Calendar
    from retrodict.models.model_folder import load_model, save_model
    from retrodict.models.quadrature import GaussLegendre, MonteCarlo
    from retrodict.models.simulate import simulate
    from retrodict.proposals import Filtering, Proposal, Smoothing
    from retrodict.proposals.proposal_folder import load_proposal
    from retrodict.smc.impute import impute, sweep
    from retrodict.smc.online.forecast import Forecast
    from retrodict.smc.online.online import Online, load_online
    from retrodict.smc.posterior import Posterior, load_posterior
    from retrodict.train.auto import fit_auto
    from retrodict.train.fitting import fit
    from retrodict.train.incomplete import fit_incomplete
    from retrodict.train.mechanism import learn_missing
    from retrodict.train.show import plot_training

# Imported when first used: torch takes seconds to load, and Lightning and Numba as long again.
_LATER = {
    "After": "retrodict.missingness",
    "ByType": "retrodict.missingness",
    "Calendar": "retrodict.models.calendar",
    "Contextual": "retrodict.missingness",
    "Custom": "retrodict.missingness",
    "Either": "retrodict.missingness",
    "EventStream": "retrodict.events.stream",
    "Filtering": "retrodict.proposals",
    "Forecast": "retrodict.smc.online.forecast",
    "GaussLegendre": "retrodict.models.quadrature",
    "Hawkes": "retrodict.models",
    "Missingness": "retrodict.missingness",
    "Model": "retrodict.models",
    "MonteCarlo": "retrodict.models.quadrature",
    "NeuralHawkes": "retrodict.models",
    "NonlinearHawkes": "retrodict.models",
    "Online": "retrodict.smc.online.online",
    "Poisson": "retrodict.models",
    "Posterior": "retrodict.smc.posterior",
    "Proposal": "retrodict.proposals",
    "ReportingDelay": "retrodict.missingness",
    "Smoothing": "retrodict.proposals",
    "StateSpace": "retrodict.models",
    "StreamSet": "retrodict.events.stream_set",
    "TimeVarying": "retrodict.missingness",
    "Windows": "retrodict.missingness",
    "check": "retrodict.evaluate.check",
    "combine": "retrodict.events.combine",
    "consensus": "retrodict.decode",
    "fill": "retrodict.events.combine",
    "fit": "retrodict.train.fitting",
    "fit_auto": "retrodict.train.auto",
    "fit_incomplete": "retrodict.train.incomplete",
    "impute": "retrodict.smc.impute",
    "learn_missing": "retrodict.train.mechanism",
    "load_model": "retrodict.models.model_folder",
    "load_online": "retrodict.smc.online.online",
    "load_posterior": "retrodict.smc.posterior",
    "load_proposal": "retrodict.proposals.proposal_folder",
    "plot_training": "retrodict.train.show",
    "read_events": "retrodict.events.io.read",
    "read_missing": "retrodict.missingness.spec",
    "save_model": "retrodict.models.model_folder",
    "score": "retrodict.evaluate",
    "sensitivity": "retrodict.evaluate.sensitivity",
    "simulate": "retrodict.models.simulate",
    "spread": "retrodict.events.jitter",
    "suspicions": "retrodict.events.suspicion",
    "sweep": "retrodict.smc.impute",
    "transport": "retrodict.decode",
    "write_events": "retrodict.events.io.write",
}

__all__ = [
    "After",
    "BusyError",
    "ByType",
    "Calendar",
    "Contextual",
    "Custom",
    "DataError",
    "DataNotice",
    "Either",
    "EngineNotice",
    "EventStream",
    "Filtering",
    "Forecast",
    "GaussLegendre",
    "Hawkes",
    "LimitError",
    "Missingness",
    "Model",
    "ModelError",
    "MonteCarlo",
    "NeuralHawkes",
    "NonlinearHawkes",
    "Online",
    "Poisson",
    "Posterior",
    "Proposal",
    "ReportingDelay",
    "RetrodictError",
    "RunawayError",
    "Smoothing",
    "StateSpace",
    "StreamSet",
    "SuspicionNotice",
    "TimeVarying",
    "TrainingError",
    "Windows",
    "WriteError",
    "__version__",
    "check",
    "combine",
    "consensus",
    "fill",
    "fit",
    "fit_auto",
    "fit_incomplete",
    "impute",
    "learn_missing",
    "limits",
    "load_model",
    "load_online",
    "load_posterior",
    "load_proposal",
    "plot_training",
    "read_events",
    "read_missing",
    "save_model",
    "score",
    "sensitivity",
    "simulate",
    "spread",
    "suspicions",
    "sweep",
    "transport",
    "write_events",
]


_FOLDERS = {"datasets", "decode", "errors", "evaluate", "events", "missingness", "models", "proposals", "random",
            "report", "smc", "train"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in _FOLDERS:
        return import_module(f"retrodict.{name}")
    raise AttributeError(f"module 'retrodict' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
