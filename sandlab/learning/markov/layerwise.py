"""The first stage of layer-wise training on causal trees: the second layer compares tokens, the readout counts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.learning.objectives import member_loss
from sandlab.models.markov.disentangled import DisentangledTransformer, DisentangledTransformerConfig
from sandlab.worlds.markov.causal_graphs import InContextTree

__all__ = ["TokenMatching", "first_layer_descent", "token_matching_config"]


def token_matching_config(states: int, length: int) -> DisentangledTransformerConfig:
    """Two layers of one head whose readout gives probabilities: the output is log(p + 10⁻³)."""
    return DisentangledTransformerConfig(states, length, heads=(1, 1), output="probabilities", floor=1e-3)


@dataclass(frozen=True)
class TokenMatching:
    """Prepares a disentangled transformer of two layers with one head each, of which only the first is then trained.

    A¹ = 0; A² compares the last token with each position's fetched token, β₀ · identity (`temperature`); the readout
    counts. There the gradient of the first layer measures χ² information.

    Source: Nichani, Damian & Lee 2024, "How transformers learn causal structure with gradient descent", §5.
    """

    temperature: float = 1.0

    def __call__(self, model: nn.Module) -> None:
        if not isinstance(model, DisentangledTransformer) or model.config.heads != (1, 1):
            raise BadInput("token matching is for disentangled transformers with heads=(1, 1)")
        token, width = torch.arange(model.config.vocab), model.config.widths[0]
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.zero_().requires_grad_(name.startswith("layers.0."))
            model.get_parameter("layers.1.attention.weight")[0, token, width + token] = self.temperature
            model.unembed.weight[token, 2 * width + token] = 1.0


def first_layer_descent(
    world: InContextTree, temperature: float, sequences: int, *, rng: torch.Generator
) -> Float[Tensor, "query key"]:
    """−∂L/∂A¹ between positions at the point of `TokenMatching`, a mean over samples of the world (float64, CPU)."""
    model = DisentangledTransformer.from_config(token_matching_config(world.states, world.length)).to(rng.device)
    TokenMatching(temperature)(model)
    weight, chunk = model.get_parameter("layers.0.attention.weight"), min(2**13, sequences)
    total, rounds = torch.zeros_like(weight), sequences // chunk
    for _ in range(rounds):
        batch = world.sample(chunk, rng=rng)
        total += torch.autograd.grad(member_loss(model(batch.inputs), batch), weight)[0]
    return -(total / rounds)[0, world.states :, world.states :].cpu().double()
