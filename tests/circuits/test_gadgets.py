import itertools

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.circuits import chain, compose_functions, interpolate, softmax_error_bound, step_up, tabulate


def noisy(points, reach, seed):
    noise = torch.rand(20, *points.shape, generator=sl.rng(seed), dtype=torch.float64) * 2 - 1
    return points + reach * noise


@pytest.mark.parametrize("seed", range(5))
def test_interpolation_is_exact_up_to_a_quarter_of_the_gap(seed):
    random = np.random.default_rng(seed)
    points = np.unique(random.integers(-50, 50, 20)) * 0.5
    values = random.normal(size=(len(points), 3))
    network = interpolate(points, values)
    gap = np.diff(points).min()
    inputs = noisy(torch.as_tensor(points)[:, None], gap / 4, seed)
    assert (network(inputs) - torch.as_tensor(values)).abs().max() < 1e-10
    assert network.widths == (4 * len(points),)
    (w1, b1), (w2, b2) = network.norms()
    assert w1 == 4 / gap and b1 == pytest.approx(4 * abs(points).max() / gap + 2)
    assert w2 == abs(values).max() and b2 == 0


@pytest.mark.parametrize("seed", range(5))
def test_tables_of_vectors_are_exact_up_to_a_quarter_and_zero_elsewhere(seed):
    random = np.random.default_rng(seed)
    grid = np.array(list(itertools.product(range(3), range(4), range(2))))
    listed = random.permutation(len(grid))[:10]
    values = random.normal(size=(10, 2))
    network = tabulate(grid[listed], values)
    inputs = noisy(torch.as_tensor(grid[listed]).double(), 0.25, seed)
    assert (network(inputs) - torch.as_tensor(values)).abs().max() < 1e-10
    others = torch.as_tensor(np.delete(grid, listed, 0)).double()
    assert network(others).abs().max() == 0


def test_the_printed_bias_of_the_table_never_fires():
    points = np.array(list(itertools.product(range(2), repeat=3)))
    network = tabulate(points, np.ones(8))
    network.biases[1][:] = -3.0
    assert network(torch.as_tensor(points).double()).abs().max() == 0


def test_the_step_survives_half_a_gap_and_the_printed_one_does_not():
    gap = 0.25
    inputs = noisy(torch.tensor([[-3 * gap], [-gap], [gap], [2 * gap]], dtype=torch.float64), gap / 2, 0)
    expected = torch.tensor([[0.0], [0.0], [1.0], [1.0]], dtype=torch.float64)
    assert (step_up(gap)(inputs) - expected).abs().max() < 1e-12
    assert step_up(gap).norms() == [(1 / gap, 0.5), (1.0, 0.0)]
    printed = lambda x: max((x + gap) / (2 * gap), 0) - max((x - gap) / (2 * gap), 0)  # noqa: E731
    assert printed(gap - gap / 4) == 0.875


@pytest.mark.parametrize("size", [2, 3])
def test_all_pairs_of_small_functions_compose(size):
    functions = torch.tensor(list(itertools.product(range(1, size + 1), repeat=size)))
    check_composition(size, functions.repeat_interleave(len(functions), 0), functions.repeat(len(functions), 1))


@pytest.mark.parametrize("size", [4, 6, 8])
def test_random_functions_compose(size):
    g, f = (torch.randint(1, size + 1, (300, size), generator=sl.rng(size, name)) for name in "gf")
    check_composition(size, g, f)


def check_composition(size, g, f):
    network = compose_functions(size)
    expected = f.gather(1, g - 1)
    assert (network(torch.cat([g, f], 1).double()) - expected).abs().max() < 1e-9
    assert network.widths == (4 * size**2 + size, size**2)
    assert [bias for _, bias in network.norms()][:2] == [4 * size + 2, size]
    assert max(weight for weight, _ in network.norms()) == max(size, 4)


def test_chained_networks_compute_one_after_the_other():
    random = np.random.default_rng(0)
    first = interpolate(np.arange(5), random.integers(0, 4, (5, 2)))
    second = tabulate(np.array(list(itertools.product(range(4), repeat=2))), random.normal(size=(16, 3)))
    x = torch.arange(5, dtype=torch.float64)[:, None]
    assert torch.allclose(chain(first, second)(x), second(first(x)))


@pytest.mark.parametrize("margin", [1.0, 5.0, 20.0])
def test_softmax_is_close_to_the_largest_score(margin):
    """‖softmax(z) − e‖₁ ≤ 2T e^{−γ} when the largest of T scores leads by γ (Lemma 13)."""
    scores = torch.randn(200, 30, generator=sl.rng(0), dtype=torch.float64)
    best = scores.argmax(1)
    scores[torch.arange(200), best] = scores.topk(2, 1).values[:, 1] + margin
    error = (scores.softmax(1) - torch.nn.functional.one_hot(best, 30)).abs().sum(1)
    assert (error <= softmax_error_bound(30, margin)).all()


@pytest.mark.parametrize("count", [2, 3, 8, 100])
def test_points_on_the_circle_are_separated_by_the_corrected_bound_only(count):
    angle = 2 * torch.pi * torch.arange(count, dtype=torch.float64) / count
    points = torch.stack([angle.cos(), angle.sin()], 1)
    products = points @ points.mT - 2 * torch.eye(count)
    largest = float(products.max())
    assert largest == pytest.approx(np.cos(2 * np.pi / count)) and largest <= 1 - 8 / count**2 + 1e-12
    if count >= 8:
        assert largest > 1 - 2 * np.pi**2 / count**2


def test_a_residual_is_two_rectifiers():
    x = torch.randn(100, generator=sl.rng(0), dtype=torch.float64)
    assert (x.relu() - (-x).relu() == x).all()
