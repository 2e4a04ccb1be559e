"""Majority, which has a short RASP-L program, is learnt at all lengths, parity is not; counting and copying are open.

The conjecture of Zhou et al.: transformers generalise from short words to long ones on those tasks for which a short
program of RASP-L exists that works at all lengths. It is finer than circuit classes: majority and parity both lie in
TC⁰ and not in AC⁰, and only majority has such a program. Here the programs are written out (`raspl_program`), their
lengths counted by the interpreter, and transformers of several position codes are trained on the same tasks.

**Set-up.** Prompt, separator, answer; sizes uniform from 1 to the training size; the loss counts the answer; a
sequence counts as right when every token of its answer is. Quick: sizes up to 8, tested up to 16, two layers of
width 64 without position codes and with rotary ones, 1000 batches of 32. Full: the specification's sizes up to 40,
tested up to 100, seven tasks, three position codes, three layers of width 128, 3000 batches of 64 (planned first: four
codes, four layers and 5000 batches). For tasks with one bit as the answer, right by chance half of the time, shares
are rescaled: (share − ½)/½.

**What was learnt** (quick, 2026-11-18). Majority is right at every tested size, and parity is not learnt beyond a few
bits even inside the training range. Counting and copying, learnt at the training size (8), are at zero at twice that
size with either position code, no better than parity: the conjecture's other half is not seen in quick, and full is
not recorded. Quick trains on sizes to 8 where the specification proposes 20.

**In the figure.** Whole answers right against size, by task, with the better position code of each; dotted: the
training size. Right: at twice the training size, against the length of the program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.expressivity.raspl_programs import raspl_program
from sandlab.learning.experiment import Experiment, Training
from sandlab.lenses.expressivity.exact_match import MatchBySize
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.expressivity.program_tasks import ProgramTask

ONE_BIT = ("majority", "parity")


@dataclass(frozen=True)
class Settings:
    """Tasks and position codes (each task with each code, in this order), the training size and the tested ones."""

    tasks: tuple[str, ...]
    positions: tuple[str, ...]
    trained: int
    sizes: tuple[int, ...]
    runs: tuple[Experiment, ...]


def settings(
    tasks: tuple[str, ...], positions: tuple[str, ...], trained: int, sizes: tuple[int, ...], training: Training,
    *, layers: int, width: int, seeds: int, pool: int,
) -> Settings:  # fmt: skip
    runs = []
    for task in tasks:
        world, longest = ProgramTask(task, 1, trained, pool=pool), ProgramTask(task, 1, sizes[-1], pool=pool)
        for code in positions:
            model = TransformerConfig(
                world.vocab, longest.length, layers, heads=4, width=width, positions=code, init_std=None
            )
            runs.append(Experiment(world, model, training, seeds, final=(MatchBySize(sizes),)))
    return Settings(tasks, positions, trained, sizes, tuple(runs))


QUICK = settings(
    ("majority", "count", "copy-unique", "parity"), ("none", "rotary"), 8, (4, 8, 12, 16),
    Training(steps=1000, batch_size=32, lr=3e-3, schedule="cosine", warmup=50, evals=4, eval_examples=256),
    layers=2, width=64, seeds=3, pool=20,
)  # fmt: skip
study = Study(
    "expressivity/raspl-lengths",
    title="Of tasks with short RASP-L programs majority generalises in length, counting and copying are open",
    source="Zhou et al. 2023, What algorithms can transformers learn? A study in length generalization",
    quick=QUICK,
    full=settings(
        ("majority", "mode", "count", "copy-unique", "copy-repeat", "sort", "parity"),
        ("none", "rotary", "alibi"), 40, (10, 20, 40, 60, 80, 100),
        Training(
            steps=3000, batch_size=64, lr=2e-3, schedule="cosine", warmup=150, evals=3, eval_examples=512,
            precision="tf32",
        ),
        layers=3, width=128, seeds=5, pool=128,
    ),
    null=untrained(QUICK),
)  # fmt: skip


@dataclass(frozen=True)
class Results:
    """Share of whole answers (task, code, seed, size), rescaled where one bit is asked; lengths of the programs."""

    tasks: list[str]
    positions: list[str]
    trained: int
    sizes: list[int]
    match: np.ndarray
    operations: list[int]
    legal: list[bool]

    def at(self, task: str, size: int) -> np.ndarray:
        """Shares of each seed at a size, with the code that is best at it on average."""
        if task not in self.tasks:
            raise NotMeasured(f"the task {task} was left out")
        by_code = self.match[self.tasks.index(task), :, :, self.sizes.index(size)]
        return by_code[by_code.mean(1).argmax()]

    @property
    def doubled(self) -> int:
        return 2 * self.trained


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train(settings.runs, label="length tasks")
    shape = (len(settings.tasks), len(settings.positions))
    match = np.stack([each.final["match"] for each in runs])
    match = match.reshape(*shape, *match.shape[1:])
    for row, task in enumerate(settings.tasks):
        if task in ONE_BIT:
            match[row] = 2 * match[row] - 1
    programs = [raspl_program(ProgramTask(task, 1, settings.sizes[-1], pool=128)) for task in settings.tasks]
    return Results(
        list(settings.tasks), list(settings.positions), settings.trained, list(settings.sizes), match,
        [program.operations for program in programs], [program.legal for program in programs],
    )  # fmt: skip


def _better(results: Results, task: str) -> np.ndarray:
    """Advantage over parity; below chance counts as chance."""
    one, other = (np.maximum(results.at(each, results.doubled), 0) for each in (task, "parity"))
    return one - other


@study.claim(Mean(above=0.0), paper="majority ✓, parity ✗")
def majority_beats_parity(results: Results) -> np.ndarray:
    """Majority generalises further than parity.

    Share of right answers at twice the training size, rescaled for chance, minus parity's, seed by seed.
    """
    return _better(results, "majority")


@study.claim(Mean(above=0.0))
def counting_beats_parity(results: Results) -> np.ndarray:
    """Counting from a to b generalises further than parity.

    Share of right answers at twice the training size minus parity's, seed by seed.
    """
    return _better(results, "count")


@study.claim(Mean(above=0.0))
def copying_beats_parity(results: Results) -> np.ndarray:
    """Copying different letters generalises further than parity.

    Share of right answers at twice the training size minus parity's, seed by seed.
    """
    return _better(results, "copy-unique")


@study.claim(Mean(above=0.0), presets=("full",))
def unique_beats_repeats(results: Results) -> np.ndarray:
    """Copying different letters generalises further than copying repeated ones, whose program adds indices.

    Share of right answers at twice the training size, copy-unique minus copy-repeat.
    """
    return results.at("copy-unique", results.doubled) - results.at("copy-repeat", results.doubled)


@study.claim(Mean(above=0.8))
def learnt_at_the_training_size(results: Results) -> np.ndarray:
    """All tasks but parity are learnt at the training size.

    Smallest share over majority, count and copy-unique at the training size.
    """
    easy = [results.at(task, results.trained) for task in ("majority", "count", "copy-unique")]
    return np.min(easy, axis=0)


@study.table
def programs(results: Results) -> dict[str, Rows]:
    rows = [
        {
            "task": task, "operations": operations, "legal": legal,
            "trained size": float(results.at(task, results.trained).mean()),
            "twice the size": float(results.at(task, results.doubled).mean()),
        }
        for task, operations, legal in zip(results.tasks, results.operations, results.legal)
    ]  # fmt: skip
    codes = [
        {"task": task, "positions": code, **{f"size {size}": float(value) for size, value in zip(results.sizes, row)}}
        for task, table in zip(results.tasks, results.match.mean(2))
        for code, row in zip(results.positions, table)
    ]
    return {"programs": rows, "position codes": codes}


@study.figure
def lengths(results: Results) -> Figure:
    figure, axes = figures.new(2, width=4.8, height=3.6, title="Which short programs are learnt at every length")
    for task in results.tasks:
        table = np.stack([results.at(task, size) for size in results.sizes], -1)
        figures.band(axes[0], results.sizes, table, label=task, marker="o")
    axes[0].axvline(results.trained, color="#555555", linestyle=":")
    axes[0].set(xlabel="size of the word", ylabel="right answers (0: chance)", ylim=(-0.15, 1.05))
    axes[0].legend(fontsize=8)
    for task, operations, legal in zip(results.tasks, results.operations, results.legal):
        share = float(results.at(task, results.doubled).mean())
        axes[1].plot(operations, share, "o" if legal else "x", color=figures.COLOURS[0 if legal else 1])
        axes[1].annotate(task, (operations, share), xytext=(4, 4), textcoords="offset points", fontsize=8)
    axes[1].set(xlabel="operations of the program (×: adds indices)", xscale="log", ylim=(-0.15, 1.1))
    axes[1].xaxis.set_major_formatter("{x:g}")
    axes[1].xaxis.set_minor_formatter("{x:g}")
    axes[1].set_title(f"at twice the training size ({results.doubled})")
    return figure
