"""Chains of thought as a model writes them, clause after clause."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from sandlab.errors import choice
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.clauses import SLOTS
from sandlab.worlds.reasoning.lego import Lego

__all__ = ["Rollout", "cot_rollout"]


@dataclass(frozen=True)
class Rollout:
    """Answers that a model wrote: variables and values of steps 1 … S, and whether all values are the true ones."""

    variables: Int[Tensor, "n step"]
    values: Int[Tensor, "n step"]
    right: Bool[Tensor, "n"]


@torch.no_grad()
def cot_rollout(
    model: nn.Module,
    world: Lego,
    batch: Batch,
    *,
    mode: str = "greedy",
    force_variable: bool = False,
    rng: torch.Generator | None = None,
) -> Rollout:
    """Generate all answer clauses autoregressively from the predicates and the first answer.

    mode             "greedy": the most likely clause; "sample": drawn from the model, slot by slot (needs `rng`)
    force_variable   write the true variable and take only the value from the model

    For greedy decoding "every value is right" is the same as "every teacher-forced prediction is right" (with the
    variable right or forced): until the first error both read the truth.
    """
    choice("mode", mode, ("greedy", "sample"))
    steps, per = world.predicted_steps, 5 if world.predict_blanks else 2
    clauses = batch.inputs.view(len(batch), -1, SLOTS)
    truth = batch.targets.view(len(batch), steps, per)[..., -2:]
    shown = clauses[:, : clauses.shape[1] - steps + 1]
    written = []
    for step in range(steps):
        logits = model(shown.flatten(1)).unflatten(1, (-1, per))[:, -1, -2:]
        chosen = logits.argmax(-1) if mode == "greedy" else _draw(logits, rng)
        if force_variable:
            chosen[:, 0] = truth[:, step, 0]
        written.append(chosen)
        clause = world.clause(len(batch), 1, shown.device, slot4=chosen[:, :1], slot5=chosen[:, 1:])
        shown = torch.cat([shown, clause], 1)
    answers = torch.stack(written, 1)
    return Rollout(answers[..., 0], answers[..., 1], (answers[..., 1] == truth[..., 1]).all(1))


def _draw(logits: Tensor, rng: torch.Generator | None) -> Tensor:
    probs = logits.softmax(-1)
    return torch.multinomial(probs.flatten(0, 1), 1, generator=rng).view(probs.shape[:-1])
