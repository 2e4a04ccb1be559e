"""LEGO: sampled chains are valid, the oracle reads them, texts round-trip."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.worlds.reasoning.clauses import SLOTS
from sandlab.worlds.reasoning.lego import BinaryLego, FixedLego, Lego
from sandlab.worlds.reasoning.word_problem import WordProblem

WORLDS = [
    Lego(),
    Lego("S4", variables=30, length=7, permuted=True, unrelated=6),
    Lego("S3 regular", variables=9, length=8, predict_blanks=True),
    Lego("S3", variables=12, length=4, num_answers=2, only_last=True),
    BinaryLego(variables=20, length=6),
]


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_the_oracle_is_certain_and_right_and_every_example_is_valid(world):
    batch = world.sample(40, rng=rng(0))
    assert world.optimal_loss(batch) == 0.0
    assert torch.equal(world.oracle(batch).argmax(-1), batch.targets)
    assert bool(world.accepts(batch.inputs).all())


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_values_are_the_actions_applied_one_after_another(world):
    batch, action = world.sample(30, rng=rng(1)), world.group_action
    for g, y, x in zip(*(batch.truth[name].tolist() for name in ("actions", "values", "variables"))):
        assert len(set(x)) == world.length + 1
        assert all(y[k + 1] == action.array[g[k], y[k]] for k in range(world.length))


def test_the_worked_instance_of_the_source_is_encoded_as_printed():
    world = Lego("C3", variables=3, length=2)
    batch = world.compose(*(torch.tensor([each]) for each in ([1, 0, 2], [2, 2], [1, 0, 2])))
    blank, g, y = world.blank, world.first_action, world.first_value
    assert batch.inputs.view(-1, SLOTS).tolist() == [
        [0, g + 2, 1, blank, blank],
        [2, g + 2, 0, blank, blank],
        [blank] * 3 + [1, y + 1],
        [blank] * 3 + [0, y],
    ]
    assert batch.targets.tolist() == [[0, y, 2, y + 2]]


def test_a_wrong_answer_and_a_malformed_clause_are_not_accepted():
    world = Lego("S4", variables=10, length=5)
    tokens = world.sample(1, rng=rng(2)).inputs[0]
    wrong = tokens.clone()
    wrong[-1] = world.first_value + (int(wrong[-1]) - world.first_value + 1) % 4
    assert world.accepts(tokens) and not world.accepts(wrong)
    assert not world.accepts(tokens[:-1])
    swapped = tokens.clone()
    swapped[1] = world.blank
    assert not world.accepts(swapped)


def test_permuted_predicates_are_the_same_clauses_in_another_order():
    world = Lego("C6", variables=20, length=6, permuted=True)
    batch = world.sample(20, rng=rng(3))
    clauses = batch.inputs.view(20, -1, SLOTS)
    found = clauses.gather(1, batch.truth["place"].unsqueeze(-1).expand(-1, -1, SLOTS))
    assert torch.equal(found[..., 0], batch.truth["variables"][:, 1:])
    assert torch.equal(found[..., 2], batch.truth["variables"][:, :-1])


def test_unrelated_clauses_name_no_variable_of_the_chain():
    world = Lego("C6", variables=20, length=4, unrelated=5)
    batch = world.sample(50, rng=rng(4))
    clauses = batch.inputs.view(50, -1, SLOTS)[:, 4:9]
    for other, chain in zip(clauses[..., [0, 2]].flatten(1).tolist(), batch.truth["variables"].tolist()):
        assert not set(other) & set(chain)


def test_texts_say_what_the_clauses_say():
    world = Lego("C3", variables=3, length=2)
    batch = world.compose(*(torch.tensor([each]) for each in ([1, 0, 2], [2, 2], [1, 0, 2])))
    assert world.render(batch.inputs[0]) == "x0 = g2(x1); x2 = g2(x0); x1 = 1; x0 = 0"


def test_signed_texts_of_the_original_task_round_trip():
    world = BinaryLego(variables=10, length=5)
    tokens = world.sample(1, rng=rng(5)).inputs[0]
    assert torch.equal(world.parse(world.render(tokens)), tokens)
    assert world.accepts(world.parse("b=-a; c=+b; a=+1; b=-1; c=-1")) and not world.accepts(
        world.parse("b=-a; a=+1; b=+1")
    )


def test_too_few_variables_are_refused():
    with pytest.raises(BadInput, match="variables"):
        Lego(variables=5, length=5)
    with pytest.raises(BadInput, match="group of two"):
        BinaryLego("C3")


@pytest.mark.parametrize("group", ["S3", "C4", "S5"])
def test_the_word_problem_is_decided_by_reversed_chains(group):
    problem = WordProblem(group, length=6)
    batch = problem.sample(200, rng=rng(0))
    action, solved = problem.action, batch.targets[:, 0].bool()
    for word, yes in zip(batch.inputs.tolist(), solved.tolist()):
        total = action.identity
        for letter in word:
            total = action.compose(total, letter)
        assert (total == action.identity) == yes
    _, chain = problem.as_lego(batch.inputs, action.identity)
    assert torch.equal(chain.truth["values"][:, -1] == action.identity, solved)
    ends = [
        problem.as_lego(batch.inputs, y, natural=True)[1].truth["values"][:, -1] == y for y in range(action.values - 1)
    ]
    assert torch.equal(torch.stack(ends).all(0), solved)
    assert 0.35 < solved.float().mean() < 0.75 and problem.optimal_loss(batch) == 0.0


def test_the_unreversed_chain_decides_wrongly_for_a_group_that_does_not_commute():
    problem = WordProblem("S3", length=4, balanced=False)
    words = problem.sample(400, rng=rng(1)).inputs
    _, reversed_chain = problem.as_lego(words, 0)
    _, chain = problem.as_lego(words.flip(1), 0)
    assert torch.equal(reversed_chain.truth["values"][:, -1], problem.product(words))
    assert not torch.equal(chain.truth["values"][:, -1], problem.product(words))


def test_truncated_distributions_are_prefixes_of_the_whole():
    world = Lego("S3", variables=9, length=5)
    whole, part = (each.sample(6, rng=rng(7)) for each in (world, replace(world, num_answers=2)))
    assert torch.equal(part.inputs, whole.inputs[:, : part.inputs.shape[1]])
    assert torch.equal(part.targets, whole.targets[:, :4])


def test_a_fixed_set_repeats_its_chains():
    world = FixedLego("C6", variables=9, length=4, chains=30)
    rows = {tuple(row) for row in world.sample(400, rng=rng(0)).inputs.tolist()}
    again = {
        tuple(row) for row in FixedLego("C6", variables=9, length=4, chains=30).sample(400, rng=rng(9)).inputs.tolist()
    }
    assert len(rows | again) == 30 and type(world.fresh(length=6)) is Lego
