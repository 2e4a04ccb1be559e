"""Gradient norms, per parameter or per group of parameters."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput, nearest
from sandlab.learning.objectives import member_loss
from sandlab.learning.population import Population
from sandlab.lenses.predictions import Loss, evaluating, mean_loss, named_weights
from sandlab.registry import register
from sandlab.worlds.base import Batch

__all__ = ["gradient_norms"]


@register("lenses")
def gradient_norms(
    model: nn.Module, loss: Loss, *, groups: Mapping[str, str] | None = None
) -> dict[str, float | Tensor]:
    """‖∂L/∂θ_group‖₂ for each group of parameters, and for "all" of them together.

    loss    a batch (its cross-entropy) or a function from the model to a scalar; a population needs a batch
    groups  name → glob pattern of parameter names; by default each module that owns parameters is a group

    A population gives one norm per member.
    """
    named, members = named_weights(model)
    chosen = _groups(named, groups)
    weights = list(named.values())
    with evaluating(model):
        if isinstance(model, Population):
            weights = [value.detach().requires_grad_() for value in weights]
            total = _population_loss(model, dict(zip(named, weights)), loss)
        else:
            total = mean_loss(model, loss)
        gradients = torch.autograd.grad(total, weights, allow_unused=True, materialize_grads=True)
    squares = {name: gradient.double().square().flatten(members).sum(-1) for name, gradient in zip(named, gradients)}
    norms = {group: _root([squares[name] for name in names]) for group, names in chosen.items()}
    norms["all"] = _root(list(squares.values()))
    return {group: norm if members else float(norm) for group, norm in norms.items()}


def _population_loss(model: Population[nn.Module], weights: dict[str, Tensor], loss: Loss) -> Tensor:
    """Sum over members: the gradient of a member's weights comes from its own term alone."""
    if not isinstance(loss, Batch):
        raise BadInput("gradient_norms of a population needs a batch: a function gives one number for all members")
    return member_loss(model.compute(weights, loss.inputs), loss).sum()


def _root(squares: list[Tensor]) -> Tensor:
    return torch.stack(squares).sum(0).sqrt()


def _groups(named: Mapping[str, Tensor], groups: Mapping[str, str] | None) -> dict[str, list[str]]:
    if groups is None:
        owners: dict[str, list[str]] = {}
        for name in named:
            owners.setdefault(name.rpartition(".")[0] or name, []).append(name)
        return owners
    chosen = {group: fnmatch.filter(named, glob) for group, glob in groups.items()}
    for group, names in chosen.items():
        if not names:
            glob = groups[group]
            raise BadInput(f"no parameter matches {glob!r} (group {group!r}): {nearest(glob, named)}".strip(" :"))
    return chosen
