"""Five exponential families: Gaussian means, diagonal Gaussians, Bernoulli products, Poisson, categorical."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import BadInput, integer
from sandlab.worlds.nce._draws import standard_normal
from sandlab.worlds.nce.exponential_family import ExponentialFamily, as_parameter

__all__ = ["BernoulliProduct", "CategoricalFamily", "DiagonalGaussian", "GaussianMean", "PoissonFamily"]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
_MOST_NODES = 200_000
_REACH = 14.0  # standard deviations kept on each side of a density: e^(−98) is below every relative tolerance


@dataclass(frozen=True)
class _VectorFamily(ExponentialFamily):
    """A family over vectors of `dimensions` entries, with one natural parameter per entry unless overridden."""

    dimensions: int = 1

    def __post_init__(self) -> None:
        integer("dimensions", self.dimensions, low=1)

    @property
    def parameters(self) -> int:
        return self.dimensions

    @property
    def event(self) -> int:
        return self.dimensions


@dataclass(frozen=True)
class GaussianMean(_VectorFamily):
    """N(θ, I) with known unit variance: h(x) = exp(−‖x‖²/2), T̃(x) = x, log Z = ‖θ‖²/2 + d log √(2π)."""

    def natural(self, mean: float | Tensor) -> Tensor:
        """θ of the Gaussian with this mean: the mean itself."""
        return as_parameter(mean)

    def ordinary(self, theta: Tensor) -> dict[str, Tensor]:
        return {"mean": theta}

    def log_base(self, x: Tensor) -> Tensor:
        return -x.square().sum(-1) / 2

    def log_partition(self, theta: Tensor) -> Tensor:
        return theta.square().sum(-1) / 2 + self.dimensions * _LOG_ROOT_TWO_PI

    def mean(self, theta: Tensor) -> Tensor:
        return theta

    def covariance(self, theta: Tensor) -> Tensor:
        return torch.eye(self.dimensions, dtype=theta.dtype, device=theta.device).expand(*theta.shape, self.dimensions)

    def draw(self, n: int, theta: Tensor, *, rng: torch.Generator) -> Tensor:
        integer("n", n, low=1)
        return theta.to(rng.device) + standard_normal(n, self.event, rng)

    def from_mean(self, mean: Tensor) -> Tensor:
        return mean

    def nodes(self, anchors: Tensor, box: Tensor, points: int) -> tuple[Tensor, Tensor]:
        if self.dimensions > 1:
            return super().nodes(anchors, box, points)
        centres = torch.cat([anchors, box])
        steepest = float(centres.max() - centres.min())
        return _line(float(centres.min()) - _REACH, float(centres.max()) + _REACH, steepest, points, anchors.device)


@dataclass(frozen=True)
class DiagonalGaussian(_VectorFamily):
    """N(μ, diag σ²), mean and variances free: T̃(x) = [−x²/2, x], θ = [1/σ², μ/σ²] =: [a, b], h = 1.

    log Z = Σ_i ½ log(2π/a_i) + b_i²/(2a_i), finite iff every precision a_i is positive.
    """

    @property
    def parameters(self) -> int:
        return 2 * self.dimensions

    @property
    def domain(self) -> str:
        return f"the first {self.dimensions} numbers are precisions and must be positive"

    def natural(self, mean: float | Tensor, variance: float | Tensor) -> Tensor:
        """θ of the Gaussian with these means and variances (numbers stand for equal entries)."""
        precision = 1 / as_parameter(variance).expand(self.dimensions)
        return torch.cat([precision, as_parameter(mean).expand(self.dimensions) * precision])

    def ordinary(self, theta: Tensor) -> dict[str, Tensor]:
        precision, tilt = theta.chunk(2, dim=-1)
        return {"mean": tilt / precision, "variance": 1 / precision}

    def sufficient(self, x: Tensor) -> Tensor:
        return torch.cat([-x.square() / 2, x], dim=-1)

    def log_partition(self, theta: Tensor) -> Tensor:
        precision, tilt = theta.chunk(2, dim=-1)
        inside = (precision > 0).all(-1)
        safe = torch.where(precision > 0, precision, 1.0)
        terms = 0.5 * torch.log(2 * math.pi / safe) + tilt.square() / (2 * safe)
        return torch.where(inside, terms.sum(-1), torch.inf)

    def mean(self, theta: Tensor) -> Tensor:
        precision, tilt = theta.chunk(2, dim=-1)
        centre = tilt / precision
        return torch.cat([-(centre.square() + 1 / precision) / 2, centre], dim=-1)

    def covariance(self, theta: Tensor) -> Tensor:
        precision, tilt = theta.chunk(2, dim=-1)
        centre, variance = tilt / precision, 1 / precision
        squares = torch.diag_embed(variance.square() / 2 + centre.square() * variance)
        cross = torch.diag_embed(-centre * variance)
        top = torch.cat([squares, cross], dim=-1)
        return torch.cat([top, torch.cat([cross, torch.diag_embed(variance)], dim=-1)], dim=-2)

    def draw(self, n: int, theta: Tensor, *, rng: torch.Generator) -> Tensor:
        integer("n", n, low=1)
        values = self.ordinary(theta.to(rng.device))
        return values["mean"] + values["variance"].sqrt() * standard_normal(n, self.event, rng)

    def from_mean(self, mean: Tensor) -> Tensor:
        halves, centre = mean.chunk(2, dim=-1)
        precision = 1 / (-2 * halves - centre.square())
        return torch.cat([precision, centre * precision], dim=-1)

    def nodes(self, anchors: Tensor, box: Tensor, points: int) -> tuple[Tensor, Tensor]:
        if self.dimensions > 1:
            return super().nodes(anchors, box, points)
        values = self.ordinary(anchors)
        reach = _REACH * values["variance"].sqrt()
        low, high = float((values["mean"] - reach).min()), float((values["mean"] + reach).max())
        corners = torch.cat([anchors, box])
        spans = corners.max(0).values - corners.min(0).values
        steepest = float(spans[0]) * max(abs(low), abs(high)) + float(spans[1])
        return _line(low, high, steepest, points, anchors.device)


@dataclass(frozen=True)
class BernoulliProduct(_VectorFamily):
    """Independent coins: x ∈ {0,1}^d, T̃(x) = x, P(x_i = 1) = σ(θ_i), log Z = Σ log(1 + e^{θ_i})."""

    def natural(self, probability: float | Tensor) -> Tensor:
        """θ of coins with these probabilities of 1: their log-odds."""
        return torch.logit(as_parameter(probability)).expand(self.dimensions)

    def ordinary(self, theta: Tensor) -> dict[str, Tensor]:
        return {"probability": torch.sigmoid(theta)}

    def log_partition(self, theta: Tensor) -> Tensor:
        return torch.nn.functional.softplus(theta, threshold=50).sum(-1)

    def mean(self, theta: Tensor) -> Tensor:
        return torch.sigmoid(theta)

    def covariance(self, theta: Tensor) -> Tensor:
        return torch.diag_embed(torch.sigmoid(theta) * torch.sigmoid(-theta))

    def draw(self, n: int, theta: Tensor, *, rng: torch.Generator) -> Tensor:
        integer("n", n, low=1)
        uniform = torch.rand(n, self.event, generator=rng, device=rng.device, dtype=torch.float64)
        return (uniform < torch.sigmoid(theta.to(rng.device))).to(torch.float64)

    def from_mean(self, mean: Tensor) -> Tensor:
        return torch.logit(mean)

    def nodes(self, anchors: Tensor, box: Tensor, points: int) -> tuple[Tensor, Tensor]:
        if 2**self.dimensions > _MOST_NODES:
            return super().nodes(anchors, box, points)
        x = torch.tensor(list(itertools.product((0.0, 1.0), repeat=self.dimensions)), dtype=torch.float64)
        return x.to(anchors.device), torch.zeros(len(x), dtype=torch.float64, device=anchors.device)


@dataclass(frozen=True)
class PoissonFamily(ExponentialFamily):
    """Counts: x ∈ {0, 1, ...}, h(x) = 1/x!, T̃(x) = x, rate e^θ, log Z = e^θ."""

    @property
    def parameters(self) -> int:
        return 1

    @property
    def event(self) -> int:
        return 1

    def natural(self, rate: float | Tensor) -> Tensor:
        """θ of the Poisson distribution with this rate: its logarithm."""
        return as_parameter(rate).log()

    def ordinary(self, theta: Tensor) -> dict[str, Tensor]:
        return {"rate": theta.exp()}

    def log_base(self, x: Tensor) -> Tensor:
        return -torch.lgamma(x + 1).sum(-1)

    def log_partition(self, theta: Tensor) -> Tensor:
        return theta.exp().sum(-1)

    def mean(self, theta: Tensor) -> Tensor:
        return theta.exp()

    def covariance(self, theta: Tensor) -> Tensor:
        return theta.exp().unsqueeze(-1)

    def draw(self, n: int, theta: Tensor, *, rng: torch.Generator) -> Tensor:
        integer("n", n, low=1)
        return torch.poisson(theta.to(rng.device).exp().expand(n, 1), generator=rng)

    def from_mean(self, mean: Tensor) -> Tensor:
        return mean.log()

    def nodes(self, anchors: Tensor, box: Tensor, points: int) -> tuple[Tensor, Tensor]:
        largest = float(torch.cat([anchors, box.clamp(max=float(anchors.max()) + 2)]).exp().max())
        last = int(largest + 2 * _REACH * math.sqrt(largest) + 60)
        if last > _MOST_NODES:
            raise BadInput(f"a Poisson rate of {largest:.3g} needs a sum over {last} counts: keep rates below 100000")
        x = torch.arange(last + 1, dtype=torch.float64, device=anchors.device).unsqueeze(-1)
        return x, torch.zeros(last + 1, dtype=torch.float64, device=anchors.device)


@dataclass(frozen=True)
class CategoricalFamily(ExponentialFamily):
    """One of k classes: T̃ = indicators of the first k − 1, log Z = log(1 + Σ e^{θ_i}); the last class has weight 1."""

    classes: int = 3

    def __post_init__(self) -> None:
        integer("classes", self.classes, low=2)

    @property
    def parameters(self) -> int:
        return self.classes - 1

    @property
    def event(self) -> int:
        return 1

    def natural(self, probabilities: Tensor) -> Tensor:
        """θ of a distribution over the classes: log-ratios to the last class."""
        logs = as_parameter(probabilities).log()
        return logs[..., :-1] - logs[..., -1:]

    def ordinary(self, theta: Tensor) -> dict[str, Tensor]:
        return {"probabilities": self._probs(theta)}

    def _probs(self, theta: Tensor) -> Tensor:
        return torch.softmax(torch.cat([theta, torch.zeros_like(theta[..., :1])], dim=-1), dim=-1)

    def sufficient(self, x: Float[Tensor, "*lead one"]) -> Tensor:
        return torch.nn.functional.one_hot(x[..., 0].long(), self.classes)[..., :-1].to(torch.float64)

    def log_partition(self, theta: Tensor) -> Tensor:
        return torch.logsumexp(torch.cat([theta, torch.zeros_like(theta[..., :1])], dim=-1), dim=-1)

    def mean(self, theta: Tensor) -> Tensor:
        return self._probs(theta)[..., :-1]

    def covariance(self, theta: Tensor) -> Tensor:
        probs = self.mean(theta)
        return torch.diag_embed(probs) - probs.unsqueeze(-1) * probs.unsqueeze(-2)

    def draw(self, n: int, theta: Tensor, *, rng: torch.Generator) -> Tensor:
        integer("n", n, low=1)
        probs = self._probs(theta.to(rng.device))
        return torch.multinomial(probs, n, replacement=True, generator=rng).to(torch.float64).unsqueeze(-1)

    def from_mean(self, mean: Tensor) -> Tensor:
        return mean.log() - torch.log1p(-mean.sum(-1, keepdim=True))

    def nodes(self, anchors: Tensor, box: Tensor, points: int) -> tuple[Tensor, Tensor]:
        x = torch.arange(self.classes, dtype=torch.float64, device=anchors.device).unsqueeze(-1)
        return x, torch.zeros(self.classes, dtype=torch.float64, device=anchors.device)


def _line(low: float, high: float, steepest: float, points: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """A uniform grid for the trapezoid rule, fine enough for logistic functions of slope `steepest`.

    1/(p+q) has its nearest poles at imaginary distance π/steepest, and the rule's error is e^(−2π·distance/spacing):
    a spacing of ½/steepest leaves e^(−39). The ends carry no mass, so their weights need not be halved.
    """
    count = max(points, math.ceil((high - low) * 2 * steepest) + 1)
    x = torch.linspace(low, high, min(count, _MOST_NODES), dtype=torch.float64, device=device)
    weight = math.log((high - low) / (len(x) - 1))
    return x.unsqueeze(-1), torch.full_like(x, weight)
