"""Verdicts: each kind of quantity against an independent computation of its interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from sandlab.errors import BadInput
from sandlab.studies.claims import (
    Best,
    Claim,
    Exact,
    Finding,
    Mean,
    Median,
    Noted,
    NotMeasured,
    Order,
    Quantity,
    Ratio,
    Share,
    Slope,
    judge,
)


def claim(relation: Quantity, **options: object) -> Claim:
    return Claim("c", "statement", "quantity", relation, "source", lambda _results: 0.0, **options)  # type: ignore[arg-type]


def test_the_interval_is_student_t_of_the_mean() -> None:
    values = np.array([1.0, 1.2, 0.9, 1.1])
    finding = judge(claim(Mean(above=0.5)), values)
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert (finding.low, finding.high) == pytest.approx((low, high))
    assert finding.verdict == "holds" and finding.count == 4 and finding.kind == "mean"


@pytest.mark.parametrize(
    ("relation", "values", "verdict"),
    [
        (Mean(above=1.0), [2.0, 2.1, 1.9], "holds"),
        (Mean(above=3.0), [2.0, 2.1, 1.9], "fails"),
        (Mean(above=2.0), [2.0, 2.1, 1.9], "inconclusive"),
        (Mean(below=0.0), [-3.0, -2.0, -2.5], "holds"),
        (Mean(above=1.0, below=3.0), [2.0, 2.1, 1.9], "holds"),
        (Mean(equals=2.0, within=0.5), [2.0, 2.1, 1.9], "holds"),
        (Mean(equals=2.0, within=0.1), [2.0, 2.1, 1.9], "inconclusive"),
        (Mean(between=(5.0, 6.0)), [2.0, 2.1, 1.9], "fails"),
        (Exact(equals=1.0, within=0.0), 1.0, "holds"),
    ],
)
def test_the_verdict_follows_the_interval(relation: Quantity, values: list[float], verdict: str) -> None:
    assert judge(claim(relation), values).verdict == verdict


def test_what_is_not_a_number_is_not_measured() -> None:
    """D19."""
    with pytest.raises(NotMeasured):
        judge(claim(Mean(below=1.0)), [math.nan, 0.1, 0.2])


def test_one_run_of_a_sampled_quantity_decides_nothing() -> None:
    for kind in (Mean, Median, Ratio):
        assert judge(claim(kind(above=0.0)), 100.0).verdict == "inconclusive"
    assert judge(claim(Best(above=0.0, of=3)), 100.0).verdict == "inconclusive"
    assert judge(claim(Exact(above=0.0)), 100.0).verdict == "holds"
    assert judge(claim(Exact(above=0.0)), -1e-9).verdict == "fails"


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    finding = judge(claim(Share(above=0.3)), [True] * 7 + [False])
    low, high = stats.beta.ppf(0.025, 7, 2), stats.beta.ppf(0.975, 8, 1)
    assert (finding.low, finding.high) == pytest.approx((low, high))
    assert finding.verdict == "holds" and finding.note == "7 of 8"
    with pytest.raises(BadInput, match="yes/no"):
        judge(claim(Share(above=0.5)), [0.3])


def test_a_ratio_is_judged_on_the_log_scale() -> None:
    values = np.array([2.0, 4.0, 8.0, 4.0])
    finding = judge(claim(Ratio(above=1.0)), values)
    low, high = stats.t.interval(0.95, 3, loc=np.log(values).mean(), scale=stats.sem(np.log(values)))
    assert (finding.low, finding.mean, finding.high) == pytest.approx((np.exp(low), 4.0, np.exp(high)))
    with pytest.raises(BadInput, match="positive"):
        judge(claim(Ratio(above=1.0)), [1.0, 0.0])


def test_a_slope_has_the_error_of_the_least_squares_line() -> None:
    x = np.arange(6.0)
    y = -2 * x + np.array([0.1, -0.1, 0.05, 0.0, -0.05, 0.1])
    design = np.stack([x, np.ones(6)], 1)
    coefficients, squares, _, _ = np.linalg.lstsq(design, y, rcond=None)
    error = math.sqrt(squares[0] / 4 * np.linalg.inv(design.T @ design)[0, 0])
    finding = judge(claim(Slope(equals=-2.0, within=0.2)), np.stack([x, y], 1))
    assert (finding.mean, finding.high - finding.mean) == pytest.approx(
        (coefficients[0], stats.t.ppf(0.975, 4) * error)
    )
    assert finding.verdict == "holds" and finding.count == 6


def test_an_order_is_as_sure_as_its_least_sure_step() -> None:
    rng = np.random.default_rng(1)
    values = np.array([0.0, 1.0, 1.05])[:, None] + 0.1 * rng.normal(size=(3, 8))
    finding = judge(claim(Order(above=0.0)), values)
    assert finding.verdict == "inconclusive" and finding.count == 8
    assert finding.mean == pytest.approx(np.diff(values.mean(1)).min())
    assert judge(claim(Order(above=0.0)), np.array([0.0, 1.0, 2.0])[:, None] + 0.01 * values).verdict == "holds"
    assert judge(claim(Order(above=0.0)), -np.arange(3.0)[:, None] + 0.01 * values).verdict == "fails"


def test_the_best_of_n_counts_the_seeds_that_reach_it() -> None:
    one = [1.0] + [0.1] * 9
    finding = judge(claim(Best(above=0.9, of=20)), one)
    assert finding.note.startswith("best of 20; 1 of 10 seeds")
    # The best of 20 draws from ten seeds misses the single good one with probability 0.9^20 = 12 %: not certain.
    assert finding.verdict == "inconclusive"
    assert finding.mean == pytest.approx(1 - 0.9 * 0.9**20, abs=0.02)
    assert judge(claim(Best(above=0.9, of=20)), [1.0] * 5 + [0.1] * 5).verdict == "holds"
    assert judge(claim(Best(below=0.2, of=3, lowest=True)), [0.1] * 9 + [0.9]).verdict == "holds"


def test_a_few_seeds_cannot_refute_what_the_best_of_many_runs_reached() -> None:
    few = judge(claim(Best(above=0.99, of=25)), [0.98, 0.97])
    assert few.verdict == "inconclusive" and (few.low, few.high) == (pytest.approx(0.98), math.inf)
    assert judge(claim(Best(above=0.99, of=25)), [0.98, 0.995]).verdict == "holds"
    assert judge(claim(Best(above=0.99, of=25)), np.linspace(0.97, 0.98, 25)).verdict == "fails"
    lowest = judge(claim(Best(below=0.1, of=25, lowest=True)), [0.2, 0.3])
    assert lowest.verdict == "inconclusive" and lowest.low == -math.inf


def test_the_median_s_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        finding = judge(claim(Median(above=0.0)), rng.exponential(size=15))
        covered += finding.low <= math.log(2) <= finding.high
    assert 0.95 <= covered / 2000 <= 0.995


@pytest.mark.parametrize("kind", [Mean, Median])
def test_the_verdict_is_right_as_often_as_its_confidence_says(kind: type[Quantity]) -> None:
    rng = np.random.default_rng(0)
    border = claim(kind(equals=0.0, within=10.0))
    wrong = sum(judge(border, rng.normal(10.0, 1.0, 6)).verdict == "holds" for _ in range(1000))
    assert wrong / 1000 < 0.04  # the true value is the border: one side of a 95 % interval


def test_a_failed_claim_is_surprising_only_if_the_source_says_it_holds() -> None:
    assert judge(claim(Exact(above=1.0)), 0.0).surprising
    assert not judge(claim(Exact(above=1.0), held=False), 0.0).surprising


def test_relations_say_what_they_ask_for_and_refuse_nonsense() -> None:
    texts = {
        Mean(above=0.5): "> 0.5",
        Mean(below=2.0): "< 2",
        Mean(above=0.0, below=1.0): "> 0, < 1",
        Mean(equals=1.0, within=0.1): "= 1 ± 0.1",
        Mean(between=(0.0, 1.0)): "in [0, 1]",
    }
    assert {str(relation): text for relation, text in texts.items()} == {text: text for text in texts.values()}
    for wrong in ({}, {"equals": 1.0}, {"above": 0.0, "between": (0.0, 1.0)}):
        with pytest.raises(BadInput, match="takes above"):
            Mean(**wrong)  # type: ignore[arg-type]


def test_a_finding_is_read_back_as_it_was_and_without_fields_it_does_not_know() -> None:
    finding = judge(claim(Mean(above=0.5), note="plain"), Noted([1.0, 2.0], "with a note"))
    assert finding.note == "with a note"
    row = {**finding.as_dict(), "unknown": 1, "low": str(finding.low)}
    assert Finding.from_dict(row) == finding
