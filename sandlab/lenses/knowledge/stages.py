"""What a model knows of a fact: the relation alone, the subject alone, or both; and the stages of learning them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import require
from sandlab.learning.experiment import Snapshot
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.knowledge.facts import FactRecall

__all__ = ["HallucinationStage", "fact_losses", "fact_probe", "hallucination_stage"]


@register("lenses")
def fact_losses(model: nn.Module, world: FactRecall, batch: Batch) -> dict[str, Float[Tensor, "*member"]]:
    """The loss on facts in three parts, in nats, one number per member of a population.

    "total"      −log p(a*)
    "relation"   −log of the mass on the attributes of the right relation, −log Σ_{a ∈ A_r} p(a)
    "subject"    −log of the mass on the answers that have the right place within their relation
    """
    with evaluating(model), torch.no_grad():
        log_probs = log_predictions(model, batch)[..., 0, :].double().unflatten(-1, (world.relations, world.answers))
    relation, attribute = batch.truth["relation"], batch.truth["attribute"]
    row = torch.arange(len(relation), device=relation.device)
    by_relation, by_attribute = log_probs.logsumexp(-1), log_probs.logsumexp(-2)
    parts = {
        "total": log_probs[..., row, relation, attribute],
        "relation": by_relation[..., row, relation],
        "subject": by_attribute[..., row, attribute],
    }
    return {name: -value.mean(-1) for name, value in parts.items()}


def fact_probe(now: Snapshot) -> dict[str, Tensor]:
    """`fact_losses` on the held-out examples: "total loss", "relation loss", "subject loss"."""
    assert isinstance(now.world, FactRecall)
    return {f"{name} loss": value for name, value in fact_losses(now.model, now.world, now.batch).items()}


@dataclass(frozen=True)
class HallucinationStage:
    """The evaluations during which a model knows the relation and guesses the attribute.

    start, stop   first and last step of the longest such stretch (None: there is none)
    loss          mean total loss on it
    """

    start: int | None
    stop: int | None
    loss: float

    @property
    def found(self) -> bool:
        return self.start is not None


@register("lenses")
def hallucination_stage(
    steps: Sequence[int] | np.ndarray,
    total: Sequence[float] | np.ndarray,
    relation: Sequence[float] | np.ndarray,
    answers: int,
    *,
    within: float = 0.05,
    known: float = 0.05,
) -> HallucinationStage:
    """The longest run of evaluations with a relation loss below `known` and a total loss within 5 % of log D.

    There the answer is a fluent guess: of the right kind, and wrong with probability 1 − 1/D.
    """
    steps, total, relation = (np.asarray(values, dtype=float) for values in (steps, total, relation))
    same = len(steps) == len(total) == len(relation)
    require(same, "total", len(total), f"one loss for each of the {len(steps)} evaluations")
    level = np.log(answers)
    inside = (relation < known) & (np.abs(total - level) <= within * level)
    edges = np.diff(np.concatenate([[False], inside, [False]]).astype(int))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if len(starts) == 0:
        return HallucinationStage(None, None, float("nan"))
    longest = int(np.argmax(stops - starts))
    chosen = slice(starts[longest], stops[longest])
    return HallucinationStage(int(steps[chosen][0]), int(steps[chosen][-1]), float(total[chosen].mean()))
