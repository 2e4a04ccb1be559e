"""`sandlab list`, `show`, `sample`: what there is, what it is, what its data looks like."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson, Settings, named_plugins
from sandlab.cli.screen import tell
from sandlab.errors import BadInput, integer, nearest

__all__ = ["commands"]

commands = typer.Typer()


@commands.command("list", epilog="Example:  sandlab list worlds   ·   sandlab list markov")
def list_things(
    kind: Annotated[
        str,
        typer.Argument(help="worlds, models, circuits, decoders, lenses or studies; or a chapter; all when left out."),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """What there is, one line each."""
    from sandlab.cli.screen import print_json
    from sandlab.registry import KINDS, get, names, summary

    chapters = dict.fromkeys(name.partition("/")[0] for name in names("studies"))
    if kind and kind not in {**KINDS, **chapters}:
        there = f"there are {', '.join(KINDS)} and the chapters {', '.join(chapters)}"
        raise BadInput(f"nothing to list is called {kind!r}: {nearest(kind, [*KINDS, *chapters]) or there}")
    chapter = kind if kind in chapters else ""
    kinds = [kind] if kind and not chapter else list(KINDS)
    chosen = {each: [name for name in names(each) if chapter in ("", chapter_of(each, name))] for each in kinds}
    found = {each: {name: summary(get(each, name)) for name in known} for each, known in chosen.items() if known}
    if as_json:
        print_json(found)
        return
    for each, things in found.items():
        tell(f"{each} ({len(things)})\n")
        for chapter, members in _chapters(each, things).items():
            _print_chapter(each, chapter, {name: things[name] for name in members})


@commands.command(epilog="Example:  sandlab show markov/weight-tying   ·   sandlab show dyck")
def show(
    name: Annotated[str, typer.Argument(help="Any name that `sandlab list` prints.")], as_json: AsJson = False
) -> None:
    """What something is: its text, parameters, formulas and sources; for a study also its claims."""
    from sandlab.cli.screen import print_json

    things = find(name)
    if as_json:
        print_json([about(kind, name, thing) for kind, thing in things])
        return
    for kind, thing in things:
        _show(about(kind, name, thing))


@commands.command(epilog="Example:  sandlab sample in-context-markov -n 3 --set length=40   ·   add --to data.parquet")
def sample(
    world: Annotated[str, typer.Argument(help="Name of a world.")] = "",
    number: Annotated[int, typer.Option("-n", "--number", help="How many examples.")] = 5,
    settings: Settings = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    to: Annotated[
        Path | None, typer.Option(help="Write instead: FILE.parquet, or a folder with a dataset card beside the file.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Folder of a saved model: what it writes after the beginning of each example.")
    ] = None,
    prompt: Annotated[int, typer.Option(help="With --model: letters of each example that are given.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Look at a world's data, or export it."""
    from sandlab.cli.screen import print_json
    from sandlab.cli.settings import pairs
    from sandlab.random import rng

    integer("-n", number, low=1)
    if not world:
        raise BadInput("name a world: see `sandlab list worlds`")
    made = make_world(world, pairs(settings or []))
    generator = rng(seed)
    if to is not None:
        tell(f"{number} examples of {world} in {_export(made, to, number, seed)}")
        return
    batch = made.sample(number, rng=generator)
    if model is not None:
        _continue(made, batch, model, prompt, generator)
        return
    if as_json:
        parts = {"inputs": batch.inputs, "targets": batch.targets, "mask": batch.mask}
        print_json({**{part: value.tolist() for part, value in parts.items()}, "world": repr(made)}, compact=True)
        return
    _print_examples(made, batch)


def _export(world: Any, to: Path, number: int, seed: int) -> Path:
    """Write a Parquet file, or a dataset folder with its card."""
    from sandlab.random import rng

    if not to.suffix or to.is_dir():
        from sandlab.lab.dataset_card import export_dataset

        return export_dataset(world, to, number, seed=seed)
    if to.suffix != ".parquet":
        raise BadInput(f"--to must end in .parquet or name a folder, got {str(to)!r}")
    from sandlab.worlds.export import to_parquet

    return to_parquet(world, to, number, rng=rng(seed))


