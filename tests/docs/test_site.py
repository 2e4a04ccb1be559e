"""The site is built and its pages are read: links lead somewhere, pages show something, no network is needed."""

from __future__ import annotations

import contextlib
import html
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import sandlab as sl
from sandlab.registry import KINDS

pytest.importorskip("mkdocs", reason="the documentation is built with MkDocs")
ROOT = Path(__file__).parents[2]
FEW = "flip-flop transformer lstm memory-transformer tail-error beta-mixing greedy nce/landscape " + (
    "verifier/forced-backtracking"
)
LINK = re.compile(r'<[^>]*\s(?:href|src)="([^"]*)"')
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def build(folder: Path, only: str) -> Path:
    """A site with pages of the things that `only` names (of all where it is empty)."""
    settings = {**os.environ, "SANDLAB_DOCS": only, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("few") / "site", FEW)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("whole") / "site", "")


def left_out() -> set[str]:
    """Pages that a build of a few things does not have."""
    chapters = {name.partition("/")[0] for name in sl.names("studies")}
    pages = {f"{kind}/{name}.html" for kind in KINDS for name in sl.names(kind)}
    rooms = ("worlds", "models", "circuits", "learning", "decoding", "lenses", "studies", "lab")
    return pages | {f"sources/{chapter}.html" for chapter in chapters} | {f"reference/{room}.html" for room in rooms}


def broken(site: Path, absent: set[str]) -> list[str]:
    """Links and pictures that lead nowhere, and sections that do not exist; other sites are not asked."""
    found = []
    for page in sorted(site.rglob("*.html")):
        for raw in set(LINK.findall(page.read_text(encoding="utf-8"))):
            address = urlsplit(html.unescape(raw))
            if address.scheme or address.netloc or page.name == "404.html":
                continue
            target = (page.parent / unquote(address.path)).resolve() if address.path else page
            if not leads(target, unquote(address.fragment), site, absent):
                found.append(f"{page.relative_to(site)}: {raw}")
    return found


def leads(target: Path, section: str, site: Path, absent: set[str]) -> bool:
    if target.is_dir():  # read from files, a folder is a list of files
        return False
    if not target.is_file():  # MkDocs leaves the .md of a page that is not built
        return target.is_relative_to(site) and str(target.relative_to(site).with_suffix(".html")) in absent
    return not section or target.suffix != ".html" or section in anchors(target)


@cache
def anchors(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r'\b(?:id|name)="([^"]+)"', page.read_text(encoding="utf-8")))


def article(page: Path) -> str:
    """The text of a page without its frame."""
    return page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]


def bare(site: Path) -> list[str]:
    """Pages of registered things that show neither code nor a picture."""
    pages = [
        page
        for kind in KINDS
        for page in (site / kind).rglob("*.html")
        if page.parent != site / kind or page.stem != "index"
    ]
    assert pages
    return [str(page.relative_to(site)) for page in pages if not re.search(r'<img |class="highlight"', article(page))]


def test_no_link_of_a_small_site_is_broken(few) -> None:
    assert broken(few, left_out()) == []


def test_every_page_of_a_small_site_has_code_or_a_picture(few) -> None:
    assert bare(few) == []
    assert len(list((few / "notebooks").glob("*.html"))) == 6 and len(list((few / "tutorials").glob("*.html"))) == 6


def test_nothing_is_loaded_from_another_site(few) -> None:
    """Formulas, fonts, scripts and search work without a network."""
    for page in few.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(https?:[^"]+)"', page.read_text(encoding="utf-8")
        )
        assert loaded == [], page


def test_formulas_are_drawn_and_subscripts_set(few) -> None:
    tutorial = article(few / "tutorials" / "ngrams.html")
    assert tutorial.count('class="tex"') >= 5 and "$" not in re.sub(r"<[^>]+>", "", tutorial)
    assert with_raw_formulas(few) == []


def with_raw_formulas(site: Path) -> list[str]:
    """Pages on which q_{t−1} or e^{x} stands as it is typed."""
    found = []
    for page in sorted(site.rglob("*.html")):
        words = re.sub(r"<(pre|code|svg|script|style)\b.*?</\1>|<[^>]+>", "", article(page), flags=re.DOTALL)
        found += [str(page.relative_to(site))] if re.search(r"\w_\{|\w\^\{", words) else []
    return found


def test_a_study_page_shows_its_figure_first_and_one_row_per_claim(few) -> None:
    study = sl.get("studies", "nce/landscape")
    page = article(few / "studies" / "nce" / "landscape.html")
    assert page.index("<img ") < page.index("<table")
    head = re.sub(r"<[^>]+>|\s+", " ", page.partition("<thead>")[2].partition("</thead>")[0]).split()
    assert head == ["statement", "verdict", "ours", "source's"]
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    assert body.count("<tr>") == len(study.claims)


def test_galleries_have_a_card_with_a_thumbnail_for_everything_shown(few) -> None:
    worlds, studies = (article(few / f"gallery-{kind}.html") for kind in ("worlds", "studies"))
    assert worlds.count('class="card"') == 1 == worlds.count("<img ")
    assert studies.count('class="card"') == 2 == studies.count("<img ")


def test_what_was_found_stands_beside_what_was_published(few) -> None:
    page = article(few / "sources" / "verifier.html")
    assert "sandlab run verifier/forced-backtracking" in page
    head = re.sub(r"<[^>]+>|\s+", " ", page.partition("<thead>")[2].partition("</thead>")[0]).split()
    assert head == ["statement", "published", "here", "verdict", "status"]


@pytest.mark.skipif(BROWSER is None, reason="no browser to search with")
def test_search_works_from_a_file(few) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((few / "index.html").as_uri(), timeout=120_000)
        field, found = page.locator("input.md-search__input"), page.locator(".md-search-result__item").first
        for _ in range(30):  # letters typed before the page's script listens are lost: a person types again
            field.fill("", timeout=120_000)
            field.press_sequentially("flip-flop", timeout=120_000)  # the page listens to keys, not to values set
            with contextlib.suppress(playwright.TimeoutError):
                found.wait_for(timeout=6_000)
                break
        titles = page.locator(".md-search-result__item h1").all_inner_texts()
        browser.close()
    assert "flip-flop" in titles


@pytest.mark.slow
def test_no_link_of_the_whole_site_is_broken_and_no_page_is_bare(whole) -> None:
    assert broken(whole, set()) == []
    assert bare(whole) == []
    assert with_raw_formulas(whole) == []
    for kind in KINDS:
        for name in sl.names(kind):
            assert (whole / kind / f"{name}.html").is_file()
