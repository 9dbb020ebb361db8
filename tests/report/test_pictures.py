"""The pictures show what there is: every kind of mark, dates on the axis, in the formats a user may ask for."""

from __future__ import annotations

import json
import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrodict as rd
from retrodict.events.time_axis import TimeAxis
from retrodict.report import style
from retrodict.report.check_picture import draw_check
from retrodict.report.check_tables import clean_check, read_check
from retrodict.report.curves import read_metrics
from retrodict.report.stream_picture import draw_stream
from retrodict.report.stream_view import StreamView, Window
from tests.report.examples import HOSTILE, NEW_YORK, imputed, poisson, streams


@pytest.fixture(scope="module")
def made():
    return imputed(streams(8, axis=NEW_YORK))


def texts(figure) -> str:
    from matplotlib.text import Text

    figure.canvas.draw()
    return " | ".join(text.get_text() for text in figure.findobj(Text))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "PNG"])
def test_a_stream_is_drawn_with_every_mark(made, tmp_path, suffix):
    posterior, hidden = made
    file = tmp_path / f"picture.{suffix}"
    posterior.plot(1, file, cost=1.0, truth=hidden, title="a stream")
    if suffix == "svg":
        text = file.read_text()
        for mark in (style.OBSERVED, style.IMPUTED, style.TRUTH):
            assert mark in text
    elif suffix.lower() == "png":
        from matplotlib.image import imread

        pixels = imread(file, format="png")[..., :3]
        assert pixels.shape[1] > 1000
        assert np.abs(pixels - 1).sum(-1).max() > 1


def test_the_answer_drawn_is_the_consensus_and_has_its_probabilities(made):
    posterior, hidden = made
    decoded = posterior.consensus(1.0)
    for i in (0, 5):
        assert posterior.consensus(1.0, which=np.array([i]))[0] == decoded[i]
    said = texts(posterior.plot(5, cost=1.0, truth=hidden))
    for chance in decoded[5].columns["probability"]:
        assert f"{chance:.2f}" in said
    for word in ("observed", "imputed", "90 % interval", "truth", "20 draws", "effective", "America/New_York"):
        assert word in said
    assert re.search(r"\d\d:00", said)  # hours of the day


def test_probabilities_of_close_neighbours_can_be_read():
    decoded = rd.EventStream([1.0, 1.1, 1.2, 5.0], [0] * 4, 0.0, 10.0, columns={"probability": np.full(4, 0.9)})
    seen = rd.EventStream([], [], 0.0, 10.0)
    view = StreamView(seen, decoded, [], np.zeros((40, 1)), np.array([100.0]), 10.0, ("call",), TimeAxis())
    figure = draw_stream(view)
    figure.canvas.draw()
    boxes = [note.get_window_extent() for note in figure.axes[0].texts]
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_windows_are_shaded_in_the_rows_of_their_types():
    seen, nothing = rd.EventStream([1.0, 2.0], [0, 1], 0.0, 10.0), rd.EventStream([], [], 0.0, 10.0)
    rates, families, windows = np.zeros((40, 2)), np.full(3, 100.0), [Window(3.0, 4.5, (1,))]
    view = StreamView(seen, nothing, [], rates, families, 10.0, ("call", "trip"), TimeAxis(), None, windows)
    figure = draw_stream(view)
    (shade,) = [c for c in figure.axes[0].collections if c.get_label().startswith("window")]
    box = shade.get_paths()[0].get_extents()
    assert (box.x0, box.x1) == (3.0, 4.5)
    (line,) = [place for place, name in zip(*tick_places(figure.axes[0]), strict=True) if name == "trip"]
    assert box.y0 < line < box.y1
    assert box.height < 2
    assert "window: more missing" in texts(figure)


def tick_places(axes) -> tuple[list[float], list[str]]:
    return list(axes.get_yticks()), [label.get_text() for label in axes.get_yticklabels()]


def test_odd_streams_and_names_are_drawn():
    odd = [rd.EventStream([], [], end=5.0, id=HOSTILE[4]), rd.EventStream([], [], 1.0, 1.0, id=HOSTILE[3])]
    posterior = poisson([0.3] * 60, odd, [*HOSTILE[:6], *map(str, range(54))])
    for i in (0, 1, -1):
        assert texts(posterior.plot(i))
    assert "20 draws" not in texts(poisson([0.3], odd, missing=0.0).plot(0))
    with pytest.raises(rd.DataError, match="no stream number 2"):
        posterior.plot(2)
    with pytest.raises(rd.WriteError, match=r"cannot be written as '\.bmp'"):
        posterior.plot(0, "picture.bmp")


