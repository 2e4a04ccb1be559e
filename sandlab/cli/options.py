"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "Device", "On", "Settings", "StoreFolder"]

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
