"""The page in a real browser: it shows what the posterior says, by mouse, by keyboard and to screen readers."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import retrodict as rd
from retrodict.evaluate import score
from tests.report.examples import HOSTILE, NEW_YORK, imputed, poisson, streams

COSTS = [0.25, 1.0, 4.0]


@pytest.fixture(scope="module")
def posterior():
    return imputed(streams(30, axis=NEW_YORK))


@pytest.fixture(scope="module")
def path(posterior, tmp_path_factory):
    made, hidden = posterior
    return made.report(tmp_path_factory.mktemp("page") / "page.html", cost=1.0, costs=COSTS, truth=hidden)


def rows(page) -> list[str]:
    """The names of the streams that the list shows, in order."""
    found = page.eval_on_selector_all(".row", "rows => rows.map(r => [parseFloat(r.style.top), r.title])")
    return [name for _, name in sorted(found)]


def axis_labels(page) -> list[str]:
    texts = page.eval_on_selector_all("#timeline svg > g:first-child text", "texts => texts.map(t => t.textContent)")
    return list(texts)


def test_the_slider_switches_between_the_decodes(visit, path, posterior):
    page = visit(path, at="cab-0")
    slider = page.locator("#slider")
    slider.focus()
    page.keyboard.press("Home")
    for cost in COSTS:
        decoded = posterior[0].consensus(cost)
        page.wait_for_function("n => document.querySelectorAll('#timeline .guess').length === n", arg=len(decoded[0]))
        assert f"{decoded.num_events} event" in slider.get_attribute("aria-valuetext")
        assert f"{cost:g} hour" in page.inner_text("#cost-words")
        by_type = page.inner_text("#types tbody tr:first-child").split("\t")
        assert by_type[0] == "call"
        assert int(by_type[3]) == decoded.num_events
        page.keyboard.press("ArrowRight")
    assert len({posterior[0].consensus(cost).num_events for cost in COSTS}) == 3


def test_the_score_against_the_truth_switches_with_the_slider(visit, path, posterior):
    made, hidden = posterior
    page = visit(path, at="cab-0")
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    for cost in COSTS:
        scored = score(hidden, made.consensus(cost), [cost], 1.0)
        said, far = page.inner_text("#score-words"), scored.transport[0]
        assert f"At cost {cost:g} hour" in said
        assert float(re.search(r"([\d.]+) % of what predicting nothing is", said)[1]) == pytest.approx(
            100 * far.distance_per_event / cost, rel=6e-3
        )
        assert float(re.search(r"([\d.]+) % of the 90 % intervals hold", said)[1]) == pytest.approx(
            100 * scored.coverage.covered, rel=6e-3
        )
        (row,) = page.locator("#score-types tbody tr").all_inner_texts()
        assert row.split("\t")[:3] == ["call", str(hidden.num_events), str(made.consensus(cost).num_events)]
        own = re.search(r"(\d+) really missing: distance to the truth ([\d.]+)", page.inner_text("#detail"))
        assert int(own[1]) == len(hidden[0])
        assert float(own[2]) == pytest.approx(far.distance_by_stream[0], rel=2e-3)
        page.keyboard.press("ArrowRight")
    assert page.locator("#trade figure").count() == 3


def test_without_the_truth_there_is_no_score(visit, tmp_path, posterior):
    page = visit(posterior[0].report(tmp_path / "page.html"))
    assert page.locator("#score").is_hidden()
    assert page.locator("#trade figure").count() == 2
    assert "really missing" not in page.inner_text("#detail")


def test_the_words_of_each_part_are_explained_by_keyboard(visit, path):
    page = visit(path)
    for part, word in {
        "streams": "effective families",
        "cost": "timid",
        "score": "predicting nothing",
        "made": "seed",
    }.items():
        fold = page.locator(f"[data-words={part}]")
        assert word not in fold.inner_text()
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        assert word in fold.inner_text()
    assert "nats" not in page.inner_text("#list") + page.inner_text("#detail")


def test_search_sort_and_what_is_doubtful(visit, path, posterior):
    made = posterior[0]
    page = visit(path, at="cab-0")
    page.fill("#search", "CAB-1")
    assert rows(page) == ["cab-1", *(f"cab-{i}" for i in range(10, 20))]
    assert page.inner_text("#found") == "11 streams of 30"
    page.fill("#search", "nobody")
    assert rows(page) == []
    assert "No stream has “nobody” in its name." in page.inner_text("#nothing")
    assert page.inner_text("#stream-name") == "Stream cab-0"  # what was shown stays
    page.get_by_role("button", name="Show all streams").click()
    assert page.locator("#nothing").is_hidden()
    assert len(rows(page)) > 5
    assert page.get_attribute("#list .row[aria-selected=true]", "title") == "cab-0"
    page.fill("#search", "")
    page.select_option("#sort", "expected")
    expected = made.expected_count()
    assert rows(page)[:3] == [f"cab-{i}" for i in sorted(range(30), key=lambda i: (-expected[i], i))[:3]]
    page.click("#direction")
    assert rows(page)[0] == f"cab-{expected.argmin()}"
    page.select_option("#sort", "surprise")
    score = made.log_evidence / made.observed.lengths.clip(min=1)
    assert rows(page)[0] == f"cab-{score.argmin()}"
    page.select_option("#sort", "families")
    families = [float(re.search(r"([\d.]+) families", text)[1]) for text in page.locator(".row").all_inner_texts()]
    assert "surprise" not in page.locator(".row").all_inner_texts()[-1]
    assert page.inner_text("#direction") == "Lowest first"
    assert len(families) > 8
    page.check("#doubtful")
    doubtful = int(page.inner_text("#tiles div:last-child dd"))
    assert page.inner_text("#found").startswith(f"{doubtful} stream")


def test_an_event_hovered_over_says_what_it_is(visit, path, posterior):
    page = visit(path, at="cab-0")
    dot = page.locator("#timeline .guess").first
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    said = page.inner_text(".tip")
    event = posterior[0].consensus(1.0)[0]
    assert f"probability {event.columns['probability'][0]:.2f}" in said
    assert said.startswith("call, imputed: 2013-03-")
    page.mouse.move(2, 2)
    assert page.locator(".tip").is_hidden()


def test_an_event_tapped_says_what_it_is_and_a_tap_beside_it_ends_that(visit, path, posterior):
    page = visit(path, width=390, touch=True, at="cab-0")
    dot = page.locator("#timeline .guess").first
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.touchscreen.tap(x, y)
    event = posterior[0].consensus(1.0)[0]
    assert f"probability {event.columns['probability'][0]:.2f}" in page.inner_text(".tip", timeout=1_000)
    assert page.locator(".tip").is_visible()
    page.touchscreen.tap(x, page.locator("#timeline").bounding_box()["y"] + 1)
    assert page.locator(".tip").is_hidden()


def test_zoom_by_button_wheel_key_and_drag(visit, path):
    page = visit(path)
    whole = axis_labels(page)
    page.get_by_role("button", name="Zoom in").click()
    zoomed = axis_labels(page)
    assert zoomed != whole
    page.get_by_role("button", name="Zoom out").click()
    assert axis_labels(page) == whole
    timeline = page.locator("#timeline")
    timeline.scroll_into_view_if_needed()
    box = timeline.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 40)
    page.keyboard.down("Control")
    for _ in range(4):
        page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function("() => document.querySelector('#timeline').classList.contains('zoomed')")
    before = axis_labels(page)
    page.mouse.move(box["x"] + 200, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] - 400, box["y"] + 40, steps=4)
    page.mouse.up()
    assert axis_labels(page) != before
    timeline.focus()
    page.keyboard.press("0")
    assert axis_labels(page) == whole
    page.keyboard.press("+")
    assert axis_labels(page) == zoomed


def test_everything_can_be_reached_and_seen_by_keyboard(visit, path):
    page = visit(path)
    reached = []
    while True:
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "(() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return [e === document.body ? '' : e.id || e.textContent,"
            " parseFloat(s.outlineWidth) * (s.outlineStyle !== 'none')]; })()"
        )
        if not name:
            break
        assert outline >= 1, name
        reached.append(name)
    assert len(reached) == len(set(reached)) + 2  # three charts have numbers to unfold
    order = [
        "Skip to the streams",
        "theme",
        "types",
        "slider",
        "search",
        "sort",
        "direction",
        "doubtful",
        "list",
        "Zoom in",
    ]
    order.insert(2, "'cab-5'")  # named in a warning
    assert [name for name in reached if not name.startswith("What ")][: len(order)] == order
    assert reached.index("timeline") < reached.index("Events and belief as tables")
    page.locator("#list").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('#stream-name').textContent === 'Stream cab-2'")
    active = page.get_attribute("#list", "aria-activedescendant")
    assert page.get_attribute(f"#{active}", "aria-selected") == "true"
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('#stream-name').textContent === 'Stream cab-29'")
    page.locator("#timeline").focus()
    page.keyboard.press("ArrowRight")
    assert re.match(r"1 of \d+: ", page.inner_text("#said"))


def test_the_table_of_events_says_what_the_timeline_shows(visit, path, posterior):
    """In local time: clocks in New York went from 02:00 to 03:00 on 10 March 2013, which is 07:00 UTC."""
    made, hidden = posterior
    page = visit(path, at="cab-0")
    page.get_by_text("Events and belief as tables").click()
    page.locator("#table .events tbody tr").first.wait_for()
    table = [row.split("\t") for row in page.locator("#table .events tbody tr").all_inner_texts()]
    decoded = made.consensus(1.0)[0]
    kinds = [row[2] for row in table]
    assert (kinds.count("observed"), kinds.count("imputed"), kinds.count("really missing")) == (
        len(made.observed[0]),
        len(decoded),
        len(hidden[0]),
    )
    observed = [row[0][:19] for row in table if row[2] == "observed"]
    assert observed == [made.observed.axis.label(round(t * 3600e3) / 3600e3) for t in made.observed[0].times]
    sure = [float(row[3]) for row in table if row[2] == "imputed"]
    assert sure == pytest.approx(decoded.columns["probability"], abs=0.006)
    assert "2013-03-09 19:00:00 to 2013-03-10 06:00:00" in page.inner_text("#detail")  # ten hours, one skipped


def test_the_table_of_belief_has_the_expected_number_of_each_tenth_of_the_stream(visit, path, posterior):
    made, _ = posterior
    page = visit(path, at="cab-0")
    page.get_by_text("Events and belief as tables").click()
    page.locator("#belief tbody tr").first.wait_for()
    heads = page.locator("#belief thead th").all_inner_texts()
    assert heads == ["from and to", "call expected missing", "fewest families"]
    table = [row.split("\t") for row in page.locator("#belief tbody tr").all_inner_texts()]
    stream = made.observed[0]
    edges = np.linspace(stream.start, stream.end, 11)
    expected = [made.expected_count("call", a, b)[0] for a, b in itertools.pairwise(edges)]
    assert max(expected) > 2 * min(expected)
    assert [float(row[1]) for row in table] == pytest.approx(expected, abs=0.03)
    fewest = np.nanmin(made.chosen.effective_families[0])
    assert min(float(row[2]) for row in table) == pytest.approx(fewest, rel=0.05)  # two digits


def serious(page, axe: str) -> list[str]:
    """What axe-core finds that is serious or worse, everything unfolded."""
    for fold in page.locator("summary:visible").all():
        fold.click()
    page.evaluate(axe)
    found = page.evaluate("axe.run().then(result => result.violations.map(v => [v.impact, v.id, v.nodes[0].html]))")
    return [each for each in found if each[0] in ("serious", "critical")]


def test_windows_are_shaded_and_told(visit, tmp_path):
    complete = streams(2, axis=NEW_YORK)
    missing = rd.Windows([("2013-03-10T01:30", "2013-03-10T04:00")], ["call"]) * rd.ByType([0.2, 0.0])
    observed = missing.on(complete).censor(complete)[0]
    model = rd.Poisson([0.5, 0.4])
    model.types, model.time_unit = complete.types, "hour"
    made = rd.impute(observed, rd.Filtering(model, missing.on(complete)), particles=40)
    page = visit(made.report(tmp_path / "page.html", cost=1.0))
    (box,) = [shade.bounding_box() for shade in page.locator("#timeline .window").all()]  # in the row of calls alone
    ground = page.locator("#timeline").bounding_box()
    room = ground["width"] - 28
    start = float((np.datetime64("2013-03-10T06:30") - np.datetime64("2013-03-10T00:00")) / np.timedelta64(1, "h"))
    assert box["x"] == pytest.approx(ground["x"] + 14 + room * start / 10, abs=1)  # of ten hours since midnight, UTC
    assert box["width"] == pytest.approx(room * 1.5 / 10, abs=1)  # the clocks skip an hour
    said = page.inner_text("#stream-windows")
    assert said == "More goes missing in 2013-03-10 01:30:00 to 04:00:00 (call)."
    assert "stream-windows" in page.get_attribute("#timeline", "aria-describedby").split()
    assert "window in which more goes missing" in page.inner_text(".legend")
    without = visit(imputed(streams(2))[0].report(tmp_path / "none.html"))
    assert without.locator(".window").count() == 0
    assert without.inner_text("#stream-windows") == ""


def test_an_expected_number_is_the_same_wherever_it_stands(visit, path):
    page = visit(path)
    tile = page.locator("#tiles div", has_text="expected missing").locator("dd").first.inner_text()
    assert re.search(r"than expected \(([\d.]+)\)", page.inner_text("#why"))[1] == tile
    assert (
        page.inner_text("#types tbody tr:first-child").split("\t")[2].split("\n")[0] == tile
    )  # the other type never goes missing


def test_no_stream_is_doubtful_is_said(visit, tmp_path):
    made = poisson([0.3], [rd.EventStream([0.5], [0], end=2.0, id=f"s{i}") for i in range(3)])
    page = visit(made.report(tmp_path / "page.html"))
    page.check("#doubtful")
    assert page.inner_text("#nothing").startswith("No stream is doubtful.")
    assert page.locator("#list").is_hidden()
    page.uncheck("#doubtful")
    assert page.locator("#list").is_visible()


ODD = 'it\'s "odd" \\ <b>'


@pytest.mark.parametrize("name", ["P-1144", "it's", ODD, 17], ids=str)
@pytest.mark.filterwarnings("ignore::retrodict.errors.SuspicionNotice")
def test_a_stream_named_in_a_warning_is_chosen_by_its_name(visit, tmp_path, axe, name):
    """It is listed again where a search had left it out."""
    usual = [rd.EventStream([1.0, 5.0], [1, 1], end=10.0, id=f"usual-{i}") for i in range(3)]
    never = rd.EventStream([3.0], [0], end=10.0, id=name)  # of a type that always goes missing
    seen = rd.StreamSet([*usual, never], types=["a", "b"])
    made = rd.impute(seen, rd.Filtering(MODEL_TWO, rd.ByType([1.0, 0.0])), particles=20)
    page = visit(made.report(tmp_path / "page.html"))
    assert page.inner_text("#stream-name") != f"Stream {name}"
    page.fill("#search", "usual")
    link = page.locator("#warning-list button.name")
    assert link.inner_text() == repr(name)
    assert f"Stream {name!r}: the model gives" in page.inner_text("#warning-list")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("n => document.querySelector('#stream-name').textContent === n", arg=f"Stream {name}")
    page.wait_for_function("() => document.activeElement.id === 'stream-name'")
    assert page.get_attribute("#list .row[aria-selected=true]", "title") == str(name)
    assert page.input_value("#search") == ""
    assert serious(page, axe) == []


def test_a_narrow_timeline_has_two_ticks_or_more(visit, tmp_path):
    """From half an hour to ten years, of dates and of numbers that do not begin at 0."""
    spans = [0.5, 7.0, 36.0, 47.0, 50.0, 81.6, 200.0, 1000.0, 2500.0, 9000.0, 90000.0]
    for axis in (NEW_YORK, None):
        complete = [rd.EventStream([], [], 3.3, 3.3 + span, id=f"s{i}") for i, span in enumerate(spans)]
        seen = rd.StreamSet(complete, types=["a"], axis=axis)
        model = rd.Poisson([1e-4])
        model.time_unit = None if axis is None else "hour"
        made = rd.impute(seen, rd.Filtering(model, rd.ByType(0.5)), particles=5)
        page = visit(made.report(tmp_path / "page.html"), width=390)
        page.locator("#list").focus()
        page.keyboard.press("Home")
        for i in range(len(spans)):
            page.wait_for_function("n => document.querySelector('#stream-name').textContent === n", arg=f"Stream s{i}")
            lines = page.locator("#timeline svg > g:first-child line").count()
            assert 2 <= lines <= 6, spans[i]
            assert len(axis_labels(page)) >= 2, spans[i]
            page.keyboard.press("ArrowDown")


@pytest.mark.parametrize("width", [1280, 390])
def test_an_interval_narrower_than_its_mark_is_drawn_on_it(visit, path, width):
    page = visit(path, width)
    marks, within = page.locator("#timeline .guess").all(), page.locator("#timeline .within").all()
    assert len(marks) == len(within) > 0
    for mark, line in zip(marks, within, strict=True):
        outer, inner = mark.bounding_box(), line.bounding_box()
        assert inner["x"] >= outer["x"] - 0.1
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 0.1
        assert mark.evaluate("(mark, line) => mark.nextSibling === line", line.element_handle())  # drawn after it


def test_the_table_of_types_fits_a_telephone(visit, path):
    page = visit(path, 390)
    wide, room = page.evaluate("(box => [box.scrollWidth, box.clientWidth])(document.querySelector('#types'))")
    assert wide <= room


def test_what_is_scrolled_to_stands_below_the_slider(visit, path):
    page = visit(path)
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'; location.hash = '#stream-name'")
    slider, name = (page.locator(what).bounding_box() for what in ("#cost", "#stream-name"))
    assert slider["y"] == pytest.approx(0, abs=1)  # it sticks to the top
    assert name["y"] >= slider["y"] + slider["height"]


def test_intervals_that_overlap_are_drawn_beside_each_other(visit, path):
    page = visit(path, at="cab-0")
    page.locator("#slider").focus()
    page.keyboard.press("End")
    pairs = 0
    for i in range(30):
        page.wait_for_function("n => document.querySelector('#stream-name').textContent === n", arg=f"Stream cab-{i}")
        boxes = page.eval_on_selector_all(
            "#timeline .span", "all => all.map(each => each.getBoundingClientRect().toJSON())"
        )
        for a, b in itertools.pairwise(sorted(boxes, key=lambda box: box["x"])):
            if b["x"] < a["x"] + a["width"] - 4:
                pairs += 1
                assert a["y"] != b["y"]
        page.locator("#list").focus()
        page.keyboard.press("ArrowDown")
    assert pairs > 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing_serious(visit, path, axe, width, scheme):
    page = visit(path, width, scheme)
    assert serious(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_light_and_dark_follow_the_system_and_the_button(visit, path):
    def ground(page) -> int:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    light, dark = visit(path), visit(path, scheme="dark")
    assert ground(light) > 600
    assert ground(dark) < 150
    light.click("#theme")
    assert ground(light) == ground(dark)
    assert light.inner_text("#theme") == "Light colours"


def test_hostile_names_are_but_text(visit, tmp_path):
    types = [HOSTILE[0], HOSTILE[1] + "\n"]
    made, hidden = imputed(streams(len(HOSTILE), ids=list(HOSTILE), types=types))
    made.about |= {"command": HOSTILE[0], "missing": HOSTILE[2]}
    path = made.report(tmp_path / "page.html", truth=hidden, title=HOSTILE[0] + HOSTILE[3].replace("\x00", ""))
    assert "window.hacked" not in path.read_text(encoding="utf-8").split("<h1>")[1].split("</h1>")[1]
    page = visit(path)
    page.get_by_text("Events and belief as tables").click()
    page.locator("#list").focus()
    page.keyboard.press("Home")
    for name in HOSTILE:
        shown = name if len(name) <= 400 else name[:399] + "…"
        page.wait_for_function("n => document.querySelector('#stream-name').textContent === 'Stream ' + n", arg=shown)
        page.keyboard.press("ArrowDown")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, #timeline script, #list script").count() == 0
    assert HOSTILE[0] in page.inner_text("#types")


def test_two_thousand_streams_are_listed_with_few_elements(visit, tmp_path):
    made = poisson([0.3], [rd.EventStream([0.5], [0], end=2.0, id=f"s{i}") for i in range(2000)])
    page = visit(made.report(tmp_path / "page.html"))
    assert page.locator(".row").count() < 40
    page.locator("#list").focus()
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('#stream-name').textContent === 'Stream s1999'")
    assert page.locator(".row").count() < 40
    page.fill("#search", "s1234")
    assert rows(page) == ["s1234"]


def test_odd_streams_are_shown(visit, tmp_path):
    """An empty one, one of no length, one without missing events, sixty types."""
    many = [f"type-{k}" for k in range(60)]
    busy = rd.EventStream(np.sort(np.random.default_rng(0).uniform(0, 6, 60)), range(60), end=6.0, id="busy")
    odd = [rd.EventStream([], [], end=5.0, id="empty"), rd.EventStream([], [], 1.0, 1.0, id="short"), busy]
    page = visit(poisson([0.3] * 60, odd, many).report(tmp_path / "many.html"))
    page.locator("#list").focus()
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelectorAll('#timeline text.type').length === 60")
    complete = visit(poisson([0.3], odd[:2], missing=0.0).report(tmp_path / "none.html"))
    assert complete.locator("#timeline .guess").count() == 0
    assert "0 events imputed" in complete.inner_text("#cost-words")


def test_the_page_opens_on_a_stream_with_something_to_see(visit, tmp_path):
    """Of three streams the third alone has imputed events; where none has, the one with most expected is shown."""
    quiet = [rd.EventStream([], [], end=0.02, id="a"), rd.EventStream([], [], end=0.01, id="b")]
    made = poisson([2.0], [*quiet, rd.EventStream([], [], end=9.0, id="c")], missing=0.9)
    page = visit(made.report(tmp_path / "page.html", cost=2.0))
    assert page.inner_text("#stream-name") == "Stream c"
    assert page.locator("#timeline .guess").count() > 0
    assert page.get_attribute("#list .row[aria-selected=true]", "title") == "c"
    few = poisson([0.5], [rd.EventStream([], [], end=end, id=f"{end:g} long") for end in (1.0, 9.0, 3.0)])
    assert few.expected_count().argmax() == 1
    page = visit(few.report(tmp_path / "few.html", cost=1e-3))
    assert page.inner_text("#stream-name") == "Stream 9 long"
    assert page.locator("#timeline .guess").count() == 0


def test_expected_events_that_are_not_imputed_are_explained_where_both_numbers_are(visit, tmp_path):
    made = poisson([0.1], [rd.EventStream([], [], end=20.0, id="a")], missing=0.5)
    expected = float(made.expected_count()[0])
    assert 0.5 < expected < 1.5
    page = visit(made.report(tmp_path / "page.html", costs=[0.1, 60.0], cost=0.1))
    for place in ("#why", "#stream-why"):
        said = (
            f"Fewer are imputed (0) than expected ({expected:.2f}), because a doubtful guess costs more than it helps."
        )
        assert page.inner_text(place).startswith(said)
    assert page.inner_text("#why").endswith("For totals, take the expected number.")
    assert f"{expected:.2f} expected missing · 0 imputed at this cost" in page.inner_text("#detail")
    exact = poisson([0.1], [rd.EventStream([], [], end=20.0, id="a")], missing=0.0)
    assert visit(exact.report(tmp_path / "none.html")).inner_text("#stream-why") == ""


def test_the_check_is_drawn_with_its_numbers(visit, tmp_path, axe):
    missing = rd.ByType([0.5, 0.3])
    complete = streams(12)
    found = rd.check(rd.Filtering(MODEL_TWO, missing), complete, particles=20, costs=[1.0, 4.0, 16.0])
    observed, _ = missing.censor(complete)
    made = rd.impute(observed, rd.Filtering(MODEL_TWO, missing), particles=20)
    page = visit(made.report(tmp_path / "page.html", check=found))
    assert page.inner_text("#verdict") == found.verdict
    assert page.locator("#check-charts figure").count() == 6
    share = found.to_dict()["ranks"]["by type"]
    page.locator("#check-charts figure").nth(1).locator("summary").click()
    shown = page.locator("#check-charts figure").nth(1).locator("tbody td").all_inner_texts()
    assert [float(text) for text in shown] == pytest.approx(share, abs=1e-3)
    chart = page.locator("#check-charts figure").nth(2)
    chart.locator("summary").click()
    rows = found.to_dict()["coverage"]["by_type"]
    told = [text.split("\t") for text in chart.locator("tbody tr").all_inner_texts()]
    assert [(name, int(events)) for name, *_, events in told] == [(row["type"], row["events"]) for row in rows]
    assert [float(row[1]) for row in told] == pytest.approx([row["value"] for row in rows], abs=1e-3)
    assert "Checked on 12 complete streams" in page.inner_text("#checked")
    assert serious(page, axe) == []


def test_the_largest_dot_of_a_chart_is_not_cut_off(visit, tmp_path):
    missing = rd.ByType([0.5, 0.3])
    posterior, complete = imputed(streams(5))[0], streams(5)
    found = rd.check(rd.Filtering(MODEL_TWO, missing), complete, particles=20).to_dict()
    found["reliability"] = [{"probability": 1.0, "value": 1.0, "error": 0.0, "events": 9, "streams": 5}]
    page = visit(posterior.report(tmp_path / "page.html", check=found))
    chart = page.locator("#check-charts figure").first
    frame, dot = chart.locator("svg").bounding_box(), chart.locator("circle").bounding_box()
    assert dot["width"] > 20
    assert dot["y"] >= frame["y"]
    assert dot["x"] + dot["width"] <= frame["x"] + frame["width"]
    bar = chart.locator("path.ours").bounding_box()  # nine of nine: as likely as not of at least 9 / 13
    assert bar["height"] == pytest.approx((frame["height"] / 204) * 156 * 4 / 13, abs=3)
    assert bar["y"] == pytest.approx(dot["y"] + dot["height"] / 2, abs=2)  # it ends at 1


MODEL_TWO = rd.Poisson([0.5, 0.4])
