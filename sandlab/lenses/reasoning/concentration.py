"""Where the clauses of an answer look: heat maps, diagonals, concentration and gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.learning._engine.precision import computing
from sandlab.learning.experiment import Snapshot
from sandlab.learning.population import Population
from sandlab.lenses.predictions import evaluating
from sandlab.lenses.reasoning.answers import answer_accuracy
from sandlab.models.hooks import record
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.lego import Lego

__all__ = [
    "AnswerAttention",
    "ContextRot",
    "Diagonals",
    "PermutationCheck",
    "PlainMaps",
    "answer_patterns",
    "attention_concentration",
    "measure_attention",
]


@dataclass(frozen=True)
class AnswerAttention:
    """Attention of the answer clauses, averaged over heads and chains; a population's member axis is first.

    maps        (…, step, key): row ℓ is the query of answer ℓ, keys are all clauses of the text (0 where hidden)
    predicate   (…, step): mass on the predicate that consumes the answered variable
    answer      (…, step): mass on the answer clause itself
    top         (…): share of rows whose largest predicate key is the right one
    own         (…): share of rows whose largest answer key is the clause itself
    """

    maps: Tensor
    predicate: Tensor
    answer: Tensor
    top: Tensor
    own: Tensor

    @property
    def left_over(self) -> Tensor:
        """ε^{L,ℓ} = 1 − mass on the two target clauses."""
        return 1 - self.predicate - self.answer

    @property
    def gap(self) -> Tensor:
        """Δ^{L,ℓ}, signed: predicate minus answer."""
        return self.predicate - self.answer


def answer_patterns(model: nn.Module, world: Lego, batch: Batch) -> Float[Tensor, "*member n step key"]:
    """Attention rows of answers 0 … S − 1, averaged over the heads of the first layer."""
    name = "layers.0.attention.pattern" if hasattr(_template(model), "layers") else "pattern"
    with evaluating(model), torch.no_grad(), record(model, name) as cache:
        model(batch.inputs)
    pattern = cache[name]
    rows = pattern[..., -world.predicted_steps :, :]
    return rows.mean(-3) if name.startswith("layers") else rows


def _template(model: nn.Module) -> nn.Module:
    return model.template if isinstance(model, Population) else model


@register("lenses")
def attention_concentration(
    model: nn.Module, world: Lego, *, examples: int = 100, rng: torch.Generator
) -> AnswerAttention:
    """Attention of each answer on the predicate it needs and on itself, over fresh chains.

    ε^{L,ℓ} = 1 − Attn_{ans,ℓ−1→pred,ℓ} − Attn_{ans,ℓ−1→ans,ℓ−1}; Δ^{L,ℓ} is the difference of the two masses.

    Source: Huang et al. 2025, eq. (19), (20), Figures 2, 5, 6, 7.
    """
    return measure_attention(model, world, world.sample(examples, rng=rng))


def measure_attention(model: nn.Module, world: Lego, batch: Batch) -> AnswerAttention:
    """`attention_concentration` on a given batch."""
    rows, steps, texts = answer_patterns(model, world, batch), world.predicted_steps, world.predicates
    place = batch.truth["place"][:, :steps].unsqueeze(-1)
    place = place.expand(*rows.shape[:-1], 1)
    step = torch.arange(steps, device=rows.device).view(-1, 1).expand(*rows.shape[:-1], 1)
    predicate = rows.gather(-1, place).squeeze(-1)
    answer = rows.gather(-1, texts + step).squeeze(-1)
    top = rows[..., :texts].argmax(-1, keepdim=True) == place
    own = rows[..., texts:].argmax(-1, keepdim=True) == step
    axes = (-1, -2, -3)
    return AnswerAttention(
        rows.mean(-3), predicate.mean(-2), answer.mean(-2), top.double().mean(axes), own.double().mean(axes)
    )


def _lego(snapshot: Snapshot) -> Lego:
    assert isinstance(snapshot.world, Lego)
    return snapshot.world


@dataclass(frozen=True)
class PlainMaps:
    """A probe at the training length: "map" (member, step, key), and whether both diagonals are the largest.

    Also "top predicate" and "top answer": shares of rows whose largest entry in each half is the target.
    """

    examples: int = 100

    def __call__(self, snapshot: Snapshot) -> Mapping[str, object]:
        found = attention_concentration(
            snapshot.model, _lego(snapshot), examples=self.examples, rng=snapshot.rng(9, "maps")
        )
        return {"map": found.maps, "top predicate": found.top, "top answer": found.own, "left over": found.left_over}


@dataclass(frozen=True)
class Diagonals:
    """A probe out of length: "predicate L" and "answer L" (member, step) for each tested length L."""

    lengths: tuple[int, ...] = (10, 20, 40)
    examples: int = 100

    def __call__(self, snapshot: Snapshot) -> Mapping[str, object]:
        found: dict[str, Any] = {}
        for length in self.lengths:
            world, draws = _lego(snapshot).fresh(length=length), snapshot.rng(9, "diagonals", length)
            measured = attention_concentration(snapshot.model, world, examples=self.examples, rng=draws)
            found |= {f"predicate {length}": measured.predicate, f"answer {length}": measured.answer}
            found[f"block {length}"] = measured.maps
        return found


@dataclass(frozen=True)
class PermutationCheck:
    """A probe: the same chains with their predicate clauses shuffled.

    "logit change": largest difference of an answer's logits; "followed": share of rows whose largest predicate key is
    the moved clause; "permuted map" and "permutation": attention on one order of the clauses, and that order.
    """

    examples: int = 100

    def __call__(self, snapshot: Snapshot) -> Mapping[str, object]:
        world, model = _lego(snapshot), snapshot.model
        draws = snapshot.rng(10, "permuted")
        batch = world.sample(self.examples, rng=draws)
        order = torch.rand(self.examples, world.length, generator=draws, device=draws.device).argsort(-1)
        names, acts, values = (batch.truth[name] for name in ("variables", "actions", "values"))
        moved = world.compose(names, acts, values, order)
        same = world.compose(names, acts, values, order[:1].expand_as(order))
        # In full precision: rounded products would hide that the answers do not change.
        with evaluating(model), torch.no_grad(), computing("float32", snapshot.device):
            change = (model(moved.inputs) - model(batch.inputs)).abs().flatten(1).amax(-1)
        return {
            "logit change": change,
            "followed": measure_attention(model, world, moved).top,
            "permuted map": measure_attention(model, world, same).maps,
            "permutation": order[:1].expand(len(model), -1),
        }


@dataclass(frozen=True)
class ContextRot:
    """A probe: accuracy and attention at a fixed chain length as clauses of another chain are added (member, count)."""

    unrelated: tuple[int, ...] = (0, 5, 10, 20)
    length: int = 10
    examples: int = 200

    def __call__(self, snapshot: Snapshot) -> Mapping[str, object]:
        right, spread = [], []
        for count in self.unrelated:
            world, draws = _lego(snapshot).fresh(length=self.length, unrelated=count), snapshot.rng(11, "rot", count)
            right.append(answer_accuracy(snapshot.model, world, examples=self.examples, rng=draws).all_steps)
            measured = attention_concentration(snapshot.model, world, examples=self.examples, rng=draws)
            spread.append(measured.left_over.mean(-1))
        return {"rot accuracy": torch.stack(right, -1), "rot left over": torch.stack(spread, -1)}
