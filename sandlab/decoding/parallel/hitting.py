"""Markov chains as matrices: hitting times, distances to the target along the way."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from sandlab.errors import choice, integer
from sandlab.worlds.parallel.finite import FiniteLaw

__all__ = ["distance_curve", "expected_hitting_time", "survival"]

DISTANCES = ("tv", "kl", "chi2")


def survival(
    matrix: Float[np.ndarray, "state state"],
    start: Float[np.ndarray, "state"],
    inside: Bool[np.ndarray, "state"],
    budget: int,
) -> Float[np.ndarray, "time"]:
    """P(T > t) for t = 0 … budget − 1, T being the first time in the set: its states are absorbing."""
    integer("budget", budget, low=1)
    law, found = np.where(inside, 0.0, start), []
    for _ in range(budget):
        found.append(law.sum())
        law = np.where(inside, 0.0, law @ matrix)
    return np.array(found)


def expected_hitting_time(
    matrix: Float[np.ndarray, "state state"],
    start: Float[np.ndarray, "state"],
    inside: Bool[np.ndarray, "state"],
    budget: int | None = None,
) -> float:
    """E[min(T, budget)] = Σ_{t < budget} P(T > t); without a budget E[T], by solving (I − Q)t = 1."""
    if budget is not None:
        return float(survival(matrix, start, inside, budget).sum())
    outside = ~inside
    rest = matrix[np.ix_(outside, outside)]
    return float(start[outside] @ np.linalg.solve(np.eye(len(rest)) - rest, np.ones(len(rest))))


def distance_curve(
    matrix: Float[np.ndarray, "state state"],
    start: Float[np.ndarray, "state"],
    target: FiniteLaw | Float[np.ndarray, "state"],
    steps: int,
    *,
    distance: str = "tv",
) -> Float[np.ndarray, "time"]:
    """Distance of the chain's law to the target after 0 … steps steps: "tv", "kl" (law ‖ target) or "chi2"."""
    choice("distance", distance, DISTANCES)
    goal = target.probs if isinstance(target, FiniteLaw) else target
    law, found = np.asarray(start, dtype=float), []
    for _ in range(steps + 1):
        found.append(_distance(law, goal, distance))
        law = law @ matrix
    return np.array(found)


def _distance(law: np.ndarray, goal: np.ndarray, kind: str) -> float:
    if kind == "tv":
        return float(0.5 * np.abs(law - goal).sum())
    if kind == "kl":
        seen = law > 0
        return float((law[seen] * np.log(law[seen] / goal[seen])).sum())
    return float(((law - goal) ** 2 / goal).sum())
