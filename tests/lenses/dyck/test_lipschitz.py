import torch

import sandlab as sl
from sandlab.lenses.dyck import lipschitz


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=sl.rng(seed), dtype=torch.float64)


def bounded(rows: int, columns: int, seed: int) -> torch.Tensor:
    matrix = draw(rows, columns, seed=seed)
    return matrix / torch.linalg.matrix_norm(matrix, 2)


def attention(
    x: torch.Tensor, key: torch.Tensor, query: torch.Tensor, value: torch.Tensor, floor: float
) -> torch.Tensor:
    scores = (key @ x).mT @ (query @ x)
    scores = scores.masked_fill(torch.ones_like(scores).tril(-1).bool(), -torch.inf)
    return lipschitz.floor_norm(value @ x @ scores.softmax(0), floor)


def test_softmax_never_moves_more_than_its_bound_and_the_bound_is_nearly_reached() -> None:
    worst = 0.0
    for seed in range(300):
        x = 3 * draw(6, seed=seed)
        change = 0.05 * (2 * torch.rand(6, generator=sl.rng(seed, "change"), dtype=torch.float64) - 1)
        moved = float((x.softmax(0) - (x + change).softmax(0)).abs().sum())
        worst = max(worst, moved / lipschitz.softmax_change(float(change.abs().max())))
    assert 0.3 < worst <= 1.0


def test_the_floored_norm_never_moves_more_than_its_bound() -> None:
    for seed in range(300):
        x, y = draw(5, 1, seed=seed), draw(5, 1, seed=seed + 1000)
        for size in (0.01, 0.3, 3.0):
            moved = (lipschitz.floor_norm(size * x, 0.2) - lipschitz.floor_norm(size * y, 0.2)).norm()
            assert float(moved) <= lipschitz.layer_norm_lipschitz(0.2) * float((size * (x - y)).norm()) + 1e-12


def test_the_norm_of_a_padded_centred_vector_is_the_padded_norm() -> None:
    x = draw(6, 4)
    x = x - x.mean(0)
    padded = torch.cat([x, torch.zeros(3, 4, dtype=torch.float64)])
    found = lipschitz.floor_norm(padded, 1e-9)
    assert torch.allclose(found[:6], lipschitz.floor_norm(x, 1e-9), atol=1e-14)
    assert float(found[6:].abs().max()) < 1e-14


def test_attention_outputs_move_less_than_the_stated_constant() -> None:
    radius, floor = 1.0, 0.3
    worst = 0.0
    for seed in range(200):
        key, query, value = (bounded(4, 4, seed=3 * seed + part) for part in range(3))
        x = draw(4, 6, seed=seed + 5000)
        x = x * 4 * radius / lipschitz.column_norm(x)
        y = x + 1e-3 * draw(4, 6, seed=seed + 9000)
        y = y * min(1.0, 4 * radius / lipschitz.column_norm(y))
        moved = lipschitz.column_norm(attention(x, key, query, value, floor) - attention(y, key, query, value, floor))
        worst = max(worst, moved / lipschitz.column_norm(x - y))
    assert worst <= lipschitz.attention_lipschitz(radius, floor)
    assert worst > 0.1


def test_mixing_with_nearly_right_weights_and_values_is_nearly_right() -> None:
    """‖BA − Pxσ‖₁₂ ≤ ε₁‖Px‖₁₂ + ε₂ when columns of A are within ε₁ (1-norm) of σ and of B within ε₂ of Px."""
    for seed in range(100):
        exact = draw(5, 7, seed=seed)
        weights = draw(7, 7, seed=seed + 500).softmax(0)
        near_values = exact + 0.01 * draw(5, 7, seed=seed + 900)
        near_weights = (weights.log() + 0.02 * draw(7, 7, seed=seed + 1300)).softmax(0)
        weight_error = float((near_weights - weights).abs().sum(0).max())
        value_error = lipschitz.column_norm(near_values - exact)
        error = lipschitz.column_norm(near_values @ near_weights - exact @ weights)
        assert error <= weight_error * lipschitz.column_norm(exact) + value_error + 1e-12


def test_a_large_enough_common_part_makes_directions_agree() -> None:
    for accuracy in (0.5, 0.1, 0.01):
        generator = sl.rng(int(1 / accuracy))
        common = torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
        first = torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
        second = torch.randn(20_000, 4, generator=generator, dtype=torch.float64)
        largest = torch.maximum(first.norm(dim=1), second.norm(dim=1))
        common = common * (lipschitz.overwhelming_norm(accuracy) * largest / common.norm(dim=1)).unsqueeze(1)
        directions = [(common + part) / (common + part).norm(dim=1, keepdim=True) for part in (first, second)]
        assert float((directions[0] - directions[1]).norm(dim=1).max()) <= accuracy


def test_errors_of_composed_maps_add_up_as_stated() -> None:
    for seed in range(100):
        g1, g2 = bounded(4, 4, seed) * 1.7, bounded(4, 4, seed + 400) * 0.6
        f1, f2 = g1 + 0.05 * draw(4, 4, seed=seed + 800), g2 + 0.05 * draw(4, 4, seed=seed + 1200)
        e1, e2 = (float(torch.linalg.matrix_norm(f - g, 2)) for f, g in ((f1, g1), (f2, g2)))
        error = float(torch.linalg.matrix_norm(f2 @ f1 - g2 @ g1, 2))
        assert error <= lipschitz.composition_error(e1, e2, 1.7, 0.6) + 1e-12
