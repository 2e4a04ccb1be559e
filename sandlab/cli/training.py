"""`sandlab train`, `sandlab sweep`: your own training runs, with plots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.browse import make_world
from sandlab.cli.options import AsJson, Device, On, Settings, StoreFolder, load_plugin, open_folder
from sandlab.cli.screen import tell
from sandlab.errors import BadInput

__all__ = ["commands"]

commands = typer.Typer()
_BLOCKS = " ▁▂▃▄▅▆▇█"


@commands.command(
    epilog="Example:  sandlab train --world in-context-markov --model transformer --set world.length=64 "
    "--set model.layers=2 --set steps=500 --set lr=0.003"
)
def train(
    world: Annotated[str, typer.Option(help="Name of a world.")],
    model: Annotated[str, typer.Option(help="Name of a model, or your own: my_file.py:MyModule.")] = "transformer",
    settings: Settings = None,
    seeds: Annotated[int, typer.Option(help="Models to train, each with its own weights and data.")] = 1,
    device: Device = "cpu",
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Train a model on a world: losses beside the best possible one, a figure, and the weights in the store.

    Settings are world.X=…, model.X=…, or one of the training itself: steps, batch_size, lr, schedule and so on.
    """
    from sandlab.cli.screen import print_json, print_table, text_number
    from sandlab.cli.settings import pairs, read_settings, under
    from sandlab.lab.training import train_experiment
    from sandlab.learning.experiment import Experiment, Training

    texts = pairs(settings or [])
    made = make_world(world, under("world", texts))
    config = model_config(made, model, under("model", texts))
    own = {name: text for name, text in texts.items() if not name.startswith(("world.", "model."))}
    _check_places(own, {"world": made, "model": config}, Training)
    how = Training(**{"steps": 1000, **read_settings(Training, own, "sandlab train")})
    result = train_experiment(Experiment(made, config, how, seeds), device=device, store=store)
    if as_json:
        print_json(result.as_dict())
        return
    tell(f"loss over {how.steps} steps  {sparkline(result.runs.loss.mean(0))}")
    rows = [[name, text_number(value)] for name, value in result.levels.items()]
    title = f"{model} on {world}, {result.runs.parameters} parameters"
    print_table(["on held-out data", "nats per target"], rows, title)
    tell(f"{result.seconds:.1f} s. Weights, history and figure: {result.path}")


@commands.command(epilog="Example:  sandlab sweep my_experiment.py   ·   sandlab sweep mine.py:small --budget 20m")
def sweep(
    file: Annotated[str, typer.Argument(help="A file with a list `experiments`, or my_file.py:other_list.")],
    on: On = "",
    device: Device = "cpu",
    budget: Annotated[str, typer.Option(help="Stop after this time, such as 20m; the same command goes on.")] = "",
    out: Annotated[Path | None, typer.Option(help="Folder of table and figure (default: the file's name).")] = None,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> int:
    """Train a list of experiments, and print how they compare. The same command goes on where one stopped.

    The file holds `experiments`: a list of `sandlab.learning.Experiment`, or a dictionary from name to experiment. When
    it also holds `logger` (a W&B run, the module mlflow, a TensorBoard writer, or a function that makes one for each
    experiment), curves are sent there as well. Exit code 5 when time is up.
    """
    from sandlab import plugins
    from sandlab.cli.screen import print_json, print_table, text_number
    from sandlab.cli.studies import OUT_OF_TIME, seconds
    from sandlab.lab.sweeps import name_experiments
    from sandlab.lab.sweeps import sweep as train_all

    source, _, name = file.partition(":")
    module = load_plugin(source)
    experiments = plugins.find(f"{source}:{name or 'experiments'}")
    name_experiments(experiments)  # what is no list of experiments leaves no folder behind
    limit = seconds("budget", budget) if budget else None
    place = on or ("processes" if device == "cpu" else "local")
    logger = getattr(module, "logger", None)
    folder = open_folder(out or Path(Path(source).stem))
    found = train_all(experiments, on=place, device=device, store=store, budget=limit, logger=logger)
    found.save(folder)
    if as_json:
        print_json({"table": found.table(), "left out": found.left_out, "path": str(folder)})
    elif found.runs:
        rows = [[text_number(v) if isinstance(v, float) else v for v in row.values()] for row in found.table()]
        print_table(list(found.table()[0]), rows, f"{file}: {len(rows)} experiments")
        tell(f"Table, curves and figure: {folder}")
    if found.left_out:
        tell(f"left out for lack of time: {'; '.join(found.left_out)}; the same command goes on from there")
        return OUT_OF_TIME
    return 0


def model_config(world: Any, name: str, texts: dict[str, str]) -> Any:
    """The config of a named model for a world, or of one's own module when the name is "file.py:Class"."""
    from sandlab import plugins
    from sandlab.cli.settings import read_settings
    from sandlab.lab.training import fit_config
    from sandlab.registry import get, names

    if name.endswith(".py"):
        raise BadInput(f"{name} may define several: name one of them, {name}:MyModule")
    if ":" not in name:
        if "." in name and name not in names("models"):
            file, _, module = name.rpartition(".")
            raise BadInput(f"no models called {name!r}: a module of your own is named {file}.py:{module}")
        network = get("models", name)
        return fit_config(world, network, read_settings(network.config_class, texts, name))
    load_plugin(name.rpartition(":")[0])
    found = plugins.find(name)
    if not isinstance(found, type):
        kind = f"a {type(found).__name__}"
        raise BadInput(f"{name} is {kind}, not a class: name the class itself, it is made anew for each world")
    options = tuple((option, plain_value(text)) for option, text in texts.items())
    return fit_config(world, get("models", "own-module"), {"module": name, "options": options})


def _check_places(texts: dict[str, str], parts: dict[str, Any], training: Any) -> None:
    """Say where a setting belongs that is one of the model or of the world."""
    import dataclasses

    for name in set(texts) - {each.name for each in dataclasses.fields(training)}:
        if name == "seed":
            raise BadInput("seed is no setting: --seeds 3 trains three models, each with a seed of its own")
        if name in (*parts, "seeds", "device", "store"):
            raise BadInput(f"{name} is no setting but an option: --{name} {texts[name]}")
        for part, owner in parts.items():
            if dataclasses.is_dataclass(owner) and name in {each.name for each in dataclasses.fields(owner)}:
                raise BadInput(f"{name} is a setting of the {part}: --set {part}.{name}={texts[name]}")


def plain_value(text: str) -> Any:
    """A number, a flag or a word, as JSON reads it."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def sparkline(values: Any, width: int = 48) -> str:
    """A curve in one line of text."""
    import numpy as np

    pieces = [piece.mean() for piece in np.array_split(np.asarray(values, dtype=float), width) if len(piece)]
    if not pieces:
        raise BadInput("there is no loss to show: train for at least one step")
    low, high = min(pieces), max(pieces)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    marks = "".join(_BLOCKS[round((piece - low) * scale)] for piece in pieces)
    return f"{high:.3f} {marks} {pieces[-1]:.3f}"
