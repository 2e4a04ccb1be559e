"""Writing the states down: decoding with a scratchpad."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sandlab.errors import require
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
    members = len(model) if hasattr(model, "template") else 0  # type: ignore[arg-type]
    if members and words.ndim == 2:
        words = words.expand(members, *words.shape)
    call: Any = (lambda tokens: model(tokens, per_member=True)) if members else model
    written = words[..., :1]
    states = []
    training = model.training
    model.eval()
    try:
        for place in range(words.shape[-1]):
            state = call(written)[..., -1, : machine.states].argmax(-1, keepdim=True)
            states.append(state)
            following = words[..., place + 1 : place + 2]
            written = torch.cat([written, state + machine.alphabet, following], -1)
    finally:
        model.train(training)
    return torch.cat(states, -1)
