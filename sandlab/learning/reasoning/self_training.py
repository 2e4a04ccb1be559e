"""Self-training on doubled lengths: the model labels longer chains greedily and learns from its labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from sandlab.errors import integer, number
from sandlab.learning.experiment import Training
from sandlab.learning.population import Population
from sandlab.learning.reasoning.annotation import greedy_answers
from sandlab.learning.training import train
from sandlab.worlds.base import Batch, World
from sandlab.worlds.reasoning.clauses import SLOTS
from sandlab.worlds.reasoning.lego import Lego

__all__ = ["LabelledChains", "SelfTrainingStage", "StageLog", "label_chains", "self_train"]

AT_ONCE = 1 << 27
"""Logits computed at once while labelling."""


@dataclass(frozen=True)
class SelfTrainingStage:
    """One stage: draw chains of a length, label them, train on the labels.

    length       L of the stage
    sequences    chains that each member labels
    training     how it is trained on them; optimiser state starts afresh, weights go on
    confidence   keep only chains whose least certain value had this probability (None: all of them)
    truth        True: the true labels, as in supervised training on the length (a control)
    noise        share of chains in whose labels one value is wrong, and all later ones follow from it
    """

    length: int
    sequences: int
    training: Training
    confidence: float | None = None
    truth: bool = False
    noise: float = 0.0

    def __post_init__(self) -> None:
        integer("length", self.length, low=1)
        integer("sequences", self.sequences, low=1)
        number("noise", self.noise, low=0.0, high=1.0)


@dataclass(frozen=True)
class LabelledChains(World):
    """Fixed labelled chains, each member its own: a batch of members · n examples holds n of each member in turn.

    inputs, targets   (member, chain, …); order: the chains of each member, those that are kept first; kept: how many
    """

    world: Lego
    inputs: Int[Tensor, "member chain time"] = field(repr=False)
    targets: Int[Tensor, "member chain target"] = field(repr=False)
    order: Int[Tensor, "member chain"] = field(repr=False)
    kept: Int[Tensor, "member"] = field(repr=False)

    @property
    def vocab(self) -> int:
        return self.world.vocab

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        members = len(self.inputs)
        draws = torch.rand(members, n // members, generator=rng, device=rng.device)
        chosen = self.order.gather(1, (draws * self.kept.unsqueeze(1)).long())
        rows = torch.arange(members, device=chosen.device).unsqueeze(1)
        inputs, targets = (kept[rows, chosen].flatten(0, 1) for kept in (self.inputs, self.targets))
        return Batch(inputs, targets, torch.ones_like(targets, dtype=torch.bool))


@dataclass(frozen=True)
class StageLog:
    """What a stage did, one value per member: share of chains with all labels right, share kept, training loss."""

    label_accuracy: np.ndarray
    kept: np.ndarray
    kept_accuracy: np.ndarray
    loss: np.ndarray


def self_train(
    population: Population[nn.Module], world: Lego, stage: SelfTrainingStage, *, rng: torch.Generator
) -> StageLog:
    """Label chains of the stage's length with the members as they are, then train the members on their labels.

    The labels are made before the first update, so the teacher is frozen; true labels are never mixed in.

    Source: Huang et al. 2025, section 7 (5 → 10 → 20 → 40) and Definition 5.1.
    """
    data, right = label_chains(population, replace(world, length=stage.length), stage, rng=rng)
    how = stage.training
    histories = train(
        population,
        data,
        steps=how.steps,
        batch_size=how.batch_size,
        rng=rng,
        lr=how.lr,
        optimizer=how.optimizer,
        betas=how.betas,
        schedule=how.schedule,
        warmup=how.warmup,
        weight_decay=how.weight_decay,
        clip=how.clip,
        precision=how.precision if population.device.type != "cpu" else "float32",
        data="separate",
        nan=how.nan,
    )
    share = data.kept.cpu().numpy() / right.shape[1]
    ranks = torch.arange(right.shape[1], device=right.device)
    inside = ranks < data.kept.unsqueeze(1)
    good = (right.gather(1, data.order) & inside).sum(1) / data.kept
    last = np.array([float(np.mean(history.loss[-100:])) for history in histories])
    return StageLog(right.double().mean(1).cpu().numpy(), share, good.cpu().numpy(), last)


def label_chains(
    population: Population[nn.Module], world: Lego, stage: SelfTrainingStage, *, rng: torch.Generator
) -> tuple[LabelledChains, Bool[Tensor, "member chain"]]:
    """Chains with the members' own labels, and whose labels are all right. Each member has chains of its own."""
    members, parts = len(population), []
    size = max(1, min(stage.sequences, AT_ONCE // (members * 2 * world.length * world.vocab)))
    was_training = population.training
    population.eval()
    for start in range(0, stage.sequences, size):
        batch = world.sample(members * min(size, stage.sequences - start), rng=rng)
        parts.append(_label(population, world, stage, batch, rng))
    population.train(was_training)
    inputs, targets, sure, right = (torch.cat(each, 1) for each in zip(*parts))
    keep = sure if bool(sure.any(1).all()) else torch.ones_like(sure)  # nothing is sure: learn from everything
    order = torch.argsort(keep.long(), dim=1, descending=True, stable=True)
    return LabelledChains(world, inputs, targets, order, keep.sum(1)), right


def _label(
    population: Population[nn.Module], world: Lego, stage: SelfTrainingStage, batch: Batch, rng: torch.Generator
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(inputs, targets, sure enough, all right) of some chains, member axis first."""
    members = len(population)
    true = Batch(*(each.unflatten(0, (members, -1)) for each in (batch.inputs, batch.targets, batch.mask)))
    labels = greedy_answers(lambda tokens: population(tokens, per_member=True), world, true.inputs)
    inputs, targets, confidence = labels.inputs, labels.targets, labels.confidence
    if stage.truth:
        inputs, targets = true.inputs, true.targets
    if stage.noise:
        inputs, targets = corrupt_labels(world, batch, stage.noise, rng)
        inputs, targets = inputs.unflatten(0, (members, -1)), targets.unflatten(0, (members, -1))
    right = (targets[..., 1::2] == true.targets[..., 1::2]).all(-1)
    floor = -1.0 if stage.confidence is None else stage.confidence
    return inputs, targets, confidence >= floor, right


def corrupt_labels(world: Lego, batch: Batch, share: float, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """True labels, but in a share of the chains one random step goes wrong and later ones follow from it."""
    n, length, device = len(batch), world.length, batch.inputs.device
    table, _ = world.tables(device)
    actions, values = batch.truth["actions"], batch.truth["values"]
    wrong_at = torch.randint(1, length + 1, (n, 1), generator=rng, device=device)
    shift = torch.randint(1, world.group_action.values, (n, 1), generator=rng, device=device)
    hit = torch.rand(n, 1, generator=rng, device=device) < share
    spoilt, current = values.clone(), values[:, 0]
    for step in range(1, length + 1):
        current = table[actions[:, step - 1], current]
        now = hit[:, 0] & (wrong_at[:, 0] == step)
        current = torch.where(now, (current + shift[:, 0]) % world.group_action.values, current)
        spoilt[:, step] = current
    clauses = batch.inputs.view(n, -1, SLOTS).clone()
    clauses[:, -length:, 4] = spoilt[:, :length] + world.first_value
    targets = batch.targets.clone()
    targets[:, 1::2] = spoilt[:, 1:] + world.first_value
    return clauses.flatten(1), targets
