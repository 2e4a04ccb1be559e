"""Formulas for pages that are read without a network: TeX becomes SVG, subscripts of docstrings become HTML.

Written pages say $…$ (in the line) or $$…$$ (a line of its own); matplotlib sets them. Docstrings are plain text, in
which q_{t−1} and e^{−βE} stand for subscripts and superscripts.
"""

from __future__ import annotations

import functools
import html
import re
from typing import Any

from matplotlib import rc_context
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath

CODE = re.compile(r"(^(?: *)(?:```|~~~).*?^ *(?:```|~~~) *$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$(?![\s$])([^$\n]+?)(?<![\s\\])\$(?![\w$])")
TAGS = re.compile(r"(<(?:pre|code|script|style|svg)\b.*?</(?:pre|code|script|style|svg)>|<[^>]+>)", re.DOTALL)
EMPHASIS = re.compile(r"(`[^`]*`|(?<![\w*)\]′])(?P<stars>\*\*?)(?=[\w`\"])[^*]+?(?<=[\w.`\")!?:])(?P=stars)(?![\w*(]))")
INNER = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
SIZE = 20.0  # units of one em
LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}


def with_formulas(markdown: str) -> str:
    """Markdown whose formulas have become pictures; code is left alone."""
    parts = CODE.split(markdown)
    for index in range(0, len(parts), 2):
        text = DISPLAY.sub(lambda found: f'\n<p class="formula">{drawn(found[1].strip())}</p>\n', parts[index])
        parts[index] = INLINE.sub(lambda found: drawn(found[1]), text)
    return "".join(parts)


def with_stars(docstring: str) -> str:
    """A docstring as Markdown in which p*, V*(y) and ∏_{i} hold no emphasis; *words* and code stay."""
    found, end = [], 0
    for kept in EMPHASIS.finditer(docstring):
        found += [_literal(docstring[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*found, _literal(docstring[end:])])


def _literal(text: str) -> str:
    return re.sub(r"(?<=[∏∑∫])_\{", r"\\_{", text.replace("*", "&#42;"))


@functools.cache
def drawn(tex: str) -> str:
    """A formula as one SVG path, of the size, on the line and in the colour of the text around it."""
    tex = " ".join(tex.split())
    with rc_context({"mathtext.fontset": "cm"}):
        path = TextPath((0, 0), f"${tex}$", size=SIZE, prop=FontProperties(size=SIZE))
    (left, bottom), (right, top) = path.get_extents().get_points()
    width, height, label = right - left + 2, top - bottom + 2, html.escape(tex, quote=True)
    size = f"width:{width / SIZE:.3f}em;height:{height / SIZE:.3f}em;vertical-align:{(bottom - 1) / SIZE:.3f}em"
    steps = (
        LETTERS[code] + ("" if code == Path.CLOSEPOLY else " ".join(_place(at, left, top)))
        for at, code in path.iter_segments(curves=True)
    )
    return (
        f'<svg class="tex" role="img" aria-label="{label}" style="{size}" viewBox="0 0 {width:.1f} {height:.1f}">'
        f'<path fill="currentColor" d="{"".join(steps)}"/></svg>'
    )


def _place(points: Any, left: float, top: float) -> list[str]:
    """Coordinates of SVG, which run downwards."""
    return [f"{x - left + 1:.1f} {top - y + 1:.1f}" for x, y in points.reshape(-1, 2)]


def with_subscripts(page: str) -> str:
    """HTML in which q_{t−1} is set as a subscript and e^{x} as a superscript; tags and code are left alone."""
    parts = TAGS.split(page)
    for index in range(0, len(parts), 2):
        parts[index] = subscripts(parts[index])
    return "".join(parts)


def subscripts(text: str) -> str:
    """x_{a}, x^{a} (two levels deep), x_a and x^a of (escaped) text as HTML; names like init_std are none."""
    for _ in range(2):
        text = re.sub(r"(?<=[\w)\]′|‖*⁺∏∑∫])_" + INNER, r"<sub>\1</sub>", text)
        text = re.sub(r"(?<=[\w)\]′|‖*>])\^" + INNER, r"<sup>\1</sup>", text)
    text = re.sub(r"(?<![\w/])([A-Za-zα-ωΑ-Ω]{1,2}[*′]?)_(\w)(?![\w/.])", r"\1<sub>\2</sub>", text)
    return re.sub(r"(?<=[\w)])\^([\w*])(?!\w)", r"<sup>\1</sup>", text)
