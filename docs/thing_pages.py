"""The pages of worlds, models, circuits, decoders and lenses, their indices by chapter, and the gallery of worlds."""

from __future__ import annotations

import dataclasses
import html
import inspect
import re
from typing import Any

from decoder_pictures import FILM, PICTURE, decoder_film, decoder_picture
from formulas import subscripts, with_stars
from hmm_pictures import ORBIT, orbit_film
from learning_films import FILMS as LEARNING
from lens_pictures import lens_picture
from parallel_films import FILMS as PARALLEL
from pictures import circuit_picture, world_picture
from snippets import snippet

import sandlab as sl
from sandlab.cli.browse import chapter_of
from sandlab.cli.explain import parameter_names, parameter_texts, split_parameters
from sandlab.registry import summary

TITLES = {
    "general": "Every chapter",
    "automata": "Automata and their shortcuts",
    "decoders": "Decoders",
    "diffusions": "Diffusions: contrastive learning of transition kernels",
    "distillation": "Distillation: parities and grammars",
    "dyck": "Dyck languages",
    "expressivity": "Expressivity",
    "flip-flop": "Flip-flops",
    "hmm": "Hidden Markov models",
    "knowledge": "Facts and associative memory",
    "markov": "Markov chains",
    "nce": "Noise-contrastive estimation",
    "ngrams": "In-context n-grams",
    "parallel": "Parallel decoding",
    "reasoning": "Chains of thought",
    "recall": "Recall and copying",
    "topics": "Topic models",
    "verifier": "Generation with a verifier",
}


def title_of(chapter: str) -> str:
    return TITLES.get(chapter, chapter.replace("-", " ").capitalize())


def by_chapter(kind: str, names: list[str]) -> dict[str, list[str]]:
    """Chapter → names; what every chapter uses comes first."""
    found: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (chapter_of(kind, name) != "general", chapter_of(kind, name), name)):
        found.setdefault(chapter_of(kind, name), []).append(name)
    return found


def index(kind: str, names: list[str]) -> str:
    """A table for every chapter."""
    parts = [f"# {kind.capitalize()}", INTRODUCTIONS[kind]]
    for chapter, members in by_chapter(kind, names).items():
        rows = "\n".join(f"| [{name}]({name}.md) | {cell(summary(sl.get(kind, name)))} |" for name in members)
        parts.append(f"## {title_of(chapter)}\n\n| name | what it is |\n|---|---|\n{rows}")
    return "\n\n".join(parts) + "\n"


INTRODUCTIONS = {
    "worlds": "Data whose truth is known: every world samples, and says what no predictor can do better than. "
    "The [gallery](../gallery-worlds.md) shows them all.",
    "models": "Networks from inputs to logits whose every activation has a name.",
    "circuits": "Models whose weights are computed, not trained: what a transformer *can* represent.",
    "decoders": "Inference with a generator and, mostly, a verifier; queries are counted.",
    "lenses": "What can be measured of a model on a world.",
    "studies": "Published results as programs. The [gallery](../gallery-studies.md) shows their figures, "
    "[Here and published](../sources/index.md) the numbers beside those of the sources.",
}


def thing_page(kind: str, name: str, thing: Any, captions: dict[str, str]) -> str:
    """What it is, a picture, how it is used, what can be set."""
    text, _ = split_parameters(inspect.getdoc(thing) or "", parameter_names(thing))
    parts = [f"# {name}", prose(text)]
    for file, caption in captions.items():
        parts += [f"![{name}]({file})", f"*{caption}*{{: .caption }}" if caption else ""]
    parts += [usage(kind, name, thing), sample(thing), parameters(thing)]
    parts.append(f"`{thing.__module__}.{thing.__qualname__}`")
    return "\n\n".join(part for part in parts if part) + "\n"


def usage(kind: str, name: str, thing: Any) -> str:
    """A few lines of Python."""
    if kind == "worlds":
        return f"## In use\n\n```python\n{world_lines(thing)}\n```\n\nAt the terminal: `sandlab sample {name}`."
    found = snippet(kind, name, thing)
    if found is None:
        return ""
    origin = f"\n\nThis is a test, and therefore true: `{found.test}`." if found.test else ""
    return f"## In use\n\n```python\n{found.code}\n```{origin}"


def world_lines(thing: Any) -> str:
    return (
        f"import sandlab as sl\n\nworld = sl.worlds.{thing.__name__}()\n"
        "batch = world.sample(4, rng=sl.rng(0))\nbatch.inputs.shape, batch.targets.shape"
    )


def parameters(thing: Any) -> str:
    """Every option with its type, its default and what it means."""
    options, texts = getattr(thing, "config_class", thing), parameter_texts(thing)
    if dataclasses.is_dataclass(options):
        fields = [(f.name, f.type, _default(f)) for f in dataclasses.fields(options)]
    else:
        fields = [
            (p.name, p.annotation, "required" if p.default is p.empty else repr(p.default))
            for p in inspect.signature(thing).parameters.values()
        ]
    if not fields:
        return ""
    told = any(name in texts for name, _, _ in fields)
    head = "| parameter | type | default |" + (" what it is |" if told else "") + "\n|---|---|---|" + "---|" * told
    rows = [
        f"| `{name}` | `{_type_name(kind)}` | `{_short(value)}` |" + (f" {cell(texts.get(name, ''))} |" if told else "")
        for name, kind, value in fields
    ]
    return "\n".join(["## Parameters\n", head, *rows])


