"""Trigger and back-copy texts: rules by hand, the oracle of unknown triggers by enumerating every set of them."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.markov.bigram_text import BigramBackcopy, BigramTrigger, last_occurrence
from sandlab.worlds.markov.chain import next_token_batch


@pytest.mark.parametrize("examples", [20, 100])
def test_last_occurrence_is_found_by_looking_back(examples):
    tokens = torch.randint(0, 3, (examples, 12), generator=rng(0))
    found = last_occurrence(tokens)
    for row, positions in zip(tokens.tolist(), found.tolist()):
        for t, position in enumerate(positions):
            earlier = [s for s in range(t) if row[s] == row[t]]
            assert position == (max(earlier) if earlier else -1)


@pytest.mark.parametrize("random_triggers", [False, True])
def test_triggers_force_their_output_and_other_tokens_follow_the_table(random_triggers):
    world = BigramTrigger(states=5, triggers=2, length=30, random_triggers=random_triggers)
    batch = world.sample(5000, rng=rng(1))
    forced = batch.truth["is_trigger"]
    for k in range(2):
        at = batch.inputs == batch.truth["triggers"][:, k : k + 1]
        assert bool((batch.targets == batch.truth["outputs"][:, k : k + 1])[at].all())
        assert bool(forced[at].all())
    free_now, free_next = batch.inputs[~forced], batch.targets[~forced]
    for token in range(2 if not random_triggers else 0, 5):
        rows = free_next[free_now == token]
        frequency = torch.bincount(rows, minlength=5).double() / len(rows)
        assert float((frequency - world.table[token]).abs().max()) < 0.03
    assert len({tuple(t) for t in batch.truth["triggers"].sort(-1).values.tolist()}) == (10 if random_triggers else 1)


def enumerated_probs(world: BigramTrigger, tokens: list[int]) -> torch.Tensor:
    """Sum over every set of triggers and every assignment of outputs."""
    states, table = world.states, world.table.tolist()
    probs, total = torch.zeros(states, dtype=torch.float64), 0.0
    for chosen in itertools.combinations(range(states), world.triggers):
        for outputs in itertools.product(range(states), repeat=world.triggers):
            rule = dict(zip(chosen, outputs))
            weight = states**-world.triggers
            for now, after in itertools.pairwise(tokens):
                weight *= (rule[now] == after) if now in rule else table[now][after]
            total += weight
            last = tokens[-1]
            row = [float(rule[last] == a) for a in range(states)] if last in rule else table[last]
            probs += weight * torch.tensor(row, dtype=torch.float64)
    return probs / total


def test_oracle_of_unknown_triggers_equals_the_sum_over_every_set_of_them():
    world = BigramTrigger(states=4, triggers=2, length=7, random_triggers=True, seed=3)
    batch = world.sample(12, rng=rng(2))
    best = world.oracle(batch).exp()
    for example, tokens in enumerate(batch.inputs.tolist()):
        for t in range(7):
            assert torch.allclose(best[example, t], enumerated_probs(world, tokens[: t + 1]), atol=1e-12)


def test_oracle_of_known_triggers_repeats_what_followed():
    world = BigramTrigger(states=4, triggers=1, length=6)
    tokens = torch.tensor([[0, 2, 1, 3, 0, 2, 1]])
    best = world.oracle(next_token_batch(tokens))[0].exp()
    assert best[0].tolist() == pytest.approx([0.25] * 4)
    assert best[4].tolist() == pytest.approx([0, 0, 1, 0])
    assert torch.allclose(best[1], world.table[2])


@pytest.mark.parametrize("random_triggers", [False, True])
def test_oracle_of_triggers_beats_the_bigram_rows(random_triggers):
    world = BigramTrigger(states=8, triggers=3, length=40, random_triggers=random_triggers)
    batch = world.sample(1000, rng=rng(0))
    losses = {name: float(cross_entropy(f(batch), batch)) for name, f in world.baselines().items()}
    assert losses["uniform"] == pytest.approx(math.log(8))
    assert world.optimal_loss(batch) < losses["bigram"] < losses["uniform"]


def test_backcopy_repeats_the_token_before_a_trigger():
    world = BigramBackcopy(states=6, triggers=2, length=20)
    batch = world.sample(4000, rng=rng(0))
    assert bool((batch.inputs[:, 0] == 6).all()) and int(batch.inputs[:, 1].min()) >= 2
    before = batch.inputs.roll(1, -1)
    forced = batch.truth["is_trigger"]
    assert torch.equal(forced, batch.inputs < 2)
    assert bool((batch.targets == before)[forced].all())
    free = ~forced & (batch.inputs < 6)
    for token in range(2, 6):
        rows = batch.targets[free & (batch.inputs == token)]
        frequency = torch.bincount(rows, minlength=6).double() / len(rows)
        assert float((frequency - world.table[token]).abs().max()) < 0.03


def test_backcopy_oracle_is_the_rule_or_the_row():
    world = BigramBackcopy(states=4, triggers=1, length=6)
    tokens = torch.tensor([[4, 2, 0, 2, 3, 0, 3]])
    best = world.oracle(next_token_batch(tokens))[0].exp()
    assert best[0].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0])
    assert torch.allclose(best[1, :4], world.table[2])
    assert best[2].tolist() == pytest.approx([0, 0, 1, 0, 0])
    assert best[5].tolist() == pytest.approx([0, 0, 0, 1, 0])
    batch = world.sample(500, rng=rng(1))
    bigram = float(cross_entropy(world.baselines()["bigram"](batch), batch))
    assert world.optimal_loss(batch) < bigram
    assert world.render(tokens[0]).startswith("<s> 2 0")


@pytest.mark.parametrize("kind", [BigramTrigger, BigramBackcopy])
@pytest.mark.parametrize(("name", "value"), [("states", 1), ("triggers", 0), ("triggers", 99), ("length", 1)])
def test_impossible_texts_are_refused_by_name(kind, name, value):
    with pytest.raises(BadInput, match=name):
        kind(**{name: value})
