"""The theory's algorithm against sums over all inputs."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.learning.distillation.two_stages import (
    TheoryWeights,
    every_sign,
    first_stage,
    majority_coefficient,
    recovers_support,
    second_stage,
)
from sandlab.lenses.distillation import one_step
from sandlab.lenses.distillation.sample_bounds import informal_samples, sample_bounds
from sandlab.random import rng


def test_majority_coefficients_are_those_of_the_enumeration_and_of_the_digits_known() -> None:
    x = every_sign(11)
    majority = x.sum(1).sign()
    for j in range(12):
        measured = float((majority * x[:, :j].prod(1)).mean())
        assert majority_coefficient(11, j) == pytest.approx(measured, abs=1e-14)
    known = {3: -8.0393e-4, 5: 2.48639e-5, 7: -1.30862e-6}
    for j, value in known.items():
        assert majority_coefficient(101, j) == pytest.approx(value, rel=1e-4)
    for d, k in ((101, 6), (13, 4), (31, 8)):
        ratio = abs(majority_coefficient(d, k + 1) / majority_coefficient(d, k - 1))
        assert ratio == pytest.approx((k - 1) / (d - k), rel=1e-12)
        assert one_step.majority_gap(d, k) >= 0.03 * (d - 1) ** (-(k - 1) / 2)


def test_many_signs_have_the_coefficients_of_stirlings_formula() -> None:
    """ζ₁ → √(2/(πd)), also where C(d, d/2) is larger than any float."""
    for d in (1031, 10_001):
        assert majority_coefficient(d, 1) == pytest.approx(math.sqrt(2 / (math.pi * d)), rel=1 / d)


def test_the_printed_scale_of_the_coefficients_lacks_a_root() -> None:
    """Θ(i^(−1/3)/C(d, i)) is too small by √C(d, i)."""
    for j in (3, 5, 7):
        printed, rooted = (j ** (-1 / 3) / math.comb(101, j) ** power for power in (1.0, 0.5))
        assert abs(majority_coefficient(101, j)) > 10 * printed
        assert 0.2 < abs(majority_coefficient(101, j)) / rooted < 5


@pytest.mark.parametrize(("d", "k"), [(11, 4), (13, 4)])
def test_parity_gradient_and_weights_after_one_step_are_the_closed_forms(d: int, k: int) -> None:
    x = every_sign(d)
    y = x[:, :k].prod(1)
    start = TheoryWeights.drawn(d, 32, k, seed=1)
    assert float(start(x).abs().max()) < 1e-14
    assert float((start.hinge_slope(x, y) - one_step.parity_gradient(start)).abs().max()) <= 1e-16
    after = first_stage(start, x, y)
    assert float((after.w - one_step.first_step_weights(start)).abs().max()) < 1e-12
    assert torch.allclose(after.w[:, :k].abs(), torch.tensor(1 / (2 * k), dtype=torch.float64))
    off = (k - 1) / ((d - k) * 2 * k)
    assert torch.allclose(after.w[:, k:].abs(), torch.tensor(off, dtype=torch.float64))


def test_the_printed_sign_of_claim_7_is_wrong() -> None:
    x = every_sign(11)
    start = TheoryWeights.drawn(11, 16, 4, seed=0)
    slope = start.hinge_slope(x, x[:, :4].prod(1))
    assert float((slope + one_step.parity_gradient(start)).abs().max()) > 1e-4


def test_without_the_right_weight_decay_the_start_does_not_cancel() -> None:
    """The printed λ₁ = 1 leaves (1 − 2η₁λ₁)W: 2η₁λ₁ = 1 is what removes it."""
    start = TheoryWeights.drawn(11, 16, 4, seed=0)
    assert abs(1 - 2 * start.rate) > 100


def test_correlations_of_pairs_and_networks() -> None:
    d, k, x = 13, 4, every_sign(13)
    y = x[:, :k].prod(1)
    random, aligned = (first_stage(TheoryWeights.drawn(d, 256, k, seed=2, aligned=a), x, y) for a in (False, True))
    pair = one_step.pair_correlation(random.w[0], 0.0, x).abs()
    assert torch.allclose(pair[:k], torch.tensor(1 / (2 * k), dtype=torch.float64))
    assert torch.allclose(pair[k:] / pair[0], torch.tensor((k - 1) / (d - k), dtype=torch.float64))
    on, off = (one_step.network_correlation(aligned, x).abs()[part] for part in (slice(k), slice(k, None)))
    assert float(on.mean()) == pytest.approx(0.0686, abs=0.012) and float(on.min()) >= 1 / (8 * k)
    assert float(off.max()) < 0.17 * float(on.mean())
    assert float(one_step.network_correlation(random, x).abs()[:k].mean()) < 1 / (8 * k)
    sets = [*itertools.combinations(range(6), 2), *itertools.combinations(range(6), 4)]
    for network in (random, aligned):
        assert float((network(x) @ one_step.characters(x, sets) / len(x)).abs().max()) < 1e-12
        majority = network(x) * x.sum(1).sign()
        assert float((majority @ x / len(x)).abs().max()) < 1e-12


@pytest.mark.parametrize("k", [4, 6])
def test_a_pair_correlates_with_the_support_on_average_over_its_bias_and_not_at_each(k: int) -> None:
    """Lemma 64: 1/(2k) is the mean over the grid of biases; at one bias the factor lies between 0 and 2."""
    d, x = 13, every_sign(13)
    start = TheoryWeights.drawn(d, 16, k, seed=2)
    w = one_step.first_step_weights(start)
    for neuron in range(8):
        grid = [b / k for b in range(1 - k, k)]
        found = torch.stack([one_step.pair_correlation(w[neuron], b, x) for b in grid])
        mean, size = found.mean(0).abs() * 2 * k, found[:, :k].abs() * 2 * k
        assert torch.allclose(mean[:k], torch.ones(k, dtype=torch.float64), rtol=0, atol=1e-12)
        assert torch.allclose(mean[k:], torch.tensor((k - 1) / (d - k), dtype=torch.float64), rtol=0, atol=1e-12)
        assert float(size.min()) < 0.01 and float(size.max()) > 1.99
        near = found[grid.index(1 / k)].abs()
        assert float(near[k:].max() / near[:k].min()) == pytest.approx((k - 1) / (d - k), rel=0.05)


def test_weights_of_a_finite_batch_are_as_near_to_the_stated_ones_as_lemma_63_says() -> None:
    """τ_g/|ζ_{k−1}| with τ_g = √(log(md/δ)/B₁): an error that falls with the root of the batch."""
    d, k, m, delta = 15, 4, 64, 0.1
    start = TheoryWeights.drawn(d, m, k, seed=3)
    stated, errors = one_step.first_step_weights(start), []
    for batch in (1024, 16_384):
        bound = math.sqrt(math.log(m * d / delta) / batch) / abs(majority_coefficient(d, k - 1))
        for seed in range(4):
            x = 1.0 - 2.0 * torch.randint(2, (batch, d), generator=rng(seed, batch)).double()
            errors.append(float((first_stage(start, x, x[:, :k].prod(1)).w - stated).abs().max()))
            assert 0.1 * bound < errors[-1] < bound
    assert 3 < sum(errors[:4]) / sum(errors[4:]) < 6


def test_symmetry_alone_does_not_make_the_even_degrees_vanish() -> None:
    """Lemma 64 says "symmetric and so odd": |Σ x_i| is symmetric, and E[|Σ x_i| x₁x₂] is not 0."""
    x = every_sign(11)
    symmetric, odd = x.sum(1).abs(), x.sum(1).sign()
    pair = x[:, :2].prod(1)
    assert abs(float((symmetric * pair).mean())) > 0.1
    assert abs(float((odd * pair).mean())) < 1e-14


def test_the_informal_theorem_has_another_first_stage_than_the_proved_one() -> None:
    """Theorem 22: k³; Theorem 23: k² log(dm̃/δ), and k⁴ log(k/δ) in the second stage."""
    d, k, epsilon, delta = 10, 4, 0.1, 0.1
    second = 2**k * d**2 / epsilon**2
    assert informal_samples(d, k, epsilon) - second == pytest.approx(k**3)
    proved = one_step.progressive_samples(d, k, 100, epsilon, delta) - k**4 * math.log(k / delta) * second
    assert proved == pytest.approx(k**2 * math.log(d * 100 / delta), rel=1e-4)


def test_the_second_stage_lowers_the_loss_of_a_network_that_sees_the_support() -> None:
    d, k, generator = 11, 2, rng(0)
    x = every_sign(d)
    y = x[:, :k].prod(1)
    network = first_stage(TheoryWeights.drawn(d, 256, k, seed=3), x, y)
    draw = lambda n: x[torch.randint(len(x), (n,), generator=generator)]  # noqa: E731
    target = lambda z: z[:, :k].prod(1)  # noqa: E731
    _, losses = second_stage(network, draw, target, steps=4000, held_out=x, labels=y)
    assert losses[0] > 0.95 and min(losses) < 0.5


def test_an_aligned_teacher_shows_the_support_and_labels_do_not() -> None:
    d, k = 15, 4
    student = TheoryWeights.drawn(d, 128, k, seed=0)
    start = TheoryWeights.drawn(d, 256, k, seed=1, aligned=True)
    teacher = TheoryWeights(one_step.first_step_weights(start), start.b, start.a, k)
    x = 1.0 - 2.0 * torch.randint(2, (256, d), generator=rng(1)).double()
    assert recovers_support(student, x, teacher(x))
    assert not recovers_support(student, x, x[:, :k].prod(1))


def test_the_square_in_lemma_65_has_the_other_sign() -> None:
    """|ζ_{k−1}|⁻² is d^(k−1) in order; |ζ_{k−1}|², as printed, would let the samples fall with d."""
    for k in (4, 6, 8):
        low, high = (majority_coefficient(d, k - 1) ** -2 for d in (301, 1001))
        assert math.log(high / low) / math.log(1001 / 301) == pytest.approx(k - 1, abs=0.1)
        slope = math.log10(one_step.teacher_samples(10**8, k) / one_step.teacher_samples(10**7, k))
        assert slope == pytest.approx(k - 1, abs=0.1)


def test_bounds_grow_as_stated() -> None:
    ratio = one_step.teacher_samples(200, 6) / one_step.teacher_samples(100, 6)
    assert 25 < ratio < 40
    assert one_step.progressive_samples(100, 6, 100) < one_step.teacher_samples(100, 6) / 10
    assert one_step.oneshot_samples(100, 6, 100) == 100**4 / 100
    assert one_step.query_lower_bound(100, 6, 100, 0.1) == pytest.approx(0.5 * math.comb(100, 6) * 0.1 * 0.01 / 100)


def test_bounds_side_by_side_have_the_printed_powers_of_the_dimension() -> None:
    """Slopes of log samples against log d, read off between two large d (k = 6, c = 2)."""
    low, high = sample_bounds(10**5, 6), sample_bounds(10**6, 6)
    slopes = {name: math.log10(high[name] / low[name]) for name in low}
    assert slopes == pytest.approx(
        {
            "teacher (Lemma 65)": 5.0,
            "progressive (Theorem 23)": 2.0,
            "progressive (Theorem 22)": 2.0,
            "one-shot at least (Theorem 23)": 4.0,
            "Corollary 5": 6 + 7 / 3,
        },
        abs=0.1,
    )
    assert informal_samples(10, 3, 0.5) == 8 * 100 / 0.25 + 27
    with pytest.raises(BadInput):
        sample_bounds(4, 6)
