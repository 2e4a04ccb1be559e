"""Twins: different models, equal predictions where the theorems say so, different ones where they must be."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from sandlab.errors import BadInput
from sandlab.worlds.hmm.doubly_stochastic import circulant
from sandlab.worlds.hmm.instances import make_ghmm, named_hmm, random_ghmm, random_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.twins import (
    gap_one_twin,
    householder,
    householder_transitions,
    orbit,
    posterior_sphere,
    power_range,
    power_twin,
    reflected_ghmm,
    rotation_about_ones,
    valid_angles,
)


def difference(first: HMM | GaussianHMM, second: HMM | GaussianHMM, task: str) -> float:
    points = () if isinstance(first, HMM) else (np.random.default_rng(5).normal(size=(50, len(first.means))),)
    return float(np.abs(first.predictor(task, *points) - second.predictor(task, *points)).max())


def equicorrelated(d: int, weights: tuple[float, ...]) -> GaussianHMM:
    root = np.linalg.cholesky(0.7 * np.eye(3) + 0.3).T
    return make_ghmm(np.concatenate([root, np.zeros((d - 3, 3))]), circulant(weights))


@pytest.mark.parametrize(("task", "digits"), [("2|1", 0), ("3|1", 0), ("6|1", 0), ("1|2", 0), ("1|4", 0)])
def test_the_orbit_keeps_every_pairwise_prediction(task: str, digits: int) -> None:
    hmm = named_hmm("hmm-thm6")
    assert isinstance(hmm, HMM)
    assert difference(hmm, orbit(hmm, 0.7), task) < 1e-13
    assert difference(hmm, orbit(hmm, 0.7), "2x3|1") > 1e-3


def test_the_printed_pair_is_a_rotation_by_a_tenth_of_a_radian() -> None:
    hmm, twin = named_hmm("hmm-thm6"), named_hmm("hmm-thm6-twin")
    assert isinstance(hmm, HMM)
    turned = orbit(hmm, 0.1)
    assert max(np.abs(turned.O - twin.means).max(), np.abs(turned.T - twin.T).max()) < 1.1e-8
    assert valid_angles(hmm, 2001)[:, 1].min() >= 0
    for task in ("2x3|1", "1x3|2", "1x2|3"):
        assert difference(hmm, turned, task) == pytest.approx(1.653e-4, abs=1e-7)


def test_kl_of_the_printed_pair_and_of_the_canonical_orbit() -> None:
    def kl(first: HMM, second: HMM, length: int) -> float:
        p, q = first.joint(length), second.joint(length)
        return float((p * np.log(p / q)).sum())

    hmm, twin = named_hmm("hmm-thm6"), named_hmm("hmm-thm6-twin")
    assert isinstance(hmm, HMM)
    assert isinstance(twin, HMM)
    canon = HMM()
    assert abs(kl(hmm, orbit(hmm, 0.1), 2)) < 1e-14
    for length, value in ((3, 1.98442e-7), (4, 4.65405e-7), (6, 1.02662e-6)):
        assert kl(hmm, orbit(hmm, 0.1), length) == pytest.approx(value, rel=1e-4)
    for angle, value in ((0.05, 3.18e-4), (0.1, 1.257e-3), (0.15, 2.782e-3)):
        assert kl(canon, orbit(canon, angle), 3) == pytest.approx(value, rel=2e-3)
    angles = valid_angles(canon)
    near = angles[np.abs(angles[:, 0]) < 1]
    assert near[near[:, 1] >= -1e-12, 0].max() == pytest.approx(0.3242, abs=5e-4)


def test_the_kl_of_the_printed_pair_needs_laws_that_sum_to_one() -> None:
    """In forty digits: printed to eight digits, the two laws sum to 1 only up to 3e-9, which is 2 % of their KL."""

    def joint(hmm: HMM, length: int) -> dict[tuple[int, ...], mpmath.mpf]:
        found = {(): [mpmath.mpf(1) / 3] * 3}
        for time in range(length):
            moved = {
                key: [sum(mpmath.mpf(str(t)) * b for t, b in zip(row, belief)) for row in hmm.transitions]
                if time
                else belief
                for key, belief in found.items()
            }
            found = {
                (*key, x): [mpmath.mpf(str(o)) * b for o, b in zip(hmm.emissions[x], belief)]
                for key, belief in moved.items()
                for x in range(4)
            }
        return {key: sum(belief) for key, belief in found.items()}

    hmm, twin = named_hmm("hmm-thm6"), named_hmm("hmm-thm6-twin")
    assert isinstance(hmm, HMM) and isinstance(twin, HMM)
    with mpmath.workdps(40):
        p, q = joint(hmm, 3), joint(twin, 3)
        raw = sum(p[key] * mpmath.log(p[key] / q[key]) for key in p)
        shift = sum(p.values()) - sum(q.values())
        whole = sum(p.values())
        proper = sum(p[key] / whole * mpmath.log(p[key] / q[key] * sum(q.values()) / whole) for key in p)
    assert float(raw) == pytest.approx(1.951e-7, rel=1e-3)
    assert abs(float(shift)) == pytest.approx(3.3e-9, rel=0.05)
    assert float(proper) == pytest.approx(1.98442e-7, rel=1e-5)


def test_rotations_about_ones_exist_from_three_states_on() -> None:
    for states, plane in ((3, (0, 1)), (5, (1, 3))):
        turn = rotation_about_ones(0.4, states, plane)
        np.testing.assert_allclose(turn @ turn.T, np.eye(states), atol=1e-14)
        np.testing.assert_allclose(turn @ np.ones(states), 1, atol=1e-14)
    np.testing.assert_allclose(sorted(rotation_about_ones(2 * np.pi / 3).ravel()), [0] * 6 + [1] * 3, atol=1e-12)
    with pytest.raises(BadInput, match="swap"):
        rotation_about_ones(0.4, 2)


def test_two_states_have_a_twin_for_neighbours_only() -> None:
    hmm = named_hmm("hmm-2x2")
    assert isinstance(hmm, HMM)
    twin = gap_one_twin(hmm, 0.1)
    np.testing.assert_allclose(twin.O, [[0.74, 0.26], [0.26, 0.74]], atol=1e-14)
    assert twin.T[0, 0] == pytest.approx(0.8125)
    assert max(difference(hmm, twin, "2|1"), difference(hmm, twin, "1|2")) < 1e-15
    assert difference(hmm, twin, "3|1") == pytest.approx(0.0162, abs=1e-4)


def test_different_matrices_with_equal_powers() -> None:
    sizes = [0.6667, 0.5, 0.4553, 0.3897, 0.3333, 0.2884, 0.2529, 0.2245, 0.2015, 0.1825, 0.1667]
    for power, size in zip(range(2, 13), sizes):
        first, second = power_twin(0.5, power)
        there, back = (np.linalg.matrix_power(each, power) for each in (first, second))
        assert np.abs(there - back).max() < 1e-14
        assert second.min() > -1e-15
        assert np.abs(first - second).max() == pytest.approx(size, abs=5e-5)
        assert np.abs(first @ second - second @ first).max() < 1e-15
    for power, ends in (
        (2, (0.334, 0.666)),
        (3, (0, 1)),
        (4, (0.423, 0.788)),
        (5, (0.372, 0.709)),
        (10, (0.241, 0.593)),
    ):
        assert power_range(power) == pytest.approx(ends, abs=1.5e-3)


def test_the_mirror_image_has_the_same_posterior_but_no_valid_transitions() -> None:
    rng = np.random.default_rng(0)
    for d, k in ((2, 2), (3, 3), (5, 3), (6, 4)):
        ghmm, x = random_ghmm(d, k, rng), rng.normal(size=(40, d))
        twin = make_ghmm(householder(ghmm.M), ghmm.T)
        np.testing.assert_allclose(twin.posterior(x), ghmm.posterior(x), atol=1e-13)
        np.testing.assert_allclose(np.linalg.norm(twin.M, axis=0), 1, atol=1e-12)
        np.testing.assert_allclose(householder_transitions(ghmm).sum(0), -1, atol=1e-9)


def test_more_dimensions_than_states_leave_a_sphere_of_equal_posteriors() -> None:
    rng = np.random.default_rng(0)
    ghmm, x = random_ghmm(4, 2, rng), rng.normal(size=(40, 4))
    for _ in range(5):
        other = make_ghmm(posterior_sphere(ghmm.M, rng), ghmm.T)
        assert np.abs(other.M - ghmm.M).max() > 1e-3
        np.testing.assert_allclose(np.linalg.norm(other.M, axis=0), 1, atol=1e-12)
        np.testing.assert_allclose(other.posterior(x), ghmm.posterior(x), atol=1e-13)


@pytest.mark.parametrize("d", [2, 4])
def test_two_gaussian_states_always_have_a_twin_for_the_middle_token(d: int) -> None:
    ghmm = make_ghmm(random_ghmm(d, 2, np.random.default_rng(d)).M, np.array([[0.8, 0.2], [0.2, 0.8]]))
    twin = reflected_ghmm(ghmm)
    assert difference(ghmm, twin, "1x3|2") < 1e-13
    assert difference(ghmm, twin, "2x3|1") > 0.1
    assert difference(ghmm, twin, "2|1") > 0.1


@pytest.mark.parametrize("d", [3, 5])
def test_theorem_8_is_false_for_equicorrelated_centres(d: int) -> None:
    ghmm = equicorrelated(d, (0.6, 0.1, 0.3))
    assert difference(ghmm, reflected_ghmm(ghmm), "1x3|2") < 1e-13
    assert difference(ghmm, reflected_ghmm(ghmm), "2x3|1") > 0.1
    with pytest.raises(BadInput, match="2/k"):
        reflected_ghmm(equicorrelated(d, (0.8, 0.15, 0.05)))
    with pytest.raises(BadInput, match="Gram"):
        reflected_ghmm(random_ghmm(d, 3, np.random.default_rng(0)))


def test_a_longer_step_identifies_transitions_up_to_a_root() -> None:
    ghmm = named_hmm("ghmm-power")
    np.testing.assert_allclose(np.linalg.norm(ghmm.means, axis=0), 1, atol=1e-12)
    for power in (2, 3, 5):
        twin = make_ghmm(ghmm.means, power_twin(0.5, power)[1])
        assert isinstance(ghmm, GaussianHMM)
        assert difference(ghmm, twin, f"{power + 1}|1") < 1e-13
        assert difference(ghmm, twin, "2|1") > 0.01


def test_the_gap_one_family_needs_row_and_column_sums() -> None:
    with pytest.raises(BadInput, match="rows and columns"):
        gap_one_twin(random_hmm(3, 3, np.random.default_rng(0)), np.array([[1, 0.1, 0], [0, 1, 0], [0, 0, 1.0]]))
