"""The two contrastive losses as functions of the margin, computed in log space, and stabilisers for samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import choice, require

__all__ = ["MARGIN_LOSSES", "MarginLoss", "Scaled", "Stabiliser", "log_mean_exp", "margin_loss", "shifted_mean"]


@dataclass(frozen=True)
class Scaled:
    """A tensor that may be too small or too large for floating point: mantissa · e^exponent, one per leading index."""

    mantissa: Float[Tensor, "*lead_rest"]
    exponent: Float[Tensor, "*lead"]

    @property
    def value(self) -> Tensor:
        """The ordinary tensor; underflows to 0 where it must."""
        rest = self.mantissa.ndim - self.exponent.ndim
        return self.mantissa * self.exponent.exp().view(*self.exponent.shape, *([1] * rest))

    @property
    def direction(self) -> Tensor:
        """Unit vector along a scaled vector, exact however small the vector is; zero stays zero."""
        norm = self.mantissa.norm(dim=-1, keepdim=True)
        return torch.where(norm > 0, self.mantissa / torch.where(norm > 0, norm, 1.0), 0.0)

    @property
    def log_norm(self) -> Tensor:
        """log ‖vector‖."""
        return self.mantissa.norm(dim=-1).log() + self.exponent


@dataclass(frozen=True)
class MarginLoss:
    """A loss l(m) of the margin m = y·r, where r(x) = log p(x)/q(x) and y = +1 for data, −1 for noise.

    `log_value`, `log_slope` and `log_curvature` are log l, log(−l′) and log l″: l, −l′ and l″ are positive.
    """

    name: str
    log_value: Callable[[Tensor], Tensor]
    log_slope: Callable[[Tensor], Tensor]
    log_curvature: Callable[[Tensor], Tensor]


def _softplus(x: Tensor) -> Tensor:
    return torch.nn.functional.softplus(x, threshold=40)


def _log_softplus(x: Tensor) -> Tensor:
    """log log(1 + e^x): equal to x, to the last bit, where e^x is below machine precision."""
    return torch.where(x < -40, x, _softplus(x.clamp(min=-40)).log())


MARGIN_LOSSES = {
    # l(m) = log(1 + e^(−m)); −l′ = σ(−m); l″ = σ(m)σ(−m). Gutmann & Hyvärinen 2012; Liu 2024, definition 19.
    "nce": MarginLoss(
        "nce",
        lambda m: _log_softplus(-m),
        lambda m: -_softplus(m),
        lambda m: -_softplus(m) - _softplus(-m),
    ),
    # l(m) = e^(−m/2); −l′ = ½e^(−m/2); l″ = ¼e^(−m/2). Liu 2024, definition 20 (φ = r/2 there).
    "ence": MarginLoss(
        "ence",
        lambda m: -m / 2,
        lambda m: -m / 2 - math.log(2),
        lambda m: -m / 2 - math.log(4),
    ),
}


def margin_loss(kind: str) -> MarginLoss:
    """The loss called "nce" (logistic) or "ence" (exponential)."""
    choice("kind", kind, MARGIN_LOSSES)
    return MARGIN_LOSSES[kind]


@dataclass(frozen=True)
class Stabiliser:
    """Clipping of single samples before their gradients are averaged.

    clip_gradient  K: each sample's gradient g_i becomes min{1, K/‖g_i‖}·g_i
    clip_ratio     K: each log-ratio r becomes min(max(r, −K), K); a clamped sample has no gradient
    Neither is needed for exactness: weights are kept as logarithms and share one exponent (see `Scaled`).
    Source: Liu 2024 (thesis), section 4.1.6, implementation details.
    """

    clip_gradient: float | None = None
    clip_ratio: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("clip_gradient", self.clip_gradient), ("clip_ratio", self.clip_ratio)):
            require(value is None or value > 0, name, value, "a positive number or None")

    @property
    def idle(self) -> bool:
        """Whether nothing is clipped."""
        return self.clip_gradient is None and self.clip_ratio is None

    def ratio(self, ratio: Tensor) -> Tensor:
        """The clamped log-ratio."""
        return ratio if self.clip_ratio is None else ratio.clamp(-self.clip_ratio, self.clip_ratio)

    def weight(self, log_weight: Tensor, ratio: Tensor, log_norm: Tensor) -> Tensor:
        """Log of each sample's gradient weight after clipping; `log_norm` is log ‖T(x)‖."""
        if self.clip_gradient is not None:
            log_weight = torch.minimum(log_weight, math.log(self.clip_gradient) - log_norm)
        if self.clip_ratio is not None:
            log_weight = torch.where(ratio.abs() > self.clip_ratio, -torch.inf, log_weight)
        return log_weight


def shifted_mean(values: Tensor, dim: int = -1) -> Tensor:
    """mean(v) = max v + mean(v − max v): the sum inside never exceeds the largest entry's magnitude times n."""
    top = values.amax(dim, keepdim=True)
    return (top + (values - top).mean(dim, keepdim=True)).squeeze(dim)


def log_mean_exp(values: Tensor, dim: int = -1) -> Tensor:
    """log mean e^v without overflow."""
    return torch.logsumexp(values, dim) - math.log(values.shape[dim])
