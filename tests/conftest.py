"""Shared pieces of the tests: where golden numbers and real streams may lie, and small random models."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from retrodict.models import Hawkes, Model, NeuralHawkes, NonlinearHawkes, Poisson, StateSpace
from retrodict.smc.engines import ENGINES

# Small models gain nothing from more threads, and waiting threads are very slow on a busy machine.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

# The same examples on every machine and in every run; RETRODICT_NEW_EXAMPLES=1 looks for others.
settings.register_profile("fixed", derandomize=True, database=None)
if "RETRODICT_NEW_EXAMPLES" not in os.environ:
    settings.load_profile("fixed")

# Files, and tests by name, that take long: ``make quick`` leaves them out, ``make test`` runs them.
SLOW = (
    "tests/cli/test_check.py",
    "tests/cli/test_commands.py::test_a_yaml_file_says_what_goes_missing",
    "tests/cli/test_commands.py::test_fit_with_a_smoother_then_impute",
    "tests/cli/test_commands.py::test_the_demo_finds_what_was_hidden",
    "tests/cli/test_data.py",
    "tests/cli/test_report.py",
    "tests/decode/test_bound.py",
    "tests/decode/test_flow.py",
    "tests/decode/test_local.py::test_moving_and_deleting",
    "tests/evaluate/test_check.py",
    "tests/events/test_bombs.py",
    "tests/events/test_what_goes_in_comes_back.py::test_2000_random_tables",
    "tests/experiments/test_small_run.py",
    "tests/models/test_bounds.py",
    "tests/models/test_end.py::test_fit_learns_ends",
    "tests/models/test_hawkes.py::test_fitting",
    "tests/models/test_hawkes_scales.py::test_a_bursty_process",
    "tests/models/test_hawkes_scales.py::test_the_gradient",
    "tests/models/test_hostile_folders.py",
    "tests/models/test_time_rescaling.py",
    "tests/proposals/test_mixing.py::test_training_finds_what_a_sum_cannot_say",
    "tests/proposals/test_training.py",
    "tests/report/test_page_in_browser.py",
    "tests/report/test_page_opens.py",
    "tests/smc/online/test_agreement.py::test_answers_do_not_depend",
    "tests/smc/online/test_agreement.py::test_poisson_streams",
    "tests/smc/online/test_statistics.py",
    "tests/serve/test_hostile.py",
    "tests/serve/test_kept.py::test_a_server_that_is_killed",
    "tests/serve/test_process.py",
    "tests/smc/test_against_mcmc.py",
    "tests/smc/test_calendar.py",
    "tests/smc/test_calibration.py",
    "tests/smc/test_degeneracy.py",
    "tests/smc/test_end.py::test_ranks_are_uniform",
    "tests/smc/test_engines.py",
    "tests/smc/test_large.py::test_a_model_of_many_types",
    "tests/smc/test_mechanism_calibration.py",
    "tests/smc/test_mechanisms.py",
    "tests/smc/test_mixing.py",
    "tests/smc/test_triton.py",
    "tests/smc/test_triton_rates.py",
    "tests/smc/test_unbiased.py",
    "tests/test_examples.py::test_the_example_runs",
    "tests/test_extending.py::test_the_model_is_fitted_saved_and_loaded",
    "tests/test_extending.py::test_training_the_proposal",
    "tests/test_faults.py",
    "tests/test_fuzz.py",
    "tests/test_memory.py",
    "tests/test_pages.py::test_every_block_runs",
    "tests/test_pages.py::test_the_readme",
    "tests/test_pages.py::test_the_table",
    "tests/test_pages.py::test_imputed_rows",
    "tests/test_pages.py::test_events_of_the_outage",
    "tests/test_pages.py::test_the_pictures",
    "tests/train/test_divergence.py",
    "tests/train/test_fit.py",
    "tests/train/test_incomplete.py",
    "tests/train/test_together.py",
)

# Tests of signals, pipes, links, permissions and limits of processes as POSIX has them.
POSIX = (
    "tests/cli/test_own_tables.py::test_output_equal_to_the_input_overwrote_it",
    "tests/cli/test_wrong_options.py::test_a_wrong_option_fails_within_five_seconds",
    "tests/events/test_atomic.py::test_a_folder_that_is_removed_while",
    "tests/events/test_atomic.py::test_permissions_and_links",
    "tests/events/test_atomic.py::test_what_a_killed_writer_left_behind_goes",
    "tests/events/test_bombs.py::test_a_pipe_is_not_waited_for",
    "tests/events/test_hostile_pickles.py",
    "tests/experiments/test_small_run.py::test_an_interrupt_leaves_whole_files_and_says_how_to_go_on",
    "tests/missingness/test_hostile_files.py::test_a_pipe_is_not_waited_for",
    "tests/models/test_hostile_folders.py",
    "tests/serve/test_process.py",
    "tests/test_faults.py",
    "tests/test_fuzz.py",
    "tests/train/test_fit.py::test_a_killed_fit_resumes_to_the_same_result",
)

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is listed as slow, and what needs a POSIX system."""
    for item in items:
        if os.name != "posix" and item.nodeid.startswith(POSIX):
            item.add_marker(pytest.mark.skip(reason="needs signals, pipes, links or limits as POSIX has them"))
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def shared(path: str) -> Path:
    """A file of the shared folder beside the checkout; skips the test where it is absent."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"no {path} beside the checkout")
    return found


def random_neural_hawkes(num_types: int = 3, hidden_size: int = 8, seed: int = 0, spread: float = 1.0) -> Model:
    """The paper's synthetic recipe: all parameters uniform in [-spread, spread], scales 1, float64."""
    generator = torch.Generator().manual_seed(seed)
    model = NeuralHawkes(num_types, hidden_size, time_scale=1.0).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-spread, spread, generator=generator)
        model.log_scale.zero_()
    return model


