"""Every theorem and lemma of the chapter as numbers: as printed, and corrected where it has to be.

A number is the left side of an inequality divided by its right side, or a difference divided by its tolerance: at most
1 where the statement holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sandlab.learning.hmm.density_recovery import exact_moments, mixture_from_moments, transitions_from_density
from sandlab.learning.hmm.gaussian_recovery import read_ghmm_pairwise, read_ghmm_two_tokens
from sandlab.learning.hmm.recovery import TWO_TOKEN_TASKS, parameter_error, recover_hmm
from sandlab.learning.hmm.tensors import jennrich, kruskal_condition
from sandlab.lenses.diffusions.bounds import (
    curvature_bound,
    global_l1_bound,
    gobet_violations,
    local_kl_bound,
    loss_curvature,
    mean_true_density,
    random_perturbation,
    second_factor_finite,
)
from sandlab.lenses.diffusions.kernels import excess_risk
from sandlab.lenses.diffusions.mixing import (
    beta_mixing,
    mean_norm_bound,
    ou_mean_norm,
    pair_mixing,
    pointwise_mixing,
)
from sandlab.lenses.hmm.identifiability import jacobian_nullity, predictor_difference
from sandlab.lenses.hmm.posteriors import posterior_saturation
from sandlab.worlds.diffusions.contrast import NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.grid import GridChain
from sandlab.worlds.hmm.doubly_stochastic import circulant
from sandlab.worlds.hmm.instances import make_ghmm, named_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.twins import gap_one_twin, householder, orbit, posterior_sphere, power_twin, reflected_ghmm

STEPS = np.array([[0.8, 0.2], [0.2, 0.8]])


@dataclass(frozen=True)
class Statement:
    """One statement of the source; corrected is None where the printed form needs no correction or has none."""

    where: str
    says: str
    printed: float
    corrected: float | None = None
    correction: str = ""

    @property
    def verdict(self) -> str:
        if self.printed <= 1:
            return "holds"
        return "holds corrected" if self.corrected is not None and self.corrected <= 1 else "fails as printed"


def contrastive() -> list[Statement]:
    """Section 2.1: contrastive learning of diffusions."""
    small = GridChain(reach=1.0, cells=60)
    truth, q, pi = small.kernel(0.5), small.stationary[None], small.stationary
    best = truth / (truth + q)
    slope = np.abs(truth * (best - 1) + q * best).max()
    rng = np.random.default_rng(0)
    near = [local_kl_bound(random_perturbation(truth, 1 / 6, rng), truth, q, pi) for _ in range(20)]
    u, delta = np.meshgrid(np.linspace(0.5, 2, 201), np.linspace(-0.999, 1 / 6, 201))
    curvature = min(loss_curvature(float(a), float(b)) for a, b in zip(delta.ravel(), u.ravel()))
    spread = [global_l1_bound(1.5, eta, NearbyContrast.natural(eta)) for eta in (0.01, 0.1, 0.5)]
    growth = math.log(mean_true_density(1e-5) / mean_true_density(1e-4)) / math.log(10)
    marginal = 0.0 if second_factor_finite(StationaryContrast(), 0.1) else math.inf
    nearby = 0.0 if second_factor_finite(NearbyContrast.natural(0.1), 0.1) else math.inf
    constant = _where_positives_are(truth, q, pi)
    return [
        Statement("Lemma 1", "the optimal classifier is p*/(p* + q)", slope / 1e-12),
        Statement("eq. 2.26", "r″ ≥ 2/(1 + c_q)⁵, c_q = 2", curvature_bound(2.0) / curvature),
        Statement("Theorem 2", "KL ≤ 2(1 + c_q)⁵ε_tr/Δ_min²", max(each["kl"] / each["theorem"] for each in near)),
        Statement(
            "Theorem 3", "E|p − p*| ≤ √risk · second factor", max(each["left"] / each["right"] for each in spread)
        ),
        Statement("Theorem 3", "E p* grows like η^(−d/2)", abs(growth - 0.5) / 1e-3),
        Statement(
            "Theorem 3", "q does not depend on x", marginal, nearby, "with q = π the factor is infinite; q = N(x, 2η)"
        ),
        Statement("Theorem 3", "E_{p*}(h − h*)² ≤ 2ε_tr", constant, constant / 2, "4ε_tr"),
        Statement(
            "Lemma 6", "Gaussian bounds on the kernel", float(sum(gobet_violations(r, 0.1) for r in (0.3, 1, 4)))
        ),
        *mixing(),
    ]


def _where_positives_are(truth: np.ndarray, q: np.ndarray, pi: np.ndarray) -> float:
    """E_{π,p*}(h − h*)²/(2ε_tr) of a classifier that errs only in the cell where p*/q is largest."""
    h = truth / (truth + q)
    place = np.unravel_index((truth / q).argmax(), truth.shape)
    wrong = h.copy()
    wrong[place] *= 0.9
    return float(pi @ (truth * (wrong - h) ** 2).sum(1) / excess_risk(wrong, truth, q, pi))


def mixing() -> list[Statement]:
    chain, mean, peak = GridChain(reach=6.0, cells=400), ou_mean_norm(1.0), 1 / math.sqrt(2 * math.pi)
    times = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
    average = max(beta_mixing(chain, time) / (mean / math.sqrt(math.pi * time)) for time in times)
    far = pointwise_mixing(chain, 0.25)[int(np.abs(chain.x - 3).argmin())] / (mean / math.sqrt(2 * math.pi * 0.25))
    pair, point = pair_mixing(chain, 0.2, 1), beta_mixing(chain, 0.4)
    two = (point + beta_mixing(chain, 0.2)) / 2
    return [
        Statement("Lemma 3", "β(t) = O(B/√t)", average),
        Statement("Lemma 5", "the bound holds from every z", float(far), average, "on average over π, with B/√(πt)"),
        Statement(
            "Lemma 4", "pairs mix like points", abs(pair / point - 1) / 1e-6, abs(pair / two - 1) / 1e-10,
            "like the average of two lags"
        ),
        Statement(
            "eq. 2.2", "B ≤ π(z*)√(d/ρ)", mean / mean_norm_bound(peak, 1.0, printed=True),
            mean / mean_norm_bound(peak, 1.0), "times (2π/ρ)^(d/2)"
        ),
    ]  # fmt: skip


def discrete() -> list[Statement]:
    """Section 2.2: HMMs with tokens."""
    hmm, printed, small = HMM(), named_hmm("hmm-thm6"), named_hmm("hmm-2x2")
    assert isinstance(printed, HMM) and isinstance(small, HMM)
    turned = orbit(printed, 0.7)
    single = max(predictor_difference(printed, turned, f"{t}|1") for t in range(2, 7))
    pairs = max(predictor_difference(printed, named_hmm("hmm-thm6-twin"), t) for t in ("2|1", "1|2", "3|1", "1|3"))
    swap = predictor_difference(small, gap_one_twin(small, 0.1), "3|1")
    recovered = [
        parameter_error(model, *recover_hmm(model.predictor(task), task, 3)).largest
        for model in (hmm, printed)
        for task in TWO_TOKEN_TASKS
    ]
    factors = jennrich(hmm.predictor("2x3|1"), 3)
    unique = factors.error if kruskal_condition(factors.A, factors.B, factors.C) else math.inf
    powers = [np.linalg.matrix_power(np.stack(power_twin(0.5, t)), t) for t in range(2, 13)]
    root = max(float(np.abs(first - second).max()) for first, second in powers)
    flat = jacobian_nullity(hmm, ["2|1", "3|1"]) - 1, jacobian_nullity(hmm, ["2|1"]) - 4
    return [
        Statement("Theorem 4", "x_t|x₁ does not identify an HMM", single / 1e-12),
        Statement("Claim 1", "different T with equal powers t ≥ 2", root / 1e-13),
        Statement("Claim 3", "for every positive t", math.inf, root / 1e-13, "t ≥ 2: a matrix is its own first power"),
        Statement("Theorem 6", "all pairs of three tokens do not identify an HMM", pairs / 1e-8),
        Statement(
            "Theorem 6", "for any number of states", swap / 1e-8, single / 1e-12,
            "k ≥ 3; for k = 2 the twin of one gap is seen at the next"
        ),
        Statement("Proposition 1", "Kruskal: unique decomposition", unique / 1e-9),
        Statement("Theorem 7", "two tokens identify an HMM", max(recovered) / 1e-6),
        Statement("section 3.16", "dimensions of the ambiguity (k = 3)", 2.0 * max(map(abs, flat))),
    ]  # fmt: skip


def gaussian() -> list[Statement]:
    """Section 2.2: Gaussian HMMs."""
    canon = GaussianHMM()
    x = 4 * ((np.arange(60)[:, None] * np.sqrt([2, 3, 5])) % 1) - 2
    found = [each for each in read_ghmm_pairwise(lambda z: canon.predictor("2|1", z), 3, 3) if each.accepted]
    error = parameter_error(canon, found[0].means, found[0].transitions).largest if len(found) == 1 else math.inf
    mirror = np.abs(make_ghmm(householder(canon.M), canon.T).posterior(x) - canon.posterior(x)).max()
    high = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    other = make_ghmm(posterior_sphere(high, angle=1.0, away=np.array([0.0, 0.0, 1.0])), STEPS)
    shared = np.abs(other.posterior(x) - make_ghmm(high, STEPS).posterior(x)).max()
    order = np.eye(3)[[2, 0, 1]]
    matrix = np.linalg.lstsq(make_ghmm(canon.M @ order, canon.T).posterior(x), canon.posterior(x), rcond=None)[0]
    rate = np.abs(posterior_saturation(canon, 0, 20.0) + 20 * (1 - canon.M[:, 0] @ canon.M)).max()
    return [
        Statement("Theorem 5", "x₂|x₁ identifies a Gaussian HMM", error / 1e-6),
        Statement(
            "Lemma 7", "the posterior leaves M and HM only", math.inf if shared < 1e-12 else 0.0, float(mirror) / 1e-13,
            "within the span of M; a (d − k)-sphere of others"
        ),
        Statement("Lemma 8", "φ = Rφ̃ makes R a permutation", float(np.abs(matrix - order.T).max()) / 1e-9),
        Statement("eq. 2.66", "the posterior saturates at the rate 1 − μ_iᵀμ_j", float(rate) / 1e-12),
        *two_tokens(canon),
        *density(canon),
    ]  # fmt: skip


def two_tokens(canon: GaussianHMM) -> list[Statement]:
    errors = {}
    for task in TWO_TOKEN_TASKS:
        kept = [
            each for each in read_ghmm_two_tokens(lambda z, t=task: canon.predictor(t, z), task, 3, 3) if each.accepted
        ]
        worst = [parameter_error(canon, each.means, each.transitions).largest for each in kept]
        errors[task] = worst[0] if len(worst) == 1 else math.inf
    special = make_ghmm(np.linalg.cholesky(0.7 * np.eye(3) + 0.3).T, circulant((0.6, 0.1, 0.3)))
    twin = reflected_ghmm(special)
    same = predictor_difference(special, twin, "1x3|2") < 1e-13
    apart = predictor_difference(special, twin, "2x3|1")
    return [
        Statement("Theorem 8", "2⊗3|1 and 1⊗2|3 identify a Gaussian HMM", max(errors["2x3|1"], errors["1x2|3"]) / 1e-6),
        Statement("Theorem 8", "1⊗3|2 identifies every Gaussian HMM", apart / 1e-6 if same else 0.0),
        Statement("Theorem 8", "1⊗3|2, unless MᵀM1 ∝ 1 and T ≤ 2/k (corrected)", errors["1x3|2"] / 1e-6),
    ]


def density(canon: GaussianHMM) -> list[Statement]:
    direction = np.array([0.8, -0.6, 0.36])
    direction /= np.linalg.norm(direction)
    weights = (canon.T @ canon.posterior(np.zeros((1, 3))).T)[:, 0]
    centres = mixture_from_moments(exact_moments(weights, canon.M, direction))[1]
    steps = transitions_from_density(canon, centres, np.random.default_rng(0))
    found = parameter_error(canon, centres, steps)
    return [
        Statement("Lemma 9", "moments of a Gaussian mixture give its means", found.means_max / 1e-6),
        Statement("Theorem 9", "the density of x₂|x₁ identifies a Gaussian HMM", found.largest / 1e-6),
    ]


def statements() -> list[Statement]:
    """Everything the chapter states that a number decides."""
    return [*contrastive(), *discrete(), *gaussian()]
