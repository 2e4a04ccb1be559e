"""Writes the `__init__.pyi` of every room: the public names, each with the file that defines it.

python scripts/front_door.py            write what has changed
python scripts/front_door.py --check    exit 1 when a stub is out of date or two files export one name
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "sandlab"
ROOMS = ("worlds", "models", "circuits", "learning", "decoding", "lenses", "studies", "lab")
HEAD = "# Written by scripts/front_door.py from the `__all__` of each file (`make stubs`).\n"


def public_names(room: str) -> tuple[dict[str, str], list[str]]:
    """Public name → module of a room, and what is wrong: names that two files export, files that hide a name."""
    found: dict[str, str] = {}
    wrong: list[str] = []
    files = [file for file in sorted((PACKAGE / room).rglob("*.py")) if _is_public(room, file)]
    for file in files:
        module = ".".join(("sandlab", *file.relative_to(PACKAGE).with_suffix("").parts))
        for name in exported(file):
            if name in found:
                wrong.append(f"sandlab.{room}.{name} is exported by {found[name]} and {module}")
            found[name] = module
    hidden = {path.stem for path in (PACKAGE / room).iterdir()} & set(found)
    return found, [*wrong, *(f"sandlab/{room}/{name} hides the public name {name}" for name in sorted(hidden))]


def exported(file: Path) -> list[str]:
    """The strings of a file's `__all__`."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [str(value) for value in ast.literal_eval(node.value)]
    return []


def room_stub(room: str) -> str:
    names, wrong = public_names(room)
    if wrong:
        raise SystemExit("\n".join(wrong))
    lines = [f"from {module} import {name} as {name}" for name, module in names.items()]
    listed = "\n".join(f'    "{name}",' for name in sorted(names))
    return "\n".join([HEAD, *sorted(lines), "", "__all__ = [", listed, "]", ""])


def package_stub() -> str:
    rooms = [f"from sandlab import {name} as {name}" for name in sorted((*ROOMS, "atlas", "figures"))]
    names = {
        "BadInput": "errors",
        "get": "registry",
        "names": "registry",
        "patch": "models.hooks",
        "record": "models.hooks",
        "register": "registry",
        "rng": "random",
        "run": "lab.run",
    }
    lines = [f"from sandlab.{module} import {name} as {name}" for name, module in sorted(names.items(), key=_by_module)]
    return "\n".join([HEAD, *rooms, *lines, "", "ROOMS: tuple[str, ...]", "__version__: str", ""])


def stubs() -> dict[Path, str]:
    """File → its text."""
    return {PACKAGE / "__init__.pyi": package_stub(), **{PACKAGE / r / "__init__.pyi": room_stub(r) for r in ROOMS}}


def _is_public(room: str, file: Path) -> bool:
    """Files and folders that start with an underscore are internal; so is everything in the chapters of `studies`."""
    inner = file.relative_to(PACKAGE / room).parts
    return not any(part.startswith("_") for part in inner) and (room != "studies" or len(inner) == 1)


def _by_module(item: tuple[str, str]) -> tuple[str, str]:
    return item[1], item[0]


def main(check: bool) -> int:
    stale = {path: text for path, text in stubs().items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        print(f"{path.relative_to(PACKAGE.parent)} {'is out of date: run `make stubs`' if check else 'written'}")
        if not check:
            path.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
