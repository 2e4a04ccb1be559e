"""Optimiser steps over rows of weights (member, weight): learning rate and decay may differ per member at no cost.

`Adam`, `AdamW`, `SGD` and `Normalised` are written here for all members at once; the first three equal torch's own,
member by member. Every other optimiser of torch (or of the user) runs once per member on views of the same rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from sandlab.errors import BadInput, nearest, number
from sandlab.learning._engine.layout import Layout

__all__ = ["SGD", "Adam", "Normalised", "Settings", "TorchOptimizer", "clip_rows", "make_optimizer"]

Rows = Sequence[Tensor]


@dataclass(frozen=True)
class Settings:
    """What optimisers are told beside the learning rate and the weight decay, which come with each step."""

    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.0
    nesterov: bool = False
    eps: float = 1e-8

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


@dataclass
class Adam:
    """Adam (Kingma and Ba 2015), with decoupled weight decay (AdamW, Loshchilov and Hutter 2019) or with ℓ² decay.

    m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,  w ← w(1 − ηλ) − η m̂/(√v̂ + ε),  m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ)
    """

    settings: Settings
    decoupled: bool = True
    state: dict[str, Tensor] = field(default_factory=dict)

    def start(self, rows: Rows, layout: Layout) -> None:
        for place, row in enumerate(_real(rows)):
            self.state[f"mean.{place}"] = torch.zeros_like(row)
            self.state[f"square.{place}"] = torch.zeros_like(row)

    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        """One update; lr, decay (float64) and count (updates so far, this one included) are one per member."""
        beta1, beta2 = self.settings.betas
        # In float64: 1 − β₂ᵗ loses four digits in float32 at the first steps.
        rate = lr / (1 - beta1 ** count.to(torch.float64))
        root = (1 - beta2 ** count.to(torch.float64)).sqrt()
        for place, (row, gradient) in enumerate(zip(_real(rows), _real(gradients))):
            mean, square = self.state[f"mean.{place}"], self.state[f"square.{place}"]
            if self.decoupled:
                row.mul_(_column(1 - lr * decay, row))
            else:
                gradient = torch.addcmul(gradient, row, _column(decay, row).expand_as(row))
            mean.lerp_(gradient, 1 - beta1)
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            bound = square.sqrt().div_(_column(root, row)).add_(self.settings.eps)
            row.addcmul_(torch.div(mean, bound), _column(-rate, row).expand_as(row))


@dataclass
class SGD:
    """Gradient descent with momentum: d = g + λw, b ← μb + d (first step: b = d), w ← w − ηb (Nesterov: d + μb)."""

    settings: Settings
    state: dict[str, Tensor] = field(default_factory=dict)

    def start(self, rows: Rows, layout: Layout) -> None:
        if self.settings.momentum:
            for place, row in enumerate(_real(rows)):
                self.state[f"velocity.{place}"] = torch.zeros_like(row)

    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        momentum = self.settings.momentum
        for place, (row, gradient) in enumerate(zip(_real(rows), _real(gradients))):
            gradient = torch.addcmul(gradient, row, _column(decay, row).expand_as(row))
            if momentum:
                velocity = self.state[f"velocity.{place}"].mul_(momentum).add_(gradient)
                gradient = gradient.add(velocity, alpha=momentum) if self.settings.nesterov else velocity
            row.addcmul_(gradient, _column(-lr, row).expand_as(row))


@dataclass
class Normalised:
    """w ← w − η d/‖d‖₂ with d = g + λw, the norm over all weights together; where d = 0 the weights stay.

    Source: Liu 2024 (thesis, CMU-ML-24-110), section 4.1.4; the idea is that of Nesterov 1984 and Hazan et al. 2015.
    """

    state: dict[str, Tensor] = field(default_factory=dict)

    def start(self, rows: Rows, layout: Layout) -> None:
        """There is nothing to remember between steps."""

    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        pairs = list(zip(_real(rows), _real(gradients)))
        directions = [torch.addcmul(slope, row, _column(decay, row).expand_as(row)) for row, slope in pairs]
        # Norms in float64: the squares of a small float32 gradient underflow long before the gradient does.
        norm = torch.stack([direction.double().norm(dim=1) for direction in directions]).norm(dim=0)
        rate = torch.where(norm > 0, lr / torch.where(norm > 0, norm, 1.0), 0.0)
        for (row, _), direction in zip(pairs, directions):
            row.sub_((direction.double() * rate.unsqueeze(1)).to(row.dtype))


class TorchOptimizer:
    """Any torch optimiser, one instance per member, each on views of its member's weights.

    `own_rates`: it was built by a factory that chose learning rate and decay itself; the schedule then scales those.
    """

    def __init__(self, build: Callable[[list[Tensor]], torch.optim.Optimizer], own_rates: bool) -> None:
        self.build, self.own_rates = build, own_rates
        self.members: list[tuple[torch.optim.Optimizer, list[Tensor], list[float]]] = []
        self.layout: Layout | None = None

    def start(self, rows: Rows, layout: Layout) -> None:
        self.members, self.layout = [], layout
        views = layout.views(rows)
        for place in range(rows[0].shape[0]):
            leaves = [view[place].detach().requires_grad_() for view in views.values()]
            optimizer = self.build(leaves)
            if isinstance(optimizer, torch.optim.LBFGS):
                raise BadInput("optimizer 'lbfgs' evaluates the loss many times a step: use scipy.optimize or a loop")
            self.members.append((optimizer, leaves, [group["lr"] for group in optimizer.param_groups]))

    def step(self, rows: Rows, gradients: Rows, lr: Tensor, decay: Tensor, count: Tensor) -> None:
        assert self.layout is not None
        views = list(self.layout.views(gradients).values())
        for place, (rate, shrink) in enumerate(zip(lr.tolist(), decay.tolist())):
            if rate == 0.0:  # a member that has stopped
                continue
            optimizer, leaves, base = self.members[place]
            for leaf, gradient in zip(leaves, views):
                leaf.grad = gradient[place]
            for group, own in zip(optimizer.param_groups, base):
                group["lr"] = own * rate if self.own_rates else rate
                if "weight_decay" in group and not self.own_rates:
                    group["weight_decay"] = shrink
            optimizer.step()

    @property
    def state(self) -> dict[str, Tensor]:
        """Every tensor of every member's state, by name, for checkpoints."""
        return {
            f"{place}.{leaf}.{name}": torch.as_tensor(value)
            for place, (optimizer, leaves, _) in enumerate(self.members)
            for leaf, key in enumerate(leaves)
            for name, value in optimizer.state.get(key, {}).items()
            if value is not None
        }

    def load(self, saved: dict[str, Tensor]) -> None:
        for path, value in saved.items():
            place, leaf, name = path.split(".", 2)
            optimizer, leaves, _ = self.members[int(place)]
            optimizer.state[leaves[int(leaf)]][name] = value.clone()


