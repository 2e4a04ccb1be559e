"""What samples give: tables of conditional frequencies, joint moments, and expectation–maximisation as a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

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
    counts: Int[np.ndarray, "*tokens"], states: int, rng: np.random.Generator, iterations: int = 200
) -> EMResult:
    """Baum–Welch on the counts of all strings of one length: maximum likelihood of (O, T) with a uniform start.

    Every different string is handled once, weighted by its count; forward and backward messages are batched.
    """
    integer("iterations", iterations, low=1)
    d, length = counts.shape[0], counts.ndim
    strings = np.stack([each.ravel() for each in np.indices(counts.shape)], 1)
    weight = counts.ravel() / counts.sum()
    strings, weight = strings[weight > 0], weight[weight > 0]
    emissions, transitions = rng.dirichlet(np.ones(d), states).T, rng.dirichlet(np.full(states, 2.0), states).T
    curve = []
    for _ in range(iterations):
        forward, backward = _messages(strings, emissions, transitions)
        likelihood = forward[:, -1].sum(1)
        curve.append(float(weight @ np.log(likelihood)))
        scaled = (weight / likelihood)[:, None]
        posterior = forward * backward * scaled[:, None]
        pairs = sum(
            (scaled * emissions[strings[:, time + 1]] * backward[:, time + 1]).T @ forward[:, time]
            for time in range(length - 1)
        )
        transitions = transitions * pairs
        transitions = transitions / transitions.sum(0)
        emissions = np.stack([posterior[strings == token].sum(0) for token in range(d)])
        emissions = np.maximum(emissions, 1e-12) / np.maximum(emissions, 1e-12).sum(0)
    return EMResult(make_hmm(emissions, transitions), np.asarray(curve))


def _messages(strings: np.ndarray, emissions: np.ndarray, transitions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forward messages P(x_1…x_t, h_t) and backward messages P(x_{t+1}… | h_t) of every string."""
    length, states = strings.shape[1], len(transitions)
    forward = np.empty((len(strings), length, states))
    backward = np.ones_like(forward)
    forward[:, 0] = emissions[strings[:, 0]] / states
    for time in range(1, length):
        forward[:, time] = emissions[strings[:, time]] * (forward[:, time - 1] @ transitions.T)
    for time in range(length - 2, -1, -1):
        backward[:, time] = (emissions[strings[:, time + 1]] * backward[:, time + 1]) @ transitions
    return forward, backward
