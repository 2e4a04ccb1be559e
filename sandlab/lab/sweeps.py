"""Sweeps: a list of experiments, trained, compared in one table and one figure, and sent to one's own logger.

    experiments = [
        Experiment(world, TransformerConfig(vocab=3, length=64, width=width), Training(1000, lr=lr), seeds=3)
        for width in (16, 64)
        for lr in (1e-3, 1e-2)
    ]
    sl.lab.sweep(experiments)

`sandlab sweep my_experiment.py` does the same with the list of a file. What is finished is in the store: the same call
goes on from there.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab import figures
from sandlab.errors import BadInput, require, shown
from sandlab.lab._exec.executors import Executor, executor
from sandlab.lab._store.files import write_atomic
from sandlab.lab._store.plain import Facts, plain
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory
from sandlab.lab.run import check_device, on_bar
from sandlab.learning._engine.scratch import OutOfTime
from sandlab.learning.experiment import Experiment, Runs
from sandlab.progress import ProgressBar
from sandlab.random import rng

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Sweep", "log_runs", "sweep"]

Experiments = Sequence[Experiment] | Mapping[str, Experiment]
Place = tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """What came out: name of each experiment → its runs; `left_out` are those that time did not reach."""

    experiments: dict[str, Experiment]
    runs: dict[str, Runs]
    left_out: tuple[str, ...] = ()

    def table(self) -> list[Facts]:
        """A row per experiment: parameters, seeds, held-out loss with its spread, and the best possible loss."""
        return [self._row(name) for name in self.runs]

    def _row(self, name: str) -> Facts:
        runs, experiment = self.runs[name], self.experiments[name]
        last = np.asarray(runs.metrics["loss"][:, -1], dtype=float)
        row = {"experiment": name, "world": type(experiment.world).__name__, "parameters": runs.parameters}
        row |= {"seeds": len(runs), "loss": float(last.mean()), "spread": float(last.max() - last.min()) / 2}
        row["best possible"] = best_loss(experiment)
        if "accuracy" in runs.metrics:
            row["accuracy"] = float(np.mean(runs.metrics["accuracy"][:, -1]))
        return row

    def figure(self) -> Figure:
        """Held-out loss over training, a panel per world: medians over seeds, with their range."""
        worlds = list(dict.fromkeys(self.experiments[name].world for name in self.runs))
        figure, axes = figures.new(min(3, len(worlds)), -(-len(worlds) // 3), width=5.2, height=3.6)
        with figures.style():
            for axis, world in zip(axes, worlds):
                inside = [name for name in self.runs if self.experiments[name].world == world]
                for name in inside:
                    figures.band(axis, self.runs[name].eval_steps, self.runs[name].metrics["loss"], label=name)
                best = best_loss(self.experiments[inside[0]])
                if best is not None:
                    figures.levels(axis, {"the best possible": best})
                axis.set(xlabel="training step", ylabel="held-out loss (nats)", title=type(world).__name__)
                if len(inside) <= 10:
                    axis.legend()
            for axis in axes[len(worlds) :]:
                axis.set_visible(False)
        return figure

    def save(self, folder: str | Path) -> Path:
        """Write table.csv, sweep.json (every curve) and losses.svg and .png."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        rows = self.table()
        text = io.StringIO()
        writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(target / "table.csv", text.getvalue().encode())
        curves = {
            name: {"experiment": repr(self.experiments[name]), "steps": runs.eval_steps, "loss": runs.metrics["loss"]}
            for name, runs in self.runs.items()
        }
        document = {"table": rows, "curves": curves, "left out": self.left_out}
        write_atomic(target / "sweep.json", json.dumps(plain(document), indent=1).encode())
        if self.runs:
            picture = self.figure()
            for kind in ("svg", "png"):
                sink = io.BytesIO()
                with figures.style():
                    picture.savefig(sink, format=kind)
                write_atomic(target / f"losses.{kind}", sink.getvalue())
        return target


def sweep(
    experiments: Experiments,
    *,
    on: str | Executor = "processes",
    device: str = "cpu",
    store: str | Path | Store | None = None,
    budget: float | None = None,
    logger: object = None,
) -> Sweep:
    """Train every experiment; finished trainings come from the store.

    experiments   a list, named by what differs among them, or a dictionary with names of your own
    budget        seconds after which no training begins; what is left is named in `left_out`
    logger        where curves go as well: see `log_runs`
    """
    named = name_experiments(experiments)
    check_device(device)
    place = executor(on) if isinstance(on, str) else on
    try:
        with ProgressBar("sweep", 0, unit="jobs") as bar:
            show = on_bar(bar, f"{len(named)} experiments")
            lab = Laboratory(Store.open(store), place, device=device, budget=budget, progress=show)
            runs = train_what_time_allows(lab, named)
    finally:
        if isinstance(on, str):
            place.close()
    for name, found in runs.items():
        log_runs(logger, name, named[name], found)
    return Sweep(named, runs, tuple(name for name in named if name not in runs))


def train_what_time_allows(lab: Laboratory, named: Mapping[str, Experiment], label: str = "") -> dict[str, Runs]:
    """The runs of every experiment, all of their jobs at once; without those that the laboratory's time ended."""
    try:
        return dict(zip(named, lab.train(list(named.values()), label=label)))
    except OutOfTime:
        found: dict[str, Runs] = {}
        for name, experiment in named.items():
            try:
                found[name] = lab.train(experiment)
            except OutOfTime:
                continue
        return found


