"""Random trials of the lemmas behind the theorems on balance and pruning (Wen et al. 2023, appendix).

Each function tries one lemma, its docstring, on random draws. It returns the largest share of the bound that they
reach (1 would be attained) or, for networks that compute something exactly, their largest error.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sandlab.circuits import gadgets
from sandlab.circuits.dyck import balanced
from sandlab.lenses.dyck import lipschitz
from sandlab.lenses.dyck.bracket_attention import random_attention_variation, random_causal_attention
from sandlab.random import rng
from sandlab.worlds.dyck.language import Dyck


def softmax(draws: int) -> float:
    """No score moving by more than ε moves softmax by at most e^{2ε} − 1."""
    x, change = 3 * _normal(draws, 6, seed=0), 0.1 * (torch.rand(draws, 6, generator=rng(1), dtype=torch.float64) - 0.5)
    moved = ((x + change).softmax(1) - x.softmax(1)).abs().sum(1)
    bounds = torch.tensor([lipschitz.softmax_change(float(size)) for size in change.abs().amax(1)])
    return float((moved / bounds).max())


def floor_norm(draws: int) -> float:
    """LN_C is 2/C-Lipschitz."""
    worst = 0.0
    for size in (0.01, 0.1, 1.0):
        x, y = size * _normal(5, draws, seed=2), size * _normal(5, draws, seed=3)
        moved = (lipschitz.floor_norm(x, 0.2) - lipschitz.floor_norm(y, 0.2)).norm(dim=0)
        worst = max(worst, float((moved / (lipschitz.layer_norm_lipschitz(0.2) * (x - y).norm(dim=0))).max()))
    return worst


def mixing(draws: int) -> float:
    """Nearly right weights on nearly right values give a nearly right mixture."""
    worst = 0.0
    for seed in range(draws):
        values, weights = _normal(5, 7, seed=seed, name="v"), _normal(7, 7, seed=seed, name="w").softmax(0)
        near_values = values + 0.01 * _normal(5, 7, seed=seed, name="near v")
        near_weights = (weights.log() + 0.02 * _normal(7, 7, seed=seed, name="near w")).softmax(0)
        weight_error = float((near_weights - weights).abs().sum(0).max())
        bound = weight_error * lipschitz.column_norm(values) + lipschitz.column_norm(near_values - values)
        worst = max(worst, lipschitz.column_norm(near_values @ near_weights - values @ weights) / bound)
    return worst


def attention(draws: int) -> float:
    """An attention module is 200L²/C-Lipschitz."""
    worst = 0.0
    for seed in range(draws):
        key, query, value = (_bounded(4, seed, name) for name in ("key", "query", "value"))
        x = _normal(4, 6, seed=seed, name="x")
        x = x * 4 / lipschitz.column_norm(x)
        y = x + 1e-3 * _normal(4, 6, seed=seed, name="y")
        y = y * min(1.0, 4 / lipschitz.column_norm(y))
        moved = _attend(x, key, query, value) - _attend(y, key, query, value)
        worst = max(worst, lipschitz.column_norm(moved) / lipschitz.column_norm(x - y))
    return worst / lipschitz.attention_lipschitz(1.0, 0.3)


def overwhelming(draws: int) -> float:
    """A common part of length (4/ε + 1)·max(‖a‖, ‖b‖) makes directions agree to ε."""
    worst = 0.0
    for accuracy in (0.5, 0.1, 0.01):
        common, first, second = (_normal(20 * draws, 4, seed=4, name=name) for name in ("common", "first", "second"))
        largest = torch.maximum(first.norm(dim=1), second.norm(dim=1))
        common = common * (lipschitz.overwhelming_norm(accuracy) * largest / common.norm(dim=1)).unsqueeze(1)
        units = [(common + part) / (common + part).norm(dim=1, keepdim=True) for part in (first, second)]
        worst = max(worst, float((units[0] - units[1]).norm(dim=1).max()) / accuracy)
    return worst


def composition(draws: int) -> float:
    """Errors of composed maps add up to ε₁λ₂ + ε₂λ₁ + ε₁ε₂."""
    return _composed(draws, 3.0, 0.2)


def composition_printed(draws: int) -> float:
    """As printed, with the two maps' constants swapped."""
    return _composed(draws, 0.2, 3.0)


def padding(draws: int) -> float:
    """The norm of a padded centred vector is the padded norm."""
    x, zeros = _normal(6, 4, seed=5), torch.zeros(3, 4, dtype=torch.float64)
    x = x - x.mean(0)
    padded = torch.cat([lipschitz.floor_norm(x, 1e-9), zeros])
    return float((lipschitz.floor_norm(torch.cat([x, zeros]), 1e-9) - padded).abs().max())


def look_up(draws: int) -> float:
    """A table of n points is a ReLU network of width 2n."""
    points, values = _normal(17, 5, seed=6), _normal(17, 3, seed=7)
    return float((gadgets.look_up(points, values)(points) - values).abs().max())


