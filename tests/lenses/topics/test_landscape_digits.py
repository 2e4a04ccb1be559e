"""The landscape of stage 2 against its printed formulas, at its ends, and its minima inside the corrected bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from sandlab.lenses.topics.stage_two import (
    StageTwoBounds,
    block_level,
    normalisers,
    stage_two_loss,
)
from sandlab.worlds.topics.masking import MaskedStatistics

PRESENT = (20, 40, 60, 80)


def large(present: int) -> MaskedStatistics:
    return MaskedStatistics(100, 300, present)


def printed_block(s: MaskedStatistics, alpha: float, beta: float) -> float:
    """L(α, β) of §2.1.7.7 as it is printed, line by line; p₂γv in the absent-topic line."""
    v, tau, top, pc, pr = s.words, s.present, s.topics, s.keep, s.swap
    z1, z2 = (float(z) for z in normalisers(s, alpha, beta, mask=False))
    p1, p2, gamma = s.p_present, s.p_absent, ((v - 1) * alpha + beta) / v

    def q(x: float) -> float:
        return s.c3 * x - s.rate * pr / (s.true_mass * top * v)

    near, mid, far = q(p1 * gamma / z1), q(p1 / z1), q(p2 / z1)
    own = (1 - near) ** 2 + (v - 1) * near**2 + v * (tau - 1) * mid**2 + v * (top - tau) * far**2
    other = (1 - mid) ** 2 + v * near**2 + (v * (tau - 1) - 1) * mid**2 + v * (top - tau) * far**2
    true, shown, rest = q(p1 / z2), q(p2 * gamma / z2), q(p2 / z2)
    absent = (1 - true) ** 2 + (v * tau - 1) * true**2 + v * shown**2 + v * (top - tau - 1) * rest**2
    return (pc + pr / top) * own + pr * (tau - 1) / top * other + pr * (1 - tau / top) * absent


def printed_diagonal(s: MaskedStatistics, alpha: float, beta: float) -> float:
    """L(α, β) of §2.1.7.8 as it is printed, line by line."""
    v, tau, top, pc, pr = s.words, s.present, s.topics, s.keep, s.swap
    z1, z2 = (float(z) for z in normalisers(s, alpha, beta, mask=False))
    p1, p2 = s.p_present, s.p_absent

    def q(x: float) -> float:
        return s.c3 * x - s.rate * pr / (s.true_mass * top * v)

    a, b, mid, far = q(p1 * alpha / z1), q(p1 * beta / z1), q(p1 / z1), q(p2 / z1)
    tail = v * (top - tau) * far**2
    same = (1 - b) ** 2 + (v - 1) * a**2 + v * (tau - 1) * mid**2 + tail
    topic = (1 - a) ** 2 + b**2 + (v - 2) * a**2 + v * (tau - 1) * mid**2 + tail
    other = (1 - mid) ** 2 + b**2 + (v - 1) * a**2 + (v * (tau - 1) - 1) * mid**2 + tail
    true, shown, friends, rest = q(p1 / z2), q(p2 * beta / z2), q(p2 * alpha / z2), q(p2 / z2)
    absent = (1 - true) ** 2 + (v * tau - 1) * true**2 + shown**2 + (v - 1) * friends**2
    absent += v * (top - tau - 1) * rest**2
    return (
        (pc + pr / (v * top)) * same
        + pr / top * (1 - 1 / v) * topic
        + pr * (tau - 1) / top * other
        + pr * (1 - tau / top) * absent
    )


@pytest.mark.parametrize("levels", [(1.0, 1.0), (3.0, 5.0), (50.0, 200.0), (0.1, 1000.0)])
@pytest.mark.parametrize("s", [MaskedStatistics(8, 12, 3), large(40)], ids=["small", "large"])
def test_the_source_form_is_the_printed_sum(s: MaskedStatistics, levels: tuple[float, float]) -> None:
    for value, printed in (("block", printed_block), ("diagonal", printed_diagonal)):
        found = float(stage_two_loss(s, *levels, value=value, form="source"))
        assert found == pytest.approx(printed(s, *levels), rel=1e-12)


def test_normalisers_are_the_printed_sums() -> None:
    s, alpha, beta = MaskedStatistics(8, 12, 3), 3.0, 5.0
    p1, p2, v, tau, top = s.p_present, s.p_absent, s.words, s.present, s.topics
    z1 = beta * p1 + alpha * p1 * (v - 1) + p1 * v * (tau - 1) + p2 * v * (top - tau)
    z2 = beta * p2 + alpha * p2 * (v - 1) + p1 * v * tau + p2 * v * (top - tau - 1)
    np.testing.assert_allclose(normalisers(s, alpha, beta, mask=False), (z1, z2), rtol=1e-12)
    np.testing.assert_allclose(normalisers(s, alpha, beta), (z1 + s.mask_mass, z2 + s.mask_mass), rtol=1e-12)


@pytest.mark.parametrize(
    ("present", "uniform", "none"),
    [(20, 0.19996729, 0.200007), (40, 0.19998365, 0.200003), (60, 0.19998910, 0.200002), (80, 0.19999183, 0.200002)],
)
def test_at_its_ends_the_printed_block_landscape_has_the_known_values(
    present: int, uniform: float, none: float
) -> None:
    found = [float(stage_two_loss(large(present), level, level, form="source")) for level in (1.0, 1e-9, 1e7)]
    assert found[0] == pytest.approx(uniform, abs=1e-8)
    assert found[1] == pytest.approx(none, abs=6e-7)
    assert found[2] == pytest.approx(0.200112, abs=6e-7)


@pytest.mark.parametrize("form", ["source", "exact"])
@pytest.mark.parametrize("present", PRESENT)
def test_minima_lie_inside_the_corrected_bounds(present: int, form: str) -> None:
    """λ₁ as the proof derives it is the one that is proved; the stated one is larger, and holds here as well."""
    s = large(present)
    bounds = StageTwoBounds(s)

    def block(logs: float) -> float:
        return float(stage_two_loss(s, np.exp(logs), np.exp(logs), form=form))

    gamma = float(np.exp(minimize_scalar(block, bounds=(0.0, 10.0), method="bounded", options={"xatol": 1e-9}).x))
    assert bounds.lambda1_proof < bounds.lambda1_stated
    assert bounds.lambda1_proof * (present - 1) < gamma < bounds.lambda2 * s.topics
    assert bounds.lambda1_stated * (present - 1) < gamma

    def diagonal(logs: np.ndarray) -> float:
        return float(stage_two_loss(s, *np.exp(logs), value="diagonal", form=form))

    alpha, beta = np.exp(minimize(diagonal, np.log([1e-3, 1e4]), method="Nelder-Mead", options={"xatol": 1e-6}).x)
    assert bounds.lambda3 * present < beta < bounds.lambda4 * s.topics
    assert alpha < bounds.lambda5 * beta


@pytest.mark.parametrize("present", [2, 3, 4])
def test_with_ten_words_a_topic_the_best_level_of_other_words_is_near_one(present: int) -> None:
    """Theorem 2.1.5 speaks of many topics and words; for T = v = 10 the best α is about 0.93, not 0."""
    s = MaskedStatistics(10, 10, present)

    def loss(logs: np.ndarray) -> float:
        return float(stage_two_loss(s, *np.exp(logs), value="diagonal"))

    found = minimize(loss, np.log([1.0, 50.0]), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-15})
    alpha, beta = np.exp(found.x)
    assert alpha == pytest.approx(0.93, abs=0.06)
    # Without any attention to other words of the topic no level of the same word does as well.
    without = min(float(stage_two_loss(s, 1e-9, each, value="diagonal")) for each in np.logspace(0, 5, 2001))
    assert found.fun < without - 1e-5 and beta > 30 * alpha


@pytest.mark.parametrize(("form", "slope"), [("source", 6.52), ("exact", 7.41)])
def test_the_best_mean_level_tends_to_a_multiple_of_the_number_of_topics(form: str, slope: float) -> None:
    """γ* → ((τ − 1) + c₄p_m p_r τ)/(c₄ − 1) with the printed normaliser, τ/((1 − p_c)p_m) with [MASK] keys."""
    s = MaskedStatistics(10**9, 300, 10**4)

    def loss(logs: float) -> float:
        return float(stage_two_loss(s, np.exp(logs), np.exp(logs), form=form))

    around = np.log(slope * s.present)
    found = minimize_scalar(loss, bounds=(around - 0.5, around + 0.5), method="bounded", options={"xatol": 1e-9})
    assert np.exp(found.x) / s.present == pytest.approx(slope, rel=5e-3)


def test_level_sets_of_block_values_are_curves_of_equal_mean_level() -> None:
    s = large(40)
    alpha = np.logspace(-4, 1.7, 40)
    gamma = 60.0
    beta = s.words * gamma - (s.words - 1) * alpha  # from (0, vγ) to the corner where α is nearly γ
    assert (beta > 0).all() and np.ptp(np.log(beta)) > 1
    np.testing.assert_allclose(block_level(s, alpha, beta), gamma)
    assert np.ptp(stage_two_loss(s, alpha, beta)) < 1e-12
