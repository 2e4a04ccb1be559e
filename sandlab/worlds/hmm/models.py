"""Hidden Markov models with discrete or Gaussian observations: sampling, exact joints, exact masked predictors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import softmax
from torch import Tensor

from sandlab.errors import BadInput, integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.hmm._matrices import Rows, as_rows, check_columns
from sandlab.worlds.hmm.tasks import MaskedTask

__all__ = ["HMM", "GaussianHMM", "LatentChain"]

CANON_T: Rows = ((0.8, 0.05, 0.15), (0.15, 0.8, 0.05), (0.05, 0.15, 0.8))
CANON_O: Rows = ((0.7, 0.1, 0.1), (0.1, 0.7, 0.1), (0.1, 0.1, 0.4), (0.1, 0.1, 0.4))
CANON_M: Rows = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.6), (0.0, 0.0, 0.8))


@dataclass(frozen=True)
class LatentChain(World):
    """What both kinds of HMM share: a doubly stochastic chain of hidden states with a uniform start.

    `transitions[i][j]` = P(h_{t+1} = i | h_t = j): columns sum to 1. The reverse chain has Tᵀ, because T is doubly
    stochastic and h₁ uniform (assumption 5). Source: Liu 2024 (thesis, CMU-ML-24-110), section 2.2.
    """

    transitions: Rows = CANON_T
    length: int = 3

    @cached_property
    def T(self) -> Float[np.ndarray, "k k"]:
        """The transition matrix."""
        return np.asarray(self.transitions)

    @property
    def hidden(self) -> int:
        """Number of hidden states k."""
        return len(self.transitions)

    @property
    def means(self) -> Float[np.ndarray, "d k"]:
        """Column i: E[x | h = i]. One-hot observations: the emission matrix."""
        raise NotImplementedError

    def posterior(self, x: np.ndarray) -> Float[np.ndarray, "*lead k"]:
        """φ(x) = P(h | x) under the uniform law of h."""
        raise NotImplementedError

    def likelihood(self, x: np.ndarray) -> Float[np.ndarray, "*lead k"]:
        """P(x | h) up to a factor that does not depend on h."""
        return self.posterior(x)

    def _check_transitions(self) -> None:
        object.__setattr__(self, "transitions", as_rows("transitions", self.transitions))
        check_columns("transitions", self.T)
        require(len(self.T) == len(self.T[0]), "transitions", self.transitions, "a square matrix")
        integer("length", self.length, low=1)

    def check_assumptions(self) -> dict[str, bool]:
        """Which assumptions of the identifiability theorems hold."""
        d, k = self.means.shape
        full = np.linalg.matrix_rank(self.T) == k and np.linalg.matrix_rank(self.means) == k <= d
        return {
            "doubly stochastic transitions (5)": bool(np.abs(self.T.sum(1) - 1).max() < 1e-6),
            "full rank, no more states than dimensions (7, 8)": bool(full),
        }

    def latent_paths(self, n: int, rng: torch.Generator) -> Int[Tensor, "n time"]:
        """n paths of the hidden chain, one vectorised draw per time."""
        steps = torch.from_numpy(np.cumsum(self.T, 0)[:-1].T.copy()).to(rng.device)
        states = torch.empty(self.length, n, dtype=torch.long, device=rng.device)
        states[0] = torch.randint(self.hidden, (n,), generator=rng, device=rng.device)
        for time in range(1, self.length):
            uniform = torch.rand(n, generator=rng, device=rng.device, dtype=torch.float64)
            states[time] = (uniform[:, None] >= steps[states[time - 1]]).sum(1)
        return states.T

    def predictor(self, task: str | MaskedTask, *observed: np.ndarray) -> Float[np.ndarray, "example *targets"]:
        """E[⊗_{τ ∈ targets} x_τ | observed], the optimal predictor of any masked task; one array per given time.

        The chain is contracted from left to right with a message A[example, …, h]: emissions multiply at each target,
        likelihoods at each given token, powers of T in between (eq. 2.35–2.42, 2.70–2.75).
        """
        task = MaskedTask.parse(task)
        given = self._given(task, observed)
        count = len(next(iter(given.values())))
        message, before = np.full((count, self.hidden), 1.0 / self.hidden), task.times[0]
        for time in task.times:
            message = message @ np.linalg.matrix_power(self.T, time - before).T
            message, before = self._absorb(message, given.get(time)), time
        total = self._evidence(task, given)
        return message.sum(-1) / total.reshape(count, *[1] * len(task.targets))

    def _given(self, task: MaskedTask, observed: tuple[np.ndarray, ...]) -> dict[int, np.ndarray]:
        """Time → likelihoods (example, state) of what is given; without arguments, of all tokens or all pairs."""
        values = observed or self._all_given(len(task.given))
        require(
            len(values) == len(task.given), "observed", len(values), f"{len(task.given)} arrays, one per given time"
        )
        return {time: np.atleast_2d(self.likelihood(np.asarray(x))) for time, x in zip(task.given, values)}

    def _all_given(self, count: int) -> tuple[np.ndarray, ...]:
        raise BadInput("give the observations to predict from: there are infinitely many")

    def _absorb(self, message: np.ndarray, likelihood: np.ndarray | None) -> np.ndarray:
        if likelihood is None:
            return np.einsum("...h,xh->...xh", message, self.means)
        return message * likelihood.reshape(len(likelihood), *[1] * (message.ndim - 2), self.hidden)

    def _evidence(self, task: MaskedTask, given: dict[int, np.ndarray]) -> Float[np.ndarray, " example"]:
        message, before = np.full((1, self.hidden), 1.0 / self.hidden), task.times[0]
        for time in task.times:
            message = message @ np.linalg.matrix_power(self.T, time - before).T
            message, before = message * given.get(time, np.ones((1, self.hidden))), time
        return message.sum(-1)


@register("worlds")
@dataclass(frozen=True)
class HMM(LatentChain):
    """A hidden Markov model with d tokens and k hidden states; the task is to predict the next token.

    `emissions[x][j]` = P(x_t = x | h_t = j) and `transitions[i][j]` = P(h_{t+1} = i | h_t = j): columns sum to 1.
    φ(e_x) = Oᵀe_x / ‖Oᵀe_x‖₁. Defaults: `hmm-canon` of this chapter (d = 4, k = 3).
    """

    emissions: Rows = CANON_O

    def __post_init__(self) -> None:
        self._check_transitions()
        object.__setattr__(self, "emissions", as_rows("emissions", self.emissions))
        check_columns("emissions", self.O)
        require(self.O.shape[1] == self.hidden, "emissions", self.O.shape, f"one column per state, {self.hidden}")

    @cached_property
    def O(self) -> Float[np.ndarray, "d k"]:  # noqa: E743
        """The emission matrix."""
        return np.asarray(self.emissions)

    @property
    def means(self) -> Float[np.ndarray, "d k"]:
        return self.O

    @property
    def vocab(self) -> int:
        return len(self.emissions)

    def check_assumptions(self) -> dict[str, bool]:
        return {**super().check_assumptions(), "every token occurs (6)": bool((self.O.sum(1) > 0).all())}

    def posterior(self, x: Int[np.ndarray, "*lead"]) -> Float[np.ndarray, "*lead k"]:
        rows = self.O[np.asarray(x)]
        return rows / rows.sum(-1, keepdims=True)

    def likelihood(self, x: Int[np.ndarray, "*lead"]) -> Float[np.ndarray, "*lead k"]:
        return self.O[np.asarray(x)]

    def _all_given(self, count: int) -> tuple[np.ndarray, ...]:
        grid = np.meshgrid(*[np.arange(self.vocab)] * count, indexing="ij")
        return tuple(each.ravel() for each in grid)

    def joint(self, length: int | None = None) -> Float[np.ndarray, "*tokens"]:
        """P(x₁, …, x_L) of every string, an array with one axis per time."""
        message = np.full((1, self.hidden), 1.0 / self.hidden)
        for time in range(length or self.length):
            message = message if time == 0 else message @ self.T.T
            message = np.einsum("nh,xh->nxh", message, self.O).reshape(-1, self.hidden)
        return message.sum(-1).reshape([self.vocab] * (length or self.length))

    def sample_tokens(self, n: int, rng: torch.Generator) -> tuple[Int[Tensor, "n time"], Int[Tensor, "n time"]]:
        """n strings and their hidden states."""
        states = self.latent_paths(n, rng)
        steps = torch.from_numpy(np.cumsum(self.O, 0)[:-1].T.copy()).to(rng.device)
        uniform = torch.rand(states.shape, generator=rng, device=rng.device, dtype=torch.float64)
        return (uniform[..., None] >= steps[states]).sum(-1), states

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        longer = HMM(self.transitions, self.length + 1, self.emissions)
        tokens, states = longer.sample_tokens(n, rng)
        inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        return Batch(inputs, targets, torch.ones_like(targets, dtype=torch.bool), {"states": states[:, :-1]})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time token"]:
        """The forward algorithm: P(x_{t+1} | x_1 … x_t)."""
        device = batch.inputs.device
        steps, emitted = torch.from_numpy(self.T).to(device), torch.from_numpy(self.O).to(device)
        belief, answers = torch.full((len(batch), self.hidden), 1.0 / self.hidden, dtype=torch.float64), []
        belief = belief.to(batch.inputs.device)
        for time in range(batch.inputs.shape[1]):
            belief = belief * emitted[batch.inputs[:, time]]
            belief = (belief / belief.sum(-1, keepdim=True)) @ steps.T
            answers.append((belief @ emitted.T).log())
        return torch.stack(answers, dim=1)

    def string_counts(self, n: int, *, rng: torch.Generator, chunk: int = 2_000_000) -> Int[np.ndarray, "*tokens"]:
        """How often each string of `length` tokens occurs in n draws, streamed: memory does not grow with n.

        Strings are tiny here, so the hidden path and its tokens are drawn as one index of the joint law of
        (h₁, x₁, …): an alias table would do; the cumulative law and a sorted search are as fast for d^L cells.
        """
        edges = torch.from_numpy(np.cumsum(self.joint().ravel())[:-1].copy()).to(rng.device)
        counts = torch.zeros(len(edges) + 1, dtype=torch.long, device=rng.device)
        for size in _chunks(n, chunk):
            uniform = torch.rand(size, generator=rng, device=rng.device, dtype=torch.float64)
            found = torch.searchsorted(edges, uniform, right=True)
            counts += torch.bincount(found, minlength=len(counts))
        return counts.cpu().numpy().reshape([self.vocab] * self.length)


@register("worlds", representative=False)  # unit centres and unit noise: for theorems, not for data
@dataclass(frozen=True)
class GaussianHMM(LatentChain):
    """A hidden Markov model whose observation in state i is N(μ_i, I_d); the class to predict is the hidden state.

    `centres[a][i]` is coordinate a of μ_i; the theorems ask for ‖μ_i‖ = 1 (9). φ(x) = softmax(−‖x − μ_i‖²/2).
    Defaults: `ghmm-canon` of this chapter (d = k = 3).
    """

    centres: Rows = CANON_M

    def __post_init__(self) -> None:
        self._check_transitions()
        object.__setattr__(self, "centres", as_rows("centres", self.centres))
        require(self.M.shape[1] == self.hidden, "centres", self.M.shape, f"one column per state, {self.hidden}")

    @cached_property
    def M(self) -> Float[np.ndarray, "d k"]:
        """The centres, one column per state."""
        return np.asarray(self.centres)

    @property
    def means(self) -> Float[np.ndarray, "d k"]:
        return self.M

    @property
    def outputs(self) -> int:
        return self.hidden

    def check_assumptions(self) -> dict[str, bool]:
        norms = np.linalg.norm(self.M, axis=0)
        return {**super().check_assumptions(), "centres of equal norm (9)": bool(np.ptp(norms) < 1e-9)}

    def posterior(self, x: Float[np.ndarray, "*lead d"]) -> Float[np.ndarray, "*lead k"]:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(softmax(x @ self.M - (self.M**2).sum(0) / 2, axis=-1))

    def density(self, x2: Float[np.ndarray, "n d"], x1: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n m"]:
        """p(x₂ | x₁) = Σ_i N(x₂; μ_i, I) (T φ(x₁))_i."""
        squares = ((x2[:, :, None] - self.M) ** 2).sum(1)
        return (2 * np.pi) ** (-len(self.M) / 2) * np.exp(-squares / 2) @ (self.T @ self.posterior(x1).T)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        states = self.latent_paths(n, rng)
        centres = torch.from_numpy(self.M.T.copy()).to(rng.device)[states]
        x = centres + torch.randn(centres.shape, generator=rng, device=rng.device, dtype=torch.float64)
        return Batch(x.float(), states, torch.ones_like(states, dtype=torch.bool), {"observations": x})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time state"]:
        """Filtering: P(h_t | x_1 … x_t)."""
        x = batch.inputs.to(torch.float64)
        scores = x @ torch.from_numpy(self.M).to(x.device) - torch.from_numpy((self.M**2).sum(0) / 2).to(x.device)
        log_t, answers = torch.from_numpy(np.log(np.maximum(self.T, 1e-300))).to(x.device), []
        belief = torch.full_like(scores[:, 0], -np.log(self.hidden))
        for time in range(x.shape[1]):
            belief = belief if time == 0 else (log_t + belief[:, None, :]).logsumexp(-1)
            belief = (belief + scores[:, time]).log_softmax(-1)
            answers.append(belief)
        return torch.stack(answers, dim=1)


def _chunks(total: int, size: int) -> Iterator[int]:
    """Sizes that add up to `total`, none larger than `size`."""
    integer("n", total, low=1)
    for start in itertools.count(0, size):
        if start >= total:
            return
        yield min(size, total - start)
