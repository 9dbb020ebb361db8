"""What would not fit into the memory is refused in words beforehand; large results are written in parts."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import retrodict as rd
from retrodict import _limits
from retrodict.cli import app
from retrodict.smc import posterior_folder as store

MODEL = rd.Hawkes([0.5, 0.3], [[0.3, 0.2], [0.1, 0.2]], 1.5)
STREAMS = rd.simulate(MODEL, 40, end=5.0, seed=0)


def test_too_many_particles_are_refused():
    proposal = rd.Filtering(MODEL, rd.ByType(0.5))
    with pytest.raises(rd.LimitError, match=r"100,000,000,000 particles of 40 streams would need about .* of memory"):
        rd.impute(STREAMS, proposal, 10**11)
    with rd.limits(memory=10**5), pytest.raises(rd.LimitError, match=r"raise the limit: limits\(memory=\d+\)"):
        rd.impute(STREAMS, proposal, 1000)


def test_a_fit_to_many_types_is_refused_or_announced():
    wide = STREAMS.with_types([str(k) for k in range(3000)])
    with (
        rd.limits(memory=2 * 10**8),  # of which the excitations alone take 1.4 * 10**8
        pytest.raises(rd.LimitError, match=r"3,000 types would need .* use a smaller batch_size"),
    ):
        rd.fit(rd.Hawkes, wide, epochs=1, progress=False)
    model = rd.Hawkes.from_streams(STREAMS.with_types([str(k) for k in range(1000)]))
    assert 0.3e9 < model.step_memory(50, 64) < 0.6e9  # 0.32 GiB were measured
    own = rd.Hawkes(model.base.detach(), model.excitation.detach(), [float(model.decay.detach())] * 1000)
    assert 1e9 < own.step_memory(50, 64) < 2e9  # decays by type: 1.2 GiB were measured


def test_estimates_are_read_by_people():
    assert [_limits.size(n) for n in (10, 5e3, 3e9, 1e30)] == [
        "10 bytes",
        "4.9 KiB",
        "2.8 GiB",
        "more than a million TiB",
    ]
    assert 0 < _limits.free_memory() < 1 << 60


def test_draws_of_many_streams_are_written_in_parts(tmp_path, monkeypatch):
    posterior = rd.impute(STREAMS, rd.Filtering(MODEL, rd.ByType(0.5)), 5)
    monkeypatch.setattr(store, "_ROWS", len(posterior.to_frame()) // 3 + 1)
    posterior.save(tmp_path)
    file = pq.ParquetFile(tmp_path / "draws.parquet")
    assert file.num_row_groups == 3
    nothing = rd.impute(STREAMS, rd.Filtering(MODEL, rd.ByType(0.0)), 5)
    nothing.save(tmp_path / "nothing")
    assert pq.read_table(tmp_path / "nothing" / "draws.parquet").schema.equals(file.schema_arrow)
    frame = file.read().to_pandas()
    assert frame.equals(posterior.to_frame().astype(frame.dtypes))


def test_more_missing_events_than_usual_can_be_asked_for(tmp_path):
    """From the command line, too; and the message names the option."""
    rd.Poisson([30.0]).save(tmp_path / "model")
    rd.write_events(rd.StreamSet([rd.EventStream([1.0], [0], end=10.0)]), tmp_path / "in.parquet")
    words = [
        "impute",
        str(tmp_path / "model"),
        str(tmp_path / "in.parquet"),
        "-m",
        "0.9",
        "-o",
        str(tmp_path / "out.csv"),
    ]
    found = CliRunner().invoke(app, [*words, "--particles", "2", "--max-events", "20"])
    assert isinstance(found.exception, rd.RunawayError)
    assert CliRunner().invoke(app, [*words, "--particles", "2"]).exit_code == 0


def test_limits_are_raised_from_the_command_line(tmp_path):
    rd.write_events(STREAMS, tmp_path / "in.csv")
    found = CliRunner().invoke(app, ["--limit", "rows=10", "describe", str(tmp_path / "in.csv")])
    assert isinstance(found.exception, rd.LimitError)
    assert CliRunner().invoke(app, ["--limit", "rows=1e6", "describe", str(tmp_path / "in.csv")]).exit_code == 0
    found = CliRunner().invoke(app, ["--limit", "rows", "describe", str(tmp_path / "in.csv")])
    assert "Write NAME=NUMBER" in str(found.exception)
