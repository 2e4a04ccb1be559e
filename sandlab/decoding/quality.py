"""How good is a verifier, and how faithful is a decoder to the distribution it should sample?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from sandlab import figures
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.exact.distributions import kl_divergence, restricted_distribution, total_variation
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator
from sandlab.errors import integer, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Faithfulness", "VerifierQuality", "draw_quality", "faithfulness", "verifier_quality"]


@dataclass(frozen=True)
class VerifierQuality:
    """What each threshold τ costs and buys when a prefix is rejected if V < τ.

    thresholds   every score that occurs, rising, and one above all of them: the last rejects everything
    caught       share of wrong prefixes that are rejected
    wronged      share of right prefixes that are rejected
    accuracy     share of prefixes that are judged rightly
    area         P(V(right) > V(wrong)) + ½ P(equal): the area under `caught` against `wronged`
    predicted, observed, counts   calibration: mean score, share of right prefixes and number of prefixes by score
    """

    thresholds: np.ndarray
    caught: np.ndarray
    wronged: np.ndarray
    accuracy: np.ndarray
    area: float
    predicted: np.ndarray
    observed: np.ndarray
    counts: np.ndarray


def verifier_quality(
    scores: Sequence[float] | np.ndarray, labels: Sequence[int] | np.ndarray, *, bins: int = 10
) -> VerifierQuality:
    """ROC, accuracy by threshold and calibration of scores in [0, 1] for prefixes that are right (1) or wrong (0)."""
    scores, right = np.asarray(scores, dtype=float), np.asarray(labels) == 1
    require(len(scores) == len(right), "labels", len(right), f"one for each of the {len(scores)} scores")
    require(bool(right.any() and not right.all()), "labels", sorted(set(right.astype(int).tolist())), "both 0 and 1")
    integer("bins", bins, low=1)
    thresholds = np.append(np.unique(scores), np.inf)
    below = scores[None, :] < thresholds[:, None]
    caught, wronged = below[:, ~right].mean(1), below[:, right].mean(1)
    judged = (below != right).mean(1)
    place = np.clip((scores * bins).astype(int), 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    kept = counts > 0
    return VerifierQuality(
        thresholds=thresholds,
        caught=caught,
        wronged=wronged,
        accuracy=judged,
        area=float((np.diff(wronged) * (caught[1:] + caught[:-1]) / 2).sum()),
        predicted=np.bincount(place, scores, bins)[kept] / counts[kept],
        observed=np.bincount(place, right, bins)[kept] / counts[kept],
        counts=counts[kept],
    )


def draw_quality(axes: Sequence[Axes], quality: VerifierQuality) -> None:
    """Three panels: errors caught against right prefixes rejected, calibration, accuracy by threshold."""
    with figures.style():
        axes[0].plot([0, 1], [0, 1], ":", color="#555555")
        axes[0].plot(quality.wronged, quality.caught, label=f"area {quality.area:.3f}")
        axes[0].set(xlabel="right prefixes rejected", ylabel="wrong prefixes rejected", title="every threshold")
        axes[0].legend(loc="lower right")
        axes[1].plot([0, 1], [0, 1], ":", color="#555555")
        axes[1].plot(quality.predicted, quality.observed, marker="o", markersize=4)
        axes[1].set(xlabel="score", ylabel="share that is right", title="calibration", xlim=(0, 1), ylim=(0, 1.02))
        finite = np.isfinite(quality.thresholds)
        axes[2].plot(quality.thresholds[finite], quality.accuracy[finite])
        axes[2].set(xlabel="threshold τ: reject below it", ylabel="judged rightly", title="accuracy by threshold")


@dataclass(frozen=True)
class Faithfulness:
    """A decoder's distribution on a tree beside the target, the model given the language.

    distance     total variation between the distribution of the complete strings that came out and the target
    divergence   KL(target ‖ distribution), infinite if some string of the target never came out
    success      share of runs that ended with a string of positive tilt
    queries      to the model, mean per run
    distinct     different strings among the runs
    """

    distance: float
    divergence: float
    success: float
    queries: float
    distinct: int


def faithfulness(
    decoder: Decoder, tree: Tree, values: Sequence[np.ndarray], *, runs: int, rng: torch.Generator
) -> Faithfulness:
    """Run a decoder on a tree with the numbers `values` as its verifier; the target's tilt is their last level."""
    integer("runs", runs, low=1)
    done = decoder.generate(
        TreeGenerator(tree),
        torch.zeros(runs, 0, dtype=torch.long),
        verifier=TableVerifier(values, tree.tokens),
        max_new=tree.depth,
        rng=rng,
    )
    whole = done.tokens[done.done & (done.lengths == tree.depth)]
    powers = torch.tensor([tree.tokens**place for place in reversed(range(tree.depth))])
    leaves = (whole * powers).sum(1).numpy()
    probs = np.bincount(leaves, minlength=tree.tokens**tree.depth) / runs
    target = restricted_distribution(tree, values[-1])
    return Faithfulness(
        distance=total_variation(probs, target) + (1 - probs.sum()) / 2,
        divergence=kl_divergence(target, probs),
        success=float(probs[values[-1] > 0].sum()),
        queries=float(done.counters["oracle_calls"].double().mean()),
        distinct=len(np.unique(leaves)),
    )