def random_state_space(num_types: int = 3, size: int = 5, layers: int = 1, seed: int = 0) -> Model:
    """Large random weights, decays from 5 to 0.2, float64."""
    generator = torch.Generator().manual_seed(seed)
    model = StateSpace(num_types, size, layers, scales=4, time_scale=1.0).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1, generator=generator)
        for layer in model.layers:
            layer.log_decay.copy_(torch.tensor([1.6, 0.0, -1.6]))
        model.log_scale.zero_()
    return model


_EXCITATION = [[0.3, 0.2, 0.0], [0.1, 0.2, 0.3], [0.4, 0.0, 0.1]]
_BY_SCALE = [
    [[0.1, 0.1, 0.0], [0.0, 0.1, 0.2], [0.2, 0.0, 0.0]],
    [[0.1, 0.0, 0.0], [0.1, 0.0, 0.1], [0.2, 0.0, 0.0]],
    [[0.1, 0.1, 0.1], [0.0, 0.1, 0.0], [0.1, 0.0, 0.2]],
]
_INFLUENCE = [
    [[-0.8, 0.4, 0.0], [0.5, -0.3, 0.2], [0.0, 0.6, -0.9]],
    [[0.4, -0.5, 0.1], [-0.2, 0.3, 0.0], [0.3, -0.7, 0.5]],
]
EXAMPLES: dict[str, Callable[[], Model]] = {  # a small float64 model of each kind, of three types
    "poisson": lambda: Poisson([0.7, 1.5, 0.3]).double(),
    "hawkes": lambda: Hawkes([0.5, 0.3, 0.2], _EXCITATION, [1.5, 0.8, 3.0]).double(),
    "hawkes_scales": lambda: Hawkes([0.5, 0.3, 0.2], _BY_SCALE, [3.0, 1.0, 0.3]).double(),
    "nonlinear_hawkes": lambda: NonlinearHawkes(
        [0.9, 0.6, -0.1], _INFLUENCE, [3.0, 0.5], [0.2, 0.4, 0.3], 0.8
    ).double(),
    "neural_hawkes": random_neural_hawkes,
    "state_space": random_state_space,
    "state_space_layers": lambda: random_state_space(layers=2),
}
KINDS = tuple(EXAMPLES)
REFERENCE_ONLY = ("nonlinear_hawkes", "state_space_layers")  # which no engine takes but torch


def example_model(kind: str) -> Model:
    """A new one of the examples."""
    return EXAMPLES[kind]()


compiled = pytest.mark.skipif(ENGINES["native"].unavailable() is not None, reason="the native engine was not compiled")
CPU_ENGINES = ("torch", pytest.param("native", marks=compiled))
each_engine = pytest.mark.parametrize("engine", CPU_ENGINES)
