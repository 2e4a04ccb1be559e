"""Optimiser steps over rows of weights (member, weight): learning rate and decay may differ per member at no cost.

`Adam`, `SGD` and `Normalised` are written here for all members at once; Adam, AdamW and SGD equal torch's own, member
by member. Every other optimiser of torch (or of the user) runs once per member on views of the same rows.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias, cast

import torch
from torch import Tensor

from sandlab.errors import BadInput, nearest, number
from sandlab.learning._engine.layout import Layout

__all__ = ["SGD", "Adam", "Normalised", "OptimizerConfig", "TorchOptimizer", "clip_rows", "make_optimizer"]

Rows: TypeAlias = Sequence[Tensor]
OptimizerFactory: TypeAlias = Callable[[list[Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class OptimizerConfig:
    """Options of an optimiser; learning rate and weight decay come with each step."""

    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.0

    def __post_init__(self) -> None:
        for beta in self.betas:
            number("betas", beta, low=0.0, high=1.0)
        number("momentum", self.momentum, low=0.0)


def clip_rows(gradients: Rows, limit: float) -> Tensor:
    """Scale each member's gradient to norm at most `limit` (all its weights together); returns the norms before."""
    norm = torch.stack([row.norm(dim=1).to(torch.float64) for row in gradients]).norm(dim=0)
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    for row in gradients:
        row.mul_(scale.to(row.dtype).unsqueeze(1))
    return norm


def _real(rows: Rows) -> list[Tensor]:
    """Complex weights as pairs of real ones, which is how torch's optimisers treat them."""
    return [torch.view_as_real(row).flatten(1) if row.is_complex() else row for row in rows]


def _column(values: Tensor, row: Tensor) -> Tensor:
    return values.to(row.dtype).unsqueeze(1)


