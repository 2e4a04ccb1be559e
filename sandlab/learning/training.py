"""Training of one model or of a population: `train`, on a world or on a curriculum of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from sandlab.checking import checked, checked_types, fits
from sandlab.errors import BadInput, choice, integer, number, shown
from sandlab.learning._engine.checkpoints import Checkpoint
from sandlab.learning._engine.evaluation import Evaluate, evaluate, make_evaluation
from sandlab.learning._engine.identity import fingerprint
from sandlab.learning._engine.loop import Callback, Diverged, Loop, StopRule
from sandlab.learning._engine.population_step import make_step
from sandlab.learning._engine.precision import PRECISIONS
from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.step import UpdateRule
from sandlab.learning._engine.threads import few_threads
from sandlab.learning.history import History
from sandlab.learning.objectives import LossFunction, Objective, as_objective
from sandlab.learning.optim import OptimizerConfig, OptimizerFactory, TorchOptimizer, make_optimizer
from sandlab.learning.population import Population, one_or_many, per_member
from sandlab.learning.schedules import ReduceLROnPlateau, Schedule, averaging, factors
from sandlab.worlds.base import Batch, World

__all__ = ["Checkpoint", "Curriculum", "Diverged", "evaluate", "train"]


@checked
@dataclass(frozen=True)
class Curriculum(World):
    """One world after another: `stages` are pairs (first step, world), in order, the first at step 0.

    `train` draws from the stage of each step; `sample` (a held-out set, say) from the last stage.
    """

    stages: tuple[tuple[int, World], ...]

    def __post_init__(self) -> None:
        kind = tuple[tuple[int, World], ...]
        if not fits(kind, self.stages):
            raise BadInput(f"stages must be pairs (first step, world), got {shown(self.stages)}")
        starts = [start for start, _ in self.stages]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise BadInput(f"the stages of a curriculum must start at 0 and then at increasing steps, got {starts}")

    def at(self, step: int) -> World:
        return [world for start, world in self.stages if start <= step][-1]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.stages[-1][1].sample(n, rng=rng)


def _first(histories: list[History]) -> History:
    return histories[0]


@few_threads
@one_or_many(_first)
@checked_types
def train(
    model: nn.Module,
    world: World,
    *,
    steps: int,
    batch_size: int = 64,
    rng: torch.Generator,
    objective: str | Objective | LossFunction | None = None,
    optimizer: str | type[torch.optim.Optimizer] | OptimizerFactory = "adamw",
    lr: float | Sequence[float] | Tensor = 1e-3,
    weight_decay: float | Sequence[float] | Tensor = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    momentum: float = 0.0,
    schedule: Schedule = "constant",
    warmup: int = 0,
    clip: float | None = None,
    ema: float | Callable[[int], float] | None = None,
    evaluate: Evaluate | None = None,
    every: int | None = None,
    callbacks: Iterable[Callback] = (),
    stop: StopRule | None = None,
    keep: str | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    progress: bool | None = None,
    data: str = "shared",
    nan: str = "raise",
    precision: str = "float32",
    compile: bool | None = None,
    graph: bool | None = None,
) -> list[History]:
    """Train a model in place on fresh batches of a world: a History. For a `Population`: a list, one per member.

    objective     an `Objective` or its name, a function (logits, batch) -> loss, or None for cross-entropy against
                  the batch's targets
    optimizer     "adamw", "adam", "sgd", "normalised" (descent), any name or class of torch.optim,
                  or a factory (weights) -> optimiser
    lr, weight_decay   one value, or one per member; betas for Adam, momentum for SGD
    schedule      "constant", "linear", "cosine", "one-cycle", "step", `ReduceLROnPlateau(patience)`, or a function of
                  the step; warmup in steps
    clip          largest norm of a member's gradient
    ema           decay of the average of the weights (History.averaged), a number or a function of the step
    evaluate      a held-out Batch, a dictionary of them, or a function of the model; done before the first step,
                  every `every` steps and at the end. With `ema` the averaged weights are evaluated too ("ema/…")
    callbacks     called as callback(step, model, metrics) at each evaluation, metrics per member
    stop          `EarlyStop`, or a function (step, metrics) -> whether to stop, per member; stopped members freeze
    keep          name of a metric: the weights of the evaluation at which it was smallest are History.best
    checkpoint    a file to save the run to and to resume it from, bit by bit the same run
    data          "shared": one batch for all members per step; "separate": each member has its own examples
    nan           "raise" an error that names the step and the member, or "continue"
    precision     "float32", "tf32" or "bf16" for the matrix products; History.deviation says what that changed
    compile       let torch's compiler fuse the step (None: on a GPU, when the run is long enough to repay it)
    graph         record the step as a CUDA graph and replay it (None: on a GPU, wherever possible)

    On a CPU models of less than a million weights train on one thread: more of them wait for each other. Another number
    is taken from OMP_NUM_THREADS.
    """
    integer("steps", steps, low=0)
    integer("batch_size", batch_size, low=1)
    choice("data", data, ("shared", "separate"))
    choice("nan", nan, ("raise", "continue"))
    choice("precision", precision, PRECISIONS)
    clip = None if clip is None else number("clip", clip, low=0.0)
    if checkpoint is not None:
        checkpoint = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    if next(model.parameters(), None) is None:
        raise BadInput(f"{type(model).__name__} has no weights to train")
    goal, device = as_objective(objective), next(model.parameters()).device
    members = len(model) if isinstance(model, Population) else 1
    chosen = make_optimizer(optimizer, OptimizerConfig((betas[0], betas[1]), momentum))
    rates = per_member("lr", 1.0 if isinstance(chosen, TorchOptimizer) and chosen.own_rates else lr, members, low=0.0)
    decays = per_member("weight_decay", weight_decay, members, low=0.0)
    average = None if ema is None else averaging(ema, steps)
    rule = UpdateRule(chosen, rates, decays, factors(schedule, steps, warmup), clip, average)
    separate = isinstance(model, Population) and data == "separate"
    source = Source(world, batch_size, rng, goal, device, members if separate else 0)
    evaluation = make_evaluation(evaluate, goal, device, members)
    plateau = schedule if isinstance(schedule, ReduceLROnPlateau) else None
    settings = ""
    if checkpoint is not None:  # what the run of a checkpoint must share with this one, besides what the loop knows
        given = (optimizer, ema, stop, evaluate, plateau, precision)
        numbers = (batch_size, rates.tolist(), decays.tolist(), data, betas, momentum, clip, keep, nan)
        settings = f"{numbers}, {fingerprint(given)}"
    mode = model.training
    model.train()
    step = make_step(model, goal, rule)
    try:
        loop = Loop(
            step=step,
            source=source,
            steps=steps,
            every=max(1, steps // 20) if every is None else integer("every", every, low=1),
            evaluation=evaluation,
            callbacks=tuple(callbacks),
            stop=stop,
            plateau=plateau,
            keep=keep,
            checkpoint=checkpoint,
            settings=settings,
            nan=nan,
            precision=precision,
            compile=compile,
            graph=graph,
        )
        loop.run(progress)
    finally:
        step.close()
        model.train(mode)
    return loop.histories()
