"""The two constructions are right on every input tried, and the first breaks below its threshold."""

from __future__ import annotations

import itertools

import pytest
import torch

from sandlab.circuits.distillation.parity_transformers import (
    parity_by_selection,
    parity_by_uniform_attention,
    selection_threshold,
)
from sandlab.circuits.gadgets import Network, interpolate, tabulate
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.random import rng
from sandlab.worlds.distillation.parities import SparseParity


def correct(model: TheoryTransformer, world: SparseParity, tokens: torch.Tensor) -> float:
    answers = model(tokens)[:, -1].argmax(-1)
    return float((answers == world.label(1.0 - 2.0 * tokens)).double().mean())


@pytest.mark.parametrize("support", [3, (1, 4, 7), (8,), (0, 8)])
@pytest.mark.parametrize("build", [parity_by_selection, parity_by_uniform_attention])
def test_both_are_exact_on_all_words(build: object, support: int | tuple[int, ...]) -> None:
    every = torch.tensor(list(itertools.product([0, 1], repeat=9)))
    assert correct(build(9, support), SparseParity(9, support), every) == 1.0  # type: ignore[operator]


def test_the_published_size_is_solved_at_the_threshold_and_not_below() -> None:
    world = SparseParity(100, 6, "tokens")
    tokens = world.sample(1000, rng=rng(0)).inputs
    assert selection_threshold(100, 6) == pytest.approx(5.89, abs=0.005)
    exact = parity_by_selection(100, 6)
    assert correct(exact, world, tokens) == 1.0
    assert float((exact(tokens)[:, -1, 0].abs() - 1).abs().max()) < 1e-9
    weaker = parity_by_selection(100, 6, sharpness=selection_threshold(100, 6) - 1.5)
    assert 0.9 < correct(weaker, world, tokens) < 1.0
    assert correct(parity_by_selection(100, 6, sharpness=1.0), world, tokens) < 0.8


@pytest.mark.parametrize("inputs", [300, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("build", [parity_by_selection, parity_by_uniform_attention])
def test_the_published_size_is_solved_on_up_to_five_thousand_inputs(build: object, inputs: int) -> None:
    world = SparseParity(100, 6, "tokens")
    assert correct(build(100, 6), world, world.sample(inputs, rng=rng(1)).inputs) == 1.0  # type: ignore[operator]


def test_the_printed_query_also_finds_the_last_position_outside_the_support() -> None:
    """p_d = e₃ makes position d a key of its own query: the mean is over S and d, which the table cannot read."""
    every, chosen, k = torch.tensor(list(itertools.product([0, 1], repeat=9))), (1, 4, 7), 3
    sign = interpolate([j / k for j in range(k + 1)], [(-1.0) ** j for j in range(k + 1)])
    truth = (-1.0) ** every[:, chosen].sum(1)
    for seen, exact in ((chosen, True), ((*chosen, 8), False)):
        found = sign(every[:, seen].double().mean(1, keepdim=True))[:, 0].sign()
        assert bool((found == truth).all()) is exact


def test_the_printed_bias_of_lemma_11_leaves_no_unit_active() -> None:
    points = torch.tensor(list(itertools.product([-1, 1], repeat=4)))
    right = tabulate(points.numpy(), points.prod(1).numpy())
    first, second, third = right.biases
    printed = Network(right.weights, (first, second - 1, third))
    assert (second == -3).all()
    assert torch.equal(right(points.double())[:, 0], points.prod(1).double())
    assert not printed(points.double()).any()


def test_widths_and_norms_are_those_of_the_lemmas() -> None:
    k = 6
    first = interpolate([j / k for j in range(k + 1)], [(-1.0) ** j for j in range(k + 1)])
    assert first.widths == (4 * (k + 1),)
    (weight, bias), (last, _) = first.norms()
    assert (weight, last) == (pytest.approx(4 * k), 1.0)
    assert bias <= 4 * k + 2 + 1e-9
    points = torch.tensor(list(itertools.product([-1, 1], repeat=k))).numpy()
    assert tabulate(points, points.prod(1)).widths == (8 * k, 2**k)
