"""Measuring a card: one module on every task of the battery, over seeds, with references of the same size."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sandlab.errors import BadInput
from sandlab.lab._card.battery import BATTERY, EXAMPLES, CardProbe, CardTest, Task, tasks
from sandlab.lab.laboratory import Laboratory
from sandlab.lab.sweeps import train_what_time_allows
from sandlab.lab.training import check_fit
from sandlab.learning.experiment import Experiment, Runs
from sandlab.models.base import Config, build
from sandlab.models.hybrid import HybridConfig
from sandlab.models.recurrent import LSTMConfig, RNNConfig
from sandlab.models.state_space import StateSpaceConfig
from sandlab.models.transformer import TransformerConfig
from sandlab.random import rng
from sandlab.worlds.base import World

__all__ = ["REFERENCES", "ZOO", "Card", "Row", "measure_card", "recorded"]

REFERENCES: dict[str, type[Config]] = {
    "transformer": TransformerConfig,
    "lstm": LSTMConfig,
    "ssm": StateSpaceConfig,
    "hybrid": HybridConfig,
    "rnn": RNNConfig,
}
ZOO = Path(__file__).with_name("zoo")
"""Cards of the references, SIZE/NAME.json, written by scripts/zoo_cards.py."""
_WIDTHS = range(8, 513, 4)


@dataclass(frozen=True)
class Row:
    """One test of one task: a value per seed, and `worst`, that of guessing by frequency.

    tokens   of each seed, those seen when the loss came within 10 % of the optimum; None when it never did
    device   where it was measured, in a card whose rows are of several devices
    """

    task: str
    test: str
    measure: str
    values: list[float]
    worst: float
    parameters: int
    tokens: list[float | None] = field(default_factory=list)
    device: str = ""

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def scores(self) -> list[float]:
        """Of each seed, from 0 (guessing) to 1 (the optimum)."""
        return [float(np.clip(1 - value / self.worst, 0.0, 1.0)) for value in self.values]

    @property
    def score(self) -> float:
        return float(np.mean(self.scores))

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean (Student)."""
        from scipy import stats

        count = len(self.values)
        if count == 1:
            return math.nan
        return float(stats.t.ppf(0.975, count - 1) * np.std(self.values, ddof=1) / math.sqrt(count))


@dataclass(frozen=True)
class Card:
    """What a module can do: battery and size say what the numbers may be compared with, `made` what measured them."""

    model: str
    battery: int
    size: str
    seeds: int
    device: str
    rows: list[Row]
    left_out: list[str] = field(default_factory=list)
    made: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Card:
        return cls(**{**data, "rows": [Row(**row) for row in data["rows"]]})


def measure_card(
    model: str, config: Config, lab: Laboratory, *, size: str = "quick", seeds: int = 3, only: Sequence[str] = ()
) -> Card:
    """Train and test on the whole battery; what the laboratory's time does not reach is left out, and said so."""
    chosen = [task for task in tasks(size) if not only or task.name in only]
    experiments = {task.name: _experiment(task, config, seeds) for task in chosen}
    if not isinstance(config, Reference):
        for task in chosen:  # before hours are spent: every input it will meet
            for world in (task.world, *(test.world for test in task.tests)):
                check_fit(world, experiments[task.name].model)
    runs = train_what_time_allows(lab, experiments, label=model)
    measured = [task for task in chosen if task.name in runs]
    rows = [row for task in measured for row in _rows(task, runs[task.name], experiments[task.name])]
    left_out = [name for name in experiments if name not in runs]
    return Card(model, BATTERY, size, seeds, lab.device, rows, left_out, _versions())


def _versions() -> str:
    import torch

    from sandlab import __version__

    return f"sandlab {__version__}, torch {torch.__version__.partition('+')[0]}"


def matched(kind: type[Config], task: Task, parameters: int) -> Config:
    """The config of a reference whose number of parameters on this task is nearest to the given one."""

    def sized(width: int) -> Config:
        return _sized(kind, width, task.world, task.longest)

    above = bisect_left(_WIDTHS, parameters, key=lambda width: _parameters(sized(width)))
    near = [sized(width) for width in _WIDTHS[max(0, above - 1) : above + 1]]
    return min(near, key=lambda config: abs(math.log(_parameters(config) / parameters)))