def _continue(world: Any, batch: Any, folder: Path, prompt: int, generator: Any) -> None:
    """Let a saved model go on after the first letters of each example, up to its length, and print both."""
    import torch

    from sandlab.cli.exporting import saved

    network = saved(folder).eval()
    integer("--prompt", prompt, low=1, high=batch.inputs.shape[1])
    tokens, longest = batch.inputs[:, :prompt], min(batch.inputs.shape[1], getattr(network.config, "length", 10**9))
    with torch.no_grad():
        while tokens.shape[1] < longest:
            probs = torch.softmax(network(tokens)[:, -1, : world.vocab], -1)
            tokens = torch.cat([tokens, torch.multinomial(probs, 1, generator=generator)], 1)
    for row in tokens:
        tell(f"{world.render(row[:prompt])}|{world.render(row[prompt:])}")


def chapter_of(kind: str, name: str) -> str:
    """The chapter of a registered thing: the folder that its file lies in; "general" at the top of a room."""
    from sandlab.registry import get

    if kind == "studies":
        return name.partition("/")[0]
    thing = get(kind, name)
    folders = thing.__module__.split(".")[2:-1]
    return folders[0].replace("_", "-") if folders and thing.__module__.startswith("sandlab.") else "general"


def _chapters(kind: str, things: dict[str, str]) -> dict[str, list[str]]:
    """Chapter → names, what every chapter uses first."""
    found: dict[str, list[str]] = {}
    for name in sorted(things, key=lambda name: (chapter_of(kind, name) != "general", chapter_of(kind, name), name)):
        found.setdefault(chapter_of(kind, name), []).append(name)
    return found


def _print_chapter(kind: str, chapter: str, things: dict[str, str]) -> None:
    from sandlab.cli.screen import print_table
    from sandlab.registry import get

    if kind != "studies":
        print_table(["name", "what it is"], things.items(), title=chapter)
        return
    print_table(["name", "what was found", "verdicts"], [[*row, _last(row[0])] for row in things.items()], chapter)
    for source in dict.fromkeys(get("studies", name).reference for name in things):
        tell(f"  from {source}")
    tell()


def _last(study: str) -> str:
    """The published verdicts: how many claims hold, fail, are open."""
    from sandlab.lab._report.published import verdicts
    from sandlab.registry import get

    words = [judged[0][1].verdict for judged in verdicts(get("studies", study)).values()]
    marks = {"holds": "✓", "fails": "✗", "inconclusive": "?"}
    return " ".join(f"{mark}{n}" for verdict, mark in marks.items() if (n := words.count(verdict))) or "not run"


def find(name: str) -> list[tuple[str, Any]]:
    """(kind, thing) for every registry that knows the name."""
    from sandlab.registry import KINDS, get, names

    found = [(kind, get(kind, name)) for kind in KINDS if name in names(kind)]
    if not found:
        known = [known for kind in KINDS for known in names(kind)]
        if name in KINDS:
            raise BadInput(f"{name} are many: `sandlab list {name}` names them, and `sandlab show NAME` explains one")
        name = name.rstrip("/*")
        if any(study.startswith(f"{name}/") for study in names("studies")):
            raise BadInput(
                f"{name!r} is a chapter: see `sandlab list {name}`, and `sandlab claims '{name}/*'` for its claims"
            )
        raise BadInput(f"nothing is called {name!r}: {nearest(name, known) or 'see `sandlab list`'}")
    return found


def make_world(name: str, texts: dict[str, str]) -> Any:
    """A world from its name and `--set` texts; what it cannot do without is named."""
    from sandlab.cli.settings import read_settings
    from sandlab.registry import get

    kind: Any = get("worlds", name)
    if not dataclasses.is_dataclass(kind):
        raise BadInput(f"{name} is made in Python, not at the terminal: see `sandlab show {name}`")
    values = read_settings(kind, texts, name)
    missing = [field.name for field in dataclasses.fields(kind) if _required(field) and field.name not in values]
    if missing:
        example = " ".join(f"--set {field}=…" for field in missing)
        raise BadInput(f"{name} needs {', '.join(missing)}: add {example} (see `sandlab show {name}`)")
    return kind(**values)  # type: ignore[operator]


