"""`sandlab decode`: a language model continues prompts so that the text obeys a grammar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson, Device, Settings
from sandlab.errors import BadInput

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(
    epilog="Example:  sandlab decode --model my-model/ --prompt 'Ada is ' --json-schema person.json --algorithm vgb"
)
def decode(
    model: Annotated[str, typer.Option(help="Folder of a Hugging Face causal language model.")],
    prompt: Annotated[list[str], typer.Option(help="Text to continue; may be repeated.")],
    algorithm: Annotated[str, typer.Option(help="A decoder: see `sandlab list decoders`.")] = "vgb",
    grammar: Annotated[Path | None, typer.Option(help="File with a grammar in Lark's notation.")] = None,
    regex: Annotated[str | None, typer.Option(help="Regular expression of the answer.")] = None,
    json_schema: Annotated[str | None, typer.Option(help="JSON schema: a file, or the schema itself.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="The language describes prompt and answer together.")] = False,
    error: Annotated[
        float, typer.Option(help="Chance that a verdict on a prefix is wrong, to see who withstands.")
    ] = 0.0,
    max_new: Annotated[int, typer.Option(help="Most tokens to add.")] = 64,
    budget: Annotated[int | None, typer.Option(help="Most queries to the model per prompt.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    settings: Settings = None,
    device: Device = "cpu",
    trace: Annotated[bool, typer.Option("--trace", help="Show what was written and taken back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Decode with a verifier: text, log-probability, queries used, what was erased."""
    from sandlab.cli.screen import print_json
    from sandlab.decoding.texts import ALIASES, decode_text
    from sandlab.lab.run import check_device

    check_device(device)
    results = decode_text(
        model,
        prompt,
        algorithm=algorithm,
        grammar=grammar,
        regex=regex,
        json_schema=_schema(json_schema),
        whole=whole,
        error=error,
        max_new=max_new,
        budget=budget,
        seed=seed,
        device=device,
        trace=trace,
        options=_options(ALIASES.get(algorithm, algorithm), settings or []),
    )
    if as_json:
        print_json([each.as_dict() for each in results])
        return
    for each in results:
        _show(each)


def _schema(given: str | None) -> str | Path | None:
    """The schema itself when it looks like one, otherwise the file of that name."""
    return given if given is None or given.lstrip().startswith(("{", "true", "false")) else Path(given)


def _options(name: str, settings: list[str]) -> dict[str, Any]:
    from sandlab.cli.settings import pairs, read_settings
    from sandlab.registry import get, names

    texts = pairs(settings)
    if not texts:
        return {}
    if name not in names("decoders"):
        raise BadInput(f"no algorithm called {name!r}: see `sandlab list decoders`")
    return read_settings(get("decoders", name), texts, name)


def _show(each: Any) -> None:
    print(f"{each.prompt}│{each.text}")
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in each.counters.items() if count)
    print(f"  {each.message}; log-probability {each.logprob:.3f}; {counts}")
    for piece in each.erased or ():
        print(f"  taken back: {piece!r}")
