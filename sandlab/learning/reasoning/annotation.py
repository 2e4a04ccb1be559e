"""Greedy labels of a model: the answers it gives when it reads its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import integer
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.clauses import SLOTS
from sandlab.worlds.reasoning.lego import Lego

__all__ = ["Labels", "greedy_answers"]


@dataclass(frozen=True)
class Labels:
    """Answers 1 … S of each chain as a model gives them; the member axis of a population stays first.

    inputs       the clauses with the model's own answers in place of the given ones
    targets      (…, 2S) answered variables and values, in turn
    confidence   smallest probability that the model gave to one of its values
    passes       forward passes that were needed
    """

    inputs: Int[Tensor, "*lead time"]
    targets: Int[Tensor, "*lead target"]
    confidence: Float[Tensor, "*lead"]
    passes: int

    def agreement(self, batch: Batch) -> Bool[Tensor, "*lead"]:
        """Whether every value of a chain is the true one."""
        return (self.targets[..., 1::2] == batch.targets[..., -self.targets.shape[-1] :][..., 1::2]).all(-1)


@torch.no_grad()
def greedy_answers(
    call: Callable[[Tensor], Tensor], world: Lego, inputs: Int[Tensor, "*lead time"], *, force_variable: bool = False
) -> Labels:
    """p̂_F: each answer is the most likely clause given the model's own earlier answers.

    call   inputs → logits, two or five slots per clause, of at least the last S clauses

    The answers solve a fixed-point equation with one solution, which passes over whole sequences find: the answers in
    `inputs` are the first guess, every pass replaces all of them, and what depends on right answers only is final. As
    many passes as the model disagrees with the guess, plus one, instead of one per step. `force_variable` keeps the
    given variables and takes only the values from the model.

    Source: Huang et al. 2025, eq. (9), Definition 5.1.
    """
    steps = integer("steps", world.predicted_steps, low=1)
    guess, given = inputs, inputs.unflatten(-1, (-1, SLOTS))[..., -steps:, :]
    passes = 0
    for _ in range(steps + 1):
        passes += 1
        logits = call(guess).unflatten(-2, (-1, 5 if world.predict_blanks else 2))[..., -steps:, -2:, :]
        answers = logits.argmax(-1)
        if force_variable:
            answers[..., :-1, 0] = given[..., 1:, 3]
        clauses = guess.unflatten(-1, (-1, SLOTS)).clone()
        clauses[..., -steps + 1 :, 3:] = answers[..., :-1, :] if steps > 1 else clauses[..., -steps + 1 :, 3:]
        found = clauses.flatten(-2)
        if bool((found == guess).all()):
            break
        guess = found
    confidence = logits[..., 1, :].softmax(-1).amax(-1).amin(-1)
    return Labels(guess, answers.flatten(-2), confidence, passes)
