"""What samples give: tables of conditional frequencies, joint moments, and expectation–maximisation as a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer
from sandlab.learning.hmm.tensors import jennrich
from sandlab.worlds.hmm.instances import make_hmm
from sandlab.worlds.hmm.models import HMM
from sandlab.worlds.hmm.tasks import MaskedTask

__all__ = ["EMResult", "conditional_table", "expectation_maximisation", "joint_moment_hmm", "sampled_predictor"]

AXES = {"2x3|1": (0, 1, 2), "1x3|2": (1, 0, 2), "1x2|3": (2, 0, 1)}


def conditional_table(counts: Int[np.ndarray, "d d d"], task: str | MaskedTask) -> Float[np.ndarray, "d d d"]:
    """The counts table as a predictor: frequencies of the two target tokens after each given token."""
    name = choice("task", str(MaskedTask.parse(task)), AXES)
    ordered = np.asarray(counts, dtype=np.float64).transpose(AXES[name])
    return ordered / np.maximum(ordered.sum((1, 2), keepdims=True), 1.0)


def sampled_predictor(
    counts: Int[np.ndarray, "*tokens"], task: str | MaskedTask
) -> Float[np.ndarray, "given *targets"]:
    """Conditional frequencies of the target tokens after each given token, for any task with one given time.

    The minimiser of the empirical squared loss over all functions of the given token: the table predictor.
    """
    task = MaskedTask.parse(task)
    (now,) = task.given
    others = tuple(axis for axis in range(counts.ndim) if axis + 1 not in task.times)
    kept = np.asarray(counts, dtype=np.float64).sum(others)
    ordered = np.moveaxis(kept, task.times.index(now), 0)
    return ordered / np.maximum(ordered.reshape(len(ordered), -1).sum(1), 1.0).reshape(-1, *[1] * len(task.targets))


def joint_moment_hmm(counts: Int[np.ndarray, "d d d"], states: int, *, seed: int = 0, sweeps: int = 0) -> HMM:
    """(O, T) from the joint law of three tokens, E[x₁⊗x₂⊗x₃] = Σ_i (OTᵀ)_i ⊗ O_i ⊗ (OT)_i / k, by Jennrich.

    The reference of moment methods (Anandkumar et al. 2014): it reads the joint, not a predictor.
    """
    from sandlab.learning.hmm.recovery import as_valid_hmm

    joint = np.asarray(counts, dtype=np.float64) / np.sum(counts)
    factors = jennrich(joint, states, seed=seed, sweeps=sweeps)
    emissions, after = factors.B / factors.B.sum(0), factors.C / factors.C.sum(0)
    return as_valid_hmm(emissions, np.linalg.pinv(emissions) @ after)


@dataclass(frozen=True)
class EMResult:
    """The fitted model and the log-likelihood per string after each iteration."""

    model: HMM
    log_likelihood: np.ndarray


def expectation_maximisation(
    counts: Int[np.ndarray, "*tokens"],
    states: int,
    rng: np.random.Generator,
    iterations: int = 200,
    *,
    device: str = "cpu",
) -> EMResult:
    """Baum–Welch on the counts of all strings of one length: maximum likelihood of (O, T) with a uniform start.

    Every different string is handled once, weighted by its count; forward and backward messages are batched.
    """
    integer("iterations", iterations, low=1)
    d = counts.shape[0]
    seen = np.argwhere(counts > 0)
    strings = torch.from_numpy(seen).to(device)
    weight = torch.from_numpy(counts[tuple(seen.T)] / counts.sum()).to(device)
    emissions, transitions = (
        torch.from_numpy(rng.dirichlet(np.full(size, spread), states).T.copy()).to(device)
        for size, spread in ((d, 1.0), (states, 2.0))
    )
    curve = []
    for _ in range(iterations):
        emissions, transitions, value = _improved(strings, weight, emissions, transitions)
        curve.append(value)
    return EMResult(make_hmm(emissions.cpu().numpy(), transitions.cpu().numpy()), np.asarray(curve))


def _improved(strings: Tensor, weight: Tensor, emissions: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor, float]:
    """One iteration: expected numbers of emissions and transitions, normalised; and the log-likelihood before it."""
    forward, backward = _messages(strings, emissions, transitions)
    likelihood = forward[:, -1].sum(1)
    scaled = (weight / likelihood)[:, None]
    posterior = forward * backward * scaled[:, None]
    later = emissions[strings[:, 1:]] * backward[:, 1:] * scaled[:, None]
    moved = transitions * torch.einsum("nth,ntg->hg", later, forward[:, :-1])
    shown = torch.zeros_like(emissions).index_add_(0, strings.flatten(), posterior.flatten(0, 1)).clamp(min=1e-12)
    return shown / shown.sum(0), moved / moved.sum(0), float(weight @ likelihood.log())


def _messages(strings: Tensor, emissions: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
    """Forward messages P(x_1…x_t, h_t) and backward messages P(x_{t+1}… | h_t) of every string."""
    shown, length = emissions[strings], strings.shape[1]
    forward, backward = torch.empty_like(shown), torch.ones_like(shown)
    forward[:, 0] = shown[:, 0] / len(transitions)
    for time in range(1, length):
        forward[:, time] = shown[:, time] * (forward[:, time - 1] @ transitions.T)
    for time in range(length - 2, -1, -1):
        backward[:, time] = (shown[:, time + 1] * backward[:, time + 1]) @ transitions
    return forward, backward
