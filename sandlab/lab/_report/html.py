"""Writing HTML by hand: elements as functions, every text escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

__all__ = ["Markup", "element", "page", "prose", "table"]

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3 { line-height: 1.25; }
a { color: inherit; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem .4rem 0; border-bottom: 1px solid var(--line); }
code, pre { font: .88em ui-monospace, monospace; background: var(--soft); border-radius: 4px; padding: .1em .3em; }
pre { overflow-x: auto; padding: .6rem; }
figure { margin: 1.5rem 0; background: #fff; border-radius: 6px; padding: .5rem; overflow-x: auto; }
figure svg { width: 100%; height: auto; }
.quiet { opacity: .7; font-size: .9em; }
.holds { color: #2a7a3b; } .fails { color: #c33; } .inconclusive { color: #a70; }
@media (prefers-color-scheme: dark) { .holds { color: #7c7; } .fails { color: #f88; } .inconclusive { color: #fc6; } }
@media (max-width: 40rem) {
  table.cards, .cards tbody, .cards tr, .cards td { display: block; } .cards thead { display: none; }
  .cards tr { border: 1px solid var(--line); border-radius: 6px; margin: .6rem 0; padding: .4rem .6rem; }
  .cards td { border: 0; padding: .15rem 0; }
  .cards td[data-name]:not(:empty)::before { content: attr(data-name) ": "; opacity: .6; }
}
"""


class Markup(str):
    """Text that is HTML already."""


def element(name: str, *inside: object, **attributes: str) -> Markup:
    """`element("a", "text", href="x")`; a trailing underscore frees a Python word: `class_`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items()
    )
    if name == "img":
        return Markup(f"<img{written}>")
    return Markup(f"<{name}{written}>{''.join(_text(part) for part in inside)}</{name}>")


def table(columns: list[str], rows: Sequence[Sequence[object]], **attributes: str) -> Markup:
    """A table that can be scrolled sideways; with class_="cards" its rows become cards on a phone."""
    head = element("thead", element("tr", *(element("th", name) for name in columns)))
    body = [element("tr", *(element("td", cell, data_name=name) for name, cell in zip(columns, row))) for row in rows]
    return element("div", element("table", head, element("tbody", *body), **attributes), class_="scroll")


def prose(text: str) -> Markup:
    """Paragraphs of a docstring, with **bold** and `code`; indented ones stay as they are."""
    pieces = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.startswith("    "):
            pieces.append(element("pre", paragraph))
            continue
        inner = html.escape(paragraph)
        inner = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", inner, flags=re.DOTALL)
        inner = re.sub(r"`(.+?)`", r"<code>\1</code>", inner)
        pieces.append(element("p", Markup(inner)))
    return Markup("".join(pieces))


def page(title: str, *inside: object) -> str:
    """A whole document with its style inside: nothing is fetched."""
    head = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    return "<!doctype html>\n" + element("html", head, element("body", *inside), lang="en")


def _text(part: object) -> str:
    return part if isinstance(part, Markup) else html.escape(str(part))
