"""Attention by the fused kernel wherever nothing inside it is watched: for long sentences on a GPU."""

from __future__ import annotations

from torch import nn

from sandlab.models.attention import Attention

__all__ = ["fuse_attention"]


def fuse_attention(model: nn.Module) -> None:
    """Let every attention layer use torch's fused kernel, in evaluations as in training.

    An evaluation without it holds all patterns at once, (member, example, head, query, key): at 32 heads, 433 tokens
    and a thousand sentences more than a GPU has. Given to an experiment as `prepare`.
    """
    for part in model.modules():
        if isinstance(part, Attention):
            part.fused = True
