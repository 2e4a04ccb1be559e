"""Pairs of different HMMs that masked prediction cannot tell apart: every non-identifiable family of the chapter."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from sandlab.errors import integer, require
from sandlab.worlds.hmm.instances import make_ghmm, make_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM

__all__ = [
    "gap_one_twin",
    "householder",
    "householder_transitions",
    "orbit",
    "posterior_sphere",
    "power_range",
    "power_twin",
    "reflected_ghmm",
    "rotation_about_ones",
    "valid_angles",
]


def rotation_about_ones(angle: float, states: int = 3, plane: tuple[int, int] = (0, 1)) -> Float[np.ndarray, "k k"]:
    """An orthogonal R with R1 = 1: a rotation by `angle` in a plane orthogonal to the all-ones vector.

    k = 3: R = I + sin θ K + (1 − cos θ) K², K the cross product with (1, 1, 1)/√3. Larger k: `plane` chooses two of
    the k − 1 directions orthogonal to 1.
    """
    integer("states", states, low=3, hint="two states have no rotation about the all-ones vector, only the swap")
    basis = _orthogonal_to_ones(states)[:, list(plane)]
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.eye(states) + basis @ (turn - np.eye(2)) @ basis.T


def _orthogonal_to_ones(states: int) -> Float[np.ndarray, "k rest"]:
    """Orthonormal vectors orthogonal to 1 (Helmert), the first two oriented like the cross product for k = 3."""
    columns = []
    for index in range(1, states):
        vector = np.zeros(states)
        vector[:index], vector[index] = 1.0, -index
        columns.append(vector / np.linalg.norm(vector))
    return np.stack(columns, 1)


def orbit(hmm: HMM, angle: float | None = None, *, rotation: np.ndarray | None = None) -> HMM:
    """(OR, RᵀTR): the same prediction of one token from another at every distance (Theorems 4 and 6)."""
    turn = rotation_about_ones(angle or 0.0, hmm.hidden) if rotation is None else rotation
    return make_hmm(_clean(hmm.O @ turn), _clean(turn.T @ hmm.T @ turn), hmm.length)


def _clean(matrix: np.ndarray) -> np.ndarray:
    """Rounding noise below zero removed; a clearly negative entry is refused by the HMM itself."""
    return np.where((matrix < 0) & (matrix > -1e-12), 0.0, matrix)


def valid_angles(hmm: HMM, count: int = 20001) -> Float[np.ndarray, "count two"]:
    """Angles in [−π, π] with the smallest entry of (OR, RᵀTR): the model is valid where it is not negative."""
    angles = np.linspace(-np.pi, np.pi, count)
    turns = np.stack([rotation_about_ones(angle) for angle in angles])
    smallest = np.minimum((hmm.O @ turns).min((1, 2)), (turns.transpose(0, 2, 1) @ hmm.T @ turns).min((1, 2)))
    return np.stack([angles, smallest], 1)


def gap_one_twin(hmm: HMM, mix: np.ndarray | float) -> HMM:
    """(OQ, Q⁻¹TQ⁻ᵀ) with Q1 = Qᵀ1 = 1: the same prediction of the next and the last token, no other distance.

    A number s stands for Q = (1 − s)I + s(11ᵀ − I)/(k − 1). The family has dimension (k − 1)².
    """
    k = hmm.hidden
    q = np.eye(k) * (1 - mix) + (1 - np.eye(k)) * mix / (k - 1) if isinstance(mix, (int, float)) else np.asarray(mix)
    sums = np.abs(np.concatenate([q.sum(0), q.sum(1)]) - 1).max()
    require(bool(sums < 1e-9), "mix", mix, "a matrix whose rows and columns sum to 1")
    inverse = np.linalg.inv(q)
    return make_hmm(_clean(hmm.O @ q), _clean(inverse @ hmm.T @ inverse.T), hmm.length)


def power_twin(stay: float, power: int) -> tuple[Float[np.ndarray, "3 3"], Float[np.ndarray, "3 3"]]:
    """T = aI + (1 − a)P and T̃ = C(2π/t) T, both circulant, with T̃ᵗ = Tᵗ (Claims 1 and 3); t ≥ 2.

    C(θ) has the first row (1 + 2cos θ, 1 + 2cos(θ + 2π/3), 1 + 2cos(θ − 2π/3))/3: it turns the two eigenvalues other
    than 1 by ±θ.
    """
    integer("power", power, low=2, hint="a matrix is its own first power")
    angle = 2 * np.pi / power
    row = (1 + 2 * np.cos(angle + np.array([0.0, 2, -2]) * np.pi / 3)) / 3
    turn = np.stack([np.roll(row, shift) for shift in range(3)])
    transitions = stay * np.eye(3) + (1 - stay) * np.roll(np.eye(3), 1, axis=0)
    return transitions, turn @ transitions


def power_range(power: int, steps: int = 1001) -> tuple[float, float]:
    """Smallest and largest a for which the twin's T̃ has no negative entry, on a grid of `steps` values."""
    values = np.linspace(0, 1, steps)
    valid = [stay for stay in values if power_twin(float(stay), power)[1].min() >= -1e-12]
    return float(min(valid)), float(max(valid))


