"""Algorithms 1 and 2 of the source, literally: plain gradient descent on the theory's transformer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.learning.reasoning.annotation import greedy_answers
from sandlab.models.reasoning.theory import LegoTheoryTransformer
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.lego import Lego, track_values

__all__ = [
    "TheoryStage",
    "curriculum_gd",
    "enumerate_lego",
    "next_clause_loss",
    "recursive_self_training",
    "relabelled",
]

SLOTS = 5


@dataclass(frozen=True)
class TheoryStage:
    """A stage as it was trained: its name, the loss of every step, and a copy of the model at its end."""

    name: str
    losses: np.ndarray
    model: LegoTheoryTransformer


def enumerate_lego(world: Lego, limit: int = 200_000) -> Batch:
    """Every example of a small LEGO world once; all are equally likely, so that means over it are expectations."""
    action, length = world.group_action, world.length
    count = action.elements**length * action.values
    names = torch.cartesian_prod(*[torch.arange(world.variables)] * (length + 1))
    ordered = names.sort(1).values
    names = names[(ordered[:, 1:] != ordered[:, :-1]).all(1)]
    require(len(names) * count <= limit, "world", world, f"one with at most {limit} examples")
    grid = torch.cartesian_prod(*[torch.arange(action.elements)] * length, torch.arange(action.values))
    names, grid = names.repeat_interleave(count, 0), grid.repeat(len(names), 1)
    values = track_values(grid[:, :-1], grid[:, -1], *world.tables("cpu"))
    return world.compose(names, grid[:, :-1], values)


def next_clause_loss(
    model: LegoTheoryTransformer, batch: Batch, steps: int, slots: Sequence[int] = (1, 2, 3, 4, 5)
) -> Tensor:
    """Σ over counted steps L′ of E[−log p_F(Z_{ans,L′} | Z^{L,L′−1})], over the given slots; teacher forced.

    Source: Huang et al. 2025, Definition 3.7; with labels of a model, Definition 5.2.
    """
    logits = model(batch.inputs).unflatten(1, (-1, SLOTS))[:, -steps:]
    wanted, counted = (each.view(len(batch), steps, SLOTS) for each in (batch.targets, batch.mask))
    losses = -logits.log_softmax(-1).gather(-1, wanted.unsqueeze(-1)).squeeze(-1) * counted
    return losses[..., [slot - 1 for slot in slots]].sum((1, 2)).mean()


def curriculum_gd(
    model: LegoTheoryTransformer, world: Lego, *, ffn: tuple[float, int], attention: tuple[float, int]
) -> list[TheoryStage]:
    """Algorithm 1 (simply transitive actions), each stage with its (learning rate, steps).

    Stage 1: W by Loss^1, all five slots, on chains of length 1, where uniform attention sees just the two clauses.
    Stage 2: Q by Loss_5^{2,1} + Loss_5^{2,2}. W_5 learns from actions and values only (Assumption B.1).
    """
    first, second = _examples(world, 1), _examples(world, 2)
    loss = _descend(model, ["weight"], *ffn, lambda: next_clause_loss(model, first, 1))
    stages = [TheoryStage("neurons", loss, copy.deepcopy(model))]
    loss = _descend(model, ["q43", "q44"], *attention, lambda: next_clause_loss(model, second, 2, (5,)))
    return [*stages, TheoryStage("attention", loss, copy.deepcopy(model))]


def recursive_self_training(
    model: LegoTheoryTransformer,
    world: Lego,
    *,
    ffn: tuple[float, int],
    attention: tuple[float, int],
    stages: int,
    below: float,
    samples: int = 1500,
    rng: torch.Generator,
) -> list[TheoryStage]:
    """Algorithm 2 (symmetric actions): W on T¹, Q by Loss_5^{2,2}, then for k = 2 … K chains of length 2^k.

    In stage k only step ℓ = 2 and slot 5 are trained, only Q moves, and the labels are those that the model at the
    start of the stage, frozen, gives greedily; the stage ends when the loss is at most `below`.
    """
    integer("stages", stages, low=1)
    first, second = _examples(world, 1), _examples(world, 2, only_last=True)
    loss = _descend(model, ["weight"], *ffn, lambda: next_clause_loss(model, first, 1))
    done = [TheoryStage("neurons", loss, copy.deepcopy(model))]
    loss = _descend(model, ["q43", "q44"], *attention, lambda: next_clause_loss(model, second, 2, (5,)), below)
    done.append(TheoryStage("length 2", loss, copy.deepcopy(model)))
    for k in range(2, stages + 1):
        long = replace(world, length=2**k, num_answers=2, only_last=True, predict_blanks=True)
        batch = relabelled(copy.deepcopy(model), long, long.sample(samples, rng=rng))
        loss = _descend(model, ["q43", "q44"], *attention, _loss_of(model, batch), below)
        done.append(TheoryStage(f"length {2**k}", loss, copy.deepcopy(model)))
    return done


def relabelled(teacher: LegoTheoryTransformer, world: Lego, batch: Batch) -> Batch:
    """D_F: the same chains with the answers that the teacher gives greedily (D itself where it is right, Fact F.1)."""
    labels = greedy_answers(teacher, world, batch.inputs)
    targets = batch.targets.unflatten(1, (-1, SLOTS)).clone()
    targets[..., 3:] = labels.targets.unflatten(1, (-1, 2))
    return replace(batch, inputs=labels.inputs, targets=targets.flatten(1))


def _loss_of(model: LegoTheoryTransformer, batch: Batch) -> Callable[[], Tensor]:
    return lambda: next_clause_loss(model, batch, 2, (5,))


def _examples(world: Lego, length: int, only_last: bool = False) -> Batch:
    """All chains of a short length, all five slots predicted."""
    return enumerate_lego(replace(world, length=length, num_answers=None, only_last=only_last, predict_blanks=True))


def _descend(
    model: LegoTheoryTransformer,
    names: list[str],
    rate: float,
    steps: int,
    loss: Callable[[], Tensor],
    below: float = -1.0,
) -> np.ndarray:
    """Plain gradient descent on some of the model's parameters; the losses of all steps."""
    chosen = [weight for name, weight in model.named_parameters() if name in names]
    losses = []
    for _ in range(steps):
        value = loss()
        losses.append(float(value.detach()))
        if losses[-1] <= below:
            break
        for weight, gradient in zip(chosen, torch.autograd.grad(value, chosen)):
            _freeze_variables(model, weight, gradient)
            weight.data -= rate * gradient
    return np.array(losses)


def _freeze_variables(model: LegoTheoryTransformer, weight: Tensor, gradient: Tensor) -> None:
    """The value neurons keep their initial weights on variables: blocks 1, 3 and 4 of W_5."""
    if weight is model.weight:
        gradient.unflatten(-1, (SLOTS, -1))[4, :, :, [0, 2, 3]] = 0.0
