"""The atlas in a real browser: used as a person would, compared with the Python API. Needs Chromium."""

from __future__ import annotations

import functools
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import sandlab as sl
from sandlab.atlas.views.decoding import race, refine, walk

playwright = pytest.importorskip("playwright.sync_api", reason="the atlas's pages are tested with Playwright")
PATIENCE = 240_000  # milliseconds: the machine may be slow and busy


def installed() -> str | None:
    """The system's Chromium, or the one that Playwright keeps."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        with playwright.sync_playwright() as play:
            found = play.chromium.executable_path if Path(play.chromium.executable_path).exists() else None
    return found


BROWSER = installed()
if BROWSER is None:
    pytest.skip("there is no Chromium on this machine: the atlas's pages are not tested", allow_module_level=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    words = [
        sys.executable,
        "-m",
        "sandlab",
        "serve",
        "--port",
        str(port),
        "--store",
        str(tmp_path_factory.mktemp("s")),
    ]
    server = subprocess.Popen(words)
    place = f"http://127.0.0.1:{port}/"
    for _ in range(120):
        try:
            urllib.request.urlopen(f"{place}api/worlds", timeout=PATIENCE / 1000).read()
            break
        except OSError:
            time.sleep(0.25)
    yield place
    server.terminate()
    server.wait(20)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as play:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        made = play.chromium.launch(executable_path=BROWSER, args=options)
        yield made
        made.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    made = browser.new_page(viewport={"width": 1200, "height": 900})
    problems: list[str] = []
    made.on("pageerror", lambda problem: problems.append(str(problem)))
    made.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    made.set_default_timeout(PATIENCE)
    yield made
    made.close()
    expected = ("Failed to load resource", "blocked by CORS policy", "ERR_BLOCKED_BY")
    assert not [each for each in problems if not any(words in each for words in expected)]


def visit(page: Any, address: str, where: str) -> None:
    page.goto("about:blank")
    page.goto(f"{address}#/{where}")
    page.wait_for_selector("main[data-ready=yes]")


def test_typing_a_word_shows_the_oracles_law_and_the_address_can_be_shared(
    page: Any, browser: Any, address: str
) -> None:
    visit(page, address, "world?name=dyck")
    page.fill("#typed", "^([")
    page.wait_for_function("() => document.querySelector('#law')?.dataset.letters === '3'")
    law = page.evaluate("() => JSON.parse(document.querySelector('#law').textContent)")
    world = sl.worlds.Dyck()
    tokens = world.read_text("^([").unsqueeze(0)
    truth = world.oracle(sl.worlds.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool)))[0, -1].exp()
    assert max(abs(a - b) for a, b in zip(law, truth.tolist())) < 1e-5
    under = page.locator("#typed ~ .letters small").all_inner_texts()
    assert under == ["0", "1", "2"] and page.inner_text("#verdict") == "A word of the language."
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("#law", state="attached", timeout=PATIENCE)
    assert other.input_value("#typed") == "^(["
    other.close()
    page.fill("#typed", "x")
    page.wait_for_function("() => document.querySelector('#said').textContent.includes('no letter')")


def test_the_keyboard_reaches_the_page_and_chooses_letters(page: Any, address: str) -> None:
    visit(page, address, "world?name=dyck&text=%5E%28%5B%28")
    page.wait_for_function("() => document.querySelector('#law')?.dataset.letters === '4'")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # skips the header, and stays on the page
    assert page.evaluate("() => document.activeElement.id") == "main" and "name=dyck" in page.url
    page.focus("#typed")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    law = page.evaluate("() => JSON.parse(document.querySelector('#law').textContent)")
    world = sl.worlds.Dyck()
    tokens = world.read_text("^([(").unsqueeze(0)
    truth = world.oracle(sl.worlds.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool)))[0, 1].exp()
    assert max(abs(a - b) for a, b in zip(law, truth.tolist())) < 1e-5
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.tagName") == "SUMMARY"  # one letter is a stop, not each


def test_a_slider_changes_the_world_and_back_goes_back(page: Any, address: str) -> None:
    visit(page, address, "worlds")
    page.fill("input[type=search]", "flip-flop")
    page.click("a.panel >> nth=0")
    page.wait_for_selector("#field-length")
    page.focus("#field-length")
    page.keyboard.press("Home")  # 4, the least length of the world
    for _ in range(6):  # the keyboard stays in the slider while the page is drawn anew
        page.keyboard.press("ArrowRight")
    # Nine letters are read; the tenth is the answer to the last.
    page.wait_for_function("() => document.querySelector('.example .letters').children.length === 9")
    world = sl.worlds.FlipFlop(length=10)
    shown = (
        page.locator(".example .letters >> nth=0")
        .locator("span")
        .evaluate_all("all => all.map(e => e.firstChild.data)")
    )
    assert "".join(shown) == world.render(world.sample(8, rng=sl.rng(0)).inputs[0])
    page.go_back()
    page.wait_for_selector("input[type=search]")
    assert "#/worlds" in page.url


def test_a_circuit_is_typed_looked_into_and_loses_a_head(page: Any, address: str) -> None:
    visit(page, address, "circuits?machine=(ab)*&length=8&word=abab&method=scan")
    page.wait_for_function("() => document.querySelector('#right')?.textContent.startsWith('100 %')")
    assert page.locator("svg path").count() > 4
    page.click("text=Remove head 1 >> nth=0")
    page.wait_for_function("() => document.querySelector('#right')?.textContent.includes('without head')")
    assert "map of 0" in page.inner_text("main") and page.locator("#decomposition tr").count() == 3
    page.fill("#machine", "((")
    page.wait_for_function("() => document.querySelector('#said').textContent.length > 5")


def test_claims_are_all_drawn_filtered_and_opened(page: Any, address: str) -> None:
    from sandlab.atlas.records import claims

    rows = claims()["claims"]
    visit(page, address, "claims")
    page.wait_for_selector("#claims[data-whole=yes]")
    shown = page.locator("article.claim").evaluate_all("all => all.map(each => each.dataset.claim)")
    assert shown == [row["id"] for row in rows]
    every = sum(row["chapter"] == "markov" for row in rows)
    visit(page, address, "claims?chapter=markov")
    page.wait_for_function(f"() => document.querySelectorAll('article.claim').length === {every}")
    page.select_option("[aria-label=Verdict]", "inconclusive")
    page.wait_for_function(f"() => document.querySelectorAll('article.claim').length < {every}")
    page.select_option("[aria-label=Verdict]", "")
    page.wait_for_function(f"() => document.querySelectorAll('article.claim').length === {every}")
    page.click("text=History and figures >> nth=0")
    page.wait_for_selector("text=Run it now")
    page.select_option("[aria-label=Chapter]", "nce")
    page.wait_for_function("() => !document.querySelector('.more')")
    page.select_option("[aria-label=Chapter]", "markov")
    page.wait_for_selector("text=Run it now")  # a row comes back as it was
    page.wait_for_function("() => location.hash.includes('chapter=markov')")  # quick changes are gathered
    page.reload()
    page.wait_for_function(f"() => document.querySelectorAll('article.claim').length === {every}")
    page.wait_for_selector("text=Run it now")


def test_a_link_of_the_static_report_shows_its_claims(page: Any, address: str) -> None:
    from sandlab.lab._report.site import _in_atlas

    link = _in_atlas(SimpleNamespace(study="markov/weight-tying"))  # type: ignore[arg-type]
    visit(page, address, link.partition("#/")[2])
    shown = page.locator("article.claim").evaluate_all("all => all.map(each => each.dataset.claim)")
    assert shown and all(claim.startswith("markov/weight-tying.") for claim in shown)


def test_a_study_is_run_from_its_claim_followed_and_cancelled(page: Any, address: str) -> None:
    visit(page, address, "claims?words=markov/weight-tying.")
    page.click("text=History and figures >> nth=0")
    page.click("text=Run it now")
    page.wait_for_selector("#live #state")
    page.wait_for_function("() => document.querySelector('#state').textContent.endsWith('running')")
    assert "#/lab?job=" in page.url and "markov/weight-tying" in page.inner_text("#state")
    page.click("#live button >> text=Stop")
    page.wait_for_selector("#state[data-ended=yes]")
    assert page.inner_text("#state").endswith("stopped")


def test_a_page_of_another_origin_can_neither_read_nor_change(page: Any, address: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>elsewhere</title>")
    handler = functools.partial(QuietHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        page.goto(f"http://127.0.0.1:{elsewhere.server_port}/")
        read = f"fetch('{address}api/worlds').then(answer => answer.text().then(() => 'read'), () => 'refused')"
        assert page.evaluate(read) == "refused"
        order = json.dumps({"kind": "run", "study": "markov/weight-tying"})
        sent = f"fetch('{address}jobs', {{method: 'POST', mode: 'no-cors', body: '{order}'}}).then(() => 0, () => 0)"
        before = urllib.request.urlopen(f"{address}jobs").read()
        page.evaluate(sent)
        assert urllib.request.urlopen(f"{address}jobs").read() == before
        elsewhere.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing on the screen."""