def test_the_trade_off_has_a_point_for_each_cost_and_the_distance_to_the_truth(made, tmp_path):
    posterior, hidden = made
    left, right = posterior.plot_tradeoff(tmp_path / "a.png", costs=[0.5, 1.0, 2.0], truth=hidden).axes
    events = [posterior.consensus(cost).num_events for cost in (0.5, 1.0, 2.0)]
    assert right.lines[0].get_ydata() == pytest.approx(events)
    risk, distance = (line.get_ydata() for line in left.lines[1:])
    assert (np.diff(risk) <= 0.02).all()
    expected = rd.score(hidden, posterior.consensus(1.0), [1.0], 1.0).transport[0].distance.sum()
    assert distance[1] == pytest.approx(expected / hidden.num_events, rel=1e-6)


def test_training_curves_are_those_of_the_fit(tmp_path):
    rd.fit(rd.Poisson, streams(10), epochs=3, directory=tmp_path, progress=False)
    columns = read_metrics(tmp_path)
    axes = rd.plot_training(tmp_path, tmp_path / "losses.png").axes[0]
    assert (tmp_path / "losses.png").stat().st_size > 5_000
    assert all(place == int(place) for place in axes.get_xticks())
    assert axes.lines[1].get_xdata() == pytest.approx([1, 2, 3][: len(columns["epoch"])])
    assert axes.lines[1].get_ydata() == pytest.approx(columns["dev_loss"])
    for wrong in ("", "a,b\n1,2\n", "epoch,dev_loss\n1,x\n", "epoch,dev_loss\n1,2,3\n"):
        (tmp_path / "metrics.csv").write_text(wrong)
        with pytest.raises(rd.DataError, match="record of a fit"):
            rd.plot_training(tmp_path)


@pytest.fixture(scope="module")
def checked() -> dict:
    missing = rd.ByType([0.5, 0.3])
    return rd.check(
        rd.Filtering(rd.Poisson([0.5, 0.4]), missing), streams(8), particles=20, costs=[1.0, 4.0, 16.0]
    ).to_dict()


def test_a_check_that_was_kept_is_drawn_like_the_one_that_was_made(checked, tmp_path):
    (tmp_path / "check.json").write_text(json.dumps(checked))
    kept = read_check(tmp_path / "check.json")
    assert texts(draw_check(kept)) == texts(draw_check(checked))


def test_the_picture_of_a_check_has_the_coverage_of_each_type(checked):
    rows = sorted(checked["coverage"]["by_type"], key=lambda row: -row["events"])
    assert sum(row["events"] for row in rows) == checked["coverage"]["aligned"]
    covered = sum(row["events"] * row["value"] for row in rows) / checked["coverage"]["aligned"]
    assert covered == pytest.approx(checked["coverage"]["value"])
    axes = next(each for each in draw_check(checked).axes if "intervals that hold" in each.get_title(loc="left"))
    dots = axes.containers[0].lines[0].get_xdata()
    assert dots == pytest.approx([row["value"] for row in rows])


def test_legends_cover_no_number(checked):
    figure = draw_check(checked)
    figure.canvas.draw()
    titles = ("events of complete", "hidden events", "distance to", "ranks")
    panels = [each for each in figure.axes if each.get_title(loc="left").startswith(titles)]
    assert len(panels) == 4
    for axes in panels:
        box = axes.get_legend().get_window_extent()
        assert not box.overlaps(axes.get_window_extent())
        assert not box.overlaps(axes.xaxis.label.get_window_extent())


def test_the_check_of_a_fit_that_a_limit_of_time_had_stopped_was_not_read_again(checked):
    again = clean_check(checked | {"about": checked["about"] | {"unfinished": True}})
    assert again["about"] == checked["about"] | {"unfinished": True}


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@given(data=st.data(), junk=st.none() | st.text() | st.floats() | st.booleans() | st.lists(st.integers(), max_size=2))
@settings(max_examples=100, deadline=None)
def test_a_damaged_check_is_refused_or_can_be_shown(checked, data, junk):
    damaged = json.loads(json.dumps(checked))
    path = data.draw(st.sampled_from(sorted(places(damaged), key=str)))
    if not path:
        damaged = junk
    else:
        inner = damaged
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = junk
    try:
        clean = clean_check(damaged)
    except ValueError:
        return
    json.dumps(clean, allow_nan=False)
    if path and path[0] != "findings" and data.draw(st.integers(0, 9)) == 0:  # drawing is slow
        draw_check(clean)
