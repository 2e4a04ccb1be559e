"""Parameters of a Gaussian HMM read off its conditional means: constructive forms of Theorems 5 and 8."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from sandlab.errors import choice
from sandlab.learning.hmm.tensors import jennrich
from sandlab.worlds.hmm.instances import make_ghmm
from sandlab.worlds.hmm.models import GaussianHMM

__all__ = [
    "Candidate",
    "candidates_from_columns",
    "read_ghmm_pairwise",
    "read_ghmm_two_tokens",
    "recover",
    "saturated_columns",
]

Predictor: TypeAlias = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Candidate:
    """One solution of a recovery: centres, transitions, and whether they are a valid model."""

    means: np.ndarray
    transitions: np.ndarray
    accepted: bool

    def model(self) -> GaussianHMM:
        return make_ghmm(self.means, np.maximum(self.transitions, 0))


def saturated_columns(
    predict: Predictor, d: int, states: int, rng: np.random.Generator, far: float = 1e8, count: int = 20_000
) -> Float[np.ndarray, "d k"]:
    """Columns of MT: far away in any direction the posterior is a corner of the simplex; the k commonest answers."""
    directions = rng.normal(size=(count, d))
    answers = predict(far * directions / np.linalg.norm(directions, axis=1, keepdims=True))
    rounded, counts = np.unique(np.round(answers, 7), axis=0, return_counts=True)
    common = rounded[np.argsort(-counts)[:states]]
    nearest = [answers[np.abs(answers - each).sum(1).argmin()] for each in common]
    return np.stack(nearest, 1)


def _log_ratio_differences(phi: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "d rest"]:
    """δ_i = μ_i − μ_1: log φ_i(x) − log φ_1(x) is linear in x without intercept when all norms are equal."""
    logs = np.log(np.maximum(phi, 1e-300))
    return np.linalg.lstsq(x, logs[:, 1:] - logs[:, :1], rcond=None)[0]


def _centre_candidates(deltas: np.ndarray, span: np.ndarray, norm: float = 1.0) -> list[Float[np.ndarray, "d k"]]:
    """M and its mirror image: μ_1 of the given norm in the span with 2δ_iᵀμ_1 = −‖δ_i‖²."""
    k = deltas.shape[1] + 1
    basis = np.linalg.svd(span, full_matrices=False)[0][:, :k]
    inside = 2 * deltas.T @ basis
    middle = np.linalg.lstsq(inside, -(deltas**2).sum(0), rcond=None)[0]
    normal = np.linalg.svd(inside)[2][-1]
    reach = np.sqrt(max(norm**2 - middle @ middle, 0.0))
    shifts = np.concatenate([np.zeros((len(deltas), 1)), deltas], 1)
    return [basis @ (middle + sign * reach * normal)[:, None] + shifts for sign in (1, -1)]


def read_ghmm_pairwise(predict: Predictor, d: int, states: int, *, seed: int = 0, far: float = 1e8) -> list[Candidate]:
    """Both solutions of f(x) = MTφ(x) (Theorem 5); the accepted one has columns of T that sum to 1, the other −1."""
    rng = np.random.default_rng(seed)
    return candidates_from_columns(predict, saturated_columns(predict, d, states, rng, far), rng)


def candidates_from_columns(
    predict: Predictor, columns: Float[np.ndarray, "d k"], rng: np.random.Generator, *, norm: float = 1.0
) -> list[Candidate]:
    """The two models with E[x₂ | x₁] = MTφ(x₁), given the columns of MT; `norm` is the common length of the centres."""
    d = len(columns)
    x = rng.normal(size=(max(4 * d, 40), d)) * norm
    phi = predict(x) @ np.linalg.pinv(columns).T
    found = []
    for centres in _centre_candidates(_log_ratio_differences(phi, x), columns, norm):
        transitions = np.linalg.pinv(centres) @ columns
        found.append(Candidate(centres, transitions, bool(np.abs(transitions.sum(0) - 1).max() < 0.1)))
    return found


def read_ghmm_two_tokens(
    predict: Predictor, task: str, d: int, states: int, *, seed: int = 0, probes: int = 0, tolerance: float = 1e-6
) -> list[Candidate]:
    """All solutions of a two-token predictor at random probe points (Theorem 8): "2x3|1", "1x2|3" or "1x3|2"."""
    choice("task", task, ("2x3|1", "1x2|3", "1x3|2"))
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(probes or max(4 * d, 40), d))
    table = predict(x)
    if task == "1x2|3":  # the reversed chain: x₃ is first and T becomes Tᵀ
        reverse = _one_sided(table.transpose(0, 2, 1), x, states, seed, tolerance)
        return [Candidate(each.means, each.transitions.T, each.accepted) for each in reverse]
    if task == "2x3|1":
        return _one_sided(table, x, states, seed, tolerance)
    return _two_sided(table, x, states, seed, tolerance)


def _rows_to_one(A: np.ndarray) -> Float[np.ndarray, " k"]:
    """Scales α with Aα = 1: rows of the true A are distributions."""
    return np.linalg.lstsq(A, np.ones(len(A)), rcond=None)[0]


def _one_sided(table: np.ndarray, x: np.ndarray, states: int, seed: int, tolerance: float) -> list[Candidate]:
    """2⊗3|1: B = M up to scale and C = MT; unit norms leave signs, which T ≥ 0 and the posterior resolve."""
    factors = jennrich(table, states, seed=seed)
    alpha = _rows_to_one(factors.A)
    A, scale = factors.A * alpha, np.linalg.norm(factors.B, axis=0)
    B, C = factors.B / scale, factors.C * scale / alpha
    signs = _relative_signs(np.linalg.pinv(B) @ C)
    found = []
    for sign in (1, -1):
        centres = B * signs * sign
        transitions = np.linalg.pinv(centres) @ (C * signs * sign)
        phi = np.linalg.lstsq(transitions, A.T, rcond=None)[0].T
        scores = x @ centres
        truth = np.exp(scores - scores.max(1, keepdims=True))
        miss = np.abs(phi - truth / truth.sum(1, keepdims=True)).max()
        found.append(Candidate(centres, transitions, bool(miss < max(tolerance, 1e-6) * 100)))
    return found


def _relative_signs(matrix: np.ndarray) -> Float[np.ndarray, " k"]:
    """s with s_i s_j M_ij ≥ 0, by walking along the largest entries from state 0."""
    strength, signs = np.abs(matrix) + np.abs(matrix.T), np.zeros(len(matrix))
    signs[0] = 1.0
    while (signs == 0).any():
        reach = np.where((signs != 0)[:, None] & (signs == 0)[None, :], strength, -1.0)
        known, new = np.unravel_index(reach.argmax(), reach.shape)
        entry = max(matrix[known, new], matrix[new, known], key=abs)
        signs[new] = signs[known] * (1.0 if entry >= 0 else -1.0)
    return signs


def _two_sided(table: np.ndarray, x: np.ndarray, states: int, seed: int, tolerance: float) -> list[Candidate]:
    """1⊗3|2: A = φ, B = MTᵀ, C = MT up to scales with product 1; M and its mirror image are both tried."""
    factors = jennrich(table, states, seed=seed)
    alpha = _rows_to_one(factors.A)
    phi, C = factors.A * alpha, factors.C / alpha
    found = []
    for centres in _centre_candidates(_log_ratio_differences(phi, x), np.concatenate([factors.B, C], 1)):
        inverse = np.linalg.pinv(centres)
        forward, backward = inverse @ C, inverse @ factors.B
        forward, backward = forward / forward.sum(0), backward / backward.sum(0)
        agree = np.abs(forward - backward.T).max() < tolerance * 100 and forward.min() > -tolerance
        found.append(Candidate(centres, forward, bool(agree)))
    return found


def recover(predict: Predictor, task: str, d: int, states: int, *, seed: int = 0) -> list[Candidate]:
    """Every valid Gaussian HMM that has this predictor for "2|1" or a two-token task."""
    if task == "2|1":
        found = read_ghmm_pairwise(predict, d, states, seed=seed)
    else:
        found = read_ghmm_two_tokens(predict, task, d, states, seed=seed)
    return [each for each in found if each.accepted]
