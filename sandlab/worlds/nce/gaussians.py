"""Data against noise: worlds whose examples come from P* or from Q; the class says from which."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from scipy import optimize
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.nce.exponential_family import ExponentialFamily
from sandlab.worlds.nce.families import DiagonalGaussian, GaussianMean

__all__ = ["Contrast", "DensityChasm", "DiagonalGaussians", "ExponentialContrast", "GaussianMeans"]


@dataclass(frozen=True)
class Contrast(World):
    """Examples of P* (class 1) and of Q (class 0) in equal parts, both members of one exponential family.

    Bayes rule: P(class 1 | x) = p*(x)/(p*(x) + q(x)) = σ(log p*(x) − log q(x)). The cross-entropy of this two-class
    problem is the loss of noise-contrastive estimation (Gutmann & Hyvärinen 2012), and `optimal_loss` its minimum.
    A subclass defines `family`, `theta_data` and `theta_noise`.
    """

    @property
    def family(self) -> ExponentialFamily:
        raise NotImplementedError

    @property
    def theta_data(self) -> Float[Tensor, " parameters"]:
        """Natural parameter θ* of the data."""
        raise NotImplementedError

    @property
    def theta_noise(self) -> Float[Tensor, " parameters"]:
        """Natural parameter θ_q of the noise."""
        raise NotImplementedError

    @property
    def outputs(self) -> int:
        return 2

    def kl(self) -> float:
        """KL(P* ‖ Q): how wide the density chasm is."""
        return float(self.family.kl(self.theta_data, self.theta_noise))

    def log_ratio(self, x: Float[Tensor, "*lead event"]) -> Float[Tensor, "*lead"]:
        """log p*(x) − log q(x), by subtraction of log-densities; the base measure cancels."""
        gap = self.family.coordinates(self.theta_data) - self.family.coordinates(self.theta_noise)
        return self.family.statistics(x) @ gap.to(x.device)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        label = torch.rand(n, generator=rng, device=rng.device) < 0.5
        data = self.family.draw(n, self.theta_data, rng=rng)
        noise = self.family.draw(n, self.theta_noise, rng=rng)
        x = torch.where(label.unsqueeze(-1), data, noise)
        truth = {"log_ratio": self.log_ratio(x)}
        return Batch(x.to(torch.get_default_dtype()), label.long(), torch.ones_like(label), truth)

    def oracle(self, batch: Batch) -> Float[Tensor, "example class"]:
        ratio = self.log_ratio(batch.inputs.to(torch.float64))
        return torch.nn.functional.logsigmoid(torch.stack([-ratio, ratio], dim=-1))


@register("worlds")
@dataclass(frozen=True)
class ExponentialContrast(Contrast):
    """Two members of any exponential family with closed-form partition function: data θ* against noise θ_q.

    `member` is the family, `data` and `noise` its natural parameters. log p*(x) − log q(x) = ⟨τ* − τ_q, T(x)⟩ is
    linear in the statistics, whatever the family. Source: Liu 2024 (thesis, CMU-ML-24-110), section 4.1.1.2.
    """

    member: ExponentialFamily = field(default_factory=GaussianMean)
    data: tuple[float, ...] = (2.0,)
    noise: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        require(
            isinstance(self.member, ExponentialFamily),
            "member",
            self.member,
            "an exponential family",
            "GaussianMean(), DiagonalGaussian(), BernoulliProduct(), PoissonFamily() or CategoricalFamily()",
        )
        self.member.check(self.data, "data")
        self.member.check(self.noise, "noise")

    @property
    def family(self) -> ExponentialFamily:
        return self.member

    @property
    def theta_data(self) -> Tensor:
        return self.member.check(self.data, "data")

    @property
    def theta_noise(self) -> Tensor:
        return self.member.check(self.noise, "noise")


@register("worlds")
@dataclass(frozen=True)
class GaussianMeans(Contrast):
    """Unit-variance Gaussians at distance R: data N(R, 1), noise N(0, 1).

    h(x) = exp(−x²/2), T(x) = [x, −1], τ = [b, c]: p_τ(x) = exp(−x²/2 + bx − c). τ_q = [0, log √2π],
    τ* = [R, R²/2 + log √2π], KL(P*‖Q) = R²/2, Bhattacharyya coefficient exp(−R²/8).
    Source: Liu 2024 (thesis, CMU-ML-24-110), section 4.1.3; its experiment has R = 16.
    """

    distance: float = 16.0

    def __post_init__(self) -> None:
        number("distance", self.distance, low=0.0, hint="noise sits at 0 and data at +distance")

    @property
    def family(self) -> GaussianMean:
        return GaussianMean()

    @property
    def theta_data(self) -> Tensor:
        return torch.tensor([self.distance], dtype=torch.float64)

    @property
    def theta_noise(self) -> Tensor:
        return torch.zeros(1, dtype=torch.float64)


@register("worlds")
@dataclass(frozen=True)
class DiagonalGaussians(Contrast):
    """Centred Gaussians with unknown scales: data N(0, diag s), noise N(0, I), s_i uniform on [low, high].

    The variances s belong to the world: `seed` fixes them and all samples share them. T(x) = [−x²/2, x, −1],
    τ = [1/s, μ/s, μᵀΣ⁻¹μ/2 + ½ log((2π)^d det Σ)], 2d + 1 numbers.
    Source: Liu 2024 (thesis, CMU-ML-24-110), section 4.1.6 (16 dimensions, s_i from U[8·0.75, 8·1.5]).
    """

    dimensions: int = 16
    low: float = 6.0
    high: float = 12.0
    seed: int = 1000

    def __post_init__(self) -> None:
        integer("dimensions", self.dimensions, low=1)
        require(number("low", self.low) > 0, "low", self.low, "positive", "variances lie between low and high")
        number("high", self.high, low=self.low)
        integer("seed", self.seed, low=0)

    @property
    def variances(self) -> np.ndarray:
        """s_1 ... s_d."""
        return np.random.default_rng(self.seed).uniform(self.low, self.high, self.dimensions)

    @property
    def family(self) -> DiagonalGaussian:
        return DiagonalGaussian(self.dimensions)

    @property
    def theta_data(self) -> Tensor:
        return self.family.natural(0.0, torch.from_numpy(self.variances))

    @property
    def theta_noise(self) -> Tensor:
        return self.family.natural(0.0, 1.0)


@register("worlds")
@dataclass(frozen=True)
class DensityChasm(Contrast):
    """One knob for difficulty: data and noise Gaussians in d dimensions at a given KL(P*‖Q), in nats.

    knob "mean" moves the data's mean (KL = dR²/2, R per coordinate); knob "scale" widens it
    (KL = d(s − 1 − log s)/2, s > 1). The wider the chasm, the easier it is to tell the two apart and the less the
    answer says about P*: the "density chasm" of Rhodes, Xu & Gutmann 2020.
    """

    nats: float = 128.0
    knob: str = "mean"
    dimensions: int = 1

    def __post_init__(self) -> None:
        number("nats", self.nats, low=0.0, hint="it is a Kullback-Leibler divergence")
        choice("knob", self.knob, ("mean", "scale"))
        integer("dimensions", self.dimensions, low=1)

    @property
    def setting(self) -> float:
        """R for knob "mean", the variance s for knob "scale"."""
        each = 2 * self.nats / self.dimensions
        if self.knob == "mean":
            return math.sqrt(each)
        if each == 0:
            return 1.0
        return float(optimize.brentq(lambda s: s - 1 - math.log(s) - each, 1.0, 3 + 2 * each))

    @property
    def family(self) -> ExponentialFamily:
        return GaussianMean(self.dimensions) if self.knob == "mean" else DiagonalGaussian(self.dimensions)

    @property
    def theta_data(self) -> Tensor:
        if self.knob == "mean":
            return torch.full((self.dimensions,), self.setting, dtype=torch.float64)
        return DiagonalGaussian(self.dimensions).natural(0.0, self.setting)

    @property
    def theta_noise(self) -> Tensor:
        if self.knob == "mean":
            return torch.zeros(self.dimensions, dtype=torch.float64)
        return DiagonalGaussian(self.dimensions).natural(0.0, 1.0)
