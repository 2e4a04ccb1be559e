"""A constrained task with a larger alphabet and strings that the oracle never writes, against enumeration."""

from __future__ import annotations

import itertools

import pytest
import torch

import sandlab as sl
from sandlab.decoding.decoders.rejection import EarlyAbort, ExhaustiveSearch, TokenwiseRejection
from sandlab.decoding.generators.base import WorldGenerator
from sandlab.decoding.verifiers.base import LanguageVerifier
from sandlab.worlds.verifier.modular_sum import ModularSum

TASKS = [ModularSum(3, 4), ModularSum(4, 3, target=1, skip=2), ModularSum(2, 5, target=1), ModularSum(5, 3, skip=1)]


def words(task: ModularSum) -> list[tuple[int, ...]]:
    k = task.letters_count
    return [
        word
        for word in itertools.product(range(k), repeat=task.length)
        if sum(word) % k == task.target and all((b - a - task.skip) % k != 0 for a, b in itertools.pairwise(word))
    ]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("aware", [False, True])
def test_membership_and_prefixes_are_those_of_the_enumeration(task, aware):
    from dataclasses import replace

    task = replace(task, support_aware=aware)
    solutions, k = words(task), task.letters_count
    for size in range(task.length + 1):
        strings = list(itertools.product(range(k), repeat=size))
        tokens = torch.tensor([[*string, *[0] * (task.length - size)] for string in strings])
        lengths = torch.full((len(strings),), size)
        if size == task.length:
            assert task.contains(tokens, lengths).tolist() == [string in set(solutions) for string in strings]
        prefixes = {word[:size] for word in solutions}
        completable = task.completable(tokens, lengths).tolist()
        if aware:
            assert completable == [string in prefixes for string in strings]
        else:
            assert all(yes for yes, string in zip(completable, strings) if string in prefixes)


@pytest.mark.parametrize("task", TASKS)
def test_samples_are_the_oracle_s_and_never_hold_a_forbidden_pair(task):
    batch = task.sample(4000, rng=sl.rng(0))
    lengths = torch.full((4000,), task.length)
    assert bool(task.possible(batch.targets, lengths).all())
    assert torch.equal(batch.truth["inside"], task.contains(batch.targets, lengths))
    first = torch.bincount(batch.targets[:, 0], minlength=task.letters_count) / 4000
    assert torch.allclose(first, torch.full_like(first, 1 / task.letters_count), atol=0.04)


def test_a_string_of_probability_zero_is_no_solution():
    """A verifier that ignores the oracle may lead nowhere; one that knows it leads to a solution."""
    task = ModularSum(3, 4)
    done = ExhaustiveSearch().generate(
        WorldGenerator(task), [[]], verifier=LanguageVerifier(task), max_new=4, rng=sl.rng(0)
    )
    assert not bool(done.done[0]) or tuple(done.string(0)) in words(task)
    aware = ModularSum(3, 4, support_aware=True)
    for decoder in (ExhaustiveSearch(), TokenwiseRejection(), EarlyAbort()):
        done = decoder.generate(
            WorldGenerator(aware), [[]] * 20, verifier=LanguageVerifier(aware), max_new=4, rng=sl.rng(1)
        )
        assert all(tuple(done.string(row)) in words(task) for row in range(20)) and bool(done.done.all())
