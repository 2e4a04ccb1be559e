"""Options that several commands share."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from sandlab.errors import BadInput

__all__ = ["NAMED", "AsJson", "Device", "On", "Settings", "StoreFolder", "load_plugin", "named_plugins", "open_folder"]

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="Change a parameter; may be repeated.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
StoreFolder = Annotated[
    Path | None, typer.Option("--store", help="Folder of results: runs/ unless SANDLAB_STORE says otherwise.")
]
On = Annotated[
    str, typer.Option("--on", help="local, processes[:N], ray or ray://host:port. Default: processes; local on a GPU.")
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
NAMED: list[str] = []  # what --plugin names on this command line


def load_plugin(source: str) -> ModuleType:
    """A plug-in, a Python file or the name of a module: other files and folders that are there are refused."""
    from sandlab import plugins

    place = Path(source)
    module = source.endswith(".py") or (place / "__init__.py").is_file() or Path(f"{source}.py").is_file()
    if place.exists() and not module:
        kind = "folder" if place.is_dir() else "file"
        raise BadInput(f"a plug-in is a Python file or the name of a module, got the {kind} {source}")
    try:
        return plugins.add(source)
    except SystemExit as end:
        raise BadInput(
            f"the plug-in {source} ends Python when it is loaded (sys.exit): what is run goes under "
            'if __name__ == "__main__", what is defined above it'
        ) from end


def named_plugins() -> str:
    """The options --plugin of this command line, for commands that are to be copied from what it prints."""
    return "".join(f" --plugin {source}" for source in NAMED)


def open_folder(folder: Path) -> Path:
    """Make the folder that results will be written into, before the work: what cannot be written is refused at once."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"results are written into a folder, got the file {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return folder
