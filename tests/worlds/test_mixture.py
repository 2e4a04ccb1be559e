"""Mixtures: every row is an example of the world its first token names."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.base import Batch, World, cross_entropy
from sandlab.worlds.markov.chain import InContextMarkov, MarkovChain
from sandlab.worlds.mixture import Mixture


@dataclass(frozen=True)
class LastIsFirst(World):
    """One answer at the end: the first token, as a distribution."""

    length: int = 5

    @property
    def vocab(self) -> int:
        return 2

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        tokens = torch.randint(0, 2, (n, self.length), generator=rng)
        probs = torch.nn.functional.one_hot(tokens[:, :1], 2).double()
        return Batch(tokens, probs, torch.ones(n, 1, dtype=torch.bool), {"first": tokens[:, 0]})

    def oracle(self, batch: Batch) -> torch.Tensor:
        return torch.nn.functional.one_hot(batch.inputs[:, :1], 2).double().log()


def test_rows_are_examples_of_the_named_part_and_shares_follow_the_weights():
    parts = (MarkovChain.binary(1.0, 1.0, length=7), InContextMarkov(states=4, length=10))
    world = Mixture(parts, weights=(1.0, 3.0))
    assert (world.alphabet, world.vocab, world.outputs, world.length) == (4, 7, 4, 11)
    batch = world.sample(4000, rng=rng(0))
    first = batch.truth["task"] == 0
    assert float(first.double().mean()) == pytest.approx(0.25, abs=0.03)
    assert torch.equal(batch.inputs[:, 0], 4 + batch.truth["task"])
    alternating = batch.inputs[first, 1:8]
    assert bool((alternating[:, 1:] == 1 - alternating[:, :-1]).all())
    assert bool((batch.inputs[first, 8:] == 6).all())
    assert not batch.mask[:, 0].any() and not batch.mask[first, 8:].any()
    assert bool(batch.mask[first, 1:8].all()) and bool(batch.mask[~first, 1:].all())
    assert torch.equal(batch.targets[~first, 1:10], batch.inputs[~first, 2:])


def test_mixture_loss_is_the_average_of_the_parts_losses():
    parts = (MarkovChain.binary(0.2, 0.3, length=9), InContextMarkov(states=3, length=12))
    world = Mixture(parts)
    batch = world.sample(300, rng=rng(1))
    total = count = 0.0
    for i, part in enumerate(parts):
        rows, own = world.part_batch(batch, i)
        assert len(rows) == int((batch.truth["task"] == i).sum())
        total += part.optimal_loss(own) * int(own.mask.sum())
        count += int(own.mask.sum())
    assert world.optimal_loss(batch) == pytest.approx(total / count, abs=1e-12)
    assert list(world.baselines()) == ["uniform", "unigram", "bigram"]
    unigram = float(cross_entropy(world.baselines()["unigram"](batch), batch))
    assert unigram > world.optimal_loss(batch)


def test_soft_answers_at_the_end_mix_with_tokens_everywhere():
    world = Mixture((LastIsFirst(), MarkovChain(length=5)))
    batch = world.sample(50, rng=rng(2))
    assert batch.soft
    ends = batch.truth["task"] == 0
    assert bool(batch.mask[ends, -1].all()) and not batch.mask[ends, :-1].any()
    assert torch.equal(batch.targets[ends, -1].argmax(-1), batch.inputs[ends, 1])
    assert torch.equal(batch.truth["0.first"][ends], batch.inputs[ends, 1])
    assert world.optimal_loss(batch) < MarkovChain(length=5).entropy_rate() * 1.2


def test_a_part_without_rows_keeps_its_shapes():
    world = Mixture((MarkovChain(length=5), InContextMarkov(states=2, length=8)), weights=(1.0, 0.0))
    batch = world.sample(3, rng=rng(0))
    assert batch.inputs.shape == (3, 9)
    assert torch.isfinite(world.oracle(batch)).all()
    assert not batch.truth["1.kernels"].any()


def test_text_names_the_task():
    world = Mixture((MarkovChain(length=3), InContextMarkov(states=2, length=3)))
    text = world.render(world.sample(1, rng=rng(0)).inputs[0])
    assert text.startswith(("<markov-chain>", "<in-context-markov>"))


@pytest.mark.parametrize(
    ("parts", "weights"), [((), None), ((3,), None), ((MarkovChain(),), (0.0,)), ((MarkovChain(),), (1.0, 1.0))]
)
def test_impossible_mixtures_are_refused(parts, weights):
    with pytest.raises(BadInput):
        Mixture(parts, weights)
