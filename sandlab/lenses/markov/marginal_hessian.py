"""Curvature of the loss at θ_π, where a one-layer transformer predicts the marginal of a binary chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from sandlab.circuits.markov.one_layer import marginal_predictor
from sandlab.learning.markov.one_layer import OneLayerMarkovTheory
from sandlab.lenses._flat import FlatLoss
from sandlab.lenses.curvature import hessian_spectrum
from sandlab.lenses.markov.chains import enumerated_chain_loss
from sandlab.models.base import seeded

__all__ = ["MarginalCurvature", "MarginalPoint", "marginal_curvature"]


@dataclass(frozen=True)
class MarginalPoint:
    """θ_π of one model: zero embedding and readout, bias log(p/q).

    p, q            the chain; words of `length` tokens are enumerated
    tied, width     of the model
    seed            of the small random weights of attention, feed-forward and positions; None leaves these parts out
    """

    p: float
    q: float
    tied: bool
    length: int
    width: int
    seed: int | None = None

    @property
    def theory(self) -> OneLayerMarkovTheory:
        return OneLayerMarkovTheory(self.p, self.q)


@dataclass(frozen=True)
class MarginalCurvature:
    """Every eigenvalue of the Hessian at a point, smallest first, the largest gradient entry, and the loss."""

    at: MarginalPoint
    values: np.ndarray
    gradient: float
    loss: float


def marginal_curvature(at: MarginalPoint) -> MarginalCurvature:
    """Eigenvalues, gradient and loss at θ_π. ReLU has no second derivative at 0, so the feed-forward is GELU here."""
    parts = {"attention": "none", "mlp": "none", "positions": False} if at.seed is None else {"mlp": "gelu"}
    with seeded(at.seed or 0):
        model = marginal_predictor(
            at.p, at.q, length=at.length, width=at.width, tied=at.tied, init_std=0.02, **parts
        )  # fmt: skip
    loss = enumerated_chain_loss(at.p, at.q, at.length)
    flat = FlatLoss(model, loss)
    weights = flat.point.requires_grad_()
    value = flat(weights)
    (gradient,) = torch.autograd.grad(value, weights)
    values = hessian_spectrum(model, loss, method="exact").values
    return MarginalCurvature(at, values, float(gradient.abs().max()), value.item())
