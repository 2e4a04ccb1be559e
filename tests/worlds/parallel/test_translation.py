"""Toy translation: what is drawn is valid, what is not drawn is not, and the oracle is the law of each place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.parallel.refinement import stutters
from sandlab.worlds.parallel.sentence_pairs import AlignedText, SentencePairs
from sandlab.worlds.parallel.subwords import Subwords
from sandlab.worlds.parallel.translation import END, PAD, RESERVED, ToyTranslation

WORLD = ToyTranslation()
NESTED = ToyTranslation(shortest=8, longest=16, clauses=2)


def translations(world: ToyTranslation, source: list[int]) -> set[tuple[int, ...]]:
    """All translations of a source without clauses, by enumeration of every choice."""
    kinds = [int(world.kinds[token - RESERVED]) for token in source]
    first, second = world.first_forms, world.second_forms
    found = set()
    for choices in itertools.product((0, 1), repeat=len(source) + 1):
        z, words, place = choices[-1], [], 0
        while place < len(source):
            token, kind = source[place], kinds[place]
            if kind == 1 and kinds[place + 1 : place + 2] == [2]:
                pair = [first[token], first[source[place + 1]]]
                words += pair if choices[place] else pair[::-1]
                place += 2
                continue
            words.append(second[token] if kind == 3 and z else first[token])
            if kind == 4 and choices[place]:
                words.append(second[token])
            place += 1
        found.add((*map(int, words), END))
    return found


@pytest.mark.parametrize("world", [WORLD, WORLD.distilled(), NESTED], ids=["raw", "distilled", "nested"])
def test_every_drawn_translation_is_valid_and_repeats_no_word(world: ToyTranslation) -> None:
    batch = world.sample(600, rng=sl.rng(0))
    assert bool(world.valid(batch.inputs, batch.targets).all())
    assert not bool(world.valid(batch.inputs, batch.targets.roll(1, 0)).any())
    assert not bool(stutters(batch.targets).any())
    assert bool((batch.truth["length"] == (batch.targets != PAD).sum(1)).all())


def test_validity_is_membership_in_the_enumerated_translations() -> None:
    batch = WORLD.sample(12, rng=sl.rng(1))
    draws = np.random.default_rng(0)
    for source, target in zip(batch.inputs, batch.targets):
        words = [int(token) for token in source if token != PAD]
        known = translations(WORLD, words)
        spoilt = target.clone()
        places = draws.integers(0, int((target != PAD).sum()) - 1, 2)
        spoilt[places] = target[places[::-1].copy()]
        for output in (target, spoilt):
            expected = tuple(int(token) for token in output if token != PAD) in known
            assert bool(WORLD.valid(source[None], output[None])) == expected
        for each in list(known)[:8]:
            row = torch.tensor([[*each, *[PAD] * (WORLD.target_length - len(each))]])
            assert bool(WORLD.valid(source[None], row))


def test_nested_clauses_move_their_first_word_to_their_end() -> None:
    batch = NESTED.sample(400, rng=sl.rng(2))
    ordered = NESTED.reorder(batch.inputs)
    assert bool((ordered.sort(1).values == batch.inputs.sort(1).values).all())
    opening = RESERVED + sum(NESTED.words)
    deep = (batch.inputs == opening).sum(1) == 2
    assert bool(deep.any())
    row, place = batch.inputs[deep][0].tolist(), ordered[deep][0].tolist()
    left = row.index(opening)
    right = len(row) - 1 - row[::-1].index(opening + 1)
    assert place[right - 1] == row[left + 1]


def test_the_oracle_is_the_frequency_of_each_word_at_each_place() -> None:
    source = WORLD.sample(5, rng=sl.rng(3)).inputs[2:3]
    drawn = WORLD._translate(source.expand(20_000, -1), sl.rng(4))
    seen = torch.nn.functional.one_hot(drawn, WORLD.vocab).double().mean(0)
    batch = WORLD.pair(source, drawn[:1])
    assert torch.allclose(WORLD.oracle(batch).exp()[0], seen, atol=0.015)


def test_places_drawn_independently_fail_as_the_closed_form_says() -> None:
    world = ToyTranslation(words=(2, 1, 1, 0, 0), shortest=2, longest=2, particle=0.0)
    a, b = RESERVED + 2, RESERVED + 3
    source = torch.tensor([[a, b]])
    law = world.oracle(world.pair(source, torch.zeros(1, 5, dtype=torch.long))).exp()[0]
    draws = torch.multinomial(law, 4000, replacement=True, generator=sl.rng(5)).mT
    valid = float(world.valid(source.expand(4000, -1), draws).double().mean())
    repeats = float(stutters(draws).any(1).double().mean())
    assert world.independent_validity(pairs=1) == 0.5 == world.independent_validity(synonyms=2)
    assert (valid, repeats) == pytest.approx((0.5, 0.5), abs=0.03)


def test_distilled_data_have_nothing_to_guess() -> None:
    world = WORLD.distilled()
    assert world.optimal_loss(world.sample(50, rng=sl.rng(6))) == pytest.approx(0, abs=1e-9)


def test_word_pieces_give_back_the_text() -> None:
    lines = ["the cat sat on the mat", "a cat and the other cat"]
    pieces = Subwords.learn(lines, 40)
    assert len(pieces) <= 40
    assert [pieces.decode(pieces.encode(line)) for line in lines] == lines
    assert len(pieces.encode("the cat")) < len("thecat")


def test_two_aligned_files_become_pairs(tmp_path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("ein Haus\nzwei Katzen\n", encoding="utf-8")
    second.write_text("a house\ntwo cats\n", encoding="utf-8")
    world = AlignedText(str(first), str(second), size=40)
    batch = world.sample(20, rng=sl.rng(0))
    pairs = {(world.render(a), world.render(b)) for a, b in zip(batch.inputs, batch.targets)}
    assert pairs == {("ein Haus", "a house"), ("zwei Katzen", "two cats")}
    second.write_text("a house\n", encoding="utf-8")
    with pytest.raises(BadInput, match="as many lines"):
        AlignedText(str(first), str(second))
    with pytest.raises(BadInput, match="cannot be read"):
        AlignedText(str(first), str(tmp_path / "none"))


def test_pairs_are_drawn_together() -> None:
    world = SentencePairs(torch.tensor([[4], [5]]), torch.tensor([[6, 1], [7, 1]]), 8)
    batch = world.sample(30, rng=sl.rng(0))
    assert bool((batch.targets[:, 0] == batch.inputs[:, 0] + 2).all())
