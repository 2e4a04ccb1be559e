"""Verifiers against scikit-learn, decoders against their exact distributions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, roc_auc_score, roc_curve

import sandlab as sl
from sandlab.decoding.decoders.rejection import Rejection, TokenwiseRejection
from sandlab.decoding.decoders.sampling import Temperature
from sandlab.decoding.exact.distributions import (
    kl_divergence,
    restricted_distribution,
    tokenwise_distribution,
    total_variation,
)
from sandlab.decoding.exact.trees import Tree
from sandlab.decoding.quality import draw_quality, faithfulness, verifier_quality
from sandlab.figures import new


def scores(seed: int, count: int = 400, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    labels = (chance.uniform(size=count) < 0.6).astype(int)
    found = np.clip(0.35 + 0.3 * labels + 0.2 * chance.normal(size=count), 0, 1)
    return (np.round(found, 1) if ties else found), labels


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_curves_are_those_of_scikit_learn(seed, ties):
    found, labels = scores(seed, ties=ties)
    quality = verifier_quality(found, labels)
    assert quality.area == pytest.approx(roc_auc_score(labels, found), abs=1e-12)
    # Scikit-learn speaks of what is accepted (score ≥ threshold); rejected is the rest.
    wrong_accepted, right_accepted, thresholds = roc_curve(labels, found, drop_intermediate=False)
    ours = dict(zip(quality.thresholds.tolist(), zip(quality.caught, quality.wronged)))
    for false, true, threshold in zip(wrong_accepted, right_accepted, thresholds):
        assert ours[float(threshold)] == pytest.approx((1 - false, 1 - true))
    middle = quality.thresholds[len(quality.thresholds) // 2]
    place = int(np.searchsorted(quality.thresholds, middle))
    assert quality.accuracy[place] == pytest.approx(accuracy_score(labels, found >= middle))


def test_calibration_is_that_of_scikit_learn():
    found, labels = scores(5)
    quality = verifier_quality(found, labels, bins=7)
    observed, predicted = calibration_curve(labels, found, n_bins=7)
    assert np.allclose(quality.predicted, predicted) and np.allclose(quality.observed, observed)
    assert quality.counts.sum() == 400
    _, axes = new(columns=3)
    draw_quality(axes, quality)
    assert axes[0].get_legend().get_texts()[0].get_text() == f"area {quality.area:.3f}"


def test_scores_of_one_kind_only_are_refused():
    with pytest.raises(sl.BadInput, match="labels must be both 0 and 1"):
        verifier_quality([0.1, 0.2], [1, 1])
    with pytest.raises(sl.BadInput, match="one for each of the 2 scores"):
        verifier_quality([0.1, 0.2], [1])


def test_faithfulness_is_the_distance_between_exact_laws():
    tree = Tree.random(2, 4, rng=sl.rng(0))
    accepted = (np.random.default_rng(1).uniform(size=16) < 0.5).astype(float)
    verdicts = tree.verdicts(accepted)
    target, mass = restricted_distribution(tree, accepted), float(tree.reach[-1] @ accepted)
    exact = faithfulness(Rejection(), tree, verdicts, runs=40_000, rng=sl.rng(1))
    assert exact.distance < 0.02 and exact.success == 1 and exact.distinct == int((target > 0).sum())
    assert exact.queries == pytest.approx(4 / mass, rel=0.05)
    token = faithfulness(TokenwiseRejection(), tree, verdicts, runs=40_000, rng=sl.rng(2))
    probs = tokenwise_distribution(tree, verdicts)
    assert token.distance == pytest.approx(total_variation(probs, target), abs=0.02)
    assert token.divergence == pytest.approx(kl_divergence(target, probs), abs=0.02)
    plain = faithfulness(Temperature(), tree, verdicts, runs=40_000, rng=sl.rng(3))
    assert plain.success == pytest.approx(mass, abs=0.02)
    assert plain.distance == pytest.approx(1 - mass, abs=0.02)
    assert plain.queries == 4


def test_runs_that_fail_count_as_distance():
    tree = Tree.uniform(2, 2)
    accepted = np.array([0.0, 0.0, 0.0, 1.0])
    blocked = [np.ones(1), np.array([1.0, 0.0]), accepted]
    found = faithfulness(TokenwiseRejection(max_draws=5), tree, blocked, runs=50, rng=sl.rng(0))
    assert found.distance == 1.0 and found.success == 0 and found.divergence == np.inf
