import math

import numpy as np
import pytest
from scipy import stats

from sandlab.errors import BadInput
from sandlab.studies.claims import Above, Below, Between, Claim, Equals, judge


def claim(relation: object, **options: object) -> Claim:
    return Claim("c", "statement", "source", "quantity", relation, **options)  # type: ignore[arg-type]


def test_the_interval_is_student_t_of_the_mean() -> None:
    values = np.array([1.0, 1.2, 0.9, 1.1])
    finding = judge(claim(Above(0.5)), values)
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert (finding.low, finding.high) == pytest.approx((low, high))
    assert finding.verdict == "holds" and finding.count == 4


@pytest.mark.parametrize(
    ("relation", "values", "verdict"),
    [
        (Above(1.0), [2.0, 2.1, 1.9], "holds"),
        (Above(3.0), [2.0, 2.1, 1.9], "fails"),
        (Above(2.0), [2.0, 2.1, 1.9], "inconclusive"),
        (Below(0.0), [-3.0, -2.0, -2.5], "holds"),
        (Equals(2.0, 0.5), [2.0, 2.1, 1.9], "holds"),
        (Equals(2.0, 0.1), [2.0, 2.1, 1.9], "inconclusive"),
        (Between(5.0, 6.0), [2.0, 2.1, 1.9], "fails"),
        (Below(1.0), [math.nan, 0.1, 0.2], "fails"),
    ],
)
def test_the_verdict_follows_the_interval(relation: object, values: list[float], verdict: str) -> None:
    assert judge(claim(relation), values).verdict == verdict


def test_one_run_of_a_sampled_quantity_decides_nothing() -> None:
    assert judge(claim(Above(0.0)), 100.0).verdict == "inconclusive"
    assert judge(claim(Above(0.0), exact=True), 100.0).verdict == "holds"
    assert judge(claim(Above(0.0), exact=True), -1e-9).verdict == "fails"


def test_a_share_uses_the_wilson_interval() -> None:
    finding = judge(claim(Above(0.5), over="share"), [1, 1, 1, 1, 1, 1, 1, 0])
    z, n, share = stats.norm.ppf(0.975), 8, 7 / 8
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    assert (finding.low, finding.high) == pytest.approx((centre - reach, centre + reach))
    assert finding.verdict == "holds"
    with pytest.raises(BadInput, match="yes/no"):
        judge(claim(Above(0.5), over="share"), [0.3])


def test_the_verdict_is_right_as_often_as_its_confidence_says() -> None:
    rng = np.random.default_rng(0)
    wrong = sum(judge(claim(Equals(0.0, 10.0)), rng.normal(10.0, 1.0, 6)).verdict == "holds" for _ in range(2000))
    assert wrong / 2000 < 0.035  # the true mean is the border: one side of a 95 % interval


def test_a_failed_claim_is_surprising_only_if_the_source_says_it_holds() -> None:
    assert judge(claim(Above(1.0), exact=True), 0.0).surprising
    assert not judge(claim(Above(1.0), exact=True, held=False), 0.0).surprising