def about(kind: str, name: str, thing: Any) -> dict[str, Any]:
    """What is known of a registered thing, as data."""
    from sandlab.registry import tags

    text = inspect.cleandoc(getattr(thing, "text", None) or thing.__doc__ or "")
    facts: dict[str, Any] = {"kind": kind, "name": name, "text": text}
    if kind in ("worlds", "studies"):
        facts["tags"] = dataclasses.asdict(tags(kind, name))
    if kind == "studies":
        presets = {preset: thing.describe(preset) for preset in thing.presets}
        claims = [
            {"id": c.id, "statement": c.statement, "relation": str(c.relation), "paper": c.paper, "source": c.source}
            for c in thing.claims
        ]
        return {**facts, "title": thing.title, "source": thing.source, "presets": presets, "claims": claims}
    place = f"{thing.__module__}.{thing.__qualname__}"
    return {**facts, "place": place, "parameters": _parameters(thing)}


def _parameters(thing: Any) -> list[dict[str, str]]:
    from sandlab.cli.explain import parameter_texts

    options, texts = getattr(thing, "config_class", thing), parameter_texts(thing)
    if dataclasses.is_dataclass(options):
        rows = [
            (field.name, str(field.type), "required" if _required(field) else _default(field))
            for field in dataclasses.fields(options)
        ]
    else:
        rows = [
            (
                each.name,
                "" if each.annotation is each.empty else str(each.annotation),
                "required" if each.default is each.empty else repr(each.default),
            )
            for each in inspect.signature(thing).parameters.values()
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]
    return [{"name": n, "type": kind, "default": value, "meaning": texts.get(n, "")} for n, kind, value in rows]


def _required(field: Any) -> bool:
    return field.init and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: Any) -> str:
    made = field.default if field.default is not dataclasses.MISSING else field.default_factory()
    text = repr(made)
    return text if len(text) <= 60 else text[:57] + "…"


def _show(facts: dict[str, Any]) -> None:
    from sandlab.cli.screen import print_table

    tell(f"{facts['name']}  ({facts['kind']})")
    if facts["kind"] == "studies":
        tell(f"{facts['title']}\n{facts['source']}")
    tell(f"\n{facts['text']}\n")
    if facts["kind"] == "studies":
        rows = [[c["id"].rpartition(".")[2], c["statement"], c["relation"], c["paper"]] for c in facts["claims"]]
        print_table(["claim", "statement", "must be", "paper"], rows, f"Claims, {facts['name']}.…")
        presets = facts["presets"]
        known = dict.fromkeys(name for preset in presets.values() for name in preset)
        rows = [[name, *(preset.get(name, "") for preset in presets.values())] for name in known]
        print_table(["setting", *presets], rows, "Presets")
        tell(f"Run it:  sandlab run {facts['name']}{named_plugins()}")
        return
    if facts["parameters"]:
        told = any(row["meaning"] for row in facts["parameters"])
        columns = ["parameter", "type", "default", *(["what it is"] if told else [])]
        print_table(columns, [list(row.values())[: len(columns)] for row in facts["parameters"]], "Parameters")
    tell(f"In Python: {facts['place']}")


def _print_examples(world: Any, batch: Any) -> None:
    """Tokens as the world writes them; numbers where the inputs are not tokens."""
    tokens = batch.inputs.dtype.is_floating_point is False and batch.inputs.ndim == 2
    for row in range(len(batch)):
        if tokens:
            tell(_words(world, batch, row))
        else:
            tell(batch.inputs[row])
    tell(f"\n{world!r}\ninputs {tuple(batch.inputs.shape)}, targets {tuple(batch.targets.shape)}", end="")
    tell(f", truth: {', '.join(f'{name} {tuple(value.shape)}' for name, value in batch.truth.items()) or 'none'}")


def _words(world: Any, batch: Any, row: int) -> str:
    try:
        text = world.render(batch.inputs[row])
    except (NotImplementedError, IndexError):
        text = " ".join(str(int(token)) for token in batch.inputs[row])
    if batch.mask.shape[-1] == 1 and not batch.soft:
        text += f"  →  {int(batch.targets[row].flatten()[0])}"
    return text
