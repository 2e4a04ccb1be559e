"""Linear regression in context: examples (x, y) of a new weight vector in each sequence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, Predictor, World

__all__ = ["InContextRegression"]


@register("worlds")
@dataclass(frozen=True)
class InContextRegression(World):
    """x_1 y_1 x_2 y_2 …: y_k = ⟨w, x_k⟩ + noise with w ~ N(0, τ²I/d) per sequence and x_k ~ N(0, I); predict each y_k.

    dim       d
    pairs     number of examples; the sequence has two tokens for each, (x, 0) and (0, y) of d + 1 numbers
    noise     σ, standard deviation of the noise
    spread    τ: the signal ⟨w, x⟩ has variance τ²

    Targets are real, counted at the tokens x_k. The Bayes-optimal prediction is ridge regression on the examples so
    far, ŷ_k = x_kᵀ(XᵀX + λI)⁻¹Xᵀy with λ = dσ²/τ². truth["weights"]: w.

    Source: Garg et al. 2022, "What can transformers learn in-context?"; Akyürek et al. 2022.
    """

    dim: int = 4
    pairs: int = 10
    noise: float = 0.1
    spread: float = 1.0

    def __post_init__(self) -> None:
        integer("dim", self.dim, low=1)
        integer("pairs", self.pairs, low=1)
        number("noise", self.noise, low=0.0)
        require(number("spread", self.spread) > 0, "spread", self.spread, "above 0")

    @property
    def length(self) -> int:
        return 2 * self.pairs

    @property
    def features(self) -> int:
        return self.dim + 1

    @property
    def ridge(self) -> float:
        """λ = dσ²/τ²"""
        return self.dim * self.noise**2 / self.spread**2

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        weights = torch.randn(n, self.dim, generator=rng, device=rng.device) * (self.spread / self.dim**0.5)
        x = torch.randn(n, self.pairs, self.dim, generator=rng, device=rng.device)
        y = (x @ weights.unsqueeze(-1)).squeeze(-1)
        y = y + self.noise * torch.randn(n, self.pairs, generator=rng, device=rng.device)
        inputs = x.new_zeros(n, self.pairs, 2, self.features)
        inputs[:, :, 0, : self.dim], inputs[:, :, 1, self.dim] = x, y
        targets = torch.stack([y, torch.zeros_like(y)], -1).flatten(1)
        mask = (torch.arange(self.length, device=rng.device) % 2 == 0).expand(n, -1).contiguous()
        return Batch(inputs.flatten(1, 2), targets, mask, {"weights": weights})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time 1"]:
        """The posterior mean of each y (not log-probabilities: targets are real), 0 at tokens that are not counted."""
        return self._ridge(batch, self.ridge)

    def optimal_loss(self, batch: Batch) -> float:
        """Half the mean squared error of the oracle, as the objective "squared-error" counts it."""
        return self.half_error(self.oracle(batch), batch)

    def half_error(self, predictions: Float[Tensor, "*example time 1"], batch: Batch) -> float:
        wrong = predictions.squeeze(-1).double() - batch.targets.double()
        return float(0.5 * wrong.square()[..., batch.mask].mean())

    def errors(
        self, predictions: Float[Tensor, "*member example time 1"], batch: Batch
    ) -> Float[Tensor, "*member pair"]:
        """Mean squared error of each y_k, by the number of examples seen before it."""
        wrong = predictions.squeeze(-1).double() - batch.targets.double()
        return wrong.square()[..., ::2].mean(-2)

    def baselines(self) -> dict[str, Predictor]:
        """ "zero"; "least squares" (smallest norm); "one step" of gradient descent from zero with its best rate."""
        return {
            "zero": lambda batch: torch.zeros_like(batch.targets, dtype=torch.float64).unsqueeze(-1),
            "least squares": lambda batch: self._ridge(batch, 1e-9),
            "one step": self._one_step,
        }

    def _parts(self, batch: Batch) -> tuple[Tensor, Tensor]:
        pairs = batch.inputs.double().unflatten(1, (self.pairs, 2))
        return pairs[:, :, 0, : self.dim], pairs[:, :, 1, self.dim]

    def _moments(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """x, and XᵀX and Xᵀy of the examples before each."""
        x, y = self._parts(batch)
        squares, products = x.unsqueeze(-1) * x.unsqueeze(-2), x * y.unsqueeze(-1)
        return x, squares.cumsum(1) - squares, products.cumsum(1) - products

    def _ridge(self, batch: Batch, penalty: float) -> Tensor:
        x, squares, products = self._moments(batch)
        eye = torch.eye(self.dim, dtype=x.dtype, device=x.device)
        weights = torch.linalg.solve(squares + max(penalty, 1e-9) * eye, products)
        return _spread((x * weights).sum(-1))

    def _one_step(self, batch: Batch) -> Tensor:
        x, _, products = self._moments(batch)
        seen = torch.arange(self.pairs, dtype=x.dtype, device=x.device)
        # Best rate for w = ηXᵀy with k Gaussian examples: E over x gives η = 1/(k + d + 1 + dσ²/τ²).
        rate = 1 / (seen + self.dim + 1 + self.ridge)
        return _spread((x * products).sum(-1) * rate)


def _spread(values: Float[Tensor, "example pair"]) -> Float[Tensor, "example time 1"]:
    """Predictions at the tokens x, 0 at the tokens y."""
    return torch.stack([values, torch.zeros_like(values)], -1).flatten(1).unsqueeze(-1)
