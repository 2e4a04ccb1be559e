"""`sandlab decode`: verifier-guided decoding on a language model in a local folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandlab.checking import fits
from sandlab.cli.screen import print_json, printable, tell

if TYPE_CHECKING:
    from sandlab.decoding.results import Decoded

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(
    epilog="Example:  sandlab decode --model my-model/ -p 'Describe Ada: ' --json-schema person.json --law given"
)
def decode(
    model: Annotated[Path, typer.Option(help="Folder of a Hugging Face causal model (save_pretrained).")],
    prompt: Annotated[
        list[str] | None, typer.Option("--prompt", "-p", help="What to continue; may be repeated.")
    ] = None,
    prompts: Annotated[Path | None, typer.Option(help="A text file with one prompt a line.")] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Prompts are a user's messages: use the chat template.")] = False,
    grammar: Annotated[str | None, typer.Option(help="A Lark grammar (file or text) for the answer.")] = None,
    regex: Annotated[str | None, typer.Option(help="A regular expression that the whole answer must match.")] = None,
    json_schema: Annotated[str | None, typer.Option(help="A JSON schema (file or text) for the answer.")] = None,
    choice: Annotated[
        list[str] | None, typer.Option("--choice", help="A text that may be the answer; may be repeated.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="The language covers prompt and answer together.")] = False,
    heal: Annotated[
        bool, typer.Option("--heal", help="Write the prompt's last tokens anew if they begin a longer token.")
    ] = False,
    algorithm: Annotated[
        str | None, typer.Option(help="A decoder: see `sandlab list decoders`. Without it: by --law and --error.")
    ] = None,
    law: Annotated[
        str,
        typer.Option(help="With a language: local (masking, fast) or given (the model given the language)."),
    ] = "local",
    n: Annotated[int, typer.Option("--n", "-n", help="Samples of each prompt.")] = 1,
    stop: Annotated[list[str] | None, typer.Option(help="A text that ends the answer; may be repeated.")] = None,
    max_new: Annotated[int, typer.Option(help="Tokens to write at most.")] = 64,
    budget: Annotated[int | None, typer.Option(help="Queries to the model per sample at most.")] = None,
    quota: Annotated[int | None, typer.Option(help="backtracking: how often a text may backtrack.")] = None,
    stride: Annotated[int | None, typer.Option(help="backtracking: how many tokens are erased.")] = None,
    candidates: Annotated[int | None, typer.Option(help="best-of-n: how many texts are written.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Nucleus: the most probable tokens up to this mass.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Only the k most probable tokens.")] = None,
    min_p: Annotated[float | None, typer.Option(help="Only tokens with this share of the likeliest's mass.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sharpen (below 1) or flatten the model's probs.")] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(help="Above 1: tokens that occurred become less likely.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="NAME=VALUE", help="Any other parameter of the algorithm; see `show`."),
    ] = None,
    error: Annotated[float, typer.Option(help="Let the verifier err with this probability (an experiment).")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    stream: Annotated[bool, typer.Option("--stream", help="Print the text while it is written (one sample).")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Continue prompts with a language model so that the text obeys a grammar, a regex or a JSON schema.

    Prints the text, how it ended, its log-probability, the queries used and what was erased. Exit codes: 0, all is
    well; 1, some text ended outside the language; 2, bad input; 3, some sample was given up (no complete text within
    its budget of queries and its number of tokens); 5, some text was cut at --max-new. Of several, 3 comes before 1
    and 1 before 5.
    """
    from sandlab.decoding.text import decode_text

    named = {
        "quota": quota,
        "stride": stride,
        "candidates": candidates,
        "top_p": top_p,
        "top_k": top_k,
        "min_p": min_p,
        "temperature": temperature,
        "repetition_penalty": repetition_penalty,
    }
    given = {name: value for name, value in named.items() if value is not None}
    texts = [*(prompt or []), *_lines(prompts)]
    results = decode_text(
        model,
        [[{"role": "user", "content": text}] for text in texts] if chat else texts,
        algorithm=algorithm,
        law=law,
        grammar=_file_or_text(grammar, ":"),
        regex=regex,
        json_schema=_file_or_text(json_schema, "{"),
        choices=choice or None,
        whole=whole,
        heal=heal,
        error=error,
        n=n,
        stop=stop or [],
        max_new=max_new,
        budget=budget,
        seed=seed,
        device=device,
        trace=True,
        progress=not stream,
        options={**given, **_settings(settings)},
        listener=_typewriter(len(texts) * n) if stream else None,
    )
    if as_json:
        print_json([result.as_dict() for result in results])
    else:
        tell("\n".join(_words(result) for result in results))
        if len(results) > 1:
            tell(_summary(results))
    code = _exit_code(results)
    if code:
        raise typer.Exit(code)