def householder(centres: Float[np.ndarray, "d k"]) -> Float[np.ndarray, "d k"]:
    """HM: the centres reflected at the hyperplane orthogonal to v = (M†)ᵀ1; the posterior stays the same (Lemma 7)."""
    normal = np.linalg.pinv(centres).T @ np.ones(centres.shape[1])
    normal /= np.linalg.norm(normal)
    return centres - 2 * np.outer(normal, normal @ centres)


def householder_transitions(ghmm: GaussianHMM) -> Float[np.ndarray, "k k"]:
    """(HM)†MT, what E[x₂ | x₁] forces on T̃: columns sum to −1, so the twin is no HMM (Theorem 5)."""
    return np.linalg.pinv(householder(ghmm.M)) @ ghmm.M @ ghmm.T


def posterior_sphere(
    centres: Float[np.ndarray, "d k"],
    rng: np.random.Generator | None = None,
    *,
    angle: float | None = None,
    away: Float[np.ndarray, " d"] | None = None,
) -> Float[np.ndarray, "d k"]:
    """For d > k, other unit centres M − v1ᵀ with the same posterior: a point of a (d − k)-sphere of them.

    v = s v̂ + n with n ⟂ col(M) and (s − c)² + ‖n‖² = c², c = v̂ᵀμ_i. Lemma 7 as worded overlooks them. The point is
    drawn, or given by an `angle` (0: the mirror image HM, π: M itself) and a direction `away` from the span.
    """
    d, k = centres.shape
    require(d > k, "centres", centres.shape, "more dimensions than states")
    draw = rng or np.random.default_rng(0)
    normal: np.ndarray = np.linalg.pinv(centres).T @ np.ones(k)
    normal /= np.linalg.norm(normal)
    away = np.asarray(draw.normal(size=d)) if away is None else away
    away = away - centres @ (np.linalg.pinv(centres) @ away)
    angle, c = float(draw.uniform(0.3, 2 * np.pi - 0.3)) if angle is None else angle, float(normal @ centres[:, 0])
    shift = (c + c * np.cos(angle)) * normal + c * np.sin(angle) * away / np.linalg.norm(away)
    return centres - shift[:, None]


def reflected_ghmm(ghmm: GaussianHMM) -> GaussianHMM:
    """(HM, (2/k)11ᵀ − T): the same E[x₁ ⊗ x₃ | x₂] when MᵀM1 ∝ 1 and T ≤ 2/k; the counter-example to Theorem 8.

    HM·T̃ = −MT and HM·T̃ᵀ = −MTᵀ: the two signs cancel. For k = 2 both conditions always hold.
    """
    gram = (ghmm.M.T @ ghmm.M).sum(1)
    require(bool(np.ptp(gram) < 1e-9), "centres", ghmm.centres, "with equal row sums of the Gram matrix")
    limit = 2 / ghmm.hidden
    require(
        bool(ghmm.T.max() <= limit + 1e-12), "transitions", ghmm.transitions, f"with no entry above 2/k = {limit:g}"
    )
    return make_ghmm(householder(ghmm.M), _clean(limit - ghmm.T), ghmm.length)
