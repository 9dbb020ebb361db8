"""Long steps say what they do and how long it may take, and an interrupt says what was kept and how to go on."""

from __future__ import annotations

import io
import re
import shutil

import pytest
from rich.console import Console
from typer.testing import CliRunner

import retrodict as rd
from retrodict._sparing import Sparing
from retrodict.cli import app, common
from retrodict.cli.clock import Clock
from retrodict.train import fitting
from retrodict.train.auto import Candidate
from retrodict.train.progress import EpochProgress
from retrodict.train.run import _AfterEpoch

runner = CliRunner(env={"COLUMNS": "160", "TERM": "dumb"})
MODEL = rd.Poisson([1.0, 0.5])
MODEL.types = ("a", "b")
NEURAL = [Candidate("state-space", rd.StateSpace.from_streams, calendar=False, slow=True)]
QUICK = ["--model", "poisson", "--patience", "1000"]
pytestmark = pytest.mark.filterwarnings("ignore::retrodict.errors.DataNotice")


@pytest.fixture
def folder(tmp_path):
    rd.write_events(rd.simulate(MODEL, 12, end=5.0, seed=1), tmp_path / "s.parquet")
    MODEL.save(tmp_path / "known")
    return tmp_path


def run(*words: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def fit(folder, *more: object, code: int = 0) -> str:
    return run("fit", folder / "s.parquet", "-o", folder / "model", *QUICK, *more, code=code)


def test_epochs_of_model_and_smoother_print_differently(folder, monkeypatch):
    monkeypatch.setattr("retrodict._sparing.SECONDS", 0.0)
    said = fit(folder, "--epochs", 2, "-m", 0.5)
    number = r"-?\d+\.\d{4}"
    assert re.findall(rf"(\w+), epoch (\d): {number} (.*?) on dev \(best {number}\); 0:00:\d\d ", said) == [
        ("model", "1", "nats per event"),
        ("model", "2", "nats per event"),
        ("smoother", "1", "log q, nats per missing event"),
        ("smoother", "2", "log q, nats per missing event"),
    ]


def test_training_says_with_which_epoch_it_ends_unless_dev_improves_and_ends_with_it(capsys):
    """An end was announced that was hours off: that of all epochs that may be, of which training takes few."""
    streams = rd.simulate(MODEL, 12, end=5.0, seed=1)
    model = rd.fit(rd.Poisson, streams, patience=3, learning_rate=0.3)
    said = capsys.readouterr().err
    *_, last, announced = re.findall(r"model, epoch (\d+):.*?; ends with epoch (\d+) unless dev improves", said)[-1]
    assert announced == last
    assert model.training_record["epochs"] == int(last)
    assert "left" not in said
    rd.fit(rd.Poisson, streams, patience=1000, epochs=3, seconds=100)
    limited = capsys.readouterr().err
    assert re.search(r"[\d,]+ events/s; 0:00:\d\d of at most 0:01:\d\d", limited)
    assert "unless dev improves" not in limited  # the third epoch is the last in any case


def test_a_pipe_gets_a_handful_of_lines_and_none_of_what_is_said_at_the_end(folder, monkeypatch):
    """200 epochs of a second or two: none, where there were 200 lines."""
    assert "epoch 200:" not in fit(folder, "--epochs", 200, "--model-only")
    monkeypatch.setattr("retrodict._sparing.SECONDS", 0.0)
    said = fit(folder, "--epochs", 3, "--model-only", "--restart")
    assert re.findall(r"model, epoch (\d+):", said) == ["1", "2", "3"]


def test_an_hour_has_six_lines(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("retrodict._sparing.time.monotonic", lambda: now[0])
    sparing = Sparing(by_share=False)
    due = []
    for second in range(3600):
        now[0] = float(second)
        due += [second] if sparing.is_due(0.0) else []
    assert due == [30, 90, 210, 450, 930, 1890]


def test_a_fit_of_several_models_takes_less_than_200_words_where_nobody_watches(folder):
    """Everything is said once, and the last line is the next command."""
    words = ["--stream", "stream", "--time", "time", "--type", "type", "--seconds", 6, "--patience", 3]
    rd.write_events(rd.simulate(MODEL, 60, end=5.0, seed=1), folder / "s.parquet")
    said = run("fit", folder / "s.parquet", "-o", folder / "best", *words)
    assert len(said.split()) < 200
    assert re.search(r"read s.parquet: 60 streams \(6 set aside as dev\), \d+ events, 2 types ", said)
    assert said.count("state-space ") <= 2  # in the table, and if it is the best one
    assert "check on dev, half of the events hidden: " in said
    check = f"retrodict check {folder / 'best'} HELD-OUT --stream stream --time time --type type -m NAME=RATE"
    assert said.endswith(check)


def test_a_long_step_says_how_far_it_is_now_and_then(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("retrodict._sparing.time.monotonic", lambda: now[0])
    shown = io.StringIO()
    monkeypatch.setattr(common, "err", Console(file=shown, width=80))
    with common.bar("impute", 1000) as done:
        for number in range(1, 101):
            now[0] += 1.0
            done(number)
    assert shown.getvalue().splitlines() == [f"impute: {number} of 1,000 streams" for number in (30, 90)]


def test_seconds_are_those_of_the_whole_command(monkeypatch):
    """Of 90 seconds 30 went by while things were loaded: 9 are kept for the check, and each of two steps has half."""
    now = [130.0]
    monkeypatch.setattr("retrodict.cli.clock.time.monotonic", lambda: now[0])
    monkeypatch.setattr(common, "began", [5.0, 100.0])
    clock = Clock(90.0)
    assert clock.share(2) == {"seconds": pytest.approx((60 - 9) / 2)}
    now[0] += 40.0  # the first step took longer than its share
    assert clock.share(1) == {"seconds": pytest.approx(20 - 9)}
    now[0] += 25.0
    assert clock.share(1)["seconds"] == pytest.approx(1e-3)
    assert clock.left() == pytest.approx(1e-3)
    assert Clock(None).share(2) == {"seconds": None}


def test_what_seconds_do_not_bound_is_said_before_any_epoch(folder):
    said = fit(folder, "--epochs", 2, "-m", 0.5, "--seconds", 100)
    before, _, _ = said.partition("wrote ")
    assert "note: of --seconds 100, loading took " in before
    assert "an epoch and the check (a minute on first use) may take longer" in before
    assert "--seconds" not in fit(folder, "--epochs", 2, "-m", 0.5, "--restart")


def test_a_fit_counts_what_it_does_before_its_first_epoch(monkeypatch):
    """Making the model takes long: no time is left, and training ends with its first epoch."""
    late = [0.0]
    clock = fitting.time.perf_counter

    def make(streams):
        late[0] = 1000.0
        return rd.Poisson.from_streams(streams)

    monkeypatch.setattr(fitting.time, "perf_counter", lambda: clock() + late[0])
    streams = rd.simulate(MODEL, 12, end=5.0, seed=1)
    model = rd.fit(make, streams, epochs=50, patience=1000, seconds=100.0, progress=False)
    assert (model.training_record["epochs"], model.training_record["ended"]) == (1, "time was up")


def test_a_terminal_shows_a_bar_with_the_time(folder, monkeypatch):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80)
    monkeypatch.setattr(fitting, "EpochProgress", lambda *given: EpochProgress(*given, console=console))
    monkeypatch.setattr(common, "err", console)
    fit(folder, "--epochs", 2)
    run("impute", folder / "known", folder / "s.parquet", "-m", 0.5, "--particles", 3, "-o", folder / "out.csv")
    run("simulate", folder / "known", "--end", 3, "-n", 4, "-o", folder / "new.csv")
    text = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", shown.getvalue())
    for what in ("fit model", "0:00:0", "2/2 epochs", "impute", "12/12 streams", "write draws", "decode", "draw"):
        assert what in text


def test_a_fit_can_be_limited_in_time_and_goes_on_later(folder):
    said = fit(folder, "--epochs", 100_000, "--seconds", 0.5)
    assert "stopped by --seconds" in said
    assert "next: the same command again trains on; then retrodict check " in said
    done = int(re.search(r"best epoch \d+ of (\d+)", said)[1])
    said = fit(folder, "--epochs", 100_000, "--seconds", 0.5)
    assert int(re.search(r"best epoch \d+ of (\d+)", said)[1]) > done
    said = fit(folder, "--epochs", 100_000, "--seconds", 1, "-m", 0.5)
    assert said.count("stopped by --seconds") == 2


def test_the_best_of_several_models_says_that_its_training_was_cut_short(folder, monkeypatch):
    monkeypatch.setattr("retrodict.train.auto.candidates", lambda train, calendar: NEURAL)
    said = run("fit", folder / "s.parquet", "-o", folder / "best", "--patience", 1000, "--seconds", 1, "--model-only")
    assert re.search(r"state-space model \(.* s in all; stopped by --seconds\)", said)


def test_fitting_to_incomplete_streams_can_be_limited_in_time(folder):
    streams = rd.read_events(folder / "s.parquet")
    limits = {"epochs": 1000, "patience": 1000, "seconds": 0.1, "progress": False}
    fitted = rd.fit_incomplete(rd.Poisson, streams, rd.ByType(0.3), filtering=True, particles=3, **limits)
    assert 1 <= len(fitted.history) < 1000
    with pytest.raises(rd.ModelError, match="seconds must be a positive number"):
        rd.fit_incomplete(rd.Poisson, streams, rd.ByType(0.3), seconds=0)


def interrupt_after(monkeypatch, epochs: int) -> None:
    """Ctrl-C when this number of epochs is saved."""
    real, count = _AfterEpoch.on_train_epoch_end, [0]

    def save(self, trainer, pl_module) -> None:
        real(self, trainer, pl_module)
        count[0] += 1
        if count[0] == epochs:
            raise KeyboardInterrupt

    monkeypatch.setattr(_AfterEpoch, "on_train_epoch_end", save)


def test_an_interrupted_fit_says_what_was_kept(folder, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        said = fit(folder, "--epochs", 3, "-m", 0.5, code=130)
        assert f"interrupted: {folder / 'model'} keeps 2 whole epochs: run the same command again to go on" in said
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        said = fit(folder, "--epochs", 3, "-m", 0.5, code=130)
        place = folder / "model" / "smoother"
        assert f"{folder / 'model'} is finished; {place} keeps 1 whole epoch: run the same command" in said
        unfinished = run("impute", folder / "model", folder / "s.parquet", "-m", 0.5, "-o", folder / "out.csv")
        assert "is for these, but its training has not ended: repeat the command that began it" in unfinished
    monkeypatch.setattr("retrodict._sparing.SECONDS", 0.0)
    said = fit(folder, "--epochs", 3, "-m", 0.5)
    assert "smoother, epoch 2" in said
    assert "smoother, epoch 1:" not in said


def test_an_interrupted_imputation_says_what_was_kept(folder, monkeypatch):
    def interrupt(*_, **__) -> None:
        raise KeyboardInterrupt

    words = ["impute", folder / "known", folder / "s.parquet", "-m", 0.5, "--particles", 3, "-o", folder / "out.csv"]
    with monkeypatch.context() as patch:
        patch.setattr("retrodict.cli.impute.run", interrupt)
        said = run(*words, code=130)
        assert f"interrupted: nothing was written, and {folder / 'out.csv'} is as it was: run the same command" in said
        assert not list(folder.glob("out.csv*"))
    with monkeypatch.context() as patch:
        patch.setattr("retrodict.smc.posterior.Posterior.consensus", interrupt)
        said = run(*words, "--cost", 0.5, code=130)
    draws = folder / "out.csv.draws"
    assert f"the draws are kept in {draws}: go on with 'retrodict decode {draws} --cost 0.5 -o" in said
    run("decode", draws, "--cost", 0.5, "-o", folder / "later.csv")
    run(*words, "--cost", 0.5)
    assert (folder / "later.csv").read_bytes() == (folder / "out.csv").read_bytes()


def test_an_interrupt_while_draws_are_written_leaves_earlier_draws(folder, monkeypatch):
    words = ["impute", folder / "known", folder / "s.parquet", "-m", 0.5, "--particles", 3, "-o", folder / "out.csv"]
    run(*words)
    shutil.copytree(folder / "out.csv.draws", folder / "before")

    def interrupt(*_, **__) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("retrodict.smc.posterior_folder.write_draws", interrupt)
    run(*words, "--seed", 5, code=130)
    for file in (folder / "before").iterdir():
        assert (folder / "out.csv.draws" / file.name).read_bytes() == file.read_bytes()
    assert len(list((folder / "out.csv.draws").iterdir())) == len(list((folder / "before").iterdir()))


def test_learning_what_goes_missing_shows_rounds_and_goes_on(folder, monkeypatch):
    words = ["learn-missing", folder / "known", folder / "s.parquet", "-m", 0.3, "-o", folder / "missing"]
    assert "round 30: log evidence" in run(*words)
    assert (folder / "missing" / "missing.yaml").exists()


def test_a_fit_says_once_and_in_the_words_of_the_command_how_to_go_on(folder, monkeypatch):
    monkeypatch.setattr(fitting, "MOST_EPOCHS", {"model": 2, "proposal": 2})
    neural = ["--restart", "--model-only", "--model", "neural-hawkes", "--hidden", "4"]
    by_default = fit(folder, *neural)
    assert by_default.count("--epochs 4 would go on from here") == 1
    assert "epochs=" not in by_default
    assert fit(folder, *neural, "--epochs", 1).count("--epochs 2 would go on from here") == 1
    streams = rd.simulate(MODEL, 12, end=5.0, seed=1)
    with pytest.warns(rd.DataNotice, match="give epochs=4 and the same directory to go on"):
        rd.fit(rd.NeuralHawkes, streams, progress=False)