def name_experiments(experiments: Experiments) -> dict[str, Experiment]:
    """Experiments by name: that of the dictionary, or what differs: "width=16, lr=0.01"."""
    if not isinstance(experiments, (Mapping, list, tuple)):
        raise BadInput(f"a sweep is a list of Experiments, got {shown(experiments)}")
    given = list(experiments.values()) if isinstance(experiments, Mapping) else list(experiments)
    require(len(given) >= 1, "experiments", "none", "at least one Experiment")
    for each in given:
        if not isinstance(each, Experiment):
            raise BadInput(f"a sweep is a list of Experiments, got {shown(each)} in it")
    if isinstance(experiments, Mapping):
        return {str(name): each for name, each in experiments.items()}
    flat = [dict(_leaves(each)) for each in given]
    paths = [path for path in dict.fromkeys(p for leaves in flat for p in leaves) if _differs(path, flat)]
    names = [", ".join(_told(path, leaves[path], paths) for path in paths if path in leaves) for leaves in flat]
    if len(set(names)) < len(names):
        raise BadInput("two experiments of the sweep are the same: a sweep trains each once, over its seeds")
    return dict(zip([name or type(given[0].model).__name__.removesuffix("Config") for name in names], given))


def _leaves(value: object, path: Place = ()) -> Iterator[tuple[Place, str]]:
    """(path, text) of every setting of a nested dataclass; its own name stands at the path that ends in ""."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        yield path, getattr(value, "__name__", None) or str(value)
        return
    own = getattr(value, "module", "").rpartition(":")[2]  # of one's own module
    yield (*path, ""), own or type(value).__name__.removesuffix("Config")
    for field in dataclasses.fields(value):
        yield from _leaves(getattr(value, field.name), (*path, field.name))


def _differs(path: Place, flat: list[dict[Place, str]]) -> bool:
    """Whether a setting tells experiments apart whose parts are of one kind; other kinds are told apart by theirs."""
    kinds: dict[str | None, set[str]] = {}
    for leaves in flat:
        if path in leaves:
            kinds.setdefault(leaves.get((*path[:-1], "")) if path[-1] else None, set()).add(leaves[path])
    return any(len(values) > 1 for values in kinds.values())


def _told(path: Place, text: str, paths: list[Place]) -> str:
    """ "lr=0.01", "world.length=32" beside "model.length=64", or "LSTM"."""
    return f"{_shortest(path, paths)}={text}" if path[-1] else text


def _shortest(path: Place, paths: list[Place]) -> str:
    """The end of a path that no other one shares: "lr", or "world.length" beside "model.length"."""
    for start in range(len(path) - 1, -1, -1):
        if sum(other[-len(path[start:]) :] == path[start:] for other in paths) == 1:
            return ".".join(path[start:])
    return ".".join(path)


def best_loss(experiment: Experiment) -> float | None:
    """The best possible loss on the examples that the models are evaluated on; None without an oracle."""
    world = experiment.world
    try:
        return world.optimal_loss(world.sample(experiment.training.eval_examples, rng=rng(1, "held out")))
    except NotImplementedError:
        return None


def log_runs(logger: object, name: str, experiment: Experiment, runs: Runs) -> None:
    """Send the evaluations of an experiment to a logger of Weights & Biases, MLflow or TensorBoard, or of one's own.

    logger   an object with `log(values, step=…)` (a W&B run), `log_metrics(values, step=…)` (the module `mlflow`) or
             `add_scalar(name, value, step)` (a TensorBoard writer), which gets names such as "lr=0.01/loss"; or a
             function of the experiment's name and settings that makes one for each experiment, such as
             `lambda name, settings: wandb.init(project="mine", name=name, config=settings)`, finished after use
    """
    if logger is None:
        return
    send, made = _sender(logger), logger
    prefix = re.sub(r"[^\w.=-]+", "-", name) + "/"
    if send is None:
        if not callable(logger):
            raise BadInput(f"a logger has log, log_metrics or add_scalar, or is a function, got {shown(logger)}")
        settings = {".".join(path).rstrip("."): text for path, text in _leaves(experiment)}
        made, prefix = logger(name, settings), ""
        send = _sender(made)
        if send is None:
            raise BadInput(
                f"the logger function must return what has log, log_metrics or add_scalar, got {shown(made)}"
            )
    for index, step in enumerate(runs.eval_steps):
        values = {key: curve[:, index] for key, curve in runs.metrics.items() if curve.ndim == 2}
        numbers = {f"{prefix}{key}": float(np.mean(row)) for key, row in values.items() if row.dtype.kind in "fiu"}
        send(numbers, int(step))
    if made is not logger:
        end = getattr(made, "finish", None) or getattr(made, "close", None) or getattr(made, "end_run", None)
        if end is not None:
            end()


def _sender(logger: Any) -> Callable[[dict[str, float], int], None] | None:
    """How a logger takes numbers at a step, by the method that it has."""
    if hasattr(logger, "add_scalar"):

        def one_by_one(values: dict[str, float], step: int) -> None:
            for name, value in values.items():
                logger.add_scalar(name, value, step)

        return one_by_one
    take = getattr(logger, "log_metrics", None) or getattr(logger, "log", None)
    return (lambda values, step: take(values, step=step)) if callable(take) else None
