"""The landscape of stage 2 against brute force over shown and true words, and the published optima."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sandlab.circuits.topics.optima import block_value, diagonal_value
from sandlab.lenses.topics.stage_two import (
    StageTwoBounds,
    asymptotic_block_loss,
    asymptotic_diagonal_loss,
    loss_floors,
    mask_queries,
    normalisers,
    stage_one_loss,
    stage_two_loss,
)
from sandlab.worlds.topics.masking import InfiniteDocuments, MaskedStatistics, topic_of_word

SMALL = MaskedStatistics(8, 12, 3)


def large(present: int) -> MaskedStatistics:
    return MaskedStatistics(100, 300, present)


def attention(s: MaskedStatistics, alpha: float, beta: float, shown: int) -> np.ndarray:
    """Attention of a query that shows a word, over all keys of a document on the first τ topics."""
    topic = topic_of_word(np.arange(s.vocab), s.words)
    level = np.where(topic == topic[shown], alpha, 1.0)
    level[shown] = beta
    weights = level * s.masked(InfiniteDocuments(s).every()[:1])[0]
    return weights / weights.sum()


def brute_force(s: MaskedStatistics, value: np.ndarray, alpha: float, beta: float) -> float:
    """Σ over shown words q and true words w of P(w)(p_c·1[w = q] + p_r/(Tv))·‖W a_q − e_w‖²."""
    true, total = InfiniteDocuments(s).every()[0], 0.0
    for shown in range(1, s.vocab):
        joint = true * (s.keep * (np.arange(s.vocab) == shown) + s.swap / (s.vocab - 1))
        output = value @ attention(s, alpha, beta, shown)
        total += (joint * ((output**2).sum() + 1 - 2 * output)).sum()
    return float(total)


@pytest.mark.parametrize("levels", [(1, 1), (3, 5), (50, 200), (0.1, 1000)])
@pytest.mark.parametrize("kind", ["block", "diagonal"])
def test_the_exact_form_is_the_brute_force_sum(kind: str, levels: tuple[float, float]) -> None:
    value = block_value(SMALL) if kind == "block" else diagonal_value(SMALL)
    assert float(stage_two_loss(SMALL, *levels, value=kind)) == pytest.approx(
        brute_force(SMALL, value, *levels), rel=0, abs=1e-14
    )


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("block", (0.19444444444444445, 0.19109073527793, 0.19203296544602452, 0.19219679311683596)),
        ("diagonal", (0.19444444444444445, 0.18487577638152553, 0.15709304456830853, 0.14611629181017993)),
    ],
)
def test_the_exact_form_has_the_known_values(kind: str, values: tuple[float, ...]) -> None:
    found = stage_two_loss(SMALL, np.array([1, 3, 50, 0.1]), np.array([1, 5, 200, 1000.0]), value=kind)
    np.testing.assert_allclose(found, values, rtol=1e-9)


def test_at_uniform_attention_the_exact_form_is_the_loss_of_stage_1_and_the_printed_one_is_not() -> None:
    s = large(20)
    for kind in ("block", "diagonal"):
        shown = (s.keep + s.swap) * stage_one_loss(s)
        assert float(stage_two_loss(s, 1, 1, value=kind)) == pytest.approx(shown, rel=1e-12)
        assert abs(float(stage_two_loss(s, 1, 1, value=kind, form="source")) - shown) > 1e-7
        assert shown + mask_queries(s) == pytest.approx(stage_one_loss(s), rel=1e-12)


def test_attention_sums_to_one_only_with_the_mask_keys() -> None:
    for shown, index in ((1, 0), (SMALL.vocab - 1, 1)):
        topic = topic_of_word(np.arange(SMALL.vocab), SMALL.words)
        level = np.where(topic == topic[shown], 3.0, 1.0)
        level[shown] = 5.0
        total = level @ SMALL.masked(InfiniteDocuments(SMALL).every()[:1])[0]
        assert normalisers(SMALL, 3.0, 5.0)[index] == pytest.approx(total, rel=1e-12)
        assert normalisers(SMALL, 3.0, 5.0, mask=False)[index] == pytest.approx(total - SMALL.mask_mass, rel=1e-12)


def test_the_block_landscape_depends_on_the_mean_level_alone() -> None:
    pairs = ((2.0, 14.0), (3.0, 3.0))  # 11α + β = 36
    for form in ("exact", "source"):
        block = [float(stage_two_loss(SMALL, *pair, value="block", form=form)) for pair in pairs]
        diagonal = [float(stage_two_loss(SMALL, *pair, value="diagonal", form=form)) for pair in pairs]
        assert block[0] == pytest.approx(block[1], abs=1e-14)
        assert abs(diagonal[0] - diagonal[1]) > 1e-4


def best(s: MaskedStatistics, value: str, form: str) -> tuple[float, float]:
    """Level and loss of the optimum: γ with α = β, or β with α → 0."""

    def loss(log_level: float) -> float:
        level = float(np.exp(log_level))
        return float(stage_two_loss(s, level if value == "block" else 1e-9, level, value=value, form=form))

    grid = np.linspace(0, 13, 400)
    start = grid[np.argmin([loss(point) for point in grid])]
    found = minimize_scalar(loss, bracket=(start - 0.05, start, start + 0.05), tol=1e-12)
    return float(np.exp(found.x)), float(found.fun)


@pytest.mark.parametrize(
    ("present", "block", "block_exact", "diagonal", "diagonal_exact"),
    [
        (20, (53.304, 0.19970346), (58.641, 0.19970506), (14918.5, 0.11665555), (17057.4, 0.11665521)),
        (40, (66.285, 0.19975155), (73.677, 0.19975305), (19103.2, 0.12857035), (21773.7, 0.12857017)),
        (60, (72.057, 0.19978427), (80.415, 0.19978562), (20966.6, 0.13750003), (23873.4, 0.13749990)),
        (80, (75.244, 0.19980897), (84.152, 0.19981019), (21997.6, 0.14444270), (25034.8, 0.14444258)),
    ],
)
def test_the_published_landscapes_have_these_optima_and_keep_the_bounds(
    present: int,
    block: tuple[float, float],
    block_exact: tuple[float, float],
    diagonal: tuple[float, float],
    diagonal_exact: tuple[float, float],
) -> None:
    s = large(present)
    cases = {("block", "source"): block, ("block", "exact"): block_exact}
    cases |= {("diagonal", "source"): diagonal, ("diagonal", "exact"): diagonal_exact}
    bounds = StageTwoBounds(s)
    for (value, form), (level, loss) in cases.items():
        found = best(s, value, form)
        assert found[0] == pytest.approx(level, rel=1e-3)
        assert found[1] == pytest.approx(loss, abs=1e-7)
        low, high = (bounds.lambda1_stated * (present - 1), bounds.lambda2 * 100)
        if value == "diagonal":
            low, high = bounds.lambda3 * present, bounds.lambda4 * 100
        assert low < found[0] < high


@pytest.mark.parametrize(
    ("present", "level", "loss"), [(2, 5.763, 0.1861027), (3, 7.005, 0.1884369), (4, 7.716, 0.1898492)]
)
def test_small_documents_have_these_optima(present: int, level: float, loss: float) -> None:
    found = best(MaskedStatistics(10, 10, present), "block", "exact")
    assert found[0] == pytest.approx(level, abs=2e-3) and found[1] == pytest.approx(loss, abs=1e-7)


def test_bounds_have_the_known_values() -> None:
    bounds = StageTwoBounds(large(20))
    assert bounds.lambda1_stated == pytest.approx(0.5773410, abs=1e-7)
    assert bounds.lambda1_proof == pytest.approx(0.3713295, abs=1e-7)
    assert bounds.lambda2 == pytest.approx(5866.667, abs=1e-3)
    assert bounds.lambda3 == pytest.approx(2.64, rel=1e-9)
    assert bounds.lambda4 == pytest.approx(986.8658, abs=1e-4)
    assert bounds.lambda5 == pytest.approx(0.00386645, abs=1e-8)


def test_the_best_level_grows_in_proportion_to_the_number_of_topics() -> None:
    gaps = []
    for topics, present, level in ((10**4, 100, 645.4), (10**6, 1000, 6512.0)):
        s = MaskedStatistics(topics, 300, present)
        levels = np.linspace(0.9 * level, 1.1 * level, 2001)
        assert levels[asymptotic_block_loss(s, levels).argmin()] == pytest.approx(level, rel=1e-2)
        gaps.append(1 - best(s, "block", "source")[0] / level)
    assert 0.0 < gaps[1] < gaps[0] / 5 < 0.02  # the finite optimum tends to the asymptotic one


def test_asymptotic_losses_tend_to_the_finite_ones() -> None:
    s, c4 = MaskedStatistics(10**8, 300, 10**4), MaskedStatistics().c3
    witness = np.sqrt(s.present * s.topics)
    for gamma in (1e3, 7e4, witness):
        finite = float(stage_two_loss(s, gamma, gamma, form="source"))
        assert float(asymptotic_block_loss(s, gamma)) == pytest.approx(finite, abs=2e-5)
    limit = s.keep * (1 - c4 * (2 - c4) / 300) + s.swap
    assert limit == pytest.approx(0.1996748, abs=1e-7)
    assert float(asymptotic_block_loss(s, witness)) == pytest.approx(limit, abs=1e-5)
    best_level = (s.present - 1 + c4 * s.rate * s.swap * s.present) / (c4 - 1)
    least = s.keep * (1 - 1 / 300) + s.swap
    assert float(asymptotic_block_loss(s, best_level)) == pytest.approx(least, abs=1e-9)


def test_asymptotic_diagonal_loss_tends_to_the_finite_one_and_to_its_limits() -> None:
    s, c4 = MaskedStatistics(10**8, 300, 10**4), MaskedStatistics().c3
    witness = np.sqrt(s.present * s.topics)
    beta = 299 / (c4 - 1) * witness
    found = float(asymptotic_diagonal_loss(s, witness, beta))
    assert found == pytest.approx(s.keep * (c4 - 1) ** 2 / 299 + s.swap, rel=0.05)
    for alpha, level in ((1.0, 1e5), (0.0, 2e7)):
        finite = float(stage_two_loss(s, max(alpha, 1e-12), level, value="diagonal", form="source"))
        assert float(asymptotic_diagonal_loss(s, alpha, level)) == pytest.approx(finite, abs=2e-4)
    least = float(asymptotic_diagonal_loss(s, 0.0, (1 + c4 * s.rate * s.swap) * 300 * s.present / (c4 - 1)))
    assert least == pytest.approx(s.swap, abs=1e-5)


def test_floors_of_uniform_attention_are_those_of_sampled_weights() -> None:
    floors = loss_floors(10, 10, 0.1)
    assert floors["squared"] == pytest.approx(0.945, abs=1e-12)
    assert floors["cross-entropy"] == pytest.approx(3.14912, abs=1e-5)
    weights = np.random.default_rng(0).dirichlet(np.full(10, 0.1), size=200_000)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(1).mean() + np.log(10)
    assert floors["cross-entropy"] == pytest.approx(entropy, abs=5e-3)
    assert floors["squared"] == pytest.approx(1 - (weights**2).sum(1).mean() / 10, abs=1e-3)


def test_the_absent_topic_term_needs_its_coefficient() -> None:
    """(2.27) prints p_r y²; with p_r v y² it is the finite loss at large γ."""
    s = MaskedStatistics(10**6, 300, 1000)
    gamma, swapped = np.array(5e7), s.rate * s.swap
    y = s.c3 * swapped * gamma / (s.words * (swapped * gamma + (1 / s.c3 + swapped) * s.topics))
    printed = asymptotic_block_loss(s, gamma)
    mended = printed + (s.words - 1) * s.swap * y**2
    finite = stage_two_loss(s, gamma, gamma, form="source")
    assert abs(float(mended - finite)) < 1e-7 < 5e-5 < abs(float(printed - finite))


def test_the_comparison_of_the_proof_holds_up_to_its_border() -> None:
    s = MaskedStatistics(100, 300, 20)
    c4, whole = s.c3, 1 + s.c3 * s.rate * s.swap
    border = whole * (2 - c4) / c4

    def gap(c5: float) -> float:
        return float((1 - c4 / (300 * (1 + whole / c5))) ** 2 - (1 - c4 * (2 - c4) / 300))

    assert gap(0.5 * border) > 0 and gap(0.99 * border) > 0 and gap(1.01 * border) < 0
