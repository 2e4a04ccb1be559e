"""Layers that carry an optional member axis: the same module computes one model or a population of them.

A layer's parameters have their usual shape for one model, and one leading `member` axis more inside a population; its
inputs then have a leading member axis too. Matrix products become batched ones (`bmm`), nothing else changes. A model
built only from these layers, and from operations that leave leading axes alone, sets `carries_members = True`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import BadInput

__all__ = [
    "Embedding",
    "HookPoint",
    "LayerNorm",
    "Linear",
    "Positions",
    "RMSNorm",
    "align",
    "contract",
    "linear",
    "look_up",
    "module_list",
    "one_hot",
]

Part = TypeVar("Part", bound=nn.Module)


class HookPoint(nn.Module):
    """An activation with a name: the identity, where `record` reads and `patch` writes."""

    def forward(self, value: Tensor) -> Tensor:
        return value

    @property
    def hooked(self) -> bool:
        """Whether this activation is read or written."""
        return bool(self._forward_hooks)


def module_list(parts: Iterable[Part]) -> Sequence[Part]:
    """An `nn.ModuleList`, typed as the sequence of its parts."""
    return cast(Sequence[Part], nn.ModuleList(parts))


def align(parameter: Tensor, value: Tensor, axes: int) -> Tensor:
    """View a parameter of `axes` axes, and perhaps a member axis before them, so that it broadcasts against `value`.

    The member axis becomes the first axis of `value`, and singleton axes fill the gap.
    """
    if parameter.ndim == axes:
        return parameter
    gap = value.ndim - 1 - axes
    return parameter.view(parameter.shape[0], *([1] * gap), *parameter.shape[1:])


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, member by member when the weights have a member axis; all members may share one of the two."""
    if weight.ndim == 2 and (bias is None or bias.ndim == 1):
        return F.linear(x, weight, bias)
    if weight.ndim == 2 and bias is not None:
        product = F.linear(x, weight)
        return product + align(bias, product, 1)
    members, outputs, inputs = weight.shape
    flat = x.reshape(members, -1, inputs)
    if bias is None:
        product = torch.bmm(flat, weight.mT)
    else:
        product = torch.baddbmm(bias if bias.ndim == 1 else bias.unsqueeze(1), flat, weight.mT)
    return product.view(*x.shape[:-1], outputs)


def contract(equation: str, x: Tensor, parameter: Tensor) -> Tensor:
    """An `einsum` of the last axes of `x` with a parameter, member by member when the parameter has a member axis.

    The equation names the axes of one example and of one model: "jd,hij->ihd".
    """
    axes, rest = equation.split(",")
    weights, result = rest.split("->")
    if parameter.ndim == len(weights):
        return torch.einsum(f"...{axes},{weights}->...{result}", x, parameter)
    examples = x.shape[1 : x.ndim - len(axes)]
    flat = x.reshape(x.shape[0], math.prod(examples), *x.shape[x.ndim - len(axes) :])
    product = torch.einsum(f"yz{axes},y{weights}->yz{result}", flat, parameter)
    return product.reshape(x.shape[0], *examples, *product.shape[2:])


def look_up(index: Int[Tensor, "*lead"], table: Float[Tensor, "entries width"]) -> Float[Tensor, "*lead width"]:
    """Rows of `table`; a token outside it is refused."""
    if index.is_floating_point():
        raise BadInput(f"tokens must be whole numbers, got {index.dtype}: this model reads symbols, not real features")
    try:
        return F.embedding(index, table)
    except IndexError:
        raise BadInput(
            f"tokens must be between 0 and {len(table) - 1}, got {int(index.min())} to {int(index.max())}: "
            "build the model with a larger vocab"
        ) from None


def one_hot(index: Int[Tensor, "*lead"], entries: int, dtype: torch.dtype) -> Float[Tensor, "*lead entries"]:
    """The unit vector of each token, as a row of the identity: three times faster than `F.one_hot` and a cast."""
    return look_up(index, torch.eye(entries, dtype=dtype, device=index.device))


class Linear(nn.Module):
    """y = x Wᵀ + b."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True, std: float | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        nn.init.normal_(self.weight, std=1 / math.sqrt(inputs) if std is None else std)

    def forward(self, x: Float[Tensor, "*lead inputs"]) -> Float[Tensor, "*lead outputs"]:
        return linear(x, self.weight, self.bias)


class Embedding(nn.Module):
    """Rows of a table."""

    def __init__(self, entries: int, width: int, *, std: float = 0.02) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(entries, width))
        nn.init.normal_(self.weight, std=std)

    def forward(self, index: Int[Tensor, "*lead"]) -> Float[Tensor, "*lead width"]:
        if self.weight.ndim == 2:
            return look_up(index, self.weight)
        members, entries, width = self.weight.shape
        # One look-up in the members' tables laid end to end, in which a bad token would find another member's row.
        if index.device.type == "cpu" and not torch.compiler.is_compiling() and index.numel():
            look_up(torch.stack(index.aminmax()), self.weight[0])
        offset = torch.arange(members, device=index.device).view(members, *([1] * (index.ndim - 1))) * entries
        return F.embedding(index + offset, self.weight.reshape(members * entries, width))


class Positions(Embedding):
    """A learned vector for each position."""

    def forward(self, time: int) -> Float[Tensor, "*member time width"]:  # type: ignore[override]
        return self.weight[..., :time, :]


class LayerNorm(nn.Module):
    """(x − mean)/√(variance + ε), times a gain, plus a bias unless `bias=False`."""

    def __init__(self, width: int, *, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.width = width
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Float[Tensor, "*lead width"]) -> Float[Tensor, "*lead width"]:
        if self.weight.ndim == 1 and (self.bias is None or self.bias.ndim == 1):
            return F.layer_norm(x, (self.width,), self.weight, self.bias, self.eps)
        normal = F.layer_norm(x, (self.width,), None, None, self.eps) * align(self.weight, x, 1)
        return normal if self.bias is None else normal + align(self.bias, x, 1)


class RMSNorm(nn.Module):
    """x/√(mean square + ε), times a gain."""

    def __init__(self, width: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Float[Tensor, "*lead width"]) -> Float[Tensor, "*lead width"]:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * align(self.weight, x, 1)
