"""Fill in the events missing from continuous-time event streams, with honest uncertainty."""

from retrodict._version import __version__
from retrodict.errors import DataError, DataNotice, ModelError, RetrodictError, RunawayError, TrainingError
from retrodict.events.combine import combine
from retrodict.events.io.read import read_events
from retrodict.events.io.write import write_events
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet
from retrodict.missingness import ByType, Missingness
from retrodict.models import Hawkes, Model, NeuralHawkes, Poisson
from retrodict.models.quadrature import GaussLegendre, MonteCarlo
from retrodict.models.simulate import simulate
from retrodict.models.store import load_model, save_model
from retrodict.train import fit

__all__ = [
    "ByType",
    "DataError",
    "DataNotice",
    "EventStream",
    "GaussLegendre",
    "Hawkes",
    "Missingness",
    "Model",
    "ModelError",
    "MonteCarlo",
    "NeuralHawkes",
    "Poisson",
    "RetrodictError",
    "RunawayError",
    "StreamSet",
    "TrainingError",
    "__version__",
    "combine",
    "fit",
    "load_model",
    "read_events",
    "save_model",
    "simulate",
    "write_events",
]
