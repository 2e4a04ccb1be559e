"""Exponential families with everything in closed form: log-partition function, moments, sampling, parameter maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import BadInput, require

__all__ = ["ExponentialFamily", "as_parameter"]


def as_parameter(values: Sequence[float] | float | Tensor) -> Float[Tensor, "*lead parameters"]:
    """Numbers as a float64 vector."""
    return torch.atleast_1d(torch.as_tensor(values, dtype=torch.float64))


@dataclass(frozen=True)
class ExponentialFamily:
    """Densities p_θ(x) = h(x) exp(⟨θ, T̃(x)⟩ − log Z(θ)) with a closed-form log-partition function log Z.

    Estimation without a normaliser frees the last coordinate: p_τ(x) = h(x) exp⟨τ, T(x)⟩ with τ = [θ, α] and
    T = [T̃, −1]. The density is normalised iff α = log Z(θ); τ(θ) = [θ, log Z(θ)] is `coordinates(θ)`.
    Every method accepts any number of leading axes and works on the device of its argument, in float64.

    A subclass defines `parameters` (length of θ), `event` (length of x), `log_partition` (+∞ where the density cannot
    be normalised), `mean` and `covariance` of T̃, `draw`, `from_mean`; `sufficient` and `log_base` unless they are x
    and 0; and `nodes` where sums or integrals over x are feasible.

    Source: Liu 2024 (thesis, CMU-ML-24-110), section 4.1.1.2.
    """

    @property
    def parameters(self) -> int:
        """Length of the natural parameter θ."""
        raise NotImplementedError

    @property
    def event(self) -> int:
        """Length of one draw x."""
        raise NotImplementedError

    def sufficient(self, x: Float[Tensor, "*lead event"]) -> Float[Tensor, "*lead parameters"]:
        """T̃(x)."""
        return x

    def log_base(self, x: Float[Tensor, "*lead event"]) -> Float[Tensor, "*lead"]:
        """log h(x)."""
        return torch.zeros(x.shape[:-1], dtype=torch.float64, device=x.device)

    def log_partition(self, theta: Float[Tensor, "*lead parameters"]) -> Float[Tensor, "*lead"]:
        """log Z(θ) = log ∫ h exp⟨θ, T̃⟩; +∞ outside the natural parameter space."""
        raise NotImplementedError

    def mean(self, theta: Float[Tensor, "*lead parameters"]) -> Float[Tensor, "*lead parameters"]:
        """E_θ[T̃] = ∇ log Z(θ)."""
        raise NotImplementedError

    def covariance(self, theta: Float[Tensor, "*lead p"]) -> Float[Tensor, "*lead p p"]:
        """Cov_θ[T̃] = ∇² log Z(θ)."""
        raise NotImplementedError

    def draw(self, n: int, theta: Float[Tensor, " parameters"], *, rng: torch.Generator) -> Float[Tensor, "n event"]:
        """n independent draws from p_θ, float64, on the generator's device."""
        raise NotImplementedError

    def from_mean(self, mean: Float[Tensor, "*lead parameters"]) -> Float[Tensor, "*lead parameters"]:
        """The θ whose expected statistics are `mean`: the inverse of the method `mean`, used for maximum likelihood."""
        raise NotImplementedError

    def nodes(
        self, anchors: Float[Tensor, "count parameters"], box: Float[Tensor, "two parameters"], points: int
    ) -> tuple[Float[Tensor, "node event"], Float[Tensor, " node"]]:
        """Points x and log-weights such that Σ_x e^w f(x) = ∫ f for integrands that the anchors' densities dominate.

        `box` bounds, coordinate by coordinate, the parameters of the model densities that occur in f.
        """
        raise BadInput(
            f"a sum over every x of {self!r} is not feasible: use samples (mode='sample'), or the exponential loss, "
            "whose expectation has a closed form (kind='ence')"
        )

    def statistics(self, x: Float[Tensor, "*lead event"]) -> Float[Tensor, "*lead coordinate"]:
        """T(x) = [T̃(x), −1]."""
        inner = self.sufficient(x.to(torch.float64))
        return torch.cat([inner, -torch.ones_like(inner[..., :1])], dim=-1)

    def coordinates(self, theta: Float[Tensor, "*lead parameters"]) -> Float[Tensor, "*lead coordinate"]:
        """τ(θ) = [θ, log Z(θ)], the free coordinates of the normalised density."""
        theta = as_parameter(theta)
        return torch.cat([theta, self.log_partition(theta).unsqueeze(-1)], dim=-1)

    def fisher(self, theta: Float[Tensor, "*lead p"]) -> Float[Tensor, "*lead c c"]:
        """E_θ[T Tᵀ], the Fisher matrix of the free coordinates: Cov plus the outer product of the mean."""
        mean = self.extended_mean(theta)
        padded = torch.nn.functional.pad(self.covariance(theta), (0, 1, 0, 1))
        return padded + mean.unsqueeze(-1) * mean.unsqueeze(-2)

    def extended_mean(self, theta: Float[Tensor, "*lead parameters"]) -> Float[Tensor, "*lead coordinate"]:
        """E_θ[T] = [E_θ[T̃], −1]."""
        inner = self.mean(theta)
        return torch.cat([inner, -torch.ones_like(inner[..., :1])], dim=-1)

    def log_density(self, x: Float[Tensor, "*lead event"], theta: Float[Tensor, " p"]) -> Float[Tensor, "*lead"]:
        """log p_θ(x) of the normalised density."""
        x = x.to(torch.float64)
        theta = as_parameter(theta).to(x.device)
        return self.log_base(x) + self.sufficient(x) @ theta - self.log_partition(theta)

    def kl(self, first: Float[Tensor, "*lead p"], second: Float[Tensor, "*lead p"]) -> Float[Tensor, "*lead"]:
        """KL(p_first ‖ p_second) = ⟨θ₁ − θ₂, E_θ₁[T̃]⟩ − log Z(θ₁) + log Z(θ₂)."""
        first, second = as_parameter(first), as_parameter(second)
        inner = ((first - second) * self.mean(first)).sum(-1)
        return inner - self.log_partition(first) + self.log_partition(second)

    def log_affinity(self, first: Float[Tensor, "*lead p"], second: Float[Tensor, "*lead p"]) -> Float[Tensor, "*lead"]:
        """log ∫ √(p₁p₂) = log Z((θ₁+θ₂)/2) − ½ log Z(θ₁) − ½ log Z(θ₂): the log of the Bhattacharyya coefficient."""
        first, second = as_parameter(first), as_parameter(second)
        middle = self.log_partition((first + second) / 2)
        return middle - (self.log_partition(first) + self.log_partition(second)) / 2

    def fit(self, x: Float[Tensor, "n event"]) -> Float[Tensor, " parameters"]:
        """The maximum-likelihood θ of the draws: `from_mean` of the sample mean of T̃."""
        return self.from_mean(self.sufficient(x.to(torch.float64)).mean(0))

    def check(self, theta: Sequence[float] | float | Tensor, name: str = "theta") -> Float[Tensor, " parameters"]:
        """`theta` as a vector; refused if its length is wrong or the density cannot be normalised."""
        try:
            vector = as_parameter(theta)
        except (TypeError, ValueError) as failed:
            raise BadInput(f"{name} must be {self.parameters} numbers, got {theta!r}: {failed}") from failed
        given = tuple(vector.tolist()) if vector.ndim == 1 and len(vector) <= 8 else f"shape {tuple(vector.shape)}"
        require(
            vector.ndim == 1 and len(vector) == self.parameters,
            name,
            given,
            f"{self.parameters} numbers for {self!r}",
            f"a natural parameter has one number per sufficient statistic, here {self.parameters}",
        )
        finite = bool(torch.isfinite(vector).all()) and bool(torch.isfinite(self.log_partition(vector)))
        require(
            finite,
            name,
            given,
            f"normalisable for {self!r}",
            f"its density integrates to infinity; {self.domain}",
        )
        return vector

    @property
    def domain(self) -> str:
        """The natural parameter space, in words."""
        return "every finite parameter is allowed"
