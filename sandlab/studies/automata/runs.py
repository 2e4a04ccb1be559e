"""Training runs on automata, shared by the studies of this chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from sandlab.learning.plateau import Plateau
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.automata.state_tracking import state_accuracy
from sandlab.models.recurrent import LSTM
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.automata.side_by_side import SideBySide
from sandlab.worlds.automata.catalogue import named_machine
from sandlab.worlds.automata.machine import Automaton

__all__ = [
    "SOURCE",
    "Probe",
    "Run",
    "Task",
    "build",
    "by_task",
    "measured",
    "per_task",
    "split",
    "train_crowd",
    "train_run",
]

SOURCE = "Liu, Ash, Goel, Krishnamurthy and Zhang 2023, Transformers learn shortcuts to automata"


@dataclass(frozen=True)
class Task:
    """What is predicted: the states of a named automaton, or a label of them.

    label   an observation of the automaton's family ("" for the family's usual labels)
    reveal  share of the labels that count in training
    share   share of the words that follow the pattern abab… (None: the family's own)
    """

    machine: str = "C2"
    label: str = ""
    reveal: float = 1.0
    share: float | None = None

    def world(self, length: int, **options: Any) -> Automaton:
        """The automaton with words of this length; every label counts unless `reveal` is passed on."""
        if self.label:
            options["label"] = self.label
        if self.share is not None:
            options["pattern_share"] = self.share
        return named_machine(self.machine, length=length, **options)


@dataclass(frozen=True)
class Probe:
    """Words to be tested on: of another length, with another probability of letter 1, or with so many letters 1."""

    length: int
    ones: float | None = None
    count: int | None = None

    def of(self, world: Automaton) -> Automaton:
        if self.ones is not None:
            return world.task(length=self.length, law=(1 - self.ones, self.ones))
        return world.task(length=self.length, count=self.count)


_FIELDS = ("inputs", "targets", "mask")


@dataclass(frozen=True)
class Run:
    """One architecture, trained for every task and seed: members are numbered task by task, seed by seed.

    model       "transformer" (positions "sinusoidal", "linear", "none" or "alibi") or "lstm"
    shift       largest random shift of the positions in training
    scratchpad  the states are written between the letters; tested with what the model writes itself
    recipe      AdamW (0.9, 0.999), weight decay 1e-4, gradients of norm at most 1, warm-up over a tenth (at most 100
                steps), then the schedule; `patience` ≥ 0 lowers the rate on plateaus of the loss instead
    looks       evaluations along the way, on `looked_at` fixed words
    probes      what the trained members are tested on, with `tests` fresh words each
    """

    tasks: tuple[Task, ...] = (Task(),)
    seeds: tuple[int, ...] = (0,)
    device: str = "cpu"
    model: str = "transformer"
    length: int = 12
    layers: int = 2
    width: int = 64
    heads: int = 4
    positions: str = "sinusoidal"
    shift: int = 0
    scratchpad: bool = False
    dropout: float = 0.0
    ema: float | None = None
    steps: int = 1500
    batch_size: int = 64
    lr: float = 1e-3
    schedule: str = "cosine"
    patience: int = -1
    looks: int = 10
    looked_at: int = 128
    probes: tuple[Probe, ...] = ()
    tests: int = 512

    @property
    def tokens(self) -> int:
        """Positions that the model must be able to hold."""
        longest = max([self.length + self.shift, *(probe.length for probe in self.probes)])
        return 2 * longest - 1 if self.scratchpad else longest


def train_run(run: Run) -> dict[str, Any]:
    """Accuracy along training, at the end by position and by word, and on every probe; (task, seed) axes first."""
    population, found = train_crowd(run)
    tested = [probe.of(world) for probe in run.probes for world in _worlds(run)]
    count = len(run.tasks)
    scores = []
    for place in range(len(run.probes)):
        worlds = _per_member(run, tested[place * count : (place + 1) * count])
        generator = rng(11, "probe", place, device=run.device)
        scores.append(state_accuracy(population, worlds, examples=run.tests, rng=generator)["token"])
    shape = (count, len(run.seeds))
    found["probes"] = np.stack(scores, -1).reshape(*shape, -1) if scores else np.zeros((*shape, 0))
    return found


def train_crowd(run: Run) -> tuple[Population, dict[str, Any]]:
    """The trained members, and what was measured along the way and on fresh words of the training distribution."""
    device = run.device
    worlds = _worlds(run)
    taught = tuple(world.task(reveal=task.reveal) for world, task in zip(worlds, run.tasks))
    population = Population(lambda seed: build(run, worlds), seeds=run.seeds * len(run.tasks)).to(device)
    plateau = Plateau(run.lr, patience=run.patience, weight_decay=1e-4) if run.patience >= 0 else None
    histories = train(
        population,
        taught[0] if len(taught) == 1 else SideBySide(taught),
        steps=run.steps,
        batch_size=run.batch_size,
        rng=rng(run.seeds[0], "data", device=device),
        optimizer=plateau.optimizer if plateau else "adamw",
        lr=run.lr,
        weight_decay=1e-4,
        schedule=run.schedule,
        warmup=min(100, run.steps // 10),
        clip=1.0,
        ema=run.ema,
        evaluate=_looks(run, worlds),
        every=max(1, run.steps // run.looks),
        callbacks=[plateau] if plateau else [],
        data="separate",
        nan="continue",
        precision="float32" if device == "cpu" else "tf32",
    )
    shape = (len(run.tasks), len(run.seeds))
    found: dict[str, Any] = {"steps": histories[0].eval_steps}
    for name in histories[0].metrics:
        curves = np.stack([history.metrics[name] for history in histories])
        found[f"{name} curve"] = curves.reshape(*shape, -1)
    ends = state_accuracy(population, _per_member(run, worlds), examples=run.tests, rng=rng(11, "test", device=device))
    return population, found | {name: values.reshape(shape) for name, values in ends.items()}


def build(run: Run, worlds: Sequence[Automaton]) -> nn.Module:
    """The model of a run, with letters and classes enough for all its tasks."""
    vocab, outputs = max(world.vocab for world in worlds), max(world.outputs for world in worlds)
    if run.model == "lstm":
        return LSTM(vocab=vocab, outputs=outputs, width=run.width)
    return Transformer(
        vocab=vocab,
        outputs=outputs,
        length=run.tokens,
        layers=run.layers,
        heads=run.heads,
        width=run.width,
        mlp_width=run.width,
        positions=run.positions,
        # Along the unit direction the code grows from 0 to the norm of a token vector over a training word.
        position_slope=run.width**0.5 / run.length if run.positions == "linear" else None,
        position_shift=run.shift,
        token_std=1.0,
        init_std=None,
        dropout=run.dropout,
        attention_dropout=run.dropout,
        embedding_dropout=run.dropout,
    )


def _worlds(run: Run) -> list[Automaton]:
    options = {"scratchpad": True} if run.scratchpad else {}
    return [task.world(run.length, **options) for task in run.tasks]


def _per_member(run: Run, worlds: Sequence[Automaton]) -> list[Automaton]:
    return [world for world in worlds for _ in run.seeds]


def _looks(run: Run, worlds: Sequence[Automaton]) -> Any:
    """Loss and token accuracy of every member on fixed words; true states stand in a scratchpad."""
    batches = [world.sample(run.looked_at, rng=rng(7, "look", device=run.device)) for world in worlds]
    inputs, targets, mask = (
        torch.stack([getattr(batch, name) for batch in batches for _ in run.seeds]) for name in _FIELDS
    )

    def look(model: Any) -> dict[str, torch.Tensor]:
        training = model.training
        model.eval()
        with torch.no_grad():
            logits = model(inputs, per_member=True)
        model.train(training)
        loss = nn.functional.cross_entropy(logits.flatten(0, 2), targets.flatten(), reduction="none").view(mask.shape)
        counted = mask.sum((1, 2))
        right = ((logits.argmax(-1) == targets) & mask).sum((1, 2))
        return {"loss": (loss * mask).sum((1, 2)) / counted, "accuracy": right / counted}

    return look


def split(run: Run, seeds: int, device: str) -> list[Run]:
    """A job per task and seed on a CPU, where jobs share the cores; one population on a GPU."""
    if device != "cpu":
        return [replace(run, seeds=tuple(range(seeds)), device=device)]
    return [replace(run, tasks=(task,), seeds=(seed,)) for task in run.tasks for seed in range(seeds)]


def per_task(runs: Sequence[Run], results: Sequence[dict[str, Any]], name: str) -> dict[Task, np.ndarray]:
    """Task → values of its seeds (seed axis first) from the results of `split`."""
    found: dict[Task, list[np.ndarray]] = {}
    for run, result in zip(runs, results):
        for task, values in zip(run.tasks, result[name]):
            found.setdefault(task, []).append(values)
    return {task: np.concatenate(parts) for task, parts in found.items()}


def by_task(lab: Any, settings: Sequence[Run], seeds: int, label: str) -> list[dict[str, dict[Task, np.ndarray]]]:
    """Train several settings and give, for each, name of the measurement → task → values over seeds."""
    jobs = [split(setting, seeds, lab.device) for setting in settings]
    results = iter(lab.map(train_run, [job for group in jobs for job in group], label=label))
    found = []
    for group in jobs:
        own = [next(results) for _ in group]
        names = [name for name in own[0] if name != "steps"]
        table = {name: per_task(group, own, name) for name in names}
        found.append(table | {"steps": {group[0].tasks[0]: own[0]["steps"]}})
    return found


def measured(quantities: Mapping[str, Callable[[], Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """The quantities that can be computed, and what the others lack: a run that the chosen settings leave out."""
    found: dict[str, Any] = {}
    lacking: dict[str, str] = {}
    for name, compute in quantities.items():
        try:
            found[name] = compute()
        except KeyError as absent:
            lacking[name] = f"left out by the settings: {absent.args[0]}"
    return found, lacking
