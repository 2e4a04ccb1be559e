"""Fitting small exponential families by likelihood or by masked conditionals, on grouped samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.special import logsumexp

from sandlab.errors import BadInput, choice, integer, require
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw, size_masks

__all__ = ["Fitted", "MaskedCounts", "MaskedLoss", "draw_counts", "fit_masked", "mask_law_of"]

LOSSES = ("mle", "k-mple", "weighted", "adaptive")
OPTIMIZERS = ("l-bfgs", "descent")


class Family(Protocol):
    """A small exponential family: `Ising`, `DiscreteFamily`."""

    @property
    def law(self) -> FiniteLaw: ...
    @property
    def statistics(self) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class MaskedCounts:
    """How often each mask was drawn with each state: all that the estimators need of a sample."""

    mask_law: MaskLaw
    counts: Float[np.ndarray, "mask state"]


def mask_law_of(loss: str, sites: int, *, size: int = 1, mask_law: MaskLaw | None = None) -> MaskLaw:
    """The law of masks of a loss: "mle" hides everything, "k-mple" sets of `size`, others are given."""
    choice("loss", loss, LOSSES)
    if loss == "mle":
        return size_masks(sites, sites)
    if loss == "k-mple":
        return size_masks(sites, size)
    if mask_law is None or mask_law.adaptive != (loss == "adaptive"):
        raise BadInput(f"loss {loss!r} needs a mask_law whose weights {'do' if loss == 'adaptive' else 'do not'} "
                       "depend on the state")  # fmt: skip
    return mask_law


def draw_counts(
    states: Int[np.ndarray, "n"], mask_law: MaskLaw, total: int, *, masks_per_sample: int | str, rng: torch.Generator
) -> MaskedCounts:
    """Draw masks for a sample of states (indices below `total`): so many for each, or "all" by their weights."""
    chosen = mask_law.given(total)
    if masks_per_sample == "all":
        return MaskedCounts(mask_law, (np.bincount(states, minlength=total)[:, None] * chosen).T)
    integer("masks_per_sample", masks_per_sample, low=1)
    rows = torch.as_tensor(chosen[states])
    drawn = torch.multinomial(rows, int(masks_per_sample), replacement=True, generator=rng).numpy()
    counts = np.zeros((len(mask_law.masks), total))
    np.add.at(counts, (drawn, states[:, None]), 1 / int(masks_per_sample))
    return MaskedCounts(mask_law, counts)


class MaskedLoss:
    """−mean log p_θ(x_K | x_−K, K) over grouped samples, with its gradient; convex in θ (Li 2024, Prop. 4.3.6).

    loss = (1/n) Σ_blocks [C_b · logsumexp(F_b θ) − c_b · F_b θ], a block being the states that share x_−K; under an
    adaptive law log p_K(K | x) is added to the scores F θ.
    """

    def __init__(self, law: FiniteLaw, statistics: Float[np.ndarray, "state parameter"], data: MaskedCounts) -> None:
        self.statistics, self.counts = statistics, data.counts
        self.total = data.counts.sum()
        self.groups = [law.groups(mask) for mask in data.mask_law.masks]
        with np.errstate(divide="ignore"):
            self.offsets = np.log(data.mask_law.given(len(law))).T if data.mask_law.adaptive else None

    def __call__(self, theta: Float[np.ndarray, "parameter"]) -> tuple[float, Float[np.ndarray, "parameter"]]:
        scores, loss = self.statistics @ theta, 0.0
        excess = np.zeros(len(self.statistics))
        for place, groups in enumerate(self.groups):
            block = (scores if self.offsets is None else scores + self.offsets[place])[groups]
            counts = self.counts[place][groups]
            visible = counts.sum(1)
            norm = logsumexp(block, axis=1)
            seen = counts > 0
            loss += float(visible @ np.where(visible > 0, norm, 0)) - float(counts[seen] @ block[seen])
            excess[groups] += np.exp(block - norm[:, None]) * visible[:, None] - counts
        return loss / self.total, self.statistics.T @ excess / self.total


@dataclass(frozen=True, eq=False)
class Fitted:
    """θ̂, the loss there, and the optimiser's iterations."""

    theta: Float[np.ndarray, "parameter"]
    loss: float
    iterations: int


def fit_masked(
    family: Family,
    states: Int[np.ndarray, "n"],
    *,
    loss: str = "k-mple",
    size: int = 1,
    mask_law: MaskLaw | None = None,
    masks_per_sample: int | str = 1,
    optimizer: str = "l-bfgs",
    lr: float = 0.5,
    tolerance: float = 1e-6,
    rng: torch.Generator,
) -> Fitted:
    """Estimate the parameters of a family from a sample of its states (indices in lexicographic order).

    loss               "mle", "k-mple" (uniform sets of `size`), "weighted" or "adaptive" (a `mask_law`)
    masks_per_sample   how many masks are drawn for each sample, or "all"
    optimizer          "l-bfgs", or full-batch "descent" with rate `lr` until the gradient is below `tolerance`
    """
    choice("optimizer", optimizer, OPTIMIZERS)
    law = family.law
    masks = mask_law_of(loss, law.sites, size=size, mask_law=mask_law)
    require(len(states) >= 1, "states", "an empty sample", "at least one state")
    data = draw_counts(np.asarray(states), masks, len(law), masks_per_sample=masks_per_sample, rng=rng)
    objective = MaskedLoss(law, family.statistics, data)
    start = np.zeros(family.statistics.shape[1])
    if optimizer == "descent":
        return _descend(objective, start, lr, tolerance)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"gtol": tolerance, "ftol": 1e-14})
    return Fitted(found.x, float(found.fun), int(found.nit))


def _descend(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]], theta: np.ndarray, lr: float, tolerance: float
) -> Fitted:
    steps = 0
    value, slope = objective(theta)
    while np.linalg.norm(slope) >= tolerance and steps < 100_000:
        theta = theta - lr * slope
        value, slope = objective(theta)
        steps += 1
    return Fitted(theta, value, steps)
