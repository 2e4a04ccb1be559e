"""Which monomials a classifier's probability correlates with: the low-degree curriculum."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.registry import register

__all__ = ["MonomialReport", "monomial_correlations", "monomial_sets", "support_report"]

AT_ONCE = 1 << 14


def monomial_sets(
    support: Sequence[int], dimension: int, degree: int, *, rng: torch.Generator, rest: int = 100
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """All sets of `degree` coordinates inside the support, and `rest` random ones with a coordinate off it.

    Of degree 1 the rest are all coordinates off the support.
    """
    integer("degree", degree, low=1, high=dimension)
    inside = list(itertools.combinations(sorted(support), degree))
    off = [i for i in range(dimension) if i not in set(support)]
    require(len(off) >= 1, "support", list(support), "smaller than all coordinates")
    if degree == 1:
        return inside, [(i,) for i in off]
    chosen: set[tuple[int, ...]] = set()
    for _ in range(200 * rest):
        drawn = torch.randperm(dimension, generator=rng)[:degree].tolist()
        if not set(drawn) <= set(support):
            chosen.add(tuple(sorted(drawn)))
        if len(chosen) == rest:
            break
    return inside, sorted(chosen)


@register("lenses")
def monomial_correlations(
    probability: Callable[[Float[Tensor, "example feature"]], Float[Tensor, "example"]],
    dimension: int,
    sets: Sequence[Sequence[int]],
    *,
    rng: torch.Generator,
    examples: int = 100_000,
) -> Float[np.ndarray, "set"]:
    """|E[p(x) ∏_{i∈A} x_i]| for each set A, over fresh x ∈ {±1}^d; the noise is about 0.5/√examples.

    `probability` is that of one class (softmax at τ = 1), not a logit and not a prediction.
    Source: Panigrahi et al. 2024, thesis section 4.2.2.
    """
    total = torch.zeros(len(sets), dtype=torch.float64)
    done = 0
    while done < examples:
        n = min(AT_ONCE, examples - done)
        x = 1.0 - 2.0 * torch.randint(2, (n, dimension), generator=rng, device=rng.device)
        with torch.no_grad():
            p = probability(x).double()
        for index, chosen in enumerate(sets):
            total[index] += float(p @ x[:, list(chosen)].prod(1).double())
        done += n
    found: np.ndarray = (total / examples).abs().numpy()
    return found


@dataclass(frozen=True)
class MonomialReport:
    """|correlation| with monomials inside the support and with the rest."""

    inside: np.ndarray
    rest: np.ndarray

    @property
    def ratio(self) -> float:
        """Mean inside over mean of the rest."""
        return float(self.inside.mean() / max(float(self.rest.mean()), 1e-12))


@register("lenses")
def support_report(
    probability: Callable[[Tensor], Tensor],
    support: Sequence[int],
    dimension: int,
    *,
    degree: int = 1,
    seed: int = 0,
    examples: int = 100_000,
    device: str = "cpu",
) -> MonomialReport:
    """Correlations with all monomials of a degree inside the support and with others."""
    from sandlab.random import rng

    inside, rest = monomial_sets(support, dimension, degree, rng=rng(seed, "sets"))
    generator = rng(seed, "signs", device=device)
    found = monomial_correlations(probability, dimension, inside + rest, rng=generator, examples=examples)
    return MonomialReport(found[: len(inside)], found[len(inside) :])