def _exit_code(results: list[Decoded]) -> int:
    """The terminal's codes for how the texts ended, the worst first."""
    if any(result.finish == "gave up" for result in results):
        return 3  # could not finish
    if any(result.finish == "stop" and result.valid is False for result in results):
        return 1  # what was to hold does not
    return 5 if any(result.status == "cut off" for result in results) else 0  # the tokens that were allowed are spent


def _typewriter(samples: int) -> Callable[[int, str], None]:
    """Writes the one text to the standard error as it grows; what is taken back is wiped out."""
    import sys

    from sandlab.errors import BadInput

    if samples != 1:
        raise BadInput(f"--stream shows one text, got {samples}: give one prompt and one sample")
    shown = ""

    def write(_: int, text: str) -> None:
        nonlocal shown
        same = len(text) if shown.startswith(text) else len(shown) if text.startswith(shown) else 0
        sys.stderr.write("\b \b" * (len(shown) - same) + printable(text[same:]))
        sys.stderr.flush()
        shown = text

    return write


def _words(result: Decoded) -> str:
    """One result for people."""
    counts = result.counters
    likelihood = "unknown, the model was not asked" if result.logprob is None else f"{result.logprob:.3f} nats"
    lines = [
        f"prompt     {result.prompt!r}",
        f"text       {result.text!r}",
        f"result     {result.message} ({result.finish})",
        f"log-prob   {likelihood}, {len(result.tokens)} tokens",
        f"queries    {counts['oracle_calls']} to the model, {counts['verifier_calls']} to the verifier",
    ]
    if result.erased:
        shown = ", ".join(repr(piece) for piece in result.erased[:6])
        more = f" and {len(result.erased) - 6} more" if len(result.erased) > 6 else ""
        lines.append(f"erased     {counts['tokens_erased']} tokens in {len(result.erased)} pieces: {shown}{more}")
    return "\n".join(lines) + "\n"


def _summary(results: list[Decoded]) -> str:
    """How many texts ended in which way, and what they cost together."""
    from collections import Counter

    endings = Counter(
        "complete, outside the language" if result.valid is False and result.status == "complete" else result.status
        for result in results
    )
    counted = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
    queries = sum(result.counters["oracle_calls"] for result in results)
    return f"{len(results)} prompts: {counted}; {queries} queries to the model"


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    from sandlab.errors import BadInput

    if not path.is_file():
        raise BadInput(f"there is no prompt file {str(path)!r}")
    return [line for line in _read(path).splitlines() if line]


def _file_or_text(source: str | None, sign: str) -> str | Path | None:
    """A text contains the sign that no file name does; everything else is a file."""
    if source is None:
        return None
    is_name = fits(Path, Path(source))  # a text may be too long to be the name of a file
    if is_name and Path(source).is_file():
        _read(Path(source))
    elif sign in source or not is_name:
        return source
    return Path(source)


def _read(path: Path) -> str:
    from sandlab.errors import BadInput

    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is no text in UTF-8: {problem}") from None


def _settings(given: list[str] | None) -> dict[str, Any]:
    """["block=8", "redo=none"] as values: JSON where it is JSON, else the word itself; the algorithm checks them."""
    import json

    from sandlab.errors import BadInput

    found: dict[str, Any] = {}
    for item in given or []:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise BadInput(f"--set takes name=value, got {item!r}: try --set block=8")
        try:
            found[name] = json.loads(text)
        except (ValueError, RecursionError):
            found[name] = text
    return found