def test_an_automaton_is_drawn_with_the_mouse_and_filled_in_with_the_keyboard(page: Any, address: str) -> None:
    visit(page, address, "circuits?machine=(ab)*&length=8&method=scan")
    page.click("text=Draw an automaton")
    page.click("text=Add a state")
    ends = [page.locator(f".editor .state[data-state='{state}']").bounding_box() for state in (0, 2)]
    (x1, y1), (x2, y2) = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in ends]
    page.mouse.move(x1, y1)
    page.mouse.down()
    page.mouse.move((x1 + x2) / 2, (y1 + y2) / 2)
    page.mouse.move(x2, y2)
    page.mouse.up()  # 0 goes to 2 under a
    page.select_option("[aria-label='from 2 under b']", "1")
    page.fill("#word", "ab")
    page.wait_for_function("() => document.querySelector('#right')?.textContent.startsWith('100 %')")
    drawn = json.loads(page.input_value("#machine"))
    assert drawn == {"letters": ["a", "b"], "transitions": [[2, 0], [0, 1], [2, 1]], "start": 0}
    page.wait_for_function("() => document.querySelectorAll('table.word td').length === 6")
    states = page.locator("table.word tr >> nth=2").locator("td").all_inner_texts()
    machine = sl.worlds.read_machine(json.dumps(drawn))
    assert [int(state) for state in states] == machine.run(machine.read_text("ab").unsqueeze(0))[0].tolist() == [2, 1]
    page.check("[aria-label='accept in 1']")
    page.wait_for_function("() => document.querySelector('#accepted')?.textContent === 'ab is a word of the language.'")
    assert page.evaluate("() => document.activeElement.ariaLabel") == "accept in 1"  # drawn anew, and still there
    page.fill("#pasted", '{"transitions": {"p": {"x": "q"}, "q": {"x": "q"}}, "start": "q", "accepting": ["p"]}')
    page.click("#take")
    page.wait_for_function("() => JSON.parse(document.querySelector('#machine').value).transitions.length === 2")
    taken = json.loads(page.input_value("#machine"))
    assert taken == {"letters": ["x"], "transitions": [[1], [1]], "start": 1, "accepting": [0]}


