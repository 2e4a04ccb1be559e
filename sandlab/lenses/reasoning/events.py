"""Coincidences that confuse the neurons: which clauses agree by chance, and how often."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from sandlab.errors import integer
from sandlab.learning.reasoning.reduced import Chains, enumerate_chains, sample_chains
from sandlab.registry import register
from sandlab.worlds.reasoning.actions import as_action

__all__ = ["CollisionRates", "collision_rates", "confusion_events", "counted_confusions"]


@register("lenses")
def confusion_events(points: int) -> dict[str, float]:
    """Probabilities of the events E1 … E6 on T² under the natural action of S_n; they partition the space.

    E1: y_0 ≠ y_1 and g_1, g_2 differ at both; E2: they agree at y_0 only; E3: y_0 = y_1 and they differ there; E4:
    y_0 ≠ y_1 and they agree at both; E5: they agree at y_1 only; E6: y_0 = y_1 and they agree.

    Source: Huang et al. 2025, eq. (103)–(108); the closed forms are derived.
    """
    n = integer("points", points, low=2)
    counts = {"E1": n * n - 3 * n + 3, "E2": n - 2, "E3": n - 1, "E4": 1, "E5": n - 2, "E6": 1}
    return {name: count / n**2 for name, count in counts.items()}


def counted_confusions(action: str) -> dict[str, float]:
    """The same shares counted over all |G|²·|Y| examples of T²."""
    chains = enumerate_chains(action, 2)
    same, at_first, at_second = _agreements(action, chains)
    events = {
        "E1": ~same & ~at_first & ~at_second,
        "E2": ~same & at_first & ~at_second,
        "E3": same & ~at_second,
        "E4": ~same & at_first & at_second,
        "E5": ~same & ~at_first & at_second,
        "E6": same & at_second,
    }
    return {name: float(inside.double().mean()) for name, inside in events.items()}


def _agreements(action: str, chains: Chains) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    table = torch.as_tensor(as_action(action).array)
    first, second = chains.actions[:, 0], chains.actions[:, 1]
    start, middle = chains.values[:, 0], chains.values[:, 1]
    return start == middle, table[first, start] == table[second, start], table[first, middle] == table[second, middle]


@dataclass(frozen=True)
class CollisionRates:
    """Probabilities of the collision events at length L: shares of random chains.

    crowded    not E_{L,1}: more than U_k L of the predicates ℓ ≠ 2 take y_1 where g_2 does
    repeated   E_{L,2}: y_0 = y_1
    loaded     not E_{L,3}: for some y more than W_k predicates ℓ ≠ 2 agree with g_2 at y
    """

    share: float
    load: float
    crowded: float
    repeated: float
    loaded: float


@register("lenses")
def collision_rates(action: str, length: int, *, chains: int = 4000, rng: torch.Generator) -> CollisionRates:
    """How often many other predicates agree with the needed one, by Monte Carlo.

    U_k = ⌊1 + L/8⌋/L; W_k = 4 log n/log((n/L) log n) for L < n log n, else 2L/n (both reconstructed).

    Source: Huang et al. 2025, section F.1.2.
    """
    given = as_action(action)
    integer("length", length, low=2)
    drawn, table = sample_chains(given, length, chains, rng=rng), torch.as_tensor(given.array)
    images = table[drawn.actions]  # (n, predicate, value)
    agree = images == images[:, 1:2]
    agree[:, 1] = False
    middle = drawn.values[:, 1].view(-1, 1, 1).expand(-1, length, 1)
    at_middle = agree.gather(-1, middle).squeeze(-1).sum(1)
    share, n = math.floor(1 + length / 8) / length, given.values
    few = length < n * math.log(n) and (n / length) * math.log(n) > 1
    load = 4 * math.log(n) / math.log((n / length) * math.log(n)) if few else 2 * length / n
    return CollisionRates(
        share,
        load,
        float((at_middle > share * length).double().mean()),
        float((drawn.values[:, 0] == drawn.values[:, 1]).double().mean()),
        float((agree.sum(1).amax(-1) > load).double().mean()),
    )
