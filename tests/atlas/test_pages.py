"""The atlas in a real browser: used as a person would, compared with the Python API. Needs Chromium."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import sandlab as sl

playwright = pytest.importorskip("playwright.sync_api", reason="the atlas's pages are tested with Playwright")
PATIENCE = 300_000  # milliseconds: the machine may be slow and busy


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
    assert not [each for each in problems if "Failed to load resource" not in each]


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
    other = browser.new_page()
    other.goto(page.url)
    other.wait_for_selector("#law", state="attached", timeout=PATIENCE)
    assert other.input_value("#typed") == "^(["
    other.close()
    page.fill("#typed", "x")
    page.wait_for_function("() => document.querySelector('#said').textContent.includes('no letter')")


def test_a_slider_changes_the_world_and_back_goes_back(page: Any, address: str) -> None:
    visit(page, address, "worlds")
    page.fill("input[type=search]", "flip-flop")
    page.click("a.panel >> nth=0")
    page.wait_for_selector("#field-length")
    page.evaluate(
        "() => { const field = document.querySelector('#field-length'); field.value = 10; "
        "field.dispatchEvent(new Event('change')); }"
    )
    page.wait_for_function("() => document.querySelector('.letters').children.length <= 10")
    world = sl.worlds.FlipFlop(length=10)
    shown = page.locator(".letters >> nth=0").locator("span").all_inner_texts()
    assert "".join(shown) == world.render(world.sample(8, rng=sl.rng(0)).inputs[0])
    page.go_back()
    page.wait_for_selector("input[type=search]")
    assert page.url.endswith("#/worlds")


def test_a_circuit_is_typed_looked_into_and_loses_a_head(page: Any, address: str) -> None:
    visit(page, address, "circuits?machine=(ab)*&length=8&word=abab&method=scan")
    page.wait_for_function("() => document.querySelector('#right')?.textContent.startsWith('100 %')")
    assert page.locator("svg path").count() > 4
    page.click("text=Remove head 1 >> nth=0")
    page.wait_for_function("() => document.querySelector('#right')?.textContent.includes('without head')")
    page.fill("#machine", "((")
    page.wait_for_function("() => document.querySelector('#said').textContent.length > 5")


def test_claims_are_filtered_and_opened(page: Any, address: str) -> None:
    visit(page, address, "claims?chapter=markov")
    page.wait_for_selector("article.claim")
    every = page.locator("article.claim").count()
    page.select_option("[aria-label=Verdict]", "inconclusive")
    page.wait_for_function(f"() => document.querySelectorAll('article.claim').length < {every}")
    page.select_option("[aria-label=Verdict]", "")
    page.wait_for_function(f"() => document.querySelectorAll('article.claim').length === {every}")
    page.click("text=History and figures >> nth=0")
    page.wait_for_selector("text=Run it now")
    page.reload()
    page.wait_for_selector("article.claim")
    assert page.locator("article.claim").count() == every


def test_a_training_is_seen_live_and_stopped(page: Any, address: str) -> None:
    visit(page, address, "training?world=in-context-markov&model=rnn&length=8&steps=20000&seeds=2")
    page.click("button.main")
    page.wait_for_selector("#live svg")
    drawn = page.locator("#live svg path").count()
    assert drawn >= 2  # a curve for each seed
    page.click("#live button >> text=Stop")
    page.wait_for_function("() => document.querySelector('#state').textContent.endsWith('stopped')")
    assert page.locator("#live button >> text=Stop").is_disabled()


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_no_page_is_wider_than_the_screen(browser: Any, address: str, width: int, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_default_timeout(PATIENCE)
    for where in ("worlds", "world?name=dyck", "circuits", "claims?chapter=nce", "training", "sources", "cards", "lab"):
        visit(page, address, where)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width + 1, where
    page.close()
