import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.lenses.flip_flop.attention_limits import LinearPositionHead, dilution_bound, largest_attention


@pytest.mark.parametrize(
    ("norm", "length", "value"),
    [(1, 256, 0.0282), (2, 256, 0.1764), (4, 256, 0.9212), (1, 4096, 0.0018), (2, 4096, 0.0132), (4, 4096, 0.4213)],
)
def test_the_dilution_bound_has_the_published_values(norm: float, length: int, value: float) -> None:
    assert dilution_bound(norm, length) == pytest.approx(value, abs=5e-5)


def test_no_head_of_bounded_norm_exceeds_the_dilution_bound() -> None:
    generator = sl.rng(0)
    for trial in range(200):
        length, norm = 8 + trial, 0.5 + trial / 50
        vectors = torch.randn(length, 6, generator=generator, dtype=torch.float64)
        vectors = vectors / vectors.norm(dim=1, keepdim=True)
        matrix = torch.randn(6, 6, generator=generator, dtype=torch.float64)
        matrix = matrix * norm / torch.linalg.matrix_norm(matrix, 2)
        assert largest_attention(vectors, matrix) <= dilution_bound(norm, length) + 1e-9


def test_the_dilution_bound_is_reached_by_opposite_vectors() -> None:
    vectors = torch.zeros(50, 3, dtype=torch.float64)
    vectors[:, 0] = -1.0
    vectors[-1, 0] = 1.0
    assert largest_attention(vectors, 2.0 * torch.eye(3, dtype=torch.float64)) == pytest.approx(dilution_bound(2.0, 50))


def random_head(seed: int) -> LinearPositionHead:
    generator = sl.rng(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return LinearPositionHead(draw(3, 4), draw(3, 4), draw(4), draw(4), scale=16.0)


def test_the_margin_formulas_equal_the_scores_of_random_heads() -> None:
    for seed in range(30):
        head = random_head(seed)
        for length in (3, 10, 77):
            once = torch.zeros(length, dtype=torch.long)
            once[0] = 1
            twice = once.clone()
            twice[-2] = 2
            first, second = head.scores(once), head.scores(twice)
            assert float(first[0] - first[-1]) == pytest.approx(float(head.first_margin(length)), abs=1e-11)
            assert float(second[-2] - second[0]) == pytest.approx(float(head.second_margin(length)), abs=1e-11)


def test_predicted_failure_lengths_are_those_of_hard_attention() -> None:
    for seed in range(12):
        head = random_head(seed)
        assert head.failure_lengths(longest=120) == head.measured_failure_lengths(longest=120)


@pytest.mark.parametrize(("curvature", "length"), [(0.0, 130), (0.5, 80), (1.0, 65), (2.0, 51)])
def test_a_positive_curvature_forgets_the_only_write(curvature: float, length: int) -> None:
    predicted, _ = LinearPositionHead.memory_unit(curvature).failure_lengths()
    assert predicted is not None and abs(predicted - length) <= 1


@pytest.mark.parametrize(("curvature", "length"), [(-0.2, 320), (-0.5, 128), (-1.0, 64)])
def test_a_negative_curvature_prefers_the_older_write(curvature: float, length: int) -> None:
    never, predicted = LinearPositionHead.memory_unit(curvature).failure_lengths()
    assert predicted is not None and abs(predicted - length) <= 1
    assert never is None


def test_without_curvature_the_stated_conditions_are_enough_for_every_length() -> None:
    for seed in range(200):
        head = random_head(seed)
        flat = LinearPositionHead(
            head.query_tokens,
            head.key_tokens,
            head.query_position - head.key_position * head.curvature / (head.key_position @ head.key_position),
            head.key_position,
            scale=16.0,
        )
        assert abs(flat.curvature) < 1e-12
        long = np.array([10**6, 10**7])
        lasting = (flat.first_margin(long) > 0).all() and (flat.second_margin(long) > 0).all()
        g1, g2, b = flat._drift(1), flat._drift(2), flat._lean
        assert lasting == (g1 > b and b + g2 - g1 > 0)


def test_the_head_of_a_linear_position_model_has_its_scores() -> None:
    model = sl.models.LinearPositionMemory(width=8, scale=8.0).double()
    tokens = torch.tensor([1, 0, 2, 0, 0])
    with sl.record(model, "pattern") as cache, torch.no_grad():
        model(tokens.unsqueeze(0))
    expected = LinearPositionHead.of(model).scores(tokens).softmax(0)
    assert torch.allclose(cache["pattern"][0, -1], expected, atol=1e-9)
