"""The best step size within a fixed budget, by the loss on fresh samples or by the distance to the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from sandlab.errors import BadInput, choice, integer
from sandlab.learning.nce.descent import optimise
from sandlab.learning.nce.losses import Stabiliser
from sandlab.learning.nce.problem import NCEProblem
from sandlab.random import rng

__all__ = ["SELECTION_RULES", "RateSearch", "search_rate"]


@dataclass(frozen=True)
class RateSearch:
    """Every run of a search: `best` (rate, seed, step) running minimum of ‖τ − τ*‖, `fresh` (rate, seed) final loss."""

    rates: np.ndarray
    best: np.ndarray
    fresh: np.ndarray

    def chosen(self, rule: str | Callable[[RateSearch], np.ndarray] = "fresh_loss", cap: float = np.inf) -> int:
        """Index of the rate (at most `cap`) with the smallest score under the rule, averaged over seeds."""
        if isinstance(rule, str):
            choice("rule", rule, SELECTION_RULES)
            rule = SELECTION_RULES[rule]
        allowed = self.rates <= cap
        if not allowed.any():
            raise BadInput(f"no rate of {self.rates.tolist()} is at most {cap}: raise the cap")
        scores = np.where(allowed, rule(self), np.inf)
        return int(np.argmin(np.where(np.isfinite(scores), scores, np.inf)))


SELECTION_RULES: dict[str, Callable[[RateSearch], np.ndarray]] = {
    "fresh_loss": lambda search: search.fresh.mean(-1),
    "distance": lambda search: search.best[..., -1].mean(-1),
}


def search_rate(
    problem: NCEProblem,
    kind: str,
    method: str,
    *,
    rates: Sequence[float],
    seeds: Sequence[int],
    steps: int = 100,
    batch: int = 1000,
    gradient: str = "sample",
    fresh: int = 20_000,
    stabiliser: Stabiliser | None = None,
) -> RateSearch:
    """Run every rate on every seed; the rates of one seed see the same samples.

    `fresh` samples per side, drawn after the run, give the loss of each last iterate.
    """
    integer("fresh", fresh, low=1)
    vector = torch.as_tensor(list(rates), dtype=torch.float64)
    best, losses = [], []
    for seed in seeds:
        path = optimise(
            problem,
            kind,
            method,
            rate=vector,
            steps=steps,
            gradient=gradient,
            batch=batch,
            rng=rng(seed, "training"),
            stabiliser=stabiliser,
        )
        held_out = problem.sample(kind, n=fresh, rng=rng(seed, "fresh"))
        best.append(path.best.mT.numpy())
        losses.append(held_out.log_loss(path.tau[-1]).exp().numpy())
    return RateSearch(vector.numpy(), np.stack(best, axis=1), np.stack(losses, axis=1))
