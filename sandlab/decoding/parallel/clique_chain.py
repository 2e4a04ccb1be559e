"""Samplers on an Ising clique as exact Markov chains of its magnetisation: no configuration is ever listed."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import expit, logsumexp
from scipy.stats import binom, hypergeom
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.worlds.parallel.clique import IsingClique, log_binomial

__all__ = [
    "clique_gibbs_matrix",
    "clique_parallel_matrix",
    "hidden_clique_chance",
    "stuck_bound",
    "stuck_exponent",
    "visit_bound",
    "visit_steps",
    "walk_magnetisation",
]

Matrix = Float[np.ndarray, "plus plus"]


def clique_gibbs_matrix(world: IsingClique, k: int) -> Matrix:
    """P(m → m') of k-Gibbs, m plus spins among the c of the clique.

    j = |K ∩ C| is hypergeometric, a of them are plus, and b new plus spins have weight C(j, b) w(m − a + b).
    """
    integer("k", k, low=1, high=world.sites)
    c = world.clique
    matrix, m = np.zeros((c + 1, c + 1)), np.arange(c + 1)
    for j in range(max(0, k - (world.sites - c)), min(c, k) + 1):
        hidden = hypergeom.pmf(j, world.sites, c, k)
        base = np.arange(c - j + 1)
        leaves = hypergeom.pmf(m[:, None] - base, c, m[:, None], j)  # m → base plus spins that stay visible
        matrix += hidden * leaves @ _block_law(world, j)
    return matrix / matrix.sum(1, keepdims=True)


def _block_law(world: IsingClique, j: int) -> Float[np.ndarray, "base plus"]:
    """Law of the new magnetisation when j spins are drawn and `base` plus spins stay."""
    c, b = world.clique, np.arange(j + 1)
    base = np.arange(c - j + 1)[:, None]
    logs = log_binomial(j, b) + world.log_weights[base + b]
    law = np.zeros((c - j + 1, c + 1))
    np.put_along_axis(law, base + b, np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), 1)
    return law


def clique_parallel_matrix(world: IsingClique) -> Matrix:
    """P(m → m') of independent parallel: m' = Bin(m, u) + Bin(c − m, d) with the spins' conditional probabilities."""
    c = world.clique
    stay, rise = _flip_chances(world)
    rows = []
    for m in range(c + 1):
        first = binom.pmf(np.arange(m + 1), m, stay[m])
        second = binom.pmf(np.arange(c - m + 1), c - m, rise[m])
        rows.append(np.convolve(first, second))
    return np.stack(rows)


def _flip_chances(world: IsingClique) -> tuple[np.ndarray, np.ndarray]:
    """P(next spin is plus) of a plus spin and of a minus spin, for every m: σ(2(h + J(s ∓ 1)))."""
    s = 2.0 * np.arange(world.clique + 1) - world.clique
    plus, minus = world.field + world.strength * (s - 1), world.field + world.strength * (s + 1)
    return np.asarray(expit(2 * plus)), np.asarray(expit(2 * minus))


def walk_magnetisation(
    world: IsingClique, start: int, chains: int, steps: int, *, k: int | None, rng: torch.Generator
) -> Int[Tensor, "time chain"]:
    """Simulated numbers of plus spins in the clique, under k-Gibbs or (k = None) independent parallel."""
    require(0 <= start <= world.clique, "start", start, f"0 to {world.clique} plus spins")
    matrix = torch.as_tensor(clique_parallel_matrix(world) if k is None else clique_gibbs_matrix(world, k))
    now = torch.full((chains,), start, dtype=torch.long)
    times = [now]
    for _ in range(steps):
        now = torch.multinomial(matrix[now], 1, generator=rng).squeeze(1)
        times.append(now)
    return torch.stack(times)


def hidden_clique_chance(sites: int, clique: int, k: int) -> float:
    """P(C ⊂ K) = C(N − c, k − c)/C(N, k) of a uniform set of k sites."""
    return 0.0 if k < clique else math.comb(sites - clique, k - clique) / math.comb(sites, k)


def visit_bound(sites: int, clique: int, k: int, slack: float, total_field: float) -> float:
    """c_R₁ = 1 − P(C ⊂ K)/(1 + e^{−2h_G} + (2^c − 2)e^{−2(J₀ + h_G)}): a step misses R₁ at most this often.

    Li 2024, Proposition 4.1.4 in the form of its proof (the main text prints another denominator).
    """
    other = (2.0**clique - 2) * math.exp(-2 * (slack + total_field))
    return 1 - hidden_clique_chance(sites, clique, k) / (1 + math.exp(-2 * total_field) + other)


def visit_steps(bound: float, delta: float) -> int:
    """T = ⌈log_c δ⌉: after so many steps R₁ has been visited with probability at least 1 − δ."""
    number("delta", delta, low=0.0, high=1.0)
    return max(1, math.ceil(math.log(delta) / math.log(bound)))


def stuck_exponent(clique: int, slack: float) -> float:
    """c_stuck = 2(−1 + tanh(J₀) c/2)²/c (Proposition 4.1.5; needs tanh(J₀) c/2 > 1)."""
    reach = math.tanh(slack) * clique / 2
    require(reach > 1, "tanh(slack) · clique/2", reach, "above 1")
    return 2 * (reach - 1) ** 2 / clique


def stuck_bound(clique: int, slack: float, delta: float) -> int:
    """T = ⌊(δ/2) e^{c_stuck}⌋: so long does independent parallel stay at Σ_C x ≤ −2, with probability 1 − δ."""
    return math.floor(delta / 2 * math.exp(stuck_exponent(clique, slack)))