def make_optimizer(given: str | Callable[..., Any], settings: Settings) -> Adam | SGD | Normalised | TorchOptimizer:
    """The optimiser of that name (one of this module or any class of torch.optim), class or factory of the user.

    A class is built as `given(weights, lr=…)` and takes the learning rate and weight decay of `train`; a factory is
    called as `given(weights)` and chooses them itself (the schedule still applies).
    """
    if given in ("adamw", "adam", "sgd", "momentum"):
        if given == "momentum" and settings.momentum == 0:
            settings = Settings(settings.betas, 0.9, settings.nesterov, settings.eps)
        return SGD(settings) if given in ("sgd", "momentum") else Adam(settings, decoupled=given == "adamw")
    if given == "normalised":
        return Normalised()
    if isinstance(given, str):
        classes = {name.lower(): kind for name, kind in vars(torch.optim).items() if inspect.isclass(kind)}
        known = [name for name, kind in classes.items() if issubclass(kind, torch.optim.Optimizer)]
        if given.lower() not in known or given.lower() == "optimizer":
            raise BadInput(f"no optimizer called {given!r}: {nearest(given, known) or 'see torch.optim'}")
        return TorchOptimizer(_builder(classes[given.lower()], settings), own_rates=False)
    if not callable(given):
        raise BadInput(f"optimizer must be a name, a class or a factory, got {given!r}")
    if inspect.isclass(given) and issubclass(given, torch.optim.Optimizer):
        return TorchOptimizer(_builder(given, settings), own_rates=False)
    return TorchOptimizer(cast(Callable[..., Any], given), own_rates=True)


def _builder(given: Callable[..., Any], settings: Settings) -> Callable[[list[Tensor]], torch.optim.Optimizer]:
    known = inspect.signature(given).parameters
    options: dict[str, Any] = {"lr": 1e-3}
    if "betas" in known:
        options["betas"] = settings.betas
    if "momentum" in known and settings.momentum:
        options["momentum"] = settings.momentum
    return lambda leaves: given(leaves, **options)
