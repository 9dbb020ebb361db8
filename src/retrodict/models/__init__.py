"""Models of complete streams. To add one: write its file and list its class here."""

from retrodict.models.base import Model
from retrodict.models.hawkes import Hawkes
from retrodict.models.neural_hawkes import NeuralHawkes
from retrodict.models.nonlinear_hawkes import NonlinearHawkes
from retrodict.models.poisson import Poisson
from retrodict.models.state_space import StateSpace

MODELS: dict[str, type[Model]] = {
    model.kind: model for model in (Poisson, Hawkes, NonlinearHawkes, StateSpace, NeuralHawkes)
}