def indexing(draws: int) -> float:
    """So is the choice of an entry by its number."""
    x = 2.5 * torch.rand(draws, 7, generator=rng(8), dtype=torch.float64)
    y = torch.randint(1, 8, (draws, 1), generator=rng(9))
    return float((gadgets.indexing(7, 2.5)(torch.cat([x, y.double()], 1)) - x.gather(1, y - 1)).abs().max())


def hot_index(draws: int) -> float:
    """So is the index of the one large entry."""
    index = torch.randint(6, (draws, 1), generator=rng(10))
    size = 1.5 + torch.rand(draws, 1, generator=rng(11), dtype=torch.float64)
    x = torch.zeros(draws, 6, dtype=torch.float64).scatter_(1, index, size)
    return float((gadgets.hot_index(6, 1.5)(x) - index - 1).abs().max())


def select(draws: int) -> float:
    """So is the choice of a network by its number, with spacing 2M."""
    return _selected(2.0)


def select_printed(draws: int) -> float:
    """The same with the printed spacing M."""
    return _selected(1.0)


def linear(draws: int) -> float:
    """So is a linear map."""
    weight, x = _normal(4, 6, seed=13), _normal(100, 6, seed=14)
    return float((gadgets.linear_as_relu(weight)(x) - x @ weight.mT).abs().max())


def zero_head(draws: int) -> float:
    """With a zero read-out the output does not depend on attention."""
    model = balanced.zero_head(balanced.balanced_dyck(scores=balanced.random_balanced_scores(2, 4, rng=rng(15))))
    with torch.no_grad():
        return float(model.probs(Dyck(length=40).sample(20, rng=rng(16)).inputs).abs().max())


def random_maps(seed: int) -> float:
    """Relative difference of 2000 pairs of random maps from 4(H_{N+1} − 1) − 2H_N, mean over N = 15, 16, 19, 20."""
    differences = []
    for length in (15, 16, 19, 20):
        maps = random_causal_attention(4000, length, rng=rng(seed, "maps", length))
        measured = float((maps[:2000] - maps[2000:]).square().sum((-1, -2)).mean())
        differences.append(measured / random_attention_variation(length) - 1)
    return sum(differences) / len(differences)


def _normal(*shape: int, seed: int, name: str = "") -> Tensor:
    return torch.randn(*shape, generator=rng(seed, name), dtype=torch.float64)


def _bounded(size: int, seed: int, name: str) -> Tensor:
    """A random matrix of spectral norm 1."""
    matrix = _normal(size, size, seed=seed, name=name)
    return matrix / torch.linalg.matrix_norm(matrix, 2)


def _attend(x: Tensor, key: Tensor, query: Tensor, value: Tensor) -> Tensor:
    """LN_C(W_V X σ(mask + (W_K X)ᵀ W_Q X)) with C = 0.3; columns are positions."""
    scores = (key @ x).mT @ (query @ x)
    scores = scores.masked_fill(torch.ones_like(scores).tril(-1).bool(), -torch.inf)
    return lipschitz.floor_norm(value @ x @ scores.softmax(0), 0.3)


def _composed(draws: int, first_constant: float, second_constant: float) -> float:
    """Largest share of the composition bound; the maps have very different constants, so that swapping matters."""
    worst = 0.0
    for seed in range(draws):
        first, second = 3.0 * _bounded(4, seed, "g1"), 0.2 * _bounded(4, seed, "g2")
        near = [first + 1e-3 * _normal(4, 4, seed=seed, name="f1"), second + 0.1 * _normal(4, 4, seed=seed, name="f2")]
        e1, e2 = (float(torch.linalg.matrix_norm(f - g, 2)) for f, g in zip(near, (first, second)))
        error = float(torch.linalg.matrix_norm(near[1] @ near[0] - second @ first, 2))
        worst = max(worst, error / lipschitz.composition_error(e1, e2, first_constant, second_constant))
    return worst


def _selected(spacing: float) -> float:
    """Largest error of a network that chooses between five random ones, at a spacing in units of M."""
    first = [(_normal(4, 3, seed=k, name="in") / 4, _normal(4, seed=k, name="b1") / 4) for k in range(5)]
    second = [(_normal(1, 4, seed=k, name="out"), _normal(1, seed=k, name="b2")) for k in range(5)]
    networks = [gadgets.Network((w1, w2), (b1, b2)) for (w1, b1), (w2, b2) in zip(first, second)]
    x = _normal(400, 3, seed=12).clamp(-2, 2)
    largest = max(1.0, *(float((x @ weight.mT + bias).abs().max()) for weight, bias in first))
    chosen, worst = gadgets.select_network(networks, largest, spacing=spacing), 0.0
    for number, network in enumerate(networks, start=1):
        numbered = torch.cat([torch.full((400, 1), float(number), dtype=torch.float64), x], 1)
        worst = max(worst, float((chosen(numbered) - network(x)).abs().max()))
    return worst
