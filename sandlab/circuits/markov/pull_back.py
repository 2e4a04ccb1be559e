"""Any attention-only transformer as a disentangled one: addition becomes concatenation."""

from __future__ import annotations

import torch
from torch import Tensor

from sandlab.errors import require
from sandlab.models.attention import Attention
from sandlab.models.base import seeded
from sandlab.models.layers import Linear
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["disentangle"]


@register("circuits")
def disentangle(model: Transformer) -> DisentangledTransformer:
    """The disentangled transformer with the same layers and heads that computes the same logits (float64).

    The stream of the given model is a linear function of the disentangled one, x = r M. At the start M₀ holds the token
    and position vectors; a layer gives M ← [M; M W¹; …; M Wᴴ] with Wʰ the head's value and output maps, and a head's
    scores x QᵀK xᵀ are r A rᵀ with A = M QᵀK Mᵀ; the readout is U Mᵀ. One-hot tokens sum to 1, so a bias b adds b to
    every token's row. Loops over the same layers become separate layers.

    Source: Friedman, Wettig and Chen 2023; Nichani, Damian and Lee 2024, Theorem 3.
    """
    config = model.config
    _check(model)
    with seeded(0):
        result = DisentangledTransformer(
            vocab=config.vocab, length=config.length, heads=config.heads_per_layer * config.loops,
            causal=config.causal, outputs=config.outputs or config.vocab, read=config.read,
            output="logits" if config.log_output is None else "probabilities", floor=config.log_output or 0.0,
        ).double()  # fmt: skip
    layers = list(zip(model.layers, config.residual_per_layer)) * config.loops
    with torch.no_grad():
        stream = torch.cat([table.double() for table in model.embedding_tables()])
        for (layer, residual), target in zip(layers, result.layers):
            attention = layer.attention
            query, key = (_with_bias(stream, part, config.vocab) for part in (attention.query, attention.key))
            heads = zip(query.chunk(attention.heads, 1), key.chunk(attention.heads, 1))
            target.attention.weight.copy_(torch.stack([attention.scale * q @ k.T for q, k in heads]))
            written, constant = _written(attention)
            copies = [stream @ matrix for matrix in written]
            stream = torch.cat([stream if residual else torch.zeros_like(stream), *copies])
            stream[: config.vocab] += constant
        readout = model.embedding.weight if config.tied else model.unembed.weight
        result.unembed.weight.copy_(readout.double() @ stream.T)
        if config.readout_bias:
            result.unembed.weight[:, : config.vocab] += model.readout_bias.double().unsqueeze(-1)
    return result


def _with_bias(stream: Tensor, part: Linear, vocab: int) -> Tensor:
    """r ↦ x Wᵀ + b as a matrix acting on r."""
    image = stream @ part.weight.double().T
    if part.bias is not None:
        image[:vocab] += part.bias.double()
    return image


def _written(attention: Attention) -> tuple[list[Tensor], Tensor]:
    """Each head's map from the stream to the stream, and what all biases together add at every position."""
    value, output = attention.value, attention.output
    # Attention weights sum to 1, so the value's bias arrives unchanged.
    shift = torch.zeros(len(value.weight)) if value.bias is None else value.bias
    if not isinstance(output, Linear):
        return [part.double().T for part in value.weight.chunk(attention.heads)], shift.double().view(
            attention.heads, -1
        ).sum(0)
    constant = output.weight.double() @ shift.double()
    if output.bias is not None:
        constant = constant + output.bias.double()
    parts = zip(value.weight.double().chunk(attention.heads), output.weight.double().chunk(attention.heads, 1))
    return [inner.T @ outer.T for inner, outer in parts], constant


def _check(model: Transformer) -> None:
    config = model.config
    require(config.mlp == "none", "mlp", config.mlp, "'none'", "only attention-only transformers can be disentangled")
    require(config.norm == "none", "norm", config.norm, "'none'", "a norm is not linear in the stream")
    require(config.attention == "softmax", "attention", config.attention, "'softmax'")
    require(config.window is None, "window", config.window, "None")
    elsewhere = ("rotary", "relative", "alibi")
    require(config.positions not in elsewhere, "positions", config.positions, "codes that are added to the token")
    require(config.log_output is None or not config.readout_bias, "readout_bias", True, "False with log_output")