def test_the_map_of_sources_is_searched_walked_and_shared(page: Any, browser: Any, address: str) -> None:
    visit(page, address, "sources")
    page.fill("#find", "parity")
    bright = page.locator("#map .tile:not(.dim)")
    assert 0 < bright.count() < page.locator("#map .tile").count() / 5
    page.fill("#find", "")
    page.click("button.key[data-state=fails]")
    failing = bright.count()
    assert page.inner_text("button.key[data-state=fails]").endswith(f": {failing}")
    bright.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    chosen = page.locator("#map .tile:focus").get_attribute("aria-label").partition(":")[0]
    assert page.inner_text("#detail h3") == chosen
    page.wait_for_function(f"() => location.hash.includes({json.dumps(chosen)})")
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("#detail h3", timeout=PATIENCE)
    assert other.inner_text("#detail h3") == chosen and other.locator("#map .tile:not(.dim)").count() == failing
    other.close()


def fulfil(answer: str, route: Any) -> None:
    route.fulfill(body=answer, content_type="application/json")


def test_cards_stand_side_by_side_or_say_how_to_measure_one(page: Any, address: str) -> None:
    rows = [{"task": "counting", "test": "longer words", "score": score, "scores": [score]} for score in (0.25, 0.75)]
    cards = [{"model": name, "size": "small", "rows": [row]} for name, row in zip(("lstm", "transformer"), rows)]
    for found, words in (([], ["sandlab card"]), (cards, ["lstm (small)", "0.25", "0.75", "counting: longer words"])):
        answer = json.dumps({"cards": found})
        page.route("**/api/cards*", functools.partial(fulfil, answer))
        visit(page, address, "cards")
        shown = page.locator("main").text_content()
        assert all(word in shown for word in words)
        page.unroute("**/api/cards*")


