"""Writing the states down: decoding with a scratchpad."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sandlab.errors import require
from sandlab.learning.population import Population
from sandlab.worlds.automata.machine import Automaton

__all__ = ["scratchpad_decode"]


@torch.no_grad()
def scratchpad_decode(
    model: nn.Module, machine: Automaton, words: Int[Tensor, "example time"]
) -> Int[Tensor, "*member example time"]:
    """States that a model trained on σ₁ q₁ σ₂ q₂ … writes down itself, one letter at a time.

    After letter σ_t the model's likeliest state is taken as q_t and put behind the letter; later letters are answered
    with what was written, right or wrong (Liu et al. 2023, §5; Nye et al. 2021). The words may have a member axis of
    their own in front; a population gives one answer per member.
    """
    require(machine.scratchpad, "machine.scratchpad", machine.scratchpad, "True", "use machine.task(scratchpad=True)")
    require(machine.outputs <= machine.states, "label", "an observation", "the state itself for a scratchpad")
    members = len(model) if isinstance(model, Population) else 0
    if members and words.ndim == 2:
        words = words.expand(members, *words.shape)

    def call(tokens: Tensor) -> Tensor:
        answers: Tensor = model(tokens, per_member=True) if members else model(tokens)
        return answers

    written = words[..., :1]
    states = []
    training = model.training
    model.eval()
    try:
        for position in range(words.shape[-1]):
            state = call(written)[..., -1, : machine.states].argmax(-1, keepdim=True)
            states.append(state)
            following = words[..., position + 1 : position + 2]
            written = torch.cat([written, state + machine.alphabet, following], -1)
    finally:
        model.train(training)
    return torch.cat(states, -1)
