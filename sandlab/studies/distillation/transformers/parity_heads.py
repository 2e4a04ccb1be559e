"""Do more heads learn sparse parity earlier, however wide they are?

Two-layer transformers read the coordinates as tokens; heads are 8 wide (the stream grows with them), share a stream of
one width, or are each as wide as the stream and averaged. The source draws for each size the learning rate with the
best mean accuracy; here one rate serves all. Its numbers of heads are not given; ours stand in the settings. A run
stops at a loss of 0.02 (97 % are right then, and what is measured is when it passes 95 %).

Quick: heads of width 8 on d = 12, k = 2, six seeds. The other two ways are left to full: in a stream of 64 one head
learns (12, 2) as fast as sixteen (single models on seeds 100 to 102: all between 60 and 100 steps), and (12, 3) was
learnt by none of twelve models with one or eight heads in 600 steps (a first run of quick, not published); of averaged
heads, four learnt (12, 2) later than one (80 to 180 steps against 40 to 80) and had not learnt (12, 3) after 400.

Full: (40, 3) for (100, 6), as in distillation/parity-transformer, where 32 heads of width 8 learnt in 700 steps and 4
not in 4000; 4000 `steps` for 250 000 (0.016) at batch 64 for 32 and the rate 10⁻³ for 3·10⁻⁴ (three times), five
seeds, a stream of the source's 256 for shared and averaged heads.

**What was learnt** (quick, 2026-11-18). Sixteen heads learn after 30 to 130 steps, four after 70 to 210, of two heads
one of six in 400 steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Training
from sandlab.learning.stopping import EarlyStop
from sandlab.models.distillation.published import gpt2_parity
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import NotMeasured, Order
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._shared import Curves
from sandlab.studies.distillation.transformers._fused import fuse_attention
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.distillation.parities import SparseParity

NARROW, SHARED, AVERAGED = "heads of width 8", "heads that share the stream", "averaged heads"


@dataclass(frozen=True)
class Sweep:
    """One way in which heads grow: experiments that differ in their number alone, fewest first."""

    name: str
    heads: tuple[int, ...]
    experiments: tuple[Experiment, ...]


@dataclass(frozen=True)
class Settings:
    sweeps: tuple[Sweep, ...]


def sized(name: str, dimension: int, heads: int, width: int) -> TransformerConfig:
    """A transformer whose heads are 8 wide, share a stream of `width`, or are that wide each and averaged."""
    if name == NARROW:
        return gpt2_parity(dimension, heads, dropout=0.0)
    each = width // heads if name == SHARED else width
    return gpt2_parity(dimension, heads, head_width=each, width=width, average=name == AVERAGED, dropout=0.0)


def sweep(name: str, world: SparseParity, heads: Sequence[int], width: int, how: Training, seeds: int) -> Sweep:
    """Experiments on one world, for each number of heads."""
    models = [sized(name, world.dimension, each, width) for each in heads]
    return Sweep(name, tuple(heads), tuple(Experiment(world, model, how, seeds) for model in models))


def training(steps: int, evals: int, eval_examples: int, precision: str = "float32") -> Training:
    """Adam at 10⁻³, warm-up of 6 % and cosine decay, until it has learnt."""
    return Training(
        steps, batch_size=64, lr=1e-3, optimizer="adam", schedule="cosine", warmup=6 * steps // 100, evals=evals,
        eval_examples=eval_examples, stop=EarlyStop(below=0.02), precision=precision,
    )  # fmt: skip


def published(name: str) -> Sweep:
    """The source's sizes on the largest world that is known to be learnt; the fused kernel also in evaluations."""
    how = training(4000, 100, 512, "tf32")
    found = sweep(name, SparseParity(40, 3, "tokens"), (4, 8, 16, 32), 256, how, 5)
    return replace(found, experiments=tuple(replace(each, prepare=fuse_attention) for each in found.experiments))


QUICK = Settings((sweep(NARROW, SparseParity(12, 2, "tokens"), (2, 4, 16), 0, training(400, 40, 512), 6),))
study = Study(
    "distillation/parity-heads",
    title="The more heads of width 8, the earlier a transformer learns sparse parity",
    source=shared.SOURCE,
    at="Figures 4.10 (right) and 4.13",
    quick=QUICK,
    full=Settings(tuple(published(name) for name in (NARROW, SHARED, AVERAGED))),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    sweeps: dict[str, dict[int, Curves]]
    """Way to grow → number of heads → accuracies."""
    never: int
    """A step later than all others, for runs that do not learn."""


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    found = {}
    for each in settings.sweeps:
        runs = lab.train(list(each.experiments), label=each.name)
        found[each.name] = {h: Curves(r.eval_steps, r.metrics["accuracy"]) for h, r in zip(each.heads, runs)}
    steps = [experiment.training.steps for each in settings.sweeps for experiment in each.experiments]
    return Results(found, 2 * max(steps))


def speeds(results: Results, name: str) -> np.ndarray:
    """−log(first step above 0.95) by number of heads and seed; late where a run never is."""
    if name not in results.sweeps:
        raise NotMeasured(name)
    first = [each.first_above() for each in results.sweeps[name].values()]
    return np.array([-np.log(np.where(np.isfinite(row) & (row > 0), row, results.never)) for row in first])


@study.claim(Order(above=0.0), at="Figures 4.10 (right) and 4.13 a", paper="more heads are faster")
def narrow_heads(results: Results) -> np.ndarray:
    """The more heads of width 8, the earlier a transformer learns.

    −log of the first step above 0.95 by number of heads (twice the horizon where it is never reached).
    """
    return speeds(results, NARROW)


@study.claim(Order(above=0.0), at="Figure 4.13 b", paper="more heads are faster", presets=("full",))
def shared_stream(results: Results) -> np.ndarray:
    """So it is when the stream keeps its width and the heads become narrower.

    −log of the first step above 0.95 by number of heads (twice the horizon where it is never reached).
    """
    return speeds(results, SHARED)


@study.claim(Order(above=0.0), at="Figure 4.13 c", paper="more heads are faster", presets=("full",))
def averaged_heads(results: Results) -> np.ndarray:
    """So it is when heads are as wide as the stream and averaged.

    −log of the first step above 0.95 by number of heads (twice the horizon where it is never reached).
    """
    return speeds(results, AVERAGED)


def kept(curves: np.ndarray) -> np.ndarray:
    """Curves (seed, evaluation) whose missing values repeat the last one before them."""
    last = np.maximum.accumulate(np.where(np.isnan(curves), 0, np.arange(curves.shape[1])), 1)
    return np.take_along_axis(curves, last, 1)


@study.table
def table(results: Results) -> dict[str, Rows]:
    return {
        "first step above 0.95": [
            {"heads": f"{heads} {name}", **{f"seed {i}": float(v) for i, v in enumerate(each.first_above())}}
            for name, group in results.sweeps.items()
            for heads, each in group.items()
        ]
    }


@study.figure
def learning(results: Results) -> Figure:
    figure, axes = figures.new(
        columns=len(results.sweeps), title="When transformers with more and fewer heads learn sparse parity"
    )
    for axis, (name, group) in zip(axes, results.sweeps.items()):
        for heads, each in group.items():
            # A run that has learnt stops: it keeps its last accuracy, or the median would fall when it leaves.
            figures.band(axis, each.eval_steps, kept(each.accuracy), f"{heads} heads" if heads > 1 else "1 head")
        axis.set(xlabel="training step", ylabel="held-out accuracy", title=name)
        axis.legend(fontsize=7)
    return figure
