"""Closed forms of the one-layer transformer on the binary chain, against independent computation."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import integrate, optimize

from sandlab.errors import BadInput
from sandlab.learning.markov.one_layer import (
    SADDLE,
    SADDLE_ENERGY,
    OneLayerMarkovTheory,
    flow_energy,
    flow_gain,
)
from sandlab.random import rng

CHAINS = [(0.2, 0.3), (0.5, 0.8), (0.1, 0.1), (0.9, 0.9), (0.7, 0.25), (0.3, 0.9)]


def numbers(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def kernel(p: float, q: float) -> np.ndarray:
    return np.array([[1 - p, p], [q, 1 - q]])


def expected_loss(p: float, q: float, zero: float, one: float) -> float:
    """E[−log P(x₂ | x₁)] by enumerating both tokens, for log-odds `zero` after a 0 and `one` after a 1."""
    probs = np.linalg.matrix_power(kernel(p, q), 500)[0]
    total = 0.0
    for first, second in itertools.product((0, 1), repeat=2):
        odds = one if first else zero
        probability = 1 / (1 + math.exp(-odds))
        weight = probs[first] * kernel(p, q)[first, second]
        total -= weight * math.log(probability if second else 1 - probability)
    return total


@pytest.mark.parametrize(
    ("p", "q", "marginal", "optimal"),
    [
        (0.2, 0.3, 0.673012, 0.544587),
        (0.5, 0.8, 0.666278, 0.619015),
        (0.1, 0.1, 0.693147, 0.325083),
        (0.9, 0.9, 0.693147, 0.325083),
    ],
)
def test_losses_of_the_marginal_and_of_the_kernel_are_those_of_enumeration_and_of_the_tutorial(p, q, marginal, optimal):
    theory = OneLayerMarkovTheory(p, q)
    odds = math.log(p / q)
    assert theory.marginal_loss == pytest.approx(expected_loss(p, q, odds, odds), abs=1e-12)
    best = expected_loss(p, q, math.log(p / (1 - p)), math.log((1 - q) / q))
    assert theory.optimal_loss == pytest.approx(best, abs=1e-12)
    assert theory.marginal_loss == pytest.approx(marginal, abs=1e-6)
    assert theory.optimal_loss == pytest.approx(optimal, abs=1e-6)


@pytest.mark.parametrize(("p", "q"), CHAINS)
def test_the_slope_at_gain_zero_is_the_variance_times_p_plus_q_minus_one(p, q):
    theory = OneLayerMarkovTheory(p, q)
    step = 1e-4
    losses = theory.loss(numbers(-step, step))
    assert theory.switching_slope == pytest.approx(float(losses[1] - losses[0]) / (2 * step), abs=1e-7)
    assert theory.switching_slope == pytest.approx(theory.ones * (1 - theory.ones) * (p + q - 1), abs=1e-15)
    assert theory.switching_slope == pytest.approx(float(theory.slope(numbers(0.0))), abs=1e-12)


def test_the_tutorials_values_of_that_slope():
    found = [OneLayerMarkovTheory(p, q).switching_slope for p, q in ((0.2, 0.3), (0.5, 0.8), (0.9, 0.9))]
    assert found == pytest.approx([-0.12, 0.0710059, 0.2], abs=1e-6)


@pytest.mark.parametrize(("p", "q"), CHAINS)
@pytest.mark.parametrize("gain", [-40.0, -6.0, -0.5, 0.0, 1.3, 8.0, 40.0])
def test_the_best_offset_is_where_a_one_dimensional_minimisation_ends(p, q, gain):
    theory = OneLayerMarkovTheory(p, q)
    found = float(theory.best_offset(numbers(gain)))
    result = optimize.minimize_scalar(
        lambda zero: float(theory.loss(numbers(gain), numbers(zero))), bounds=(-80, 80), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    assert float(theory.loss(numbers(gain))) <= result.fun + 1e-12
    if abs(gain) <= 8:  # beyond, the loss is flat to rounding around its minimum
        assert found == pytest.approx(result.x, abs=1e-5)


def test_the_best_offset_is_the_printed_formula():
    for p, q in CHAINS:
        gain = numbers(-3.0, -0.2, 0.0, 0.9, 4.0)
        root = ((p - q) ** 2 + 4 * p * q * gain.exp()).sqrt()
        printed = ((p - q + root) / (2 * q * gain.exp())).log()
        torch.testing.assert_close(OneLayerMarkovTheory(p, q).best_offset(gain), printed, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("p", "q"), CHAINS)
def test_the_loss_is_that_of_enumeration_and_its_slope_is_its_derivative(p, q):
    theory = OneLayerMarkovTheory(p, q)
    for gain in (-2.0, 0.3, 1.7):
        zero = float(theory.best_offset(numbers(gain)))
        assert float(theory.loss(numbers(gain))) == pytest.approx(expected_loss(p, q, zero, zero + gain), abs=1e-12)
        change = theory.loss(numbers(gain + 1e-5)) - theory.loss(numbers(gain - 1e-5))
        assert float(theory.slope(numbers(gain))) == pytest.approx(float(change) / 2e-5, abs=1e-8)


@pytest.mark.parametrize(("p", "q"), CHAINS)
def test_the_best_gain_is_the_minimum_and_gives_the_entropy_rate(p, q):
    theory = OneLayerMarkovTheory(p, q)
    result = optimize.minimize_scalar(
        lambda gain: float(theory.loss(numbers(gain))), bounds=(-20, 20), method="bounded"
    )
    assert result.x == pytest.approx(theory.best_gain, abs=1e-4)
    assert float(theory.loss(numbers(theory.best_gain))) == pytest.approx(theory.optimal_loss, abs=1e-12)
    assert float(theory.best_offset(numbers(theory.best_gain))) == pytest.approx(math.log(p / (1 - p)), abs=1e-10)


@pytest.mark.parametrize(("p", "q"), CHAINS)
def test_cross_moments_are_those_of_matrix_powers(p, q):
    theory = OneLayerMarkovTheory(p, q)
    for lag in range(8):
        power = np.linalg.matrix_power(kernel(p, q), lag)
        moment = theory.ones * power[1, 1] - theory.ones**2
        assert theory.cross_moment(lag) == pytest.approx(moment, abs=1e-14)


def test_cross_moments_are_those_of_simulated_chains():
    theory = OneLayerMarkovTheory(0.3, 0.5)
    generator = rng(0)
    tokens = (torch.rand(200_000, generator=generator) < theory.ones).double()
    history = [tokens]
    for _ in range(3):
        up = torch.where(history[-1] == 1, 1 - theory.q, theory.p)
        history.append((torch.rand(200_000, generator=generator) < up).double())
    for lag in (1, 2, 3):
        products = (history[3] - theory.ones) * history[3 - lag]
        error = float(products.std()) / math.sqrt(len(products))
        assert theory.cross_moment(lag) == pytest.approx(float(products.mean()), abs=5 * error)


def test_the_velocity_is_minus_the_gradient_of_the_loss():
    theory = OneLayerMarkovTheory(0.4, 0.85)
    e = torch.randn(50, generator=rng(0), dtype=torch.float64, requires_grad=True)
    w = torch.randn(50, generator=rng(1), dtype=torch.float64, requires_grad=True)
    gain = e.square() * (1 + 2 * w * w.abs())
    gradients = torch.autograd.grad(theory.loss(gain).sum(), (e, w))
    velocity = theory.velocity(e.detach(), w.detach())
    torch.testing.assert_close(velocity[0], -gradients[0])
    torch.testing.assert_close(velocity[1], -gradients[1])


def test_the_gradient_of_the_energy_is_orthogonal_to_the_velocity():
    theory = OneLayerMarkovTheory(0.15, 0.45)
    e = torch.randn(50, generator=rng(2), dtype=torch.float64, requires_grad=True)
    w = torch.randn(50, generator=rng(3), dtype=torch.float64, requires_grad=True)
    uphill = torch.autograd.grad(flow_energy(e, w).sum(), (e, w))
    velocity = theory.velocity(e.detach(), w.detach())
    inner = uphill[0] * velocity[0] + uphill[1] * velocity[1]
    assert inner.abs().max() < 1e-12


def test_energies_of_the_tutorials_starts_and_of_the_saddle():
    found = flow_energy(numbers(0.1, 0.1, 0.0), numbers(0.1, -1.0, SADDLE))
    assert found.tolist() == pytest.approx([2.3026, -0.990, SADDLE_ENERGY], abs=1e-3)
    assert pytest.approx(-0.8466, abs=1e-4) == SADDLE_ENERGY


@pytest.mark.parametrize(("p", "q", "reached"), [(0.2, 0.3, [1, 1, 0, 0]), (0.8, 0.7, [0, 0, 1, 1])])
def test_the_flow_ends_where_the_tutorials_four_starts_end_and_conserves_energy(p, q, reached):
    theory = OneLayerMarkovTheory(p, q)
    e, w = numbers(0.1, 0.1, 0.1, 0.5), numbers(0.1, -0.1, -1.0, -1.5)
    flow = theory.flow(e, w)
    assert flow.reached.int().tolist() == reached
    expected = [theory.best_gain if hit else 0.0 for hit in reached]
    assert flow.gain.tolist() == pytest.approx(expected, abs=1e-3)
    assert theory.best_gain == pytest.approx(2.23359 * (1 if p + q < 1 else -1), abs=1e-5)
    assert flow.drift.max() < 1e-4
    assert theory.escapes(e, w).int().tolist() == reached


@pytest.mark.gate(1)
@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.8, 0.7)])
def test_the_flow_agrees_with_scipys_integrator(p, q):
    theory = OneLayerMarkovTheory(p, q)

    def field(_, state):
        velocity = theory.velocity(numbers(state[0]), numbers(state[1]))
        return [float(part) for part in velocity]

    for start in ((0.4, 0.3), (0.8, -0.6), (-0.7, -1.2)):
        ours = theory.flow(numbers(start[0]), numbers(start[1]))
        theirs = integrate.solve_ivp(field, (0, 400), start, method="LSODA", rtol=1e-9, atol=1e-12)
        end = torch.tensor(theirs.y[:, -1])
        assert float(ours.gain) == pytest.approx(float(flow_gain(end[0], end[1])), abs=1e-4)


@pytest.mark.gate(2)
@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.1, 0.1), (0.8, 0.7), (0.9, 0.9)])
def test_basins_predicted_by_the_energy_are_those_of_the_flow(p, q):
    theory = OneLayerMarkovTheory(p, q)
    e, w = torch.rand(2, 3600, generator=rng(7), dtype=torch.float64) * 6 - 3
    clear = (flow_energy(e, w) - SADDLE_ENERGY).abs() > 0.05
    flow = theory.flow(e[clear], w[clear])
    assert torch.equal(flow.reached, theory.escapes(e[clear], w[clear]))
    assert flow.drift.max() < 1e-3


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.8, 0.7)])
@pytest.mark.parametrize("w", [-1.5, -0.5, 0.8])
def test_the_line_e_zero_consists_of_minima_and_maxima_as_the_signs_say(p, q, w):
    theory = OneLayerMarkovTheory(p, q)
    point = numbers(0.0, w).requires_grad_()
    hessian = torch.autograd.functional.hessian(lambda at: theory.loss(flow_gain(at[0], at[1])), point)
    sign = (p + q - 1) * (1 + 2 * w * abs(w))
    assert math.copysign(1, float(hessian[0, 0])) == math.copysign(1, sign)
    assert hessian[1].abs().max() < 1e-12, "w does nothing while e = 0"


def test_a_start_on_the_line_e_zero_stays_there_and_one_on_w_zero_keeps_w():
    theory = OneLayerMarkovTheory(0.2, 0.3)
    flow = theory.flow(numbers(0.0, 0.3), numbers(-1.0, 0.0), keep=10)
    assert (flow.e[:, 0] == 0).all()
    assert (flow.w[:, 1] == 0).all()
    assert flow.reached.tolist() == theory.escapes(numbers(0.0, 0.3), numbers(-1.0, 0.0)).tolist() == [False, True]


def test_probabilities_of_zero_or_one_are_refused():
    with pytest.raises(BadInput, match="strictly between"):
        OneLayerMarkovTheory(1.0, 0.5)


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.9, 0.9)])
def test_the_basin_on_a_grid_is_where_the_energy_says(p: float, q: float) -> None:
    basin = OneLayerMarkovTheory(p, q).basin(6, 3.0)
    assert basin.agreement == 1.0 and basin.reached.shape == (6, 6)
    assert 0 < int(basin.reached.sum()) < 36
