"""The outer-product memory holds as many items as the theory says (C13)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from sandlab.circuits.knowledge.outer_product import outer_product_capacity, outer_product_memory


def accuracy(items: int, width: int, seed: int) -> float:
    model = outer_product_memory(torch.arange(items), width, seed=seed)
    with torch.no_grad():
        chosen = model(torch.arange(items).unsqueeze(-1)).argmax(-1).squeeze(-1)
    return float((chosen == torch.arange(items)).double().mean())


def test_the_capacities_are_the_printed_numbers_to_rounding() -> None:
    widths = (32, 64, 128)
    assert [outer_product_capacity(width, margin=4.0) for width in widths] == pytest.approx([36, 109, 349], abs=1)
    assert [outer_product_capacity(width) for width in widths] == pytest.approx([62, 194, 634], abs=1)


@pytest.mark.parametrize("width", [32, 64, 128])
def test_at_half_the_capacity_nearly_every_item_is_right_and_at_the_capacity_most_are(width: int) -> None:
    """Not always every one: besides N/d² the cross-talk has 2/d from the item and the competitor themselves."""
    half, full = (outer_product_capacity(width, margin=margin) for margin in (4.0, 2.0))
    assert 0.95 <= sum(accuracy(half, width, seed) for seed in range(6)) / 6 <= 1.0
    at = [accuracy(full, width, seed) for seed in range(3)]
    assert min(at) >= 0.80 and max(at) <= 0.96


def test_at_half_the_capacity_some_seeds_of_a_small_memory_err() -> None:
    assert min(accuracy(outer_product_capacity(32, margin=4.0), 32, seed) for seed in range(6)) < 1.0


def gaussian_accuracy(items: int, width: int) -> float:
    """P(the right score is largest) if scores were independent: 1 + N(0, N/d²) against N − 1 of N(0, N/d² + 2/d)."""
    own, other = np.sqrt(items / width**2), np.sqrt(items / width**2 + 2 / width)
    z = np.linspace(-8, 8, 4001)
    return float((norm.pdf(z) * norm.cdf((1 + own * z) / other) ** (items - 1)).sum() * (z[1] - z[0]))


@pytest.mark.parametrize(("width", "seeds", "error"), [(32, 12, 0.004), (64, 3, 0.002)])
def test_at_the_number_of_weights_as_little_is_right_as_chance_leaves(width: int, seeds: int, error: float) -> None:
    found = sum(accuracy(width**2, width, seed) for seed in range(seeds)) / seeds
    assert found == pytest.approx(gaussian_accuracy(width**2, width), abs=error)
    assert found < 0.02


@pytest.mark.slow
def test_at_half_the_number_of_weights_a_memory_of_128_keeps_one_in_a_hundred() -> None:
    found = sum(accuracy(8192, 128, seed) for seed in range(3)) / 3
    assert found == pytest.approx(gaussian_accuracy(8192, 128), abs=0.002) and found < 0.012


def test_the_weights_are_the_sum_of_outer_products() -> None:
    table = torch.tensor([2, 0, 1, 2])
    model = outer_product_memory(table, 5, answers=4)
    e, u = model.embedding.weight, model.unembedding.weight
    expected = sum(torch.outer(u[table[x]], e[x]) for x in range(4))
    assert torch.allclose(model.up_proj.weight, expected, atol=1e-15)
