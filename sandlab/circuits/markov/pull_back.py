"""Any attention-only transformer as a disentangled one: addition becomes concatenation, weights are pulled back."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import require
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.transformer import Transformer, sinusoids
from sandlab.registry import register

__all__ = ["disentangle"]


@register("circuits")
def disentangle(model: Transformer) -> DisentangledTransformer:
    """The disentangled transformer with the same layers and heads that computes the same logits (float64).

    The stream of the given model is a linear function of the disentangled one, x = r M. At the start M₀ holds the token
    and position vectors; a layer gives M ← [M; M W¹; …; M Wᴴ] with Wʰ the head's value and output maps, and a head's
    scores x QᵀK xᵀ are r A rᵀ with A = M QᵀK Mᵀ; the readout is U Mᵀ. One-hot tokens sum to 1, so a bias b adds b to
    every token's row. Loops over the same layers become layers of their own.

    Source: Friedman, Wettig and Chen 2023; Nichani, Damian and Lee 2024, Theorem 3.
    """
    config = model.config
    _check(model)
    heads = config.heads_per_layer * config.loops
    result = DisentangledTransformer(
        vocab=config.vocab,
        length=config.length,
        heads=heads,
        causal=config.causal,
        outputs=config.outputs or config.vocab,
        output="logits" if config.log_output is None else "probabilities",
        floor=config.log_output or 0.0,
        read=config.read,
    ).double()
    layers = list(zip(model.layers, config.residual_per_layer)) * config.loops
    stream = _start(model)
    with torch.no_grad():
        for (layer, residual), target in zip(layers, result.layers):
            attention: Any = layer.attention
            query, key = (_with_bias(stream, part, config.vocab) for part in (attention.query, attention.key))
            inner = attention.head_width
            split = [slice(head * inner, (head + 1) * inner) for head in range(attention.heads)]
            scores = torch.stack([attention.scale * query[:, part] @ key[:, part].T for part in split])
            target.attention.weight.copy_(scores)  # type: ignore[union-attr,operator]
            written, constant = _written(attention, config.vocab)
            copies = [stream @ matrix for matrix in written]
            stream = torch.cat([stream if residual else torch.zeros_like(stream), *copies])
            stream[: config.vocab] += constant
        readout = model.embedding.weight if config.tied else model.unembed.weight
        result.unembed.weight.copy_(readout.double() @ stream.T)
        if config.readout_bias:
            result.unembed.weight[:, : config.vocab] += model.readout_bias.double().unsqueeze(-1)
    return result


def _start(model: Transformer) -> Float[Tensor, "coordinate width"]:
    """M₀: the stream's vector for each token and each position."""
    config = model.config
    token = torch.eye(config.vocab) if config.embedding == "one-hot" else model.embedding.weight.detach()
    if config.positions == "learned":
        place = model.position.weight.detach()
    elif config.positions == "sinusoidal":
        place = sinusoids(config.length, config.width)
    else:
        place = torch.zeros(config.length, config.token_width)
    if config.positions == "one-hot":
        token = torch.nn.functional.pad(token, (0, config.length))
        place = torch.cat([place, torch.eye(config.length)], -1)
    return torch.cat([token.double(), place.double()])


def _with_bias(stream: Tensor, part: Any, vocab: int) -> Tensor:
    """r ↦ x Wᵀ + b as a matrix acting on r."""
    image = stream @ part.weight.detach().double().T
    if part.bias is not None:
        image[:vocab] += part.bias.detach().double()
    return image


def _written(attention: Any, vocab: int) -> tuple[list[Tensor], Tensor]:
    """Each head's map from the stream to the stream, and what all biases together add at every position."""
    value = attention.value.weight.detach().double().unflatten(0, (attention.heads, -1))
    mapped = hasattr(attention.output, "weight")
    width = attention.value.weight.shape[1]
    if mapped:
        output = attention.output.weight.detach().double().unflatten(1, (attention.heads, -1))
        matrices = [value[head].T @ output[:, head].T for head in range(attention.heads)]
    else:
        matrices = [part.T for part in value]
    constant = torch.zeros(width, dtype=torch.float64)
    if attention.value.bias is not None:
        # Attention weights sum to 1, so the value's bias arrives unchanged.
        shift = attention.value.bias.detach().double()
        constant += attention.output.weight.detach().double() @ shift if mapped else shift.view(-1, width).sum(0)
    if mapped and attention.output.bias is not None:
        constant += attention.output.bias.detach().double()
    return matrices, constant


def _check(model: Transformer) -> None:
    config = model.config
    require(config.mlp == "none", "mlp", config.mlp, "'none'", "only attention-only transformers can be disentangled")
    require(config.norm == "none", "norm", config.norm, "'none'", "a norm is not linear in the stream")
    require(config.attention == "softmax", "attention", config.attention, "'softmax'")
    require(config.window is None, "window", config.window, "None")
    linear = ("none", "learned", "sinusoidal", "one-hot")
    require(config.positions in linear, "positions", config.positions, f"one of {', '.join(linear)}")
    require(config.log_output is None or not config.readout_bias, "readout_bias", True, "False with log_output")