@lru_cache(maxsize=4096)
def _parameters(config: Config) -> int:
    return sum(weight.numel() for weight in build(config).parameters())


def _sized(kind: type[Config], width: int, world: World, length: int) -> Config:
    options: dict[str, Any] = {"vocab": world.vocab, "outputs": world.outputs, "width": width}
    if kind is TransformerConfig:
        options |= {"length": length, "layers": 2, "heads": 2, "positions": "rotary"}
    elif kind is HybridConfig:
        options |= {"layers": 4, "length": length}
    return kind(**options)


def _experiment(task: Task, config: Config, seeds: int) -> Experiment:
    return Experiment(task.world, fitted_to(config, task), task.training, seeds, final=(CardProbe(task.tests),))


def fitted_to(config: Config, task: Task) -> Config:
    """The config with a task's alphabet, answers and longest input; a reference gets its width for the task."""
    if isinstance(config, Reference):
        like = config.size
        return matched(REFERENCES[config.name], task, like if isinstance(like, int) else parameters_on(task, like))
    told = {"vocab": task.world.vocab, "outputs": task.world.outputs, "length": task.longest}
    known = {name: value for name, value in told.items() if hasattr(config, name)}
    if "vocab" not in known:
        raise BadInput(f"{type(config).__name__} reads no tokens: a card is for models from tokens to logits")
    return replace(config, **known)


@dataclass(frozen=True)
class Reference(Config):
    """A built-in architecture whose width is chosen for each task.

    size   the number of parameters, or the model whose number of parameters on the same task is to be matched
    """

    name: str
    size: int | Config


def parameters_on(task: Task, config: Config) -> int:
    """Parameters that a model has on a task: its alphabet and its longest input count."""
    return _parameters(fitted_to(config, task))


def _rows(task: Task, runs: Runs, experiment: Experiment) -> list[Row]:
    rows = []
    for test in task.tests:
        values = np.asarray(runs.final[f"{test.label}: {test.measure}"], dtype=float)
        worst = _worst(test)
        values = np.where(np.isfinite(values), values, worst)  # a training that diverged guesses
        tokens = _tokens_to_optimum(task, runs, experiment) if test.world == task.world else []
        rows.append(Row(task.name, test.label, test.measure, values.tolist(), worst, runs.parameters, tokens))
    return rows


def _worst(test: CardTest) -> float:
    """Gap or error of guessing by the frequency of the answers."""
    batch = test.world.sample(EXAMPLES, rng=rng(5, "frequency"))
    if batch.soft:
        raise BadInput(f"{test.label}: a card's worlds have one right answer each")
    counts = np.bincount(batch.targets[batch.mask].numpy().ravel(), minlength=test.world.outputs) + 1e-9
    shares = counts / counts.sum()
    if test.measure == "error":
        return float(1 - shares.max())
    return float(-(shares * np.log(shares)).sum() - test.world.optimal_loss(batch))


def _tokens_to_optimum(task: Task, runs: Runs, experiment: Experiment) -> list[float | None]:
    """Tokens seen when the held-out loss had first gone 90 % of the way from guessing uniformly to the optimum."""
    batch = task.world.sample(256, rng=rng(1, "held out"))
    best = task.world.optimal_loss(batch)
    start = math.log(task.world.outputs)
    per_step = experiment.training.batch_size * batch.inputs.shape[1]
    near = runs.metrics["loss"] <= best + 0.1 * (start - best)
    first = np.where(near.any(1), near.argmax(1), -1)
    return [float(runs.eval_steps[i] * per_step) if i >= 0 else None for i in first]


def recorded(size: str) -> list[Card]:
    """The cards of the built-in architectures that came with SandLab, for this battery, in the references' order."""
    files = [ZOO / size / f"{name}.json" for name in REFERENCES]
    found = [Card.from_dict(json.loads(file.read_text(encoding="utf-8"))) for file in files if file.is_file()]
    return [card for card in found if card.battery == BATTERY]
