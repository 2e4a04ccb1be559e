"""A model's loss as a function of one long vector, for Hessians and landscapes."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from sandlab.errors import BadInput, nearest
from sandlab.lenses.predictions import Loss, evaluating, mean_loss
from sandlab.models.attention import Attention

__all__ = ["FlatLoss"]


class _Measured(nn.Module):
    """model ↦ loss, as a module, so that `functional_call` can swap the parameters under any function of the model."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self) -> Tensor:
        return mean_loss(self.model, self.loss)


@dataclass
class FlatLoss:
    """L(θ) for θ the concatenation of the parameters whose names match `only` (a glob pattern; the others stay fixed).

    model   a plain model (one member of a population, not the population)
    loss    a batch (its cross-entropy is the loss) or a function from the model to a scalar
    """

    model: nn.Module
    loss: Loss
    only: str = "*"

    def __post_init__(self) -> None:
        named = dict(self.model.named_parameters())
        self.names = [name for name in named if fnmatch.fnmatchcase(name, self.only)]
        if not self.names:
            raise BadInput(
                f"no parameter matches {self.only!r}: {nearest(self.only, named) or f'it has {list(named)}'}"
            )
        self.shapes = [named[name].shape for name in self.names]
        self.sizes = [named[name].numel() for name in self.names]
        self._measured = _Measured(self.model, self.loss)

    @property
    def point(self) -> Float[Tensor, "parameters"]:
        """The model's present parameters, copied."""
        named = dict(self.model.named_parameters())
        return torch.cat([named[name].detach().flatten() for name in self.names])

    def __call__(self, vector: Float[Tensor, "parameters"]) -> Tensor:
        parts = vector.split(self.sizes)
        swapped = {
            f"model.{name}": part.view(shape) for name, part, shape in zip(self.names, parts, self.shapes, strict=True)
        }
        with evaluating(self.model), _explicit_attention(self.model):
            return functional_call(self._measured, swapped, ())


class _explicit_attention:
    """Fused attention kernels have no second derivative: switch them off inside the block."""

    def __init__(self, model: nn.Module) -> None:
        self.fused = [module for module in model.modules() if isinstance(module, Attention) and module.fused]

    def __enter__(self) -> None:
        for module in self.fused:
            module.fused = False

    def __exit__(self, *_: object) -> None:
        for module in self.fused:
            module.fused = True
