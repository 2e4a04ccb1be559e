"""Hessian spectra: exact, Lanczos and numpy agree."""

import numpy as np
import pytest
import torch
from torch import nn

from sandlab.errors import BadInput
from sandlab.lenses import hessian_matrix, hessian_product, hessian_spectrum, lanczos
from sandlab.lenses._flat import FlatLoss
from sandlab.models import Transformer
from sandlab.models.base import seeded
from sandlab.random import rng
from sandlab.worlds.base import Batch


def problem(**options) -> tuple[Transformer, Batch]:
    with seeded(1):
        settings = {"vocab": 2, "length": 5, "layers": 1, "width": 3, "mlp_width": 4, "init_std": 0.7, **options}
        model = Transformer(**settings).double()
    tokens = torch.randint(2, (12, 6), generator=rng(0))
    return model, Batch(tokens[:, :-1], tokens[:, 1:], torch.ones(12, 5, dtype=torch.bool))


def test_the_hessian_of_a_quadratic_is_its_matrix():
    matrix = torch.randn(6, 6, generator=rng(0), dtype=torch.float64)
    symmetric = matrix + matrix.mT
    found = hessian_matrix(lambda x: 0.5 * x @ symmetric @ x, torch.randn(6, generator=rng(1), dtype=torch.float64))
    torch.testing.assert_close(found, symmetric)


def test_the_hessian_of_a_linear_function_is_zero():
    assert (hessian_matrix(lambda x: x.sum(), torch.zeros(3)) == 0).all()


def test_the_hessian_of_a_transformer_equals_finite_differences_of_its_gradient():
    model, batch = problem()
    flat = FlatLoss(model, batch)
    point = flat.point
    matrix = hessian_matrix(flat, point)
    direction = torch.randn(len(point), generator=rng(2), dtype=torch.float64)

    def gradient(at):
        at = at.requires_grad_()
        return torch.autograd.grad(flat(at), at)[0]

    step = 1e-5
    change = (gradient(point + step * direction) - gradient(point - step * direction)) / (2 * step)
    torch.testing.assert_close(matrix @ direction, change, rtol=1e-5, atol=1e-8)


def test_the_exact_spectrum_is_that_of_torchs_own_hessian():
    model, batch = problem()
    flat = FlatLoss(model, batch)
    torchs = torch.autograd.functional.hessian(flat, flat.point)
    spectrum = hessian_spectrum(model, batch)
    assert spectrum.exact
    np.testing.assert_allclose(spectrum.values, np.linalg.eigvalsh(torchs.numpy()), atol=1e-10)


def test_lanczos_with_as_many_steps_as_parameters_finds_the_whole_spectrum_with_multiplicity():
    model, batch = problem()
    size = model.parameter_count()
    exact = hessian_spectrum(model, batch, method="exact")
    found = hessian_spectrum(model, batch, method="lanczos", steps=size, rng=rng(5))
    np.testing.assert_allclose(found.values, exact.values, atol=1e-8)


def test_a_few_lanczos_steps_find_the_extreme_eigenvalues_and_the_spectral_mean():
    model, batch = problem(width=6, mlp_width=10)
    exact = hessian_spectrum(model, batch, method="exact")
    found = hessian_spectrum(model, batch, method="lanczos", steps=40, rng=rng(5))
    assert not found.exact and len(found.values) == 40
    np.testing.assert_allclose(found.values[[0, -1]], exact.values[[0, -1]], rtol=1e-3)
    assert found.weights.sum() == pytest.approx(1)


def test_lanczos_weights_give_the_moments_seen_from_the_start_vector():
    generator = rng(3)
    matrix = torch.randn(30, 30, generator=generator, dtype=torch.float64)
    matrix = matrix + matrix.mT
    start = torch.randn(30, generator=generator, dtype=torch.float64)
    found = lanczos(lambda v: matrix @ v, start, 8, rng=rng(0))
    unit = (start / start.norm()).numpy()
    for power in range(1, 15):
        expected = unit @ np.linalg.matrix_power(matrix.numpy(), power) @ unit
        assert (found.weights * found.values**power).sum() == pytest.approx(expected, rel=1e-8)


def test_lanczos_goes_on_when_an_eigenvalue_repeats():
    found = lanczos(lambda v: 2.0 * v, torch.ones(5, dtype=torch.float64), 5, rng=rng(0))
    np.testing.assert_allclose(found.values, 2.0)


def test_the_product_needs_no_matrix_and_agrees_with_it():
    model, batch = problem()
    flat = FlatLoss(model, batch, only="*mlp*")
    vector = torch.randn(sum(flat.sizes), generator=rng(4), dtype=torch.float64)
    torch.testing.assert_close(
        hessian_product(flat, flat.point)(vector), hessian_matrix(flat, flat.point) @ vector, atol=1e-12, rtol=1e-9
    )


def test_a_loss_may_be_any_function_of_the_model():
    model = nn.Linear(3, 1, bias=False).double()
    spectrum = hessian_spectrum(model, lambda m: (m.weight**2 * torch.tensor([1.0, 2.0, 3.0])).sum())
    np.testing.assert_allclose(spectrum.values, [2.0, 4.0, 6.0])


def test_a_fused_attention_is_made_explicit_for_second_derivatives():
    model, batch = problem()
    plain = hessian_spectrum(model, batch).values
    model.layers[0].attention.fused = True
    np.testing.assert_allclose(hessian_spectrum(model, batch).values, plain, atol=1e-12)
    assert model.layers[0].attention.fused


def test_lanczos_without_a_generator_is_refused():
    model, batch = problem()
    with pytest.raises(BadInput, match="rng"):
        hessian_spectrum(model, batch, method="lanczos")
