"""Exact and disturbed Dyck models at random, for the theorems on balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab.circuits.dyck.balanced import balanced_dyck, random_balanced_scores, stack_like_scores, uniform_dyck
from sandlab.lenses.dyck.balance import balance_gap, balance_report, balance_violation
from sandlab.lenses.dyck.balance_bounds import cancelling_residue, pumped_twins
from sandlab.models.base import seeded
from sandlab.models.dyck.codes import BalanceTransformer
from sandlab.models.hooks import record
from sandlab.random import rng
from sandlab.studies.dyck.runs import probe_word
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.dyck.language import Dyck

__all__ = ["NOISES", "PUMPS", "BalanceJob", "examine", "excess_loss", "kinds_of_attention"]

PUMPS = (0, 1, 3, 10, 30, 100, 300, 1000)
FAR = 1_000_000
NOISES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class BalanceJob:
    seed: int
    length: int
    types: int
    depth: int


def examine(job: BalanceJob) -> dict[str, Any]:
    """One random balanced attention: its error and violation, the same with noise, and how pumping forgets."""
    world = Dyck(job.types, job.depth, job.length)
    batch = world.sample(4, rng=rng(job.seed, "words"))
    truth = world.oracle(batch).exp()
    scores = random_balanced_scores(job.types, job.depth, rng=rng(job.seed, "scores"))
    places = random_coordinates(len(scores), rng(job.seed, "places"))
    exact = balanced_dyck(job.types, job.depth, scores=scores, coordinates=places)
    with torch.no_grad():
        elsewhere = float((exact.law(batch.inputs) - truth).abs().max())
    noise = torch.randn(scores.shape, generator=rng(job.seed, "noise"), dtype=torch.float64)
    errors, violations, losses, ratios = [], [], [], []
    best = float((truth * (1 - truth)).sum(-1).mean())  # the squared loss of the true law
    for size in NOISES:
        model = _perturbed(scores, size * noise, job)
        with torch.no_grad():
            law = model.law(batch.inputs)
        errors.append(float((law - truth).abs().max()))
        losses.append(float((law - truth).square().sum(-1).mean()) / best)
        violations.append(balance_violation(model))
        ratios.append(float(balance_report(model).ratios.max()))
    probe = probe_word(job.types, job.depth)
    model = _perturbed(scores, 0 * noise, job)
    with record(model, "layers.0.pattern") as cache, torch.no_grad():
        model.law(probe)
    unbalanced = _perturbed(scores, 0.3 * noise, job)
    return {
        "errors": np.array(errors),
        "violations": np.array(violations),
        "losses": np.array(losses),
        "ratios": np.array(ratios),
        "gap": balance_gap(scores, job.types, job.depth),
        "elsewhere": elsewhere,
        "random": random_parameters(job),
        "equivalence": _equivalence(job, exact, elsewhere),
        "cancelling": cancelling_residue(scores, job.types, job.depth),
        "not_cancelling": cancelling_residue(scores + 0.3 * noise, job.types, job.depth),
        "faded": _attention_size(model, 1000) / _attention_size(model, 100),
        "map": cache["layers.0.pattern"][0].numpy(),
        "balanced_pump": np.array([_pump(model, pairs) for pairs in PUMPS]),
        "unbalanced_pump": np.array([_pump(unbalanced, pairs) for pairs in PUMPS]),
    }


def excess_loss(types: int, depth: int, length: int) -> float:
    """Largest difference between the cross-entropy of three exact models and the oracle's on the same words.

    The three: random balanced attention, uniform attention over (type, depth) codes, uniform attention over tokens.
    """
    world = Dyck(types, depth, length)
    batch = world.sample(2, rng=rng(depth, "loss"))
    scores = random_balanced_scores(types, depth, rng=rng(depth, "scores"))
    models = (balanced_dyck(types, depth, scores=scores), balanced_dyck(types, depth), uniform_dyck(types, depth))
    best = world.optimal_loss(batch)
    with torch.no_grad():
        return max(abs(float(cross_entropy(model(batch.inputs), batch)) - best) for model in models)


def kinds_of_attention(types: int, depth: int, length: int) -> dict[str, tuple[np.ndarray, float]]:
    """Uniform, stack-like and random balanced attention: the map on the probe word and the error on long words."""
    kinds = {
        "uniform": torch.zeros(2 * types * depth + 1, 2 * types * depth + 1, dtype=torch.float64),
        "stack-like": stack_like_scores(types, depth),
        "random": random_balanced_scores(types, depth, rng=rng(0, "scores")),
    }
    world = Dyck(types, depth, length)
    batch = world.sample(4, rng=rng(1, "kinds"))
    truth, found = world.oracle(batch).exp(), {}
    for name, scores in kinds.items():
        model = balanced_dyck(types, depth, scores=scores)
        with torch.no_grad(), record(model, "layers.0.pattern") as cache:
            model.law(probe_word(types, depth))
        with torch.no_grad():
            error = float((model.law(batch.inputs) - truth).abs().max())
        found[name] = (cache["layers.0.pattern"][0].numpy(), error)
    return found


def random_coordinates(codes: int, generator: torch.Generator) -> torch.Tensor:
    """Linearly independent embeddings: the unit vectors and a random matrix, well conditioned."""
    return torch.eye(codes, dtype=torch.float64) + 0.1 * torch.randn(
        codes, codes, generator=generator, dtype=torch.float64
    )


def random_parameters(job: BalanceJob) -> float:
    """All weights drawn at random: how far apart the normed outputs on two pumped words are, worst query and pair.

    The two words have different brackets to close; where this goes to 0, no continuous read-out can be right on both.
    """
    model = _random_model(job, job.seed)
    query, kind, level, pair = np.unravel_index(int(balance_report(model).ratios.argmax()), _shape(job))
    return pumped_twins(model, FAR, (int(query) + 2, int(kind)), (int(level) + 1, int(pair))).apart


def _shape(job: BalanceJob) -> tuple[int, int, int, int]:
    return job.depth - 1, job.types, job.depth, job.types


def _random_model(job: BalanceJob, seed: int) -> BalanceTransformer:
    with seeded(seed):
        return BalanceTransformer(
            types=job.types, depth=job.depth, widths=(24, 2 * job.types), hidden=((32,),)
        ).double()


def _least_confusion(model: BalanceTransformer, job: BalanceJob, length: int) -> float:
    """Over queries and pairs whose residue does not vanish: the smallest of the larger errors of the two words."""
    report = balance_report(model)
    found = [0.0]
    for query, kind, level, pair in np.argwhere(report.ratios > 1e-6):
        twins = pumped_twins(model, length, (int(query) + 2, int(kind)), (int(level) + 1, int(pair)))
        found.append(max(twins.errors) / (twins.law_apart / 2))
    return min(found[1:], default=0.0)


def _equivalence(job: BalanceJob, exact: BalanceTransformer, error: float) -> float:
    """Of two random models, one balanced and one not: the share for which balance and exactness say the same."""
    other = _random_model(job, job.seed + 1000)
    agree = []
    for model, wrong in ((exact, error), (other, None)):
        balanced = balance_report(model).ratios.max() < 1e-9
        perfect = (wrong is None or wrong < 1e-6) and _least_confusion(model, job, FAR) < 1e-3
        agree.append(bool(balanced) == perfect)
    return float(np.mean(agree))


def _attention_size(model: BalanceTransformer, pairs: int) -> float:
    """Length of the attention's output before the norm, after so many matched pairs."""
    words = torch.tensor([[2 * model.config.types, 0, *[0, 1] * pairs, 2, 3]])
    with record(model, "layers.0.z") as cache, torch.no_grad():
        model.law(words)
    return float(cache["layers.0.z"][0, -1].norm())


def _perturbed(scores: torch.Tensor, noise: torch.Tensor, job: BalanceJob) -> BalanceTransformer:
    """The exact circuit for `scores` whose attention is then disturbed, everything else unchanged."""
    model = balanced_dyck(job.types, job.depth, scores=scores)
    size = len(scores)
    with torch.no_grad():
        model.layers[0].score[:size, :size] += noise  # type: ignore[index,operator]
    return model


def _pump(model: BalanceTransformer, pairs: int) -> float:
    """How far apart the normed streams are after ( and after [, with so many matched pairs put between."""
    start = 2 * model.config.types
    words = torch.tensor([[start, top, *[0, 1] * pairs, 2, 3] for top in (0, 2)])
    with record(model, "layers.0.normed") as cache, torch.no_grad():
        model.law(words)
    first, second = cache["layers.0.normed"][:, -1]
    return float((first - second).norm())
