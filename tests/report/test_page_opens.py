"""What the page opens on, and what it says at first sight: the stream most worth a look, or that of its address."""

from __future__ import annotations

import base64
import gzip
import random
import re
import zlib
from importlib.resources import files

import pytest

import retrodict as rd
from tests.report.examples import HOSTILE, imputed, poisson, streams
from tests.report.test_page_in_browser import rows, serious

LONG = [0.2, 9.0, 5.0, 14.0, 3.0]
TOUCHED = {"s2": [(1.0, 4.0)], "s4": [(0.5, 2.5)]}


def outages(lasts: list[float], by_stream: dict[str, list]) -> rd.Posterior:
    """Empty streams of these lengths, half of whose events go missing, and all of them in windows of some."""
    missing = rd.Windows(by_stream=by_stream) * rd.ByType([0.5])
    quiet = rd.StreamSet([rd.EventStream([], [], end=end, id=f"s{i}") for i, end in enumerate(lasts)], types=["a"])
    return rd.impute(quiet, rd.Filtering(rd.Poisson([2.0]), missing.on(quiet)), particles=40)


def named(page) -> str:
    return page.inner_text("#stream-name")


def test_the_page_opens_on_the_stream_with_most_expected_of_those_with_imputed_events(visit, tmp_path):
    made = poisson([2.0], [rd.EventStream([], [], end=end, id=f"s{i}") for i, end in enumerate(LONG)], missing=0.9)
    page = visit(made.report(tmp_path / "page.html", cost=2.0))
    assert made.expected_count().argmax() == 3
    assert named(page) == "Stream s3"
    assert page.locator("#timeline .guess").count() > 0
    row = page.locator("#list .row[aria-selected=true]")
    assert row.get_attribute("title") == "s3"
    assert "#" not in page.url  # nothing was chosen


@pytest.mark.parametrize("cost", [2.0, 1e-3])
def test_where_there_are_windows_it_opens_on_a_stream_that_one_touches(visit, tmp_path, cost):
    """Whether or not events are imputed there; others have more that are expected."""
    made = outages(LONG, TOUCHED)
    assert made.expected_count().argmax() == 3
    page = visit(made.report(tmp_path / "page.html", cost=cost, costs=[cost]))
    assert named(page) == "Stream s2"
    assert (page.locator("#timeline .guess").count() > 0) == (cost == 2.0)
    hardly = outages(LONG, {"s0": [(0.1, 0.11)]})  # a window in which nothing is expected to be missing
    assert named(visit(hardly.report(tmp_path / "hardly.html", cost=cost, costs=[cost]))) == "Stream s3"


def test_streams_that_a_window_touches_can_be_listed_alone(visit, tmp_path, axe):
    page = visit(outages(LONG, TOUCHED).report(tmp_path / "page.html", cost=2.0))
    only = page.get_by_role("checkbox", name="only ones with a window (2)")
    only.focus()
    page.keyboard.press("Space")
    assert rows(page) == ["s2", "s4"]
    assert page.inner_text("#found") == "2 streams of 5"
    page.fill("#search", "s3")
    assert "No stream with a window has “s3” in its name." in page.inner_text("#nothing")
    page.get_by_role("button", name="Show all streams").click()
    assert not only.is_checked()
    assert len(rows(page)) == 5
    assert serious(page, axe) == []
    without = visit(imputed(streams(2))[0].report(tmp_path / "none.html"))
    assert without.locator("#windowed").is_hidden()


