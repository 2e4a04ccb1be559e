"""Does training on a mixture of sandboxes help or hurt each of them?

The tutorial leaves it open whether conclusions drawn from one sandbox hold for a model that learns several. Here one
transformer learns a mixture of tasks, each sequence headed by a task token, and is compared with transformers of the
same size that learn one task each, from the same number of sequences of that task (so the mixture is trained as many
times longer as it has parts) and with the same vocabulary and task tokens.

**Set-up.** Parts: the induction task and associative recall (both can use an induction head), and a memory of two
values (flip-flop); full: parity as well. Two layers, learned positions, AdamW with a constant rate. "Examples until
learnt" is the number of sequences of the part seen before its accuracy first exceeds 0.9. There is no published
value: the thresholds are chosen.

**In the figure.** Accuracy of each part against the number of its sequences seen, alone and in the mixture.

**What was learnt** (full, 8 seeds of each, one H200, 2026-11-18). The mixture hurts no part and makes one learnable: in
384,000 sequences a model of its own does not find the induction task over 32 states (8 % correct), in the mixture it
needs 51,200 of them (99 %), and recall needs 19,200 instead of 28,800. Memory is learnt equally fast either way;
parity of 24 letters is learnt in neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.expressivity.exact_match import PartAccuracy, only_part
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.counters import Cyclic, Memory
from sandlab.worlds.mixture import Mixture
from sandlab.worlds.recall import AssociativeRecall, InductionTask

LEARNT = 0.9


@dataclass(frozen=True)
class Settings:
    """Names of the parts, each alone, and all together."""

    names: tuple[str, ...]
    alone: tuple[Experiment, ...]
    together: Experiment


def settings(world: Mixture, names: tuple[str, ...], training: Training, *, width: int, seeds: int) -> Settings:
    model = TransformerConfig(world.vocab, world.length, 2, heads=2, width=width, outputs=world.outputs, init_std=None)
    base = Experiment(world, model, training, seeds, probes=(PartAccuracy(),))
    parts = len(world.parts)
    longer = replace(training, steps=parts * training.steps)
    return Settings(
        names,
        tuple(replace(base, world=only_part(world, index)) for index in range(parts)),
        replace(base, training=longer),
    )


QUICK = settings(
    Mixture((InductionTask(states=8, length=12), AssociativeRecall(6, 6, 4, 4), Memory(values=2, length=12))),
    ("induction", "recall", "memory"),
    Training(steps=900, batch_size=64, lr=2e-3, evals=30, eval_examples=256),
    width=48, seeds=3,
)  # fmt: skip
study = Study(
    "expressivity/mixtures",
    title="A mixture with task tokens costs no part anything, and related parts help each other",
    source="The tutorial Sandbox for the blackbox, open questions: single sandbox or mixture",
    quick=QUICK,
    full=settings(
        Mixture((
            InductionTask(states=32, length=48), AssociativeRecall(32, 32, 12, 12), Memory(values=2, length=48),
            Cyclic(size=2, length=24),
        )),
        ("induction", "recall", "memory", "parity"),
        Training(steps=6000, batch_size=64, lr=1e-3, evals=60, eval_examples=512, precision="tf32"),
        width=128, seeds=8,
    ),
    null=untrained(QUICK),
)  # fmt: skip


@dataclass(frozen=True)
class Results:
    """Runs of each part alone and of the mixture; sequences of a part per step are batch (alone), batch/parts."""

    names: list[str]
    batch: int
    alone: list[Runs]
    together: Runs

    def curve(self, part: int, mixed: bool) -> tuple[np.ndarray, np.ndarray]:
        """Sequences of the part seen, and accuracy (seed, evaluation)."""
        runs = self.together if mixed else self.alone[part]
        each = self.batch / (len(self.names) if mixed else 1)
        return runs.eval_steps * each, runs.metrics["parts"][:, :, part]

    def final(self, part: int, mixed: bool) -> np.ndarray:
        return self.curve(part, mixed)[1][:, -1]

    def needed(self, part: int, mixed: bool) -> np.ndarray:
        """Sequences seen when each seed first exceeds 0.9; all of them where it never does."""
        seen, accuracy = self.curve(part, mixed)
        reached = accuracy > LEARNT
        return np.where(reached.any(1), seen[reached.argmax(1)], seen[-1])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train([*settings.alone, settings.together], label="mixtures")
    return Results(list(settings.names), settings.together.training.batch_size, runs[:-1], runs[-1])


@study.claim(Mean(above=-0.05))
def nothing_is_lost(results: Results) -> np.ndarray:
    """From equally many sequences of a part, the mixture learns it as well as a model of its own.

    Smallest difference over parts of the final accuracy, mixture minus alone, seed by seed.
    """
    _need_learnt(results, range(len(results.names)))
    differences = [results.final(part, True) - results.final(part, False) for part in range(len(results.names))]
    return np.min(differences, axis=0)


def _need_learnt(results: Results, parts: Iterable[int]) -> None:
    """There is nothing to compare where no part is learnt."""
    if max(results.final(part, False).mean() for part in parts) < LEARNT:
        raise NotMeasured("no part is learnt alone")


@study.claim(Mean(above=0.8))
def parts_are_learnt(results: Results) -> np.ndarray:
    """The mixture learns every part (parity aside).

    Smallest final accuracy over the parts.
    """
    kept = [part for part, name in enumerate(results.names) if name != "parity"]
    return np.min([results.final(part, True) for part in kept], axis=0)


@study.claim(Mean(below=0.0))
def related_parts_help(results: Results) -> np.ndarray:
    """Induction and recall, which share a mechanism, need fewer sequences of their own in the mixture.

    Log ratio of the sequences needed, mixture over alone, averaged over the two, seed by seed.
    """
    related = [results.names.index(name) for name in ("induction", "recall")]
    _need_learnt(results, related)
    return np.mean([np.log(results.needed(p, True) / results.needed(p, False)) for p in related], axis=0)


@study.table
def parts(results: Results) -> dict[str, Rows]:
    rows = [
        {
            "part": name, "trained": "mixture" if mixed else "alone",
            "accuracy": float(results.final(part, mixed).mean()),
            "sequences until learnt": float(np.median(results.needed(part, mixed))),
        }
        for part, name in enumerate(results.names)
        for mixed in (False, True)
    ]  # fmt: skip
    return {"parts": rows}


@study.figure
def curves(results: Results) -> Figure:
    count = len(results.names)
    figure, axes = figures.new(count, width=3.4, height=3.2, title="Each part alone and in the mixture")
    for part, (axis, name) in enumerate(zip(axes, results.names)):
        for mixed, label in ((False, "alone"), (True, "in the mixture")):
            seen, accuracy = results.curve(part, mixed)
            figures.band(axis, seen / 1000, accuracy, label=label)
        axis.set(xlabel="its sequences seen (thousands)", title=name, ylim=(0, 1.03))
    axes[0].set_ylabel("accuracy")
    axes[0].legend(loc="center right")
    return figure
