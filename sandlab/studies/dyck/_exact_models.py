"""Exact and disturbed Dyck models, for the studies of the theorems on balance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from sandlab.circuits.dyck.balanced import balanced_dyck, random_balanced_scores, stack_like_scores, uniform_dyck
from sandlab.lenses.dyck.balance import balance_report
from sandlab.lenses.dyck.balance_bounds import cancelling_residue, pumped_twins
from sandlab.lenses.dyck.pumping import pumped_attention, pumped_memory
from sandlab.models.base import seeded
from sandlab.models.dyck.codes import BalanceTransformer
from sandlab.models.hooks import record
from sandlab.random import rng
from sandlab.studies.dyck._shared import probe_word
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.dyck.language import Dyck

PUMPS = (0, 1, 3, 10, 30, 100, 300, 1000)
NOISES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
FAR = 1_000_000


@dataclass(frozen=True)
class DrawJob:
    """A random balanced attention on a language."""

    world: Dyck
    seed: int


@dataclass(frozen=True)
class Draw:
    """What was measured on one random balanced attention; arrays run over NOISES or PUMPS.

    errors, losses                  of disturbed models: largest error, squared loss above the best (relative to it)
    violations, ratios              of disturbed models: β and the largest ‖S‖/P
    any_embedding                   largest error on random linearly independent embeddings
    random_apart                    distance of the normed outputs on two pumped words, all weights random
    cancelling, not_cancelling      `cancelling_residue` of balanced and of disturbed scores
    faded                           length of the attention's output after 1000 pairs over that after 100
    map                             attention on the probe word
    balanced_pump, disturbed_pump   memory of the open bracket
    """

    errors: np.ndarray
    violations: np.ndarray
    losses: np.ndarray
    ratios: np.ndarray
    any_embedding: float
    random_apart: float
    cancelling: float
    not_cancelling: float
    faded: float
    map: np.ndarray
    balanced_pump: np.ndarray
    disturbed_pump: np.ndarray


def examine(job: DrawJob) -> Draw:
    """One random balanced attention: its error and violation, the same with noise, and what pumping does to it."""
    world, seed = job.world, job.seed
    types, depth = world.types, world.largest_depth
    batch = world.sample(4, rng=rng(seed, "words"))
    truth = world.oracle(batch).exp()
    scores, noise = draw_scores(world, seed)
    mixing = 0.1 * torch.randn(scores.shape, generator=rng(seed, "embeddings"), dtype=torch.float64)
    embeddings = torch.eye(len(scores), dtype=torch.float64) + mixing  # linearly independent, well conditioned
    elsewhere = balanced_dyck(types, depth, scores=scores, coordinates=embeddings)
    models = [disturbed(world, seed, size) for size in NOISES]
    with torch.no_grad():
        outputs = [model.probs(batch.inputs) for model in models]
        any_embedding = float((elsewhere.probs(batch.inputs) - truth).abs().max())
    reports = [balance_report(model) for model in models]
    least = float((truth * (1 - truth)).sum(-1).mean())  # the squared loss of the true probabilities
    balanced, unbalanced = models[0], models[NOISES.index(0.3)]
    return Draw(
        errors=np.array([float((probs - truth).abs().max()) for probs in outputs]),
        violations=np.array([report.violation for report in reports]),
        losses=np.array([float((probs - truth).square().sum(-1).mean()) / least for probs in outputs]),
        ratios=np.array([float(report.ratios.max()) for report in reports]),
        any_embedding=any_embedding,
        random_apart=_random_apart(world, seed),
        cancelling=cancelling_residue(scores, types, depth),
        not_cancelling=cancelling_residue(scores + 0.3 * noise, types, depth),
        faded=pumped_attention(balanced, 1000) / pumped_attention(balanced, 100),
        map=_probe_map(balanced),
        balanced_pump=np.array([pumped_memory(balanced, pairs) for pairs in PUMPS]),
        disturbed_pump=np.array([pumped_memory(unbalanced, pairs) for pairs in PUMPS]),
    )


def draw_scores(world: Dyck, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random balanced scores, and noise of their shape."""
    scores = random_balanced_scores(world.types, world.largest_depth, rng=rng(seed, "scores"))
    return scores, torch.randn(scores.shape, generator=rng(seed, "noise"), dtype=torch.float64)


def disturbed(world: Dyck, seed: int, size: float) -> BalanceTransformer:
    """The exact circuit for random balanced scores, its attention disturbed and everything else unchanged."""
    scores, noise = draw_scores(world, seed)
    model = balanced_dyck(world.types, world.largest_depth, world.opening, scores=scores)
    with torch.no_grad():
        model.layers[0].score[: len(scores), : len(scores)] += size * noise
    return model


def uniform_error(world: Dyck) -> float:
    """Largest error of the circuit with uniform attention in both layers, on four prefixes."""
    return _largest_error(uniform_dyck(world.types, world.largest_depth), world, "uniform")


def excess_loss(world: Dyck) -> float:
    """Largest difference between the cross-entropy of three exact models and the oracle's on the same words.

    The three: random balanced attention, uniform attention over (type, depth) codes, uniform attention over tokens.
    """
    types, depth = world.types, world.largest_depth
    batch = world.sample(2, rng=rng(depth, "loss"))
    scores = random_balanced_scores(types, depth, rng=rng(depth, "scores"))
    models = (balanced_dyck(types, depth, scores=scores), balanced_dyck(types, depth), uniform_dyck(types, depth))
    best = world.optimal_loss(batch)
    with torch.no_grad():
        return max(abs(float(cross_entropy(model(batch.inputs), batch)) - best) for model in models)


def kinds_of_attention(world: Dyck) -> dict[str, tuple[np.ndarray, float]]:
    """Uniform, stack-like and random balanced attention: the map on the probe word, the largest error on long words."""
    types, depth = world.types, world.largest_depth
    random = random_balanced_scores(types, depth, rng=rng(0, "scores"))
    kinds = {"uniform": torch.zeros_like(random), "stack-like": stack_like_scores(types, depth), "random": random}
    models = {name: balanced_dyck(types, depth, scores=scores) for name, scores in kinds.items()}
    return {name: (_probe_map(model), _largest_error(model, world, "kinds")) for name, model in models.items()}


def _largest_error(model: BalanceTransformer, world: Dyck, stream: str) -> float:
    batch = world.sample(4, rng=rng(0, stream))
    with torch.no_grad():
        return float((model.probs(batch.inputs) - world.oracle(batch).exp()).abs().max())


def _probe_map(model: BalanceTransformer) -> np.ndarray:
    with record(model, "layers.0.pattern") as cache, torch.no_grad():
        model(probe_word(model.config.types, model.config.depth))
    return cache["layers.0.pattern"][0].numpy()


def _random_model(world: Dyck, seed: int) -> BalanceTransformer:
    with seeded(seed):
        return BalanceTransformer(
            types=world.types, depth=world.largest_depth, widths=(24, 2 * world.types), hidden=((32,),)
        ).double()


def _random_apart(world: Dyck, seed: int) -> float:
    """All weights drawn at random: distance of the normed outputs on two pumped words, worst query and pair.

    The two words have different brackets to close; where this goes to 0, no continuous read-out can be right on both.
    """
    model = _random_model(world, seed)
    ratios = balance_report(model).ratios
    query, kind, level, pair = (int(index) for index in np.unravel_index(int(ratios.argmax()), ratios.shape))
    return pumped_twins(model, FAR, (query + 2, kind), (level + 1, pair)).distance