def test_an_address_names_a_stream_and_choosing_one_names_it_there(visit, tmp_path):
    names = ["a b/c", "50%", "%41", "streams", "ß#?&", HOSTILE[1], *(f"cab-{i}" for i in range(40))]
    path = imputed(streams(len(names), ids=names))[0].report(tmp_path / "page.html")
    for at, name in (("cab-30", "cab-30"), ("a%20b%2Fc", "a b/c"), ("50%", "50%"), ("%41", "%41")):
        assert named(visit(path, at=at)) == f"Stream {name}"
    page = visit(path, at="cab-39")
    top = page.locator("#stream-name").bounding_box()["y"]
    assert page.locator("#cost").bounding_box()["height"] <= top < 400  # below the slider, on the screen
    page.locator("#list").focus()
    page.keyboard.press("Home")
    for name in names[:6]:
        page.wait_for_function("n => document.querySelector('#stream-name').textContent === n", arg=f"Stream {name}")
        page.wait_for_function("n => location.hash === '#' + encodeURIComponent(n)", arg=name)
        assert named(visit(path, at=page.url.partition("#")[2])) == f"Stream {name}"
        page.keyboard.press("ArrowDown")
    page.fill("#search", "nobody")
    page.evaluate("location.hash = '#cab-7'")  # by hand
    page.wait_for_function("document.querySelector('#stream-name').textContent === 'Stream cab-7'")
    assert page.input_value("#search") == ""
    page.evaluate("location.hash = '#types'")  # a part of the page
    assert named(page) == "Stream cab-7"
    assert page.evaluate("history.length") <= 4  # choosing leaves no way back through all that were looked at


@pytest.mark.parametrize("at", ["s1", ""], ids=["named", "not named"])
def test_a_filter_that_the_browser_kept_hides_no_stream_that_is_to_be_shown(visit, tmp_path, at):
    """As browsers keep what was typed and ticked when a page is loaded again."""
    path = outages(LONG, TOUCHED).report(tmp_path / "page.html", cost=2.0)
    kept = path.read_text("utf-8")
    for part, more in (('id="search"', ' value="nobody"'), ('id="windowed"', " checked")):
        assert kept.count(part) == 1
        kept = kept.replace(part, part + more)
    path.write_text(kept, "utf-8")
    page = visit(path, at=at)
    assert named(page) == f"Stream {at or 's2'}"
    assert page.locator("#list .row[aria-selected=true]").get_attribute("title") == (at or "s2")
    assert page.input_value("#search") == ""


def test_an_address_of_no_stream_says_so(visit, tmp_path):
    path = imputed(streams(3))[0].report(tmp_path / "page.html")
    assert visit(path, at="cab%2099").inner_text("#found") == "No stream is named “cab 99”. 3 streams of 3"
    assert visit(path, at="streams").inner_text("#found") == "3 streams of 3"


def test_all_is_drawn_when_the_page_has_loaded(browser, tmp_path):
    """A picture taken at that moment has the stream, the charts and how it was made; blocks are below the script."""
    complete = streams(40)
    found = rd.check(rd.Filtering(rd.Poisson([0.5, 0.4]), rd.ByType([0.5, 0.3])), complete, particles=20)
    path = imputed(complete)[0].report(tmp_path / "page.html", check=found)
    counted = {"#timeline svg g": 3, ".row": 5, "#trade figure": 2, "#check-charts figure": 5, "#facts dt": 5}
    page = browser.new_page()
    page.add_init_script(
        "addEventListener('load', () => { window.there = Object.fromEntries("
        f"{list(counted)}.map(what => [what, document.querySelectorAll(what).length])); }})"
    )
    page.goto(path.as_uri())
    there = page.evaluate("window.there")
    page.close()
    assert {what: there[what] >= least for what, least in counted.items()} == dict.fromkeys(counted, True)


def inflated(browser, packed: list[bytes]) -> list[str]:
    """What the page's own code makes of packed data, or its error."""
    own = (files("retrodict.report.page") / "static" / "inflate.js").read_text(encoding="utf-8")
    page = browser.new_page()
    found = page.evaluate(
        "([own, all]) => { const gunzip = new Function(own + '; return gunzip')();"
        " return all.map(text => { try { const made = gunzip(Uint8Array.from(atob(text), c => c.charCodeAt(0)));"
        " let s = ''; for (const byte of made) s += String.fromCharCode(byte); return btoa(s); }"
        " catch (error) { return 'error'; } }); }",
        [own, [base64.b64encode(each).decode() for each in packed]],
    )
    page.close()
    return found