def test_warm_attention_breaks_a_circuit(page: Any, address: str) -> None:
    visit(page, address, "circuits?machine=(ab)*&length=8&word=abab&method=scan&temperature=100000")
    page.wait_for_selector("#right.fails")
    page.focus("#temperature")
    page.keyboard.press("Home")  # coldest
    page.wait_for_selector("#right.holds")
    assert "temperature=0.1" in page.url


def test_a_walk_is_played_moved_through_and_shared(page: Any, browser: Any, address: str) -> None:
    visit(page, address, "decoding?tab=walk&depth=4&error=0.5&run=1")
    film = walk("vgb", depth=4, error=0.5, run=1)
    assert page.get_attribute("#moment-at", "max") == str(len(film["moments"]) - 1)
    page.focus("#moment-at")
    page.keyboard.press("End")
    word = "".join("ab"[token] for token in film["string"])
    assert page.inner_text("#moment").endswith(f"now “{word}”")
    assert page.locator("#stage .erased").count() == len({
        tuple(before["string"])
        for before, each in zip(film["moments"], film["moments"][1:])
        if each["kind"] == "erased"
    })  # fmt: skip
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("#stage svg", timeout=PATIENCE)
    assert other.inner_text("#moment") == page.inner_text("#moment")
    other.close()


def test_decoders_race_and_the_drawn_law_is_the_apis(page: Any, address: str) -> None:
    visit(page, address, "decoding?tab=race&depth=4&error=0.5&draws=100")
    page.click("#runners >> text=value-guided")
    page.wait_for_function("() => document.querySelector('#laws').textContent.includes('value-guided')")
    shown = json.loads(page.evaluate("() => document.querySelector('#laws').textContent"))
    truth = race(depth=4, error=0.5, draws=100)
    assert shown["target"] == truth["target"]
    assert {"exact": shown["exact"], "counts": shown["counts"]} == {
        key: truth["runners"][3][key] for key in ("exact", "counts")
    }
    page.click("text=In parallel")
    page.wait_for_selector("#agree", state="attached")
    exact = float(page.get_attribute("#agree", "data-exact"))
    assert abs(exact - refine(coupling=0.5, steps=1)["agree"]) < 1e-12
    page.go_back()
    page.wait_for_selector("#runners")


def test_a_training_is_seen_live_stopped_kept_and_guessed_against(page: Any, address: str) -> None:
    visit(page, address, 'training?world=in-context-markov&settings={"length":"8"}&steps=20000&seeds=2')
    page.click("text=Settings of the model")
    page.focus("#field-heads")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.python pre').textContent.includes(\"'heads': 2\")")
    page.click("#train")
    page.wait_for_selector("#live svg")
    assert page.locator("#live svg path").count() >= 2  # a curve for each seed
    page.wait_for_selector("#live .films svg")  # attention
    page.select_option("#member", "1")
    assert page.locator("#live .films figure").count() == 4  # two layers with two heads
    assert page.inner_text("#running") == "1"
    page.reload()  # the address knows the training
    page.wait_for_selector("#live svg")
    page.click("#live button >> text=Stop")
    page.wait_for_selector("#state[data-ended=yes]")
    assert page.inner_text("#state").endswith("stopped") and page.locator("#live button >> text=Stop").is_disabled()
    with page.expect_download() as arrived:
        page.click("#live button >> text=Export")
    assert arrived.value.suggested_filename.endswith(".zip")
    page.click("#live button >> text=Keep")
    page.click("a >> text=transformer on in-context-markov")
    page.wait_for_selector("#rival option >> nth=1", state="attached")
    page.select_option("#rival", index=1)
    page.click("#play")
    page.click("#board .keys button >> nth=0")
    page.wait_for_function("() => document.querySelector('#score').textContent.includes('the model')")


@pytest.mark.gate(2)
@pytest.mark.parametrize("width", [360, 800, 1600])
def test_no_page_is_wider_than_the_screen(browser: Any, address: str, width: int, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_default_timeout(PATIENCE)
    for where in ("worlds", "world?name=dyck", "circuits", "claims?chapter=nce", "training", "decoding",
                  "decoding?tab=race&draws=50", "decoding?tab=refine&sites=5", "sources", "cards", "lab"):  # fmt: skip
        visit(page, address, where)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width + 1, where
    page.close()
