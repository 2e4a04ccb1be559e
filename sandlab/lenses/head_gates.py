"""Heads pruned together by gates that are learnt, while the model's other weights may adapt."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import integer, number, require
from sandlab.learning.objectives import member_loss
from sandlab.lenses.predictions import evaluating
from sandlab.models.hooks import matching, patch, record
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["GatedHeads", "gate_heads"]

LOW, HIGH, TEMPERATURE = -0.1, 1.1, 2 / 3  # γ, ζ and β of the hard concrete distribution


@dataclass(frozen=True)
class GatedHeads:
    """What is left of a model.

    model   a copy with the weights as they were at the end (those given, unless they adapted)
    gates   (layer name, head) → the gate z between 0 (closed) and 1 by which the head's attention is multiplied
    """

    model: nn.Module
    gates: dict[tuple[str, int], float]

    @property
    def kept(self) -> list[tuple[str, int]]:
        """Heads whose gate is not closed."""
        return [head for head, gate in self.gates.items() if gate > 0]

    def __call__(self, inputs: Tensor) -> Tensor:
        """Logits of the gated model."""
        values: dict[str, list[float]] = {}
        for (name, _), gate in self.gates.items():
            values.setdefault(name, []).append(gate)
        gates = {name: torch.tensor(row) for name, row in values.items()}
        with torch.no_grad(), evaluating(self.model), _gated(self.model, gates):
            logits: Tensor = self.model(inputs)
        return logits


@register("lenses")
def gate_heads(
    model: nn.Module,
    world: World,
    *,
    rng: torch.Generator,
    strength: float = 0.1,
    steps: int = 300,
    batch_size: int = 64,
    lr: float = 0.05,
    adapt: float = 0.0,
    names: str = "layers.*.attention.pattern",
) -> GatedHeads:
    """Close as many heads as the loss allows: minimise E[loss] + strength · Σ P(gate is open) over gates.

    A gate is drawn as z = min(1, max(0, s(ζ − γ) + γ)) with s = σ((log u − log(1 − u) + log α)/β), u uniform, so that
    it is exactly 0 with positive probability and P(z > 0) = σ(log α − β log(−γ/ζ)) has a gradient in α.

    adapt   learning rate of the model's own weights: 0 asks which heads are needed with all else fixed, more than 0
            which are needed when the others may take over

    Source: Louizos, Welling & Kingma 2018 (L₀ regularisation); Voita et al. 2019 (of heads).
    """
    integer("steps", steps, low=1)
    integer("batch_size", batch_size, low=1)
    number("strength", strength, low=0.0)
    number("adapt", adapt, low=0.0)
    require(lr > 0, "lr", lr, "above 0", "gates that are not trained all stay open")
    model = deepcopy(model)
    logits = _open_gates(model, world.sample(1, rng=rng), names)
    groups = [{"params": list(logits.values()), "lr": lr}]
    if adapt:
        groups.append({"params": list(model.parameters()), "lr": adapt})
    optimiser = torch.optim.Adam(groups)
    with torch.enable_grad(), evaluating(model):
        for _ in range(steps):
            batch = world.sample(batch_size, rng=rng)
            loss = _loss(model, batch, {name: _draw(each, rng) for name, each in logits.items()})
            open_gates = sum(
                torch.sigmoid(each - TEMPERATURE * math.log(-LOW / HIGH)).sum() for each in logits.values()
            )
            optimiser.zero_grad()
            (loss + strength * open_gates).backward()
            optimiser.step()
    gates = {name: (torch.sigmoid(each.detach()) * (HIGH - LOW) + LOW).clamp(0, 1) for name, each in logits.items()}
    return GatedHeads(
        model, {(name, head): float(gate) for name, row in gates.items() for head, gate in enumerate(row)}
    )


def _loss(model: nn.Module, batch: Batch, gates: dict[str, Tensor]) -> Tensor:
    with _gated(model, gates):
        return member_loss(model(batch.inputs), batch)


def _draw(log_alpha: Float[Tensor, " head"], rng: torch.Generator) -> Float[Tensor, " head"]:
    uniform = torch.rand(log_alpha.shape, generator=rng, device=rng.device).clamp(1e-6, 1 - 1e-6).to(log_alpha)
    return _stretched(torch.sigmoid((uniform.logit() + log_alpha) / TEMPERATURE))


def _stretched(soft: Float[Tensor, " head"]) -> Float[Tensor, " head"]:
    """Numbers between 0 and 1 stretched over both ends and cut off there."""
    return (soft * (HIGH - LOW) + LOW).clamp(0, 1)


def _open_probability(log_alpha: Float[Tensor, " head"]) -> Float[Tensor, " head"]:
    return torch.sigmoid(log_alpha - TEMPERATURE * math.log(-LOW / HIGH))


def _open_gates(model: nn.Module, batch: Batch, names: str) -> dict[str, Tensor]:
    """log α of every head, at the start 2: about nine gates in ten are open."""
    with evaluating(model), torch.no_grad(), record(model, names) as cache:
        model(batch.inputs)
    shapes = {name: cache[name] for name in matching(model, names)}
    return {
        name: torch.full((each.shape[-3],), 2.0, device=each.device).requires_grad_() for name, each in shapes.items()
    }


def _gated(model: nn.Module, gates: dict[str, Tensor]) -> AbstractContextManager[None]:
    """The model with each head's attention multiplied by its gate, inside a with-block."""

    def times(gate: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda pattern: pattern * gate.to(pattern).view(-1, 1, 1)

    return patch(model, {name: times(gate) for name, gate in gates.items()})