def test_what_gzip_packed_comes_back_and_damage_is_found(browser):
    """Stored blocks, fixed and own codes, of nothing, of one letter, of noise and of text."""
    dice = random.Random(0)
    noise = dice.randbytes(70_000)
    texts = [b"", b"a", b"a" * 300_000, noise, bytes(dice.choices(b"0123456789,[]", k=90_000)), noise[:900] * 60]
    packed = [gzip.compress(text, level, mtime=0) for text in texts for level in (0, 1, 6, 9)]
    for text in texts:
        plan = zlib.compressobj(9, zlib.DEFLATED, 31, 9, zlib.Z_FIXED)
        packed.append(plan.compress(text) + plan.flush())
    found = inflated(browser, packed)
    assert [base64.b64decode(each) for each in found] == [gzip.decompress(each) for each in packed]
    whole = gzip.compress(texts[4], 9, mtime=0)
    places = dice.sample(range(10, len(whole)), 40)
    broken = [whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1 :] for at in places]
    assert inflated(browser, [*broken, whole[:-1], whole[: len(whole) // 2]]) == ["error"] * 42


def test_a_damaged_page_says_so(browser, tmp_path):
    path = imputed(streams(3))[0].report(tmp_path / "page.html")
    text = path.read_text("utf-8")
    for part in ("index", "block-0"):
        at = re.search(rf'id="{part}">', text).end() + 60
        path.write_text(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :], "utf-8")
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.inner_text("#lead").startswith("The page is damaged and cannot be shown (")
        page.close()


@pytest.mark.filterwarnings("ignore::retrodict.errors.SuspicionNotice")
def test_a_row_says_a_measure_only_of_a_doubted_stream_or_where_it_is_sorted_by(visit, tmp_path):
    usual = [rd.EventStream([1.0 + i / 100, 5.0], [1, 1], end=10.0, id=f"u{i}") for i in range(30)]
    odd = rd.EventStream([400.0], [1], end=1000.0, id="odd")
    seen = rd.StreamSet([odd, *usual], types=["a", "b"])
    model = rd.Hawkes([0.5, 0.1], [[0.0, 0.8], [0.0, 0.0]], 2.0)
    page = visit(rd.impute(seen, rd.Filtering(model, rd.ByType([1.0, 0.0])), particles=40).report(tmp_path / "p.html"))
    page.locator("#list").focus()
    page.keyboard.press("Home")

    def told(name: str) -> str:
        return page.locator(f".row[title={name}] span").inner_text()

    assert re.fullmatch(r"[\d.]+ expected missing · \d+ imputed", told("u0"))
    assert re.fullmatch(r"[\d.,]+ expected missing · [\d,]+ imputed · surprise [\d.]+.*", told("odd"))
    page.select_option("#sort", "surprise")
    assert "surprise" in told("u29" if page.locator(".row[title=u29]").count() else "u0")
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    few = told("odd")
    page.keyboard.press("End")
    assert told("odd") != few


def test_every_part_of_the_picture_and_of_the_table_has_a_name(visit, tmp_path):
    page = visit(outages(LONG, TOUCHED).report(tmp_path / "page.html", cost=2.0))
    marks = page.inner_text(".legend")
    for words in ("effective families: independent guesses", "fewer than 10 of them: doubtful"):
        assert words in marks
    assert page.locator(".legend .few").count() == page.locator("#timeline .few").count() == 1
    assert page.locator("#types thead th").all_inner_texts()[-1] == "expected missing, as a bar"


def test_the_command_at_the_cost_of_the_slider_can_be_selected(visit, tmp_path):
    made = outages(LONG, TOUCHED)
    made.about["command"] = "retrodict impute model incomplete.csv -o imputed.csv --report page.html"
    page = visit(made.report(tmp_path / "page.html", cost=2.0, costs=[0.5, 2.0]))
    assert page.inner_text("#command") == "retrodict decode imputed.csv.draws --cost 2 -o imputed-cost-2.csv"
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    assert "--cost 0.5 " in page.inner_text("#command")
    page.locator("#command").select_text()
    assert page.evaluate("getSelection().toString()") == page.inner_text("#command")
    made.about["command"] += " --no-draws"
    assert "No draws were kept" in visit(made.report(tmp_path / "none.html")).inner_text("#again")


def test_warnings_begin_with_a_capital(visit, tmp_path):
    made = imputed(streams(2))[0]
    made.about["edges"] = ["stream 'cab-1' ends at an event"]
    page = visit(made.report(tmp_path / "page.html"))
    assert page.inner_text("#warning-list li:last-child") == "Stream 'cab-1' ends at an event"
    assert page.inner_text("#warning-list button.name") == "'cab-1'"
