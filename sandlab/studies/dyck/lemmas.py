"""The lemmas behind the theorems, each tried on random draws; misprints are told apart from what is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sandlab import figures
from sandlab.circuits.dyck.balanced import balanced_dyck, random_balanced_scores, zero_head
from sandlab.circuits.dyck.relu_gadgets import ReluNetwork, hot_index, indexing, linear_as_relu, look_up, select_network
from sandlab.lenses.dyck.bracket_attention import random_attention_variation, random_causal_attention
from sandlab.lenses.dyck.lipschitz import (
    attention_lipschitz,
    column_norm,
    composition_error,
    floor_norm,
    layer_norm_lipschitz,
    overwhelming_norm,
    softmax_change,
)
from sandlab.random import rng
from sandlab.studies.claims import Below, Claim
from sandlab.studies.dyck.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.dyck.language import Dyck


@dataclass(frozen=True)
class Settings:
    """Random draws of each lemma."""

    seeds: int = 1
    draws: int = 300


def _bound(name: str, statement: str, where: str, quantity: str, held: bool = True) -> Claim:
    return Claim(name, statement, f"{SOURCE}, {where}", quantity, Below(1.0 + 1e-9), exact=True, held=held)


def _gadget(name: str, statement: str, where: str, held: bool = True) -> Claim:
    return Claim(
        name, statement, f"{SOURCE}, {where}", "largest error over random inputs", Below(1e-9), exact=True, held=held
    )


CLAIMS = [
    _bound(
        "softmax",
        "No score moving by more than ε moves softmax by at most e^{2ε} − 1.",
        "Lemma 31",
        "largest share of the bound",
    ),
    _bound("floor-norm", "LN_C is 2/C-Lipschitz.", "Lemma 33", "largest share of the bound"),
    _bound(
        "mixing",
        "Nearly right weights on nearly right values give a nearly right mixture.",
        "Lemma 34",
        "largest share of the bound",
    ),
    _bound("attention", "An attention module is 200L²/C-Lipschitz.", "Lemma 36", "largest share of the bound"),
    _bound(
        "overwhelming",
        "A common part of length (4/ε + 1)·max(‖a‖, ‖b‖) makes directions agree to ε.",
        "Lemma 24",
        "largest share of ε",
    ),
    _bound(
        "composition", "Errors of composed maps add up to ε₁λ₂ + ε₂λ₁ + ε₁ε₂.", "Lemma 28", "largest share of the bound"
    ),
    _bound(
        "composition-printed",
        "As printed, with the two maps' constants swapped.",
        "Lemma 28",
        "largest share of ε₁λ₁ + ε₂λ₂ + ε₁ε₂",
        held=False,
    ),
    _gadget("padding", "The norm of a padded centred vector is the padded norm.", "Lemma 35"),
    _gadget("look-up", "A table of n points is a ReLU network of width 2n.", "Lemma 38"),
    _gadget("indexing", "So is the choice of an entry by its number.", "Lemma 40"),
    _gadget("hot-index", "So is the place of the one large entry.", "Lemma 41"),
    _gadget("select", "So is the choice of a network by its number, with spacing 2M.", "Lemma 42"),
    _gadget("select-printed", "The same with the printed spacing M.", "Lemma 42", held=False),
    _gadget("linear", "So is a linear map.", "Lemma 43"),
    _gadget("zero-head", "With a zero read-out the output does not depend on attention.", "Proposition 6"),
    Claim(
        "random-maps",
        "Two random causal maps are 4(H_{N+1} − 1) − 2H_N apart.",
        f"{SOURCE}, footnote on the random baseline",
        "largest relative difference between closed form and 2000 pairs, N = 15, 16, 19, 20",
        Below(0.02),
        exact=True,
        paper="2.85 and 3.33",
    ),
]


@study(
    "dyck/lemmas",
    title="What the proofs stand on, drawn at random",
    source=f"{SOURCE}, appendix",
    quick=Settings(),
    full=Settings(draws=5000),
    claims=CLAIMS,
)
def lemmas(config: Settings, lab: Lab) -> Outcome:
    """Each inequality is tried on random draws and its largest share of the bound reported; each network is exact.

    Bars are how much of each bound random draws use: 1 would be attained. Two statements are also tried as printed:
    the composition lemma with the constants of the two maps swapped, and the selection network with spacing M instead
    of 2M; both fail, as they must.
    """
    shares = {
        "softmax": _softmax(config.draws),
        "floor-norm": _floor_norm(config.draws),
        "mixing": _mixing(config.draws),
        "attention": _attention(config.draws),
        "overwhelming": _overwhelming(20 * config.draws),
        **_composition(config.draws),
    }
    errors = {
        "padding": _padding(),
        "look-up": _look_up(),
        "indexing": _indexing(config.draws),
        "hot-index": _hot_index(config.draws),
        "select": _select(2.0),
        "select-printed": _select(1.0),
        "linear": _linear(),
        "zero-head": _zero_head(),
        "random-maps": max(_random_maps(length) for length in (15, 16, 19, 20)),
    }
    return Outcome({**shares, **errors}, {"bounds": _picture(shares)})


def _draw(*shape: int, seed: int, name: str = "") -> Tensor:
    return torch.randn(*shape, generator=rng(seed, name), dtype=torch.float64)


def _bounded(size: int, seed: int, name: str) -> Tensor:
    matrix = _draw(size, size, seed=seed, name=name)
    return matrix / torch.linalg.matrix_norm(matrix, 2)


def _softmax(draws: int) -> float:
    x, change = 3 * _draw(draws, 6, seed=0), 0.1 * (torch.rand(draws, 6, generator=rng(1), dtype=torch.float64) - 0.5)
    moved = ((x + change).softmax(1) - x.softmax(1)).abs().sum(1)
    bounds = torch.tensor([softmax_change(float(size)) for size in change.abs().amax(1)])
    return float((moved / bounds).max())


def _floor_norm(draws: int) -> float:
    worst = 0.0
    for size in (0.01, 0.1, 1.0):
        x, y = size * _draw(5, draws, seed=2), size * _draw(5, draws, seed=3)
        moved = (floor_norm(x, 0.2) - floor_norm(y, 0.2)).norm(dim=0)
        worst = max(worst, float((moved / (layer_norm_lipschitz(0.2) * (x - y).norm(dim=0))).max()))
    return worst


def _mixing(draws: int) -> float:
    worst = 0.0
    for seed in range(draws):
        values, weights = _draw(5, 7, seed=seed, name="v"), _draw(7, 7, seed=seed, name="w").softmax(0)
        near_values = values + 0.01 * _draw(5, 7, seed=seed, name="near v")
        near_weights = (weights.log() + 0.02 * _draw(7, 7, seed=seed, name="near w")).softmax(0)
        weight_error = float((near_weights - weights).abs().sum(0).max())
        bound = weight_error * column_norm(values) + column_norm(near_values - values)
        worst = max(worst, column_norm(near_values @ near_weights - values @ weights) / bound)
    return worst


def _attention(draws: int) -> float:
    worst = 0.0
    for seed in range(draws):
        key, query, value = (_bounded(4, seed, name) for name in ("key", "query", "value"))

        def output(x: Tensor, key: Tensor = key, query: Tensor = query, value: Tensor = value) -> Tensor:
            scores = (key @ x).mT @ (query @ x)
            scores = scores.masked_fill(torch.ones_like(scores).tril(-1).bool(), -torch.inf)
            return floor_norm(value @ x @ scores.softmax(0), 0.3)

        x = _draw(4, 6, seed=seed, name="x")
        x = x * 4 / column_norm(x)
        y = x + 1e-3 * _draw(4, 6, seed=seed, name="y")
        y = y * min(1.0, 4 / column_norm(y))
        worst = max(worst, column_norm(output(x) - output(y)) / column_norm(x - y))
    return worst / attention_lipschitz(1.0, 0.3)


def _overwhelming(draws: int) -> float:
    worst = 0.0
    for accuracy in (0.5, 0.1, 0.01):
        common, first, second = (_draw(draws, 4, seed=4, name=name) for name in ("common", "first", "second"))
        largest = torch.maximum(first.norm(dim=1), second.norm(dim=1))
        common = common * (overwhelming_norm(accuracy) * largest / common.norm(dim=1)).unsqueeze(1)
        units = [(common + part) / (common + part).norm(dim=1, keepdim=True) for part in (first, second)]
        worst = max(worst, float((units[0] - units[1]).norm(dim=1).max()) / accuracy)
    return worst


def _composition(draws: int) -> dict[str, float]:
    """Linear maps with very different constants, so that swapping them matters."""
    true, printed = 0.0, 0.0
    for seed in range(draws):
        first, second = 3.0 * _bounded(4, seed, "g1"), 0.2 * _bounded(4, seed, "g2")
        near = [first + 1e-3 * _draw(4, 4, seed=seed, name="f1"), second + 0.1 * _draw(4, 4, seed=seed, name="f2")]
        e1, e2 = (float(torch.linalg.matrix_norm(f - g, 2)) for f, g in zip(near, (first, second)))
        error = float(torch.linalg.matrix_norm(near[1] @ near[0] - second @ first, 2))
        true = max(true, error / composition_error(e1, e2, 3.0, 0.2))
        printed = max(printed, error / composition_error(e1, e2, 0.2, 3.0))
    return {"composition": true, "composition-printed": printed}


def _padding() -> float:
    x = _draw(6, 4, seed=5)
    x = x - x.mean(0)
    padded = torch.cat([x, torch.zeros(3, 4, dtype=torch.float64)])
    expected = torch.cat([floor_norm(x, 1e-9), torch.zeros(3, 4, dtype=torch.float64)])
    return float((floor_norm(padded, 1e-9) - expected).abs().max())


def _look_up() -> float:
    points, values = _draw(17, 5, seed=6), _draw(17, 3, seed=7)
    return float((look_up(points, values)(points) - values).abs().max())


def _indexing(draws: int) -> float:
    x = 2.5 * torch.rand(draws, 7, generator=rng(8), dtype=torch.float64)
    y = torch.randint(1, 8, (draws, 1), generator=rng(9))
    return float((indexing(7, 2.5)(torch.cat([x, y.double()], 1)) - x.gather(1, y - 1)).abs().max())


def _hot_index(draws: int) -> float:
    place = torch.randint(6, (draws, 1), generator=rng(10))
    size = 1.5 + torch.rand(draws, 1, generator=rng(11), dtype=torch.float64)
    x = torch.zeros(draws, 6, dtype=torch.float64).scatter_(1, place, size)
    return float((hot_index(6, 1.5)(x) - place - 1).abs().max())


def _select(spacing: float) -> float:
    networks = [
        ReluNetwork(
            (_draw(4, 3, seed=k, name="in") / 4, _draw(1, 4, seed=k, name="out")),
            (_draw(4, seed=k, name="b1") / 4, _draw(1, seed=k, name="b2")),
        )
        for k in range(5)
    ]
    x = _draw(400, 3, seed=12).clamp(-2, 2)
    largest = max(1.0, *(float((x @ net.weights[0].mT + net.biases[0]).abs().max()) for net in networks))
    chosen = select_network(networks, largest, spacing=spacing)
    worst = 0.0
    for number, network in enumerate(networks, start=1):
        asked = torch.cat([torch.full((400, 1), float(number), dtype=torch.float64), x], 1)
        worst = max(worst, float((chosen(asked) - network(x)).abs().max()))
    return worst


def _linear() -> float:
    weight, x = _draw(4, 6, seed=13), _draw(100, 6, seed=14)
    return float((linear_as_relu(weight)(x) - x @ weight.mT).abs().max())


def _zero_head() -> float:
    model = zero_head(balanced_dyck(scores=random_balanced_scores(2, 4, rng=rng(15))))
    with torch.no_grad():
        return float(model.law(Dyck(length=40).sample(20, rng=rng(16)).inputs).abs().max())


def _random_maps(length: int) -> float:
    maps = random_causal_attention(4000, length, rng=rng(17))
    measured = float((maps[:2000] - maps[2000:]).square().sum((-1, -2)).mean())
    return abs(measured / random_attention_variation(length) - 1)


def _picture(shares: dict[str, Any]) -> Any:
    figure, (axis,) = figures.new(width=5.4, height=0.32 * len(shares) + 1.1)
    names = list(shares)
    axis.barh(names, [shares[name] for name in names], color=[figures.COLOURS[shares[name] > 1] for name in names])
    axis.axvline(1.0, color="#555555", linestyle=":")
    axis.set_xscale("log")
    axis.invert_yaxis()
    axis.set(xlabel="largest share of the bound that random draws reach")
    axis.grid(axis="y", visible=False)
    return figure
