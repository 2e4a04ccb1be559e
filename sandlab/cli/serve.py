"""`sandlab serve`: the atlas, a live page over everything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sandlab.cli.options import StoreFolder
from sandlab.cli.screen import tell
from sandlab.errors import BadInput

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  sandlab serve   ·   then open http://127.0.0.1:8000")
def serve(
    port: Annotated[int, typer.Option(help="Port on this machine.", min=1, max=65535)] = 8000,
    host: Annotated[str, typer.Option(help="Address; one that others can reach needs --token.")] = "127.0.0.1",
    token: Annotated[str, typer.Option(help="Secret that changes need, when others may reach the page.")] = "",
    store: StoreFolder = None,
) -> None:
    """Open the atlas: play with worlds, circuits, trainings and claims in a browser. Nothing leaves this machine."""
    try:
        from sandlab.atlas.server import refuse_taken_port
        from sandlab.atlas.server import serve as run
    except ImportError as problem:
        raise BadInput(f"the atlas needs {problem.name}: pip install 'sandlab[atlas]'") from problem
    if host not in ("127.0.0.1", "localhost") and len(token) < 16:
        raise BadInput("to listen on an address that others can reach, give --token of at least 16 letters")
    refuse_taken_port(host, port)
    opened = f"/?token={token}" if token and host not in ("127.0.0.1", "localhost") else ""
    tell(f"the atlas: http://{host}:{port}{opened}   (Ctrl-C ends it)", flush=True)
    run(host=host, port=port, store=Path(store) if store else None, token=token)
