"""The networks of Wen et al. 2023: tables, indices, selection."""

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.circuits import gadgets


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=sl.rng(seed), dtype=torch.float64)


@pytest.mark.parametrize("size", [1, 2, 17])
def test_look_up_returns_the_stored_value_at_every_point(size: int) -> None:
    points, values = draw(size, 5), draw(size, 3, seed=1)
    table = gadgets.look_up(points, values)
    assert table.widths == (2 * size,)
    assert torch.allclose(table(points), values, atol=1e-9)


def test_look_up_refuses_two_equal_points() -> None:
    points = draw(3, 2)
    points[2] = points[0]
    with pytest.raises(sl.BadInput, match="distinct points"):
        gadgets.look_up(points, draw(3, 1))


def test_the_projection_basis_is_orthonormal_and_avoids_the_direction_and_the_ones() -> None:
    vectors = draw(6, 9)
    direction, basis = gadgets.projection_basis(vectors, rng=sl.rng(2))
    assert (vectors @ direction).abs().min() > 0
    assert torch.allclose(basis @ basis.mT, torch.eye(7).double(), atol=1e-12)
    assert torch.allclose(basis @ direction, torch.zeros(7).double(), atol=1e-12)
    assert torch.allclose(basis.sum(1), torch.zeros(7).double(), atol=1e-12)


def test_indexing_returns_the_entry_with_the_given_index() -> None:
    x = torch.rand(500, 7, generator=sl.rng(3), dtype=torch.float64) * 2.5
    y = torch.randint(1, 8, (500, 1), generator=sl.rng(4))
    found = gadgets.indexing(7, 2.5)(torch.cat([x, y.double()], 1))
    assert torch.allclose(found, x.gather(1, y - 1), atol=1e-12)


def test_the_hot_index_is_the_index_of_the_one_large_entry() -> None:
    index = torch.randint(6, (200, 1), generator=sl.rng(5))
    size = 1.5 + torch.rand(200, 1, generator=sl.rng(6), dtype=torch.float64)
    x = torch.zeros(200, 6, dtype=torch.float64).scatter_(1, index, size)
    assert torch.allclose(gadgets.hot_index(6, 1.5)(x), index.double() + 1, atol=1e-12)


def random_networks(count: int) -> list[gadgets.Network]:
    return [
        gadgets.Network((draw(4, 3, seed=k) / 4, draw(1, 4, seed=k + 50)), (draw(4, seed=k + 90) / 4, draw(1, seed=k)))
        for k in range(count)
    ]


def selection_error(spacing: float) -> float:
    networks = random_networks(5)
    x = draw(400, 3, seed=7).clamp(-2, 2)
    largest = max(
        1.0,
        max(float((x @ torch.as_tensor(n.weights[0]).mT + torch.as_tensor(n.biases[0])).abs().max()) for n in networks),
    )
    chosen = gadgets.select_network(networks, largest, spacing=spacing)
    worst = 0.0
    for number, network in enumerate(networks, start=1):
        inputs = torch.cat([torch.full((400, 1), float(number), dtype=torch.float64), x], 1)
        worst = max(worst, float((chosen(inputs) - network(x)).abs().max()))
    return worst


def test_the_chosen_network_answers_alone() -> None:
    assert selection_error(2.0) < 1e-9


def test_the_printed_spacing_lets_a_neighbouring_network_leak() -> None:
    assert selection_error(1.0) > 0.1


def test_a_linear_map_is_a_relu_network_of_twice_its_size() -> None:
    weight, x = draw(3, 5), draw(50, 5, seed=8)
    network = gadgets.linear_as_relu(weight)
    assert torch.allclose(network(x), x @ weight.mT, atol=1e-12)
    scaled = gadgets.linear_as_relu(2 * weight / torch.linalg.matrix_norm(weight, 2))
    assert all(np.linalg.norm(part, 2) <= 2 * 2**0.5 + 1e-9 for part in scaled.weights)
