"""Training of one model or of a population: `train`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.errors import choice, integer, number
from sandlab.learning._engine.backends import GradientBackend, SingleModel, StackedModels
from sandlab.learning._engine.checkpoints import Checkpoint
from sandlab.learning._engine.evaluation import evaluate, make_evaluation
from sandlab.learning._engine.loop import Diverged, Run
from sandlab.learning._engine.precision import PRECISIONS
from sandlab.learning._engine.sources import Curriculum, Source
from sandlab.learning._engine.steps import TrainState
from sandlab.learning.objectives import Objective, as_objective
from sandlab.learning.optim import Settings, TorchOptimizer, make_optimizer
from sandlab.learning.population import Population, per_member
from sandlab.learning.schedules import Schedule, averaging, factors

__all__ = ["Checkpoint", "Curriculum", "Diverged", "evaluate", "train"]


def train(
    model: nn.Module,
    world: Any,
    *,
    steps: int,
    batch_size: int = 64,
    rng: torch.Generator,
    objective: str | Objective | None = None,
    optimizer: str | Callable[..., Any] = "adamw",
    lr: float | Sequence[float] | Tensor = 1e-3,
    weight_decay: float | Sequence[float] | Tensor = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    momentum: float = 0.0,
    schedule: Schedule = "constant",
    warmup: int = 0,
    clip: float | None = None,
    ema: float | Callable[[int], float] | None = None,
    evaluate: Any = None,
    every: int | None = None,
    callbacks: Iterable[Callable[[int, Any, dict[str, Any]], Any]] = (),
    stop: Callable[[int, dict[str, np.ndarray]], Any] | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    progress: bool | None = None,
    data: str = "shared",
    nan: str = "raise",
    precision: str = "float32",
    compile: bool | None = None,
    graph: bool | None = None,
) -> Any:
    """Train a model, or every member of a population, on fresh batches of a world; returns History (one per member).

    model         a torch module, or a `Population`; it is trained in place
    world         anything with `sample(n, rng=…) -> Batch`; with a method `at(step)` it is a curriculum of such worlds
    objective     `objective(logits, batch)`, a name, or None for cross-entropy against the batch's targets
    optimizer     "adamw", "adam", "sgd", "normalised" (descent), any name or class of torch.optim,
                  or a factory (weights) -> optimiser
    lr, weight_decay   one value, or one per member; betas for Adam, momentum for SGD
    schedule      "constant", "linear", "cosine", "one-cycle", "step", or a function of the step; warmup in steps
    clip          largest norm of a member's gradient
    ema           decay of the average of the weights (History.averaged), one number or a function of the step
    evaluate      a held-out Batch, a dictionary of them, or a function of the model; done before the first step,
                  `every` so many steps and at the end. With `ema` the averaged weights are evaluated too ("ema/…")
    callbacks     called as callback(step, model, metrics) at each evaluation, metrics per member
    stop          a function (step, metrics) -> whether to stop, per member, such as `EarlyStop`; stopped members freeze
    checkpoint    a file to save the run to and to resume it from, bit by bit the same run
    data          "shared": one batch for all members per step; "separate": each member has examples of its own
    nan           "raise" an error that names the step and the member, or "continue"
    precision     "float32", "tf32" or "bf16" for the matrix products; History.deviation says what that changed
    compile       let torch's compiler fuse the step (None: on a GPU, when the run is long enough to repay it)
    graph         record the step as a CUDA graph and replay it (None: on a GPU, wherever possible)
    """
    integer("steps", steps, low=0)
    integer("batch_size", batch_size, low=1)
    choice("data", data, ("shared", "separate"))
    choice("nan", nan, ("raise", "continue"))
    choice("precision", precision, PRECISIONS)
    every = max(1, steps // 20) if every is None else integer("every", every, low=1)
    clip = None if clip is None else number("clip", clip, low=0.0)
    average = None if ema is None else averaging(ema, steps)
    goal, table = as_objective(objective), factors(schedule, steps, warmup)
    rule = make_optimizer(optimizer, Settings((betas[0], betas[1]), momentum))
    is_population = isinstance(model, Population)
    members = len(model) if isinstance(model, Population) else 1
    own_rates = isinstance(rule, TorchOptimizer) and rule.own_rates
    rates = per_member("lr", 1.0 if own_rates else lr, members)
    decays = per_member("weight_decay", weight_decay, members)
    device = next(model.parameters()).device
    source = Source(world, batch_size, rng, goal, device, members if is_population and data == "separate" else 0)
    evaluation = make_evaluation(evaluate, goal, device, members)
    if isinstance(checkpoint, (str, Path)):
        checkpoint = Checkpoint(checkpoint)
    named = optimizer if isinstance(optimizer, str) else "own"
    mean = "own" if callable(ema) else ema
    settings = repr((batch_size, rates.tolist(), decays.tolist(), data, named, betas, momentum, clip, mean))
    mode = model.training
    model.train()
    backend: GradientBackend = StackedModels(model) if isinstance(model, Population) else SingleModel(model)
    try:
        state = TrainState(backend, goal, rule, rates, decays, table, clip, average)
        run = Run(
            state=state,
            source=source,
            steps=steps,
            every=every,
            evaluation=evaluation,
            callbacks=tuple(callbacks),
            stop=stop,
            checkpoint=checkpoint,
            settings=settings,
            nan=nan,
            precision=precision,
            compile=compile,
            graph=graph,
        )
        run.go(progress)
    finally:
        backend.close()
        model.train(mode)
    histories = run.histories()
    return histories if is_population else histories[0]
