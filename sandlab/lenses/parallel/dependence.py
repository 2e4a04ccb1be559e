"""What a product of marginals loses: total correlation of blocks, consistency of conditionals."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float

from sandlab.decoding.parallel.site_models import SiteModel
from sandlab.registry import register
from sandlab.worlds.parallel.finite import FiniteLaw, enumerate_states

__all__ = [
    "ConditionalReport",
    "conditional_consistency",
    "dependency_gap",
    "gibbs_of_conditionals",
    "site_table",
    "total_correlation",
]

Table = Float[np.ndarray, "state site symbol"]


@register("lenses")
def total_correlation(law: FiniteLaw) -> float:
    """KL(p ‖ Π_i p_i) = Σ_i H(X_i) − H(X), the least KL(p ‖ q) over product laws q, in nats."""
    marginals = [law.marginal([site]) for site in range(law.sites)]
    return float(sum(_entropy(each) for each in marginals) - _entropy(law.probs))


@register("lenses")
def dependency_gap(law: FiniteLaw, mask: Bool[np.ndarray, "site"]) -> float:
    """Mean total correlation of X_K given X_−K: what the best product loses when a block is drawn at once."""
    visible = law.probs[law.groups(mask)].sum(1)
    given = law.conditional(mask)
    if given.shape[1] == law.symbols:
        return 0.0
    blocks = [total_correlation(FiniteLaw(law.symbols, row)) for row in given]
    return float(visible @ np.array(blocks))


def _entropy(probs: np.ndarray) -> float:
    seen = probs[probs > 0]
    return float(-(seen * np.log(seen)).sum())


def site_table(model: SiteModel) -> Table:
    """p(x_i | x_−i) of a model for every state and site."""
    states = torch.as_tensor(enumerate_states(model.sites, model.symbols))
    return model.site_probs(states).double().cpu().numpy()


@dataclass(frozen=True, eq=False)
class ConditionalReport:
    """Whether conditionals come from a joint law.

    cycle         the largest |log-ratio| around a square of states x → x^i → x^{ij} → x^j → x: 0 when a joint exists
    mean_cycle    its mean over squares
    stationary    the law that Gibbs sampling with random sites converges to
    error         mean total variation between these conditionals and those of a reference law
    amplified     total variation between the stationary law and the reference, over `error`
    """

    cycle: float
    mean_cycle: float
    stationary: Float[np.ndarray, "state"]
    error: float = 0.0
    amplified: float = 0.0


@register("lenses")
def conditional_consistency(table: Table, reference: FiniteLaw | None = None) -> ConditionalReport:
    """Compare cycles of conditional ratios; with a reference law, how much Gibbs sampling amplifies their errors."""
    cycles = _cycles(table)
    matrix = gibbs_of_conditionals(table)
    stationary = _stationary(matrix)
    report = ConditionalReport(float(np.abs(cycles).max()), float(np.abs(cycles).mean()), stationary)
    if reference is None:
        return report
    gaps = 0.5 * np.abs(table - reference.site_conditionals()).sum(-1).mean(1)
    error = float(reference.probs @ gaps)
    distance = 0.5 * float(np.abs(stationary - reference.probs).sum())
    return ConditionalReport(report.cycle, report.mean_cycle, stationary, error, distance / max(error, 1e-300))


def _cycles(table: Table) -> np.ndarray:
    """log-ratios around all squares that change site i to a and site j to b."""
    states, (count, sites, symbols) = enumerate_states(*table.shape[1:]), table.shape
    place = symbols ** np.arange(sites)[::-1]
    log, index = np.log(np.maximum(table, 1e-300)), np.arange(count)
    found = []
    for (i, j), a, b in itertools.product(itertools.combinations(range(sites), 2), range(symbols), range(symbols)):
        right = index + (a - states[:, i]) * place[i]
        down = index + (b - states[:, j]) * place[j]
        across = log[index, i, a] - log[index, i, states[:, i]] + log[right, j, b] - log[right, j, states[:, j]]
        around = log[index, j, b] - log[index, j, states[:, j]] + log[down, i, a] - log[down, i, states[:, i]]
        found.append(across - around)
    return np.concatenate(found)


def gibbs_of_conditionals(table: Table) -> Float[np.ndarray, "state state"]:
    """The chain that draws a random site again from the given conditionals, whether or not they have a joint law."""
    count, sites, symbols = table.shape
    states, place = enumerate_states(sites, symbols), symbols ** np.arange(sites)[::-1]
    matrix, index = np.zeros((count, count)), np.arange(count)
    for site in range(sites):
        for symbol in range(symbols):
            matrix[index, index + (symbol - states[:, site]) * place[site]] += table[:, site, symbol] / sites
    return matrix


def _stationary(matrix: np.ndarray) -> np.ndarray:
    """π with πP = π."""
    count = len(matrix)
    system = np.vstack([matrix.T - np.eye(count), np.ones(count)])
    return np.linalg.lstsq(system, np.append(np.zeros(count), 1.0), rcond=None)[0]
