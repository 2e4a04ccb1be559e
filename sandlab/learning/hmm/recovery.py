"""Parameters of a discrete HMM read off a predictor of two tokens (Theorem 7)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from sandlab.errors import choice
from sandlab.learning.hmm.tensors import Factors, jennrich
from sandlab.worlds.hmm.doubly_stochastic import sinkhorn
from sandlab.worlds.hmm.instances import make_hmm
from sandlab.worlds.hmm.models import HMM, LatentChain

__all__ = ["TWO_TOKEN_TASKS", "ParameterError", "align", "as_valid_hmm", "parameter_error", "read_hmm", "recover_hmm"]

TWO_TOKEN_TASKS = ("2x3|1", "1x3|2", "1x2|3")


@dataclass(frozen=True)
class ParameterError:
    """Distance of two models up to a permutation of the hidden states: largest entries and Frobenius norms."""

    means_max: float
    transitions_max: float
    means_frobenius: float
    transitions_frobenius: float

    @property
    def largest(self) -> float:
        return max(self.means_max, self.transitions_max)


def read_hmm(factors: Factors, task: str) -> tuple[Float[np.ndarray, "d k"], Float[np.ndarray, "k k"]]:
    """(O, T) from the factors of a two-token table: column sums of O, OT, OTᵀ are 1, which removes the scales.

    2⊗3|1: B = O, C = OT. 1⊗2|3: B = OTᵀ, C = O. 1⊗3|2: A = D⁻¹O, B = OTᵀ, C = OT with D = diag(C1).
    """
    choice("task", task, TWO_TOKEN_TASKS)
    B, C = factors.B / factors.B.sum(0), factors.C / factors.C.sum(0)
    if task == "2x3|1":
        return B, np.linalg.pinv(B) @ C
    if task == "1x2|3":
        return C, (np.linalg.pinv(C) @ B).T
    A = factors.A * factors.B.sum(0) * factors.C.sum(0)
    emissions = C.sum(1, keepdims=True) * A
    return emissions, np.linalg.pinv(emissions) @ C


def recover_hmm(
    table: Float[np.ndarray, "n d d"], task: str, states: int, *, seed: int = 0, sweeps: int = 0, clean: bool = False
) -> tuple[Float[np.ndarray, "d k"], Float[np.ndarray, "k k"]]:
    """(O, T) from the table E[x_a ⊗ x_b | x_c = e_j] by Jennrich's algorithm; `clean` makes noisy ones valid."""
    emissions, transitions = read_hmm(jennrich(table, states, seed=seed, sweeps=sweeps), task)
    if not clean:
        return emissions, transitions
    hmm = as_valid_hmm(emissions, transitions)
    return hmm.O, hmm.T


def as_valid_hmm(emissions: np.ndarray, transitions: np.ndarray) -> HMM:
    """The HMM nearest in spirit to noisy estimates: negative entries clipped, O normalised, T by Sinkhorn.

    What is no number counts as negative; a column of O without a positive entry becomes uniform.
    """
    emissions, transitions = np.nan_to_num(emissions), np.nan_to_num(transitions)
    clipped, logits = np.maximum(emissions, 0), np.log(np.maximum(transitions, 1e-9))
    clipped = np.where(clipped.sum(0) > 0, clipped, 1.0)
    return make_hmm(clipped / clipped.sum(0), sinkhorn(torch.from_numpy(logits), 500).numpy())


def align(truth: Float[np.ndarray, "d k"], found: Float[np.ndarray, "d k"]) -> tuple[int, ...]:
    """The order of found columns that is nearest to the true ones: all permutations for k ≤ 7, else Hungarian."""
    costs = ((truth[:, :, None] - found[:, None, :]) ** 2).sum(0)
    if len(costs) <= 7:
        rows = range(len(costs))
        return min(itertools.permutations(rows), key=lambda order: sum(costs[row, order[row]] for row in rows))
    return tuple(linear_sum_assignment(costs)[1].tolist())


def parameter_error(truth: LatentChain, means: np.ndarray, transitions: np.ndarray) -> ParameterError:
    """Error of (means, T) against a model, after one permutation of the columns of O or M and both axes of T."""
    order = list(align(truth.means, means))
    first, second = means[:, order] - truth.means, transitions[np.ix_(order, order)] - truth.T
    largest = float(np.abs(first).max()), float(np.abs(second).max())
    return ParameterError(*largest, float(np.linalg.norm(first)), float(np.linalg.norm(second)))
