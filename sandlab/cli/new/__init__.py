"""`sandlab new`: a working file of your own, and its test."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from sandlab.cli.screen import tell
from sandlab.errors import BadInput, choice

__all__ = ["commands"]

commands = typer.Typer()

KINDS = ("world", "model", "circuit", "lens", "study")
_TEMPLATES = Path(__file__).parent / "templates"


@commands.command(epilog="Example:  sandlab new world coin   ·   then: sandlab sample coin --plugin coin.py")
def new(
    kind: Annotated[str, typer.Argument(help="world, model, circuit, lens or study.")],
    name: Annotated[str, typer.Argument(help="Its name, like my-coin; a study's is like mine/first-try.")],
    folder: Annotated[Path, typer.Option(help="Where to write the two files.")] = Path(),
) -> None:
    """Write a working world, model, circuit, lens or study of your own, and its test, to start from."""
    from sandlab.registry import names

    choice("kind", kind, KINDS)
    words = _words(kind, name)
    room = {"lens": "lenses", "study": "studies"}.get(kind, f"{kind}s")
    if words["study" if kind == "study" else "name"] in names(room):
        raise BadInput(f"there is a {kind} {name!r} already: choose another name")
    known = importlib.util.find_spec(words["file"])
    if known is not None and known.origin and Path(known.origin).parent != folder.resolve():
        raise BadInput(f"{words['file']!r} is the name of another module ({known.origin}): choose another name")
    file = f"{words['file']}.py"
    for target, template in ((file, kind), (f"test_{file}", f"{kind}_test")):
        if (folder / target).exists():
            raise BadInput(f"{folder / target} exists already: choose another name or folder")
        text = Template((_TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")).substitute(words)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / target).write_text(text, encoding="utf-8")
    place, test = folder / file, folder / f"test_{file}"
    use = {
        "world": f"sandlab sample {words['name']}",
        "model": f"sandlab train --world dyck --model {words['name']}",
        "circuit": f"sandlab export {words['name']} --set states=3 --set length=20",
        "lens": f"sandlab show {words['name']}",
        "study": f"sandlab run {words['study']}",
    }
    tell(f"{place} and {test}\nTry:   {use[kind]} --plugin {place}\nTest:  python -m pytest {test}")


def _words(kind: str, name: str) -> dict[str, str]:
    """The name in all its forms: for the registry, for Python, for the file."""
    if not re.fullmatch(r"[a-z][a-z0-9]*([-/][a-z][a-z0-9]*)*", name) or (kind != "study" and "/" in name):
        example = "mine/first-try" if kind == "study" else "my-coin"
        raise BadInput(f"a {kind}'s name is lower-case words joined by hyphens, such as {example}, got {name!r}")
    study = name if "/" in name else f"mine/{name}"
    last = (study if kind == "study" else name).rpartition("/")[2]
    snake = last.replace("-", "_")
    if keyword.iskeyword(snake):
        raise BadInput(f"{snake!r} is a word of Python: choose another name")
    camel = "".join(part.capitalize() for part in last.split("-"))
    return {"name": last, "study": study, "snake": snake, "file": snake, "Name": camel}
