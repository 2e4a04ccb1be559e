"""Descent on contrastive losses: step counts known beforehand, theorems' bounds, the search for a step size."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.nce.descent import newton_direction, optimise, steps_to_reach
from sandlab.learning.nce.problem import NCEProblem
from sandlab.learning.nce.search import RateSearch, search_rate
from sandlab.lenses.nce.annulus import annulus_points, in_annulus, steepest_point
from sandlab.lenses.nce.bounds import gd_step_lower_bound, ngd_step_upper_bound
from sandlab.lenses.nce.constants import curvature_range
from sandlab.worlds.nce.gaussians import DiagonalGaussians, GaussianMeans


def gaussian(distance: float) -> NCEProblem:
    return NCEProblem.of(GaussianMeans(float(distance)))


@pytest.mark.parametrize(("distance", "steps"), [(2, 56), (3, 452), (4, 4109)])
def test_gradient_descent_needs_the_known_number_of_steps(distance, steps):
    problem = gaussian(distance)
    rate = 1 / curvature_range(problem).largest
    counts, closest = steps_to_reach(problem, 0.1 * distance, "nce", "gd", rate=rate, limit=5000)
    assert counts.tolist() == [steps] and closest[0] <= 0.1 * distance


@pytest.mark.slow
def test_gradient_descent_needs_41763_steps_at_distance_five():
    problem = gaussian(5)
    rate = 1 / curvature_range(problem).largest
    assert steps_to_reach(problem, 0.5, "nce", "gd", rate=rate, limit=50_000)[0].tolist() == [41763]


@pytest.mark.parametrize(
    ("distance", "nce", "ence"), [(2, 14, 15), (3, 27, 27), (4, 88, 45), (5, 259, 57), (6, 577, 163)]
)
def test_normalised_descent_needs_the_known_number_of_steps(distance, nce, ence):
    problem = gaussian(distance)
    rates = torch.tensor([0.02, 0.05, 0.1, 0.2, 0.05 * distance])
    for kind, known in (("nce", nce), ("ence", ence)):
        counts, _ = steps_to_reach(problem, 0.1 * distance, kind, "ngd", rate=rates, limit=1000)
        # Overshooting paths zigzag, and rounding decides the side: eNCE at distance 5 takes 54 to 60 steps.
        assert min(count for count in counts if count >= 0) == pytest.approx(known, rel=0.06)


@pytest.mark.parametrize(("distance", "steps"), [(2, 3), (3, 5), (4, 6), (5, 8), (6, 10), (7, 12), (8, 15)])
def test_undamped_newton_with_the_exact_hessian_is_fast(distance, steps):
    problem = gaussian(distance)
    assert steps_to_reach(problem, 0.1 * distance, "nce", "newton", rate=1.0, limit=30)[0].tolist() == [steps]


def test_newton_direction_solves_the_linear_system():
    problem = gaussian(3)
    tau = torch.tensor([[1.0, 2.0], [2.5, 4.0]], dtype=torch.float64)
    direction = newton_direction(problem.population(), tau)
    solved = torch.linalg.solve(problem.hess(tau), problem.grad(tau).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(direction, solved, rtol=1e-8, atol=1e-10)


def test_one_gradient_step_is_the_textbook_update_for_every_method():
    problem = gaussian(2)
    start, gradient = problem.tau_q, problem.grad(problem.tau_q)
    moved = {
        "gd": start - 0.1 * gradient,
        "momentum": start - 0.1 * gradient,
        "ngd": start - 0.1 * gradient / gradient.norm(),
        "newton": start - 0.1 * torch.linalg.solve(problem.hess(start), gradient),
    }
    for method, expected in moved.items():
        path = optimise(problem, "nce", method, rate=0.1, steps=1)
        torch.testing.assert_close(path.tau[1], expected)


def test_heavy_ball_adds_nine_tenths_of_the_last_step():
    problem = gaussian(2)
    path = optimise(problem, "nce", "momentum", rate=0.1, steps=2)
    second = path.tau[1] - 0.1 * (problem.grad(path.tau[1]) + 0.9 * problem.grad(path.tau[0]))
    torch.testing.assert_close(path.tau[2], second)


def test_paths_computed_together_equal_paths_alone():
    problem = gaussian(3)
    together = optimise(
        problem, "ence", "ngd", rate=torch.tensor([0.05, 0.2]), steps=30, gradient="sample", rng=sl.rng(1)
    )
    for index, rate in enumerate((0.05, 0.2)):
        alone = optimise(problem, "ence", "ngd", rate=rate, steps=30, gradient="sample", rng=sl.rng(1))
        torch.testing.assert_close(together.tau[:, index], alone.tau)
        torch.testing.assert_close(together.best[:, index], alone.best)


def test_best_distance_is_the_running_minimum():
    path = optimise(gaussian(2), "nce", "ngd", rate=1.0, steps=40)
    assert np.allclose(path.best.numpy(), np.minimum.accumulate(path.distance.numpy()))
    assert float(path.distance[-1]) > float(path.best[-1])  # a constant normalised step never settles


def test_an_overflowing_path_stays_where_it_was():
    problem = gaussian(16)
    path = optimise(problem, "ence", "gd", rate=1e300, steps=5, gradient="sample", batch=10, rng=sl.rng(2))
    assert bool(torch.isfinite(path.tau).all())


@pytest.mark.parametrize(
    ("distance", "target", "constants", "steps"),
    [
        (1, 0.5, "theory", 82),
        (2, 0.5, "theory", 2402),
        (1, 0.5, "measured", 3),
        (2, 0.5, "measured", 15),
        (2, 0.25, "measured", 32),
        (3, 1 / 3, "measured", 67),
        (4, 0.25, "measured", 217),
    ],
)
def test_normalised_descent_on_ence_keeps_the_theorem_s_promise(distance, target, constants, steps):
    problem = gaussian(distance)
    bound = ngd_step_upper_bound(problem, target, "ence", constants=constants)
    counts, _ = steps_to_reach(problem, target, "ence", "ngd", rate=bound.rate, limit=int(min(bound.iterations, 5000)))
    assert 0 <= counts[0] <= bound.iterations
    assert counts[0] == pytest.approx(steps, rel=0.05, abs=1)


@pytest.mark.slow
@pytest.mark.parametrize(("distance", "target", "steps"), [(2, 0.25, 5286), (3, 1 / 3, 41177)])
def test_normalised_descent_keeps_the_promise_with_the_theory_s_small_steps(distance, target, steps):
    problem = gaussian(distance)
    bound = ngd_step_upper_bound(problem, target, "ence", constants="theory")
    counts, _ = steps_to_reach(problem, target, "ence", "ngd", rate=bound.rate, limit=60_000)
    assert counts[0] == steps <= bound.iterations


def test_normalised_descent_on_nce_keeps_the_promise_too():
    problem = gaussian(2)
    bound = ngd_step_upper_bound(problem, 0.5, "nce")
    counts, _ = steps_to_reach(problem, 0.5, "nce", "ngd", rate=bound.rate, limit=int(bound.iterations))
    assert 0 <= counts[0] <= bound.iterations


@pytest.mark.parametrize(("distance", "steps"), [(3, 3500), pytest.param(4, 18_000, marks=pytest.mark.slow)])
def test_steps_inside_the_annulus_exceed_the_lower_bound(distance, steps):
    problem, rate = NCEProblem.of(GaussianMeans(float(distance)), points=801), 0.1
    path = optimise(problem, "nce", "gd", rate=rate, steps=steps)
    inside = int(in_annulus(path.tau, distance).sum())
    assert inside >= math.exp(gd_step_lower_bound(problem, rate))


def test_one_gradient_step_cannot_jump_into_the_inner_ring():
    for distance in (4, 8, 16):
        problem = gaussian(distance)
        noise = torch.randn(150, 2, generator=sl.rng(3), dtype=torch.float64)
        spread = distance * torch.linspace(0.2, 4, 150, dtype=torch.float64).unsqueeze(-1)
        tau = problem.tau_star + spread * noise / noise.norm(dim=-1, keepdim=True)
        moved = tau - 0.01 * problem.grad(tau)
        assert bool((problem.distance(moved) > 0.15 * distance).all())


def test_distance_falls_by_no_more_than_the_radial_gradient():
    problem = gaussian(6)
    tau = annulus_points(6.0, radii=5, angles=40).flatten(0, 1)
    moved = tau - 0.1 * problem.grad(tau)
    drop = problem.distance(tau) - problem.distance(moved)
    assert float(drop.max()) <= 0.1 * math.exp(steepest_point(problem).log_gradient) + 1e-12


@pytest.mark.gate(2)
@pytest.mark.parametrize("kind", ["nce", "ence"])
@pytest.mark.parametrize("distance", [1, 2, 4])
def test_points_near_the_optimum_have_less_loss_than_points_outside(kind, distance):
    """L(τ* + γu) ≤ L(τ) for every unit u and every ‖τ − τ*‖ ≥ δ, γ = √(β_l/(β_u κ*))·δ."""
    problem, target = gaussian(distance), 1 / distance
    gamma = ngd_step_upper_bound(problem, target, kind).rate
    angle = torch.linspace(0, 2 * math.pi, 181, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()], -1)
    objective = problem.population(kind)
    inner = objective.log_loss(problem.tau_star + gamma * circle).max()
    outer = torch.stack([objective.log_loss(problem.tau_star + target * far * circle) for far in (1, 1.5, 3)]).min()
    assert float(inner) <= float(outer)


@pytest.mark.gate(2)
@pytest.mark.parametrize("kind", ["nce", "ence"])
@pytest.mark.parametrize("distance", [1, 2, 3])
def test_the_minimiser_of_a_large_sample_is_close_to_the_truth(kind, distance):
    problem = gaussian(distance)
    path = optimise(
        problem, kind, "newton", rate=1.0, steps=25, gradient="sample", batch=100_000, fresh=False, rng=sl.rng(4)
    )
    assert float(path.distance[-1]) < 0.1
    assert float(path.log_norm[-1]) < -20


def test_maximum_likelihood_error_shrinks_like_one_over_root_n():
    problem = gaussian(3)
    errors = {
        n: np.mean(
            [float(problem.distance(problem.maximum_likelihood(n, rng=sl.rng(seed)))) ** 2 for seed in range(200)]
        )
        for n in (100, 10_000)
    }
    # τ = [mean, mean²/2 + const]: squared error (1 + R²)/n to first order.
    assert errors[100] * 100 == pytest.approx(10, rel=0.3)
    assert errors[100] / errors[10_000] == pytest.approx(100, rel=0.4)


def test_search_prefers_by_the_rule_it_is_given():
    search = RateSearch(
        rates=np.array([0.1, 1.0, 10.0]),
        best=np.array([[[5.0, 3.0]], [[5.0, 2.0]], [[5.0, 4.0]]]),
        fresh=np.array([[0.2], [0.3], [0.1]]),
    )
    assert search.chosen() == 2 and search.chosen("distance") == 1 and search.chosen(cap=1.0) == 0
    assert search.chosen(lambda found: -found.rates) == 2
    with pytest.raises(BadInput, match="raise the cap"):
        search.chosen(cap=0.01)
    with pytest.raises(BadInput, match="rule must be one of"):
        search.chosen("fresh")


def test_ordering_of_the_methods_in_one_dimension():
    problem = gaussian(16)
    grid = (0.01, 0.1, 0.3, 1, 1.5, 2, 3, 5, 10, 30, 100)
    final = {}
    for kind, method in (("nce", "gd"), ("nce", "ngd"), ("ence", "ngd")):
        search = search_rate(problem, kind, method, rates=grid, seeds=range(5))
        final[kind, method] = search.best[search.chosen(), :, -1].mean()
    assert final["ence", "ngd"] < final["nce", "ngd"] < final["nce", "gd"]
    assert final["ence", "ngd"] <= 0.2 * 128.996 and final["nce", "gd"] >= 0.8 * 128.996


def test_sixteen_dimensions_start_at_the_known_distance_and_improve():
    problem = NCEProblem.of(DiagonalGaussians())
    search = search_rate(problem, "ence", "ngd", rates=(0.5, 2.0), seeds=range(2), fresh=2000)
    assert search.best[..., 0] == pytest.approx(17.87, abs=0.005)
    assert search.best[1, :, -1].mean() == pytest.approx(1.1, abs=0.3)


def test_bad_descents_are_refused_in_one_sentence():
    problem = gaussian(2)
    with pytest.raises(BadInput, match="method must be one of"):
        optimise(problem, method="adam", rate=0.1, steps=1)
    with pytest.raises(BadInput, match="rate must be one positive number"):
        optimise(problem, rate=-0.1, steps=1)
    with pytest.raises(BadInput, match="give it rng"):
        optimise(problem, rate=0.1, steps=1, gradient="sample")
    with pytest.raises(BadInput, match="start must have 2 coordinates"):
        optimise(problem, rate=0.1, steps=1, start=torch.zeros(3))
    with pytest.raises(BadInput, match="δ ≤ 1/β_Z"):
        ngd_step_upper_bound(problem, 10.0)
    with pytest.raises(BadInput, match="kind='ence' only"):
        ngd_step_upper_bound(problem, 0.1, "nce", constants="theory")
