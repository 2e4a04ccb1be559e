"""Everything that is made while the documentation is built: pages of registered things, galleries, sources, notebooks.

A build of a few things, to look at while writing:  SANDLAB_DOCS='dyck vgb accuracy markov/hessian' mkdocs build
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import notebook_pages
import study_pages
import thing_pages
from formulas import with_formulas, with_subscripts
from thing_pages import by_chapter, title_of

import sandlab as sl
from sandlab.lab._card import zoo_page
from sandlab.registry import KINDS

DOCS = Path(__file__).parent
ROOMS = ("worlds", "models", "circuits", "learning", "decoding", "lenses", "studies", "lab")
ROOT_PAGES = {"ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}


def shown(kind: str) -> list[str]:
    """The names that get a page: all, or those that SANDLAB_DOCS lists."""
    wanted = os.environ.get("SANDLAB_DOCS", "").split()
    return [name for name in sl.names(kind) if not wanted or name in wanted]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The tabs: the way in, then the rooms by chapter, then the field and the laboratory itself."""
    written = {folder: sorted(path.stem for path in (DOCS / folder).glob("*.md")) for folder in ("tutorials", "howto")}
    config.nav = [
        {"Start": ["index.md", "gallery-worlds.md", "gallery-studies.md"]},
        {"Learn": [
            {"Tutorials": ["tutorials/index.md", *(f"tutorials/{n}.md" for n in written["tutorials"] if n != "index")]},
            {"Notebooks": ["notebooks/index.md", *(f"notebooks/{name}.md" for name in notebook_pages.names())]},
            {"How to": [f"howto/{name}.md" for name in written["howto"]]},
        ]},
        *({kind.capitalize(): _tab(kind)} for kind in KINDS),
        {"Here and published": ["sources/index.md", *({title_of(c): f"sources/{c}.md"} for c in _chapters())]},
        {"The field": ["map.md", "theorems.md", "circuit-classes.md", "statements.md", "bibliography.md", "errata.md"]},
        {"Laboratory": [
            "cards.md", "verdicts.md", "reliability.md", "benchmarks.md", *ROOT_PAGES.values(),
            *([{"Reference": [f"reference/{room}.md" for room in _rooms()]}] if _rooms() else []),
        ]},
    ]  # fmt: skip
    return config


def _tab(kind: str) -> list[Any]:
    chapters = by_chapter(kind, shown(kind))
    groups = [{title_of(chapter): [{n: f"{kind}/{n}.md"} for n in members]} for chapter, members in chapters.items()]
    return [f"{kind}/index.md", *groups]


def _chapters() -> list[str]:
    return list(by_chapter("studies", shown("studies")))


def _rooms() -> list[str]:
    return [] if os.environ.get("SANDLAB_DOCS") else list(ROOMS)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those written by hand."""
    drawn: set[str] = set()
    for kind in KINDS:
        names = shown(kind)
        _add(files, config, f"{kind}/index.md", thing_pages.index(kind, names))
        for name in names:
            thing = sl.get(kind, name)
            pictures = thing_pages.pictures(kind, name, thing)
            drawn |= {name} if kind == "worlds" and pictures else set()
            for file, (_, content) in pictures.items():
                _add(files, config, f"{kind}/{file}", content)
            captions = {file: caption for file, (caption, _) in pictures.items()}
            page = study_pages.study_page(thing) if kind == "studies" else None
            _add(files, config, f"{kind}/{name}.md", page or thing_pages.thing_page(kind, name, thing, captions))
    _add(files, config, "gallery-worlds.md", thing_pages.gallery(shown("worlds"), drawn))
    _add(files, config, "gallery-studies.md", study_pages.gallery(shown("studies")))
    _add(files, config, "sources/index.md", study_pages.sources_index(shown("studies")))
    for chapter, members in by_chapter("studies", shown("studies")).items():
        _add(files, config, f"sources/{chapter}.md", study_pages.source_page(chapter, members))
    for path, content in {**notebook_pages.pages(), **zoo_page.pages()}.items():
        _add(files, config, path, content)
    for name, target in ROOT_PAGES.items():
        _add(files, config, target, _moved((DOCS.parent / name).read_text(encoding="utf-8")))
    for room in _rooms():
        _add(files, config, f"reference/{room}.md", _reference(room))
    return files


def _add(files: Files, config: MkDocsConfig, path: str, content: str | bytes) -> None:
    files.append(File.generated(config, path, content=content))


def _moved(text: str) -> str:
    """A page of the repository's root: links into docs/ lose that folder, links to code become plain."""
    text = re.sub(r"\]\(docs/", "](", text)
    for name, target in ROOT_PAGES.items():
        text = text.replace(f"]({name}", f"]({target}")
    return re.sub(r"\[([^\]]+)\]\((?:sandlab|tests|scripts|coverage|benchmarks)/?[^)]*\)", r"`\1`", text)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Formulas of written pages are set; generated pages have none, and may hold dollars."""
    return markdown if page.file.generated_by else with_formulas(markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Subscripts of docstrings."""
    return with_subscripts(content)


def _reference(room: str) -> str:
    package = DOCS.parent / "sandlab" / room
    paths = sorted(path for path in package.rglob("*.py") if not path.name.startswith("_"))
    modules = [".".join(path.relative_to(DOCS.parent).with_suffix("").parts) for path in paths]
    return f"# {room}\n\n" + "\n\n".join(f"::: {module}" for module in modules) + "\n"