class RowOptimizer(ABC):
    """Moves the rows of all members along their gradients.

    on_device   whether a step consists of tensor operations alone, so that it can be compiled and recorded
    state       what is remembered between steps, by name
    """

    on_device: ClassVar[bool] = True
    state: dict[str, Tensor]

    def start(self, rows: Rows, layout: Layout) -> None:  # noqa: B027
        """Prepare the state for these rows."""

    @abstractmethod
    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        """One update; lr, decay (float64) and count (updates so far, this one included) are one per member."""

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the state, for checkpoints."""
        return self.state

    def load(self, saved: Mapping[str, Tensor]) -> None:  # noqa: B027
        """Create tensors of a saved state that `start` does not create."""


@dataclass
class Adam(RowOptimizer):
    """Adam (Kingma and Ba 2015), with decoupled weight decay (AdamW, Loshchilov and Hutter 2019) or with ℓ² decay.

    m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,  w ← w(1 − ηλ) − η m̂/(√v̂ + 10⁻⁸),  m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ)
    """

    config: OptimizerConfig = field(default_factory=OptimizerConfig)
    decoupled: bool = True
    state: dict[str, Tensor] = field(default_factory=dict)

    def start(self, rows: Rows, layout: Layout) -> None:
        for index, row in enumerate(_real(rows)):
            self.state[f"mean.{index}"] = torch.zeros_like(row)
            self.state[f"square.{index}"] = torch.zeros_like(row)

    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        beta1, beta2 = self.config.betas
        # In float64: 1 − β₂ᵗ loses four digits in float32 at the first steps.
        rate = lr / (1 - beta1 ** count.to(torch.float64))
        root = (1 - beta2 ** count.to(torch.float64)).sqrt()
        for index, (row, gradient) in enumerate(zip(_real(rows), _real(gradients))):
            mean, square = self.state[f"mean.{index}"], self.state[f"square.{index}"]
            if self.decoupled:
                row.mul_(_column(1 - lr * decay, row))
            else:
                gradient = torch.addcmul(gradient, row, _column(decay, row).expand_as(row))
            mean.lerp_(gradient, 1 - beta1)
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            bound = square.sqrt().div_(_column(root, row)).add_(1e-8)
            row.addcmul_(torch.div(mean, bound), _column(-rate, row).expand_as(row))


@dataclass
class SGD(RowOptimizer):
    """Gradient descent with momentum: d = g + λw, b ← μb + d (first step: b = d), w ← w − ηb."""

    config: OptimizerConfig = field(default_factory=OptimizerConfig)
    state: dict[str, Tensor] = field(default_factory=dict)

    def start(self, rows: Rows, layout: Layout) -> None:
        if self.config.momentum:
            for index, row in enumerate(_real(rows)):
                self.state[f"velocity.{index}"] = torch.zeros_like(row)

    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        momentum = self.config.momentum
        for index, (row, gradient) in enumerate(zip(_real(rows), _real(gradients))):
            gradient = torch.addcmul(gradient, row, _column(decay, row).expand_as(row))
            if momentum:
                gradient = self.state[f"velocity.{index}"].mul_(momentum).add_(gradient)
            row.addcmul_(gradient, _column(-lr, row).expand_as(row))


@dataclass
class Normalised(RowOptimizer):
    """w ← w − η d/‖d‖₂ with d = g + λw, the norm over all weights together; where d = 0 the weights stay.

    Source: Liu 2024 (thesis, CMU-ML-24-110), section 4.1.4; the idea is that of Nesterov 1984 and Hazan et al. 2015.
    """

    state: dict[str, Tensor] = field(default_factory=dict)

    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        pairs = list(zip(_real(rows), _real(gradients)))
        directions = [torch.addcmul(slope, row, _column(decay, row).expand_as(row)) for row, slope in pairs]
        # Norms in float64: the squares of a small float32 gradient underflow long before the gradient does.
        norm = torch.stack([direction.double().norm(dim=1) for direction in directions]).norm(dim=0)
        rate = torch.where(norm > 0, lr / torch.where(norm > 0, norm, 1.0), 0.0)
        for (row, _), direction in zip(pairs, directions):
            row.sub_((direction.double() * rate.unsqueeze(1)).to(row.dtype))


class TorchOptimizer(RowOptimizer):
    """Any torch optimiser, one instance per member, each on views of its member's weights.

    own_rates   the factory that built it chose learning rate and decay itself; the schedule then scales those
    """

    on_device = False

    def __init__(self, build: OptimizerFactory, own_rates: bool = False) -> None:
        self.build, self.own_rates = build, own_rates
        self.members: list[tuple[torch.optim.Optimizer, list[Tensor], list[float]]] = []
        self.layout: Layout | None = None

    def start(self, rows: Rows, layout: Layout) -> None:
        self.members, self.layout = [], layout
        views = layout.views(rows)
        for index in range(rows[0].shape[0]):
            leaves = [view[index].detach().requires_grad_() for view in views.values()]
            optimizer = self.build(leaves)
            if isinstance(optimizer, torch.optim.LBFGS):
                raise BadInput("optimizer 'lbfgs' evaluates the loss many times a step: use scipy.optimize or a loop")
            self.members.append((optimizer, leaves, [group["lr"] for group in optimizer.param_groups]))

    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        assert self.layout is not None
        views = list(self.layout.views(gradients).values())
        for index, (rate, shrink) in enumerate(zip(lr.tolist(), decay.tolist())):
            if rate == 0.0:  # a member that has stopped
                continue
            optimizer, leaves, base = self.members[index]
            for leaf, gradient in zip(leaves, views):
                leaf.grad = gradient[index]
            for group, own in zip(optimizer.param_groups, base):
                group["lr"] = own * rate if self.own_rates else rate
                if "weight_decay" in group and not self.own_rates:
                    group["weight_decay"] = shrink
            optimizer.step()

    def tensors(self) -> dict[str, Tensor]:
        return {
            f"{index}.{leaf}.{name}": torch.as_tensor(value)
            for index, (optimizer, leaves, _) in enumerate(self.members)
            for leaf, key in enumerate(leaves)
            for name, value in optimizer.state.get(key, {}).items()
            if value is not None
        }

    def load(self, saved: Mapping[str, Tensor]) -> None:
        for path, value in saved.items():
            index, leaf, name = path.split(".", 2)
            optimizer, leaves, _ = self.members[int(index)]
            optimizer.state[leaves[int(leaf)]][name] = value.clone()


def make_optimizer(
    given: str | type[torch.optim.Optimizer] | OptimizerFactory, config: OptimizerConfig
) -> RowOptimizer:
    """The optimiser of that name (one of this module or any class of torch.optim), class or factory of the user.

    A class is built as `given(weights, lr=…)` and takes the learning rate and weight decay of `train`; a factory is
    called as `given(weights)` and chooses them itself (the schedule still applies).
    """
    if given == "momentum":
        return SGD(replace(config, momentum=config.momentum or 0.9))
    if given == "sgd":
        return SGD(config)
    if given in ("adamw", "adam"):
        return Adam(config, decoupled=given == "adamw")
    if given == "normalised":
        return Normalised()
    if isinstance(given, str):
        return TorchOptimizer(_builder(_torch_class(given), config))
    if not callable(given):
        raise BadInput(f"optimizer must be a name, a class or a factory, got {given!r}")
    if isinstance(given, type) and issubclass(given, torch.optim.Optimizer):
        return TorchOptimizer(_builder(given, config))
    return TorchOptimizer(cast(OptimizerFactory, given), own_rates=True)


def _torch_class(name: str) -> type[torch.optim.Optimizer]:
    """The class of torch.optim with that name, in any case."""
    kinds = [kind for kind in vars(torch.optim).values() if inspect.isclass(kind)]
    known = {kind.__name__.lower(): kind for kind in kinds if issubclass(kind, torch.optim.Optimizer)}
    del known["optimizer"]
    if name.lower() not in known:
        raise BadInput(f"no optimizer called {name!r}: {nearest(name, known) or 'see torch.optim'}")
    return known[name.lower()]


def _builder(kind: type[torch.optim.Optimizer], config: OptimizerConfig) -> OptimizerFactory:
    known = inspect.signature(kind).parameters
    options: dict[str, object] = {"lr": 1e-3}
    if "betas" in known:
        options["betas"] = config.betas
    if "momentum" in known and config.momentum:
        options["momentum"] = config.momentum
    return lambda leaves: kind(leaves, **options)  # type: ignore[arg-type]
