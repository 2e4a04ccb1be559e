"""The atlas in a real Chromium: how long a person waits, against the limits of its pages.

    python benchmarks/atlas.py

Seconds from `sandlab serve` to the answer of the first page, and to the page as drawn in a browser that is open; from
asking a fresh server for the claims to the last of them drawn, and again of the same server; from a key press on the
page of a world to the answer on the screen. Needs Playwright and a Chromium.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

BASELINE = "the limit of the page"
QUICK = {"worlds": ("dyck",), "keys": 12}
WORLDS = ("abab", "dyck", "in-context-markov", "symmetric-group", "flip-flop", "lego", "masked-grammar")
FIRST, CLAIMS, KEY = 1.0, 1.0, 0.1

# From the key press to the frame in which the law, or a sentence about the text, has changed.
WATCH = """() => {
  window.waits = [];
  const input = document.querySelector("#typed"), answers = [input.parentElement, document.querySelector("#said")];
  let pressed = 0;
  input.addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
  const seen = () => { if (pressed) { const from = pressed; pressed = 0;
    requestAnimationFrame(() => setTimeout(() => window.waits.push((performance.now() - from) / 1000), 0)); } };
  const watch = new MutationObserver((changes) => { if (changes.some((each) => each.addedNodes.length)) seen(); });
  for (const each of answers) watch.observe(each, { childList: true, subtree: true });
}"""
# The time of the first frame in which an element stands.
STOOD = """new MutationObserver((_, self) => { if (document.querySelector("READY")) { self.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.stood = performance.now() / 1000; }, 0)); } })
  .observe(document, { childList: true, subtree: true, attributeFilter: ["data-ready", "data-whole"] });"""
READY, WHOLE = "main[data-ready=yes]", "#claims[data-whole=yes]"


@contextlib.contextmanager
def started() -> Iterator[str]:
    """The address of a server whose process has just been started."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    with tempfile.TemporaryDirectory() as store:
        words = [sys.executable, "-m", "sandlab", "serve", "--port", str(port), "--store", store]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.wait(30)


def fetched(place: str, *paths: str) -> None:
    """Wait until a server listens, and read what stands there."""
    while True:
        with contextlib.suppress(OSError):
            for path in paths:
                urllib.request.urlopen(f"{place}{path}", timeout=60).read()
            return
        time.sleep(0.01)


@contextlib.contextmanager
def server() -> Iterator[tuple[str, float]]:
    """The address of a fresh server, and the seconds until its first page had come."""
    begun = time.perf_counter()
    with started() as place:
        fetched(place, "", "api/worlds")
        yield place, time.perf_counter() - begun


def first_drawn(browser: Any) -> float:
    """Seconds from starting a server until its first page stands in a browser."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.add_init_script(STOOD.replace("READY", READY))
    begun = time.time()
    with started() as place:
        fetched(place, "static/base.js")
        page.goto(place)
        page.wait_for_function("() => window.stood", polling=50, timeout=120_000)
        stood = page.evaluate("() => performance.timeOrigin / 1000 + window.stood")
    page.close()
    return float(stood) - begun


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


def drawn(browser: Any, address: str, ready: str) -> float:
    """Seconds until what is waited for stands on a page that is opened, as the page itself sees it."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.add_init_script(STOOD.replace("READY", ready))
    page.goto(address)
    page.wait_for_function("() => window.stood", polling=200, timeout=120_000)
    seconds = page.evaluate("() => window.stood")
    page.close()
    return float(seconds)


def typing(browser: Any, place: str, world: str, keys: int) -> list[float]:
    """Seconds from each of so many key presses to its answer: letters are taken away and written again."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(f"{place}#/world?name={world}")
    page.wait_for_selector("#law, #typed ~ div p", state="attached", timeout=120_000)
    text = page.input_value("#typed")
    page.focus("#typed")
    page.keyboard.press("End")
    page.evaluate(WATCH)
    for number in range(keys):
        page.keyboard.press("Backspace" if number % 2 == 0 else text[-1])
        page.wait_for_function(f"() => window.waits.length > {number}", timeout=60_000)
    waits = page.evaluate("() => window.waits")
    page.close()
    return [float(each) for each in waits]


def measure(worlds: tuple[str, ...] = WORLDS, keys: int = 30) -> Iterator[dict[str, Any]]:
    """Our seconds, the limit, and how many times we stay below it."""

    def row(name: str, ours: float, limit: float) -> dict[str, Any]:
        return {"name": name, "unit": "s", "ours": ours, "baseline": limit, "ratio": limit / ours}

    with chromium() as browser:
        browser.new_page().close()  # a browser that is open already
        yield row("sandlab serve: first page drawn", first_drawn(browser), FIRST)
        with server() as (place, first):
            yield row("sandlab serve: first page answered", first, FIRST)
            yield row("claims of a fresh server, all drawn", drawn(browser, f"{place}#/claims", WHOLE), CLAIMS)
            yield row("claims again, all drawn", drawn(browser, f"{place}#/claims", WHOLE), CLAIMS)
            for world in worlds:
                waits = typing(browser, place, world, keys)
                yield row(f"typing in {world}, median", statistics.median(waits), KEY)
                yield row(f"typing in {world}, slowest", max(waits), KEY)


if __name__ == "__main__":
    for found in measure():
        print(f"{found['name']:<42}{found['ours']:.3f} s, {found['ratio']:.1f} times below {found['baseline']} s")
