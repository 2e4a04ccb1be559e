"""What the trained studies of this chapter share: the source, the experiments, how curves are drawn.

The configurations were written down before the runs that judge them, and the seeds are fresh. Full: the
specification's choice among what the source leaves open (no residual, cosine schedule). Quick: the specification's
quick model, with S_3 for S_5, which does not train in the time. A shorter quick preset (1500 steps at rate 3e-3,
seeds 11 to 14) was looked at first: the cyclic task then solved 0.87, 0.91, 1.00 and 0.94 of the chains of length 20.
Comparisons of many variants still use it, with other seeds (`brief_experiment`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sandlab import figures
from sandlab.learning.experiment import Experiment, Probe, Runs, Training
from sandlab.lenses.reasoning.answers import LengthAccuracy
from sandlab.lenses.reasoning.concentration import ContextRot, Diagonals, PermutationCheck, PlainMaps
from sandlab.lenses.reasoning.routing import routing_blocks
from sandlab.models.reasoning.lego import LegoConfig
from sandlab.studies.claims import NotMeasured
from sandlab.worlds.reasoning.lego import Lego

SOURCE = "Huang et al. 2025, Transformers provably learn chain-of-thought reasoning with length generalization"
QUICK_LENGTHS = (5, 10, 20, 40)
FULL_LENGTHS = (5, 10, 20, 40, 80, 160)
QUICK_ROT, FULL_ROT = (0, 5, 10, 20), (0, 10, 20, 40, 80, 140)
"""Numbers of unrelated clauses."""
QUICK_SEEDS = (61, 62, 63, 64)
BRIEF_SEEDS = (71, 72, 73, 74)
FULL_SEEDS = (101, 102, 103, 104, 105, 106, 107, 108)
"""Fresh seeds: no configuration was chosen by looking at them."""
TRAINED = 5
"""The training length of the source."""


def quick_experiment(
    action: str, *, steps: int = 4000, lr: float = 2e-3, seeds: tuple[int, ...] = QUICK_SEEDS, **model: Any
) -> Experiment:
    """45 variables, token width 16, 256 hidden units, batch 64, Adam 2e-3 with cosine decay, 4000 steps."""
    recipe = Training(steps, batch_size=64, lr=lr, optimizer="adam", schedule="cosine", evals=12, eval_examples=256)
    size = {"token_width": 16, "head_width": 32, "hidden": 256, **model}
    return experiment(Lego(action, variables=45, length=TRAINED), recipe, QUICK_LENGTHS, seeds, 200, **size)


def brief_experiment(action: str, **model: Any) -> Experiment:
    """The quick model, 1500 steps at rate 3e-3."""
    return quick_experiment(action, steps=1500, lr=3e-3, seeds=BRIEF_SEEDS, **model)


def full_experiment(
    action: str, *, seeds: tuple[int, ...] = FULL_SEEDS, training: dict[str, Any] | None = None, **model: Any
) -> Experiment:
    """170 variables, token width 32, 512 hidden units, 40 000 steps of 256 chains, Adam 1e-3 with cosine decay."""
    recipe = Training(
        40_000,
        batch_size=256,
        lr=1e-3,
        optimizer="adam",
        schedule="cosine",
        evals=20,
        eval_examples=512,
        precision="tf32",
    )
    world = Lego(action, variables=170, length=TRAINED)
    return experiment(world, replace(recipe, **(training or {})), FULL_LENGTHS, seeds, 300, **model)


def experiment(
    world: Lego, training: Training, lengths: tuple[int, ...], seeds: tuple[int, ...], sequences: int, **model: Any
) -> Experiment:
    """A transformer over clauses on LEGO; at the end accuracy by length, attention maps, shuffled predicates."""
    rot = ContextRot(QUICK_ROT if lengths == QUICK_LENGTHS else FULL_ROT)
    maps: tuple[Probe, ...] = (PlainMaps(), PermutationCheck(), Diagonals((10, 20, 40)), routing_blocks)
    final: tuple[Probe, ...] = (LengthAccuracy(lengths, sequences), *maps, rot)
    return Experiment(world, LegoConfig(world.vocab, **model), training, seeds=seeds, final=final)


@dataclass(frozen=True)
class Pair:
    """Two tasks with equal recipes: a simply transitive action and a natural one."""

    cyclic: Experiment
    symmetric: Experiment


QUICK = Pair(quick_experiment("C6"), quick_experiment("S3"))
FULL = Pair(full_experiment("C6"), full_experiment("S5"))


@dataclass(frozen=True)
class PairRuns:
    """The runs of both tasks, and the lengths at which they were tested."""

    cyclic: Runs
    symmetric: Runs
    lengths: tuple[int, ...]
    names: tuple[str, str]

    def both(self) -> dict[str, Runs]:
        return dict(zip(self.names, (self.cyclic, self.symmetric)))


def trained_pair(settings: Pair, lab: Any) -> PairRuns:
    """Train both tasks (once for all studies that share the settings)."""
    first, second = lab.train([settings.cyclic, settings.symmetric], label="LEGO runs", weights=True)
    names = tuple(action_name(each) for each in (settings.cyclic, settings.symmetric))
    stripped = [replace(each, weights=None) for each in (first, second)]
    return PairRuns(stripped[0], stripped[1], tested_lengths(settings.cyclic), (names[0], names[1]))


def action_name(given: Experiment) -> str:
    """The action of an experiment's chains."""
    assert isinstance(given.world, Lego)
    return given.world.group_action.name


def tested_lengths(given: Experiment) -> tuple[int, ...]:
    """The lengths of an experiment's accuracy probe."""
    return next(probe.lengths for probe in given.final if isinstance(probe, LengthAccuracy))


def accuracy_at(runs: Runs, lengths: tuple[int, ...], length: int, kind: str = "all steps") -> np.ndarray:
    """Accuracy of every seed at a length."""
    if length not in lengths:
        raise NotMeasured(f"length {length} was not tested")
    found: np.ndarray = runs.final[kind][:, lengths.index(length)]
    return found


def learnt(runs: Runs, lengths: tuple[int, ...]) -> None:
    """Refuse to measure runs that did not learn the training length: they say nothing about longer ones."""
    if accuracy_at(runs, lengths, TRAINED).mean() < 0.5:
        raise NotMeasured("the training length was not learnt")


def draw_lengths(axis: Axes, curves: dict[str, np.ndarray], lengths: tuple[int, ...], title: str = "") -> None:
    """Accuracy against length, one band per name, with a dashed line at the training length."""
    for name, values in curves.items():
        figures.band(axis, lengths, values, label=name, marker="o")
    axis.axvline(TRAINED, color="#555555", linestyle="--", linewidth=1)
    axis.set(xscale="log", ylim=(-0.03, 1.05), xlabel="length of the chain", ylabel="all steps right", title=title)
    axis.set_xticks(lengths, [str(length) for length in lengths])
    axis.minorticks_off()
    axis.legend(loc="lower left")