def _short(value: str) -> str:
    value = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", value).replace("|", "\\|").replace("`", "'")
    return value if len(value) <= 80 else value[:79] + "…"


def _type_name(kind: Any) -> str:
    text = "" if kind is inspect.Parameter.empty else kind if isinstance(kind, str) else getattr(kind, "__name__", kind)
    return str(text).replace("|", "or")


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return "required" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def sample(thing: Any) -> str:
    """Three examples, for worlds that can be built without arguments and written down."""
    lines = examples(thing, 3)
    return "Three examples:\n\n```\n" + "\n".join(lines) + "\n```" if lines else ""


def examples(thing: Any, number: int, width: int = 100) -> list[str]:
    if not (inspect.isclass(thing) and hasattr(thing, "sample") and hasattr(thing, "render")):
        return []
    try:
        world = thing()
        batch = world.sample(number, rng=sl.rng(0))
        texts = [world.render(row) for row in batch.inputs]
    except (TypeError, NotImplementedError, IndexError):
        return []
    return [text if len(text) <= width else text[: width - 1] + "…" for text in texts]


def pictures(kind: str, name: str, thing: Any) -> dict[str, tuple[str, bytes]]:
    """What can be drawn of a world, a circuit, a decoder or a lens: file name → caption, content."""
    if kind == "decoders":
        film = decoder_film(name)
        moving = {} if film is None else {f"{name}-film.gif": (FILM, film[0]), f"{name}-film.svg": ("", film[1])}
        return {f"{name}.svg": (PICTURE, decoder_picture(name)), **moving}
    if (kind, name) == ("worlds", "hmm"):
        return {"hmm.svg": ("", _picture(kind, name, thing) or b""), "hmm-orbit.gif": (ORBIT, orbit_film())}
    picture = _picture(kind, name, thing)
    still = {} if picture is None else {f"{name}.svg": ("", picture)}
    caption, film = (LEARNING | PARALLEL).get((kind, name), ("", None))
    return still if film is None else {**still, f"{name}-film.gif": (caption, film())}


def _picture(kind: str, name: str, thing: Any) -> bytes | None:
    if kind == "circuits":
        return circuit_picture(name)
    if kind == "lenses":
        return lens_picture(name)
    if kind != "worlds" or not inspect.isclass(thing):
        return None
    try:
        return world_picture(thing())
    except (TypeError, NotImplementedError, IndexError, RuntimeError, ValueError):
        return None  # needs arguments, or its examples are not tokens or points


def gallery(names: list[str], drawn: set[str]) -> str:
    """Every world on one page: picture, what it is, one example."""
    parts = ["# Gallery of worlds", "Each card: examples of the data, what the data is, one of its sequences as text."]
    for chapter, members in by_chapter("worlds", names).items():
        cards = "\n".join(_card(name, name in drawn) for name in members)
        parts.append(f'## {title_of(chapter)}\n\n<div class="cards" markdown="0">\n{cards}\n</div>')
    return "\n\n".join(parts) + "\n"


def _card(name: str, drawn: bool) -> str:
    thing = sl.get("worlds", name)
    image = f'<img src="worlds/{name}.svg" alt="" loading="lazy">' if drawn else ""
    text = "".join(f"<code>{html.escape(line)}</code>" for line in examples(thing, 1, 44))
    words = subscripts(html.escape(summary(thing)))
    return f'<a class="card" href="worlds/{name}.html">{image}<b>{name}</b><span>{words}</span>{text}</a>'


def cell(value: Any) -> str:
    """A value for a table: nothing in it can end the cell or become a link."""
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    # Square brackets would become links: strings of bracket languages stand in these tables.
    for letter, safe in {"<": "&lt;", "|": "\\|", "[": "&#91;", "*": "&#42;", "\n": " "}.items():
        text = text.replace(letter, safe)
    return text


def prose(text: str) -> str:
    """A docstring as Markdown: aligned and indented blocks keep their lines, the stars of formulas are letters."""
    blocks: list[str] = []
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            block.append(line)
            continue
        if block:
            aligned = all(re.match(r"^(\s{2,}\S|\S.*\s{2,}\S)", part) for part in block)
            kept = aligned and (len(block) > 1 or block[0][0] == " ")
            blocks.append(_lines(block) if kept else with_stars("\n".join(block)))
        block = []
    return "\n\n".join(blocks)


def _lines(block: list[str]) -> str:
    """Lines that stay as they are; code is marked as such, formulas get their subscripts."""
    text = inspect.cleandoc("\n".join(block))
    if re.search(r"^(sandlab|python|make) |^(import|from|def|@) ?\w|sl\.\w+\(|= \w+\(.*\)$", text, re.MULTILINE):
        return f"```\n{text}\n```"
    return f'<pre class="lines">{subscripts(html.escape(text))}</pre>'
