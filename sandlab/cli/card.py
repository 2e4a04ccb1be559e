"""`sandlab card`: the stress test of an architecture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson, Device, On, Settings, StoreFolder, open_folder
from sandlab.cli.screen import tell

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  sandlab card my_lab.py:MyGRU --budget 10m --against transformer,lstm")
def card(
    model: Annotated[str, typer.Argument(help="Your module, my_file.py:MyModule, or the name of a model.")],
    full: Annotated[
        bool, typer.Option("--full", help="The GPU's battery: longer words, four times the steps.")
    ] = False,
    against: Annotated[
        str,
        typer.Option(help="Train these too, at equal size: transformer,lstm,ssm,hybrid,rnn."),
    ] = "",
    only: Annotated[str, typer.Option("--tasks", help="Some tasks of the battery only, such as parity,S5.")] = "",
    budget: Annotated[str, typer.Option(help="Stop after this time, such as 10m; the rest is left out.")] = "",
    seeds: Annotated[int, typer.Option(help="Trainings of each task, each with its own weights and data.")] = 3,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="Folder of the card: a page, a figure, a table as JSON.")] = Path("card"),
    on: On = "",
    device: Device = "cpu",
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> int:
    """Train an architecture on a fixed battery with exact truth, and say what it can do and where it breaks.

    Markov chains, trigrams and regression in context, recall, copying, flip-flops and their tails, parity, groups,
    brackets, majority, counting, LEGO, facts; and words two and four times as long as those it was trained on. Beside
    it stand the recorded cards of the built-in models, or those trained --against it. The same command goes on where
    one stopped.
    """
    from sandlab.cli.screen import print_json
    from sandlab.cli.settings import pairs
    from sandlab.cli.studies import OUT_OF_TIME, seconds
    from sandlab.errors import choice, integer
    from sandlab.lab._card.battery import tasks
    from sandlab.lab._card.kept import keep_card
    from sandlab.lab._card.measure import REFERENCES, Reference, measure_card, recorded
    from sandlab.lab._card.page import described, write_card
    from sandlab.lab._exec.executors import executor
    from sandlab.lab._store.store import Store
    from sandlab.lab.laboratory import Laboratory
    from sandlab.lab.run import check_device, on_bar
    from sandlab.progress import ProgressBar

    integer("seeds", seeds, low=1)
    check_device(device)
    names = [choice("against", name.strip(), REFERENCES) for name in against.split(",") if name.strip()]
    limit = seconds("budget", budget) if budget else None
    config, size = _config(model, pairs(settings or [])), "full" if full else "quick"
    known = [task.name for task in tasks(size)]
    chosen = [choice("tasks", name.strip(), known) for name in only.split(",") if name.strip()]
    wanted: list[tuple[str, Any]] = [(model.rpartition(":")[2] or model, config)]
    wanted += [(name, Reference(name, config)) for name in names]
    open_folder(out)
    place = executor(on or ("processes" if device == "cpu" else "local"))
    start, made = time.monotonic(), []
    try:
        for name, each in wanted:
            with ProgressBar(f"card of {name}", 0, unit="jobs", show=None) as bar:
                left = None if limit is None else max(0.0, limit - (time.monotonic() - start))
                lab = Laboratory(Store.open(store), place, device=device, budget=left, progress=on_bar(bar, "card"))
                made.append(measure_card(name, each, lab, size=size, seeds=seeds, only=chosen))
                keep_card(made[-1], lab.store.folder)
    finally:
        place.close()
    others = made[1:] or [known for known in recorded(size) if known.model != made[0].model]
    page = write_card([made[0], *others], out)
    if as_json:
        print_json(_plain(made))
    else:
        _show(made[0], others)
        for each in (made[0], *others):
            tell(f"{each.model}: {described(each)}")
        tell(f"{time.monotonic() - start:.0f} s. The card: {page}")
    if made[0].left_out:
        tell(f"left out for lack of time: {', '.join(made[0].left_out)}; the same command goes on from there")
        return OUT_OF_TIME
    return 0


def _show(card: Any, others: list[Any]) -> None:
    """The table of one card beside others."""
    from sandlab.cli.screen import counted, print_table
    from sandlab.lab._card.page import table

    head = ["test", "value", "score", "tokens", *(other.model for other in others)]
    title = f"{card.model}: battery {card.battery}, {card.size}, {counted(card.seeds, 'seed', 'seeds')}"
    rows = [[f"{task}, {test}", *values] for task, test, *values in table([card, *others])]
    print_table(head, rows, title)


def _plain(cards: list[Any]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [asdict(each) for each in cards]


def _config(model: str, texts: dict[str, str]) -> Any:
    """The config of a module for the first task; every other task changes alphabet and length."""
    from sandlab.cli.training import model_config
    from sandlab.lab._card.battery import tasks

    return model_config(tasks("quick")[0].world, model, texts)
