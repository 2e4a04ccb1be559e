"""Dyck languages against enumeration of all words and a stack written out in plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

import sandlab as sl
from sandlab.worlds.dyck.brackets import BracketError, count_completions, count_words, first_error, scan_brackets
from sandlab.worlds.dyck.language import Dyck


def complete(length: int, p: float = 0.3, q: float = 0.6, **options) -> Dyck:
    return Dyck(
        depth=options.pop("depth", None), length=length, words="complete", opening=q, type_probs=(p, 1 - p), **options
    )


def balanced(word: tuple[int, ...], depth: int | None = None) -> bool:
    stack: list[int] = []
    for token in word:
        if token % 2 == 0:
            stack.append(token)
            if depth is not None and len(stack) > depth:
                return False
        elif not stack or stack.pop() != token - 1:
            return False
    return not stack


def all_words(length: int, types: int = 2, depth: int | None = None) -> list[tuple[int, ...]]:
    return [word for word in itertools.product(range(2 * types), repeat=length) if balanced(word, depth)]


def printed_probability(word: tuple[int, ...], p: float, q: float, *, strict: bool) -> float:
    """The product over brackets, with (1−q) for every closing bracket with depth < (or ≤) the positions left."""
    depth, result = 0, 1.0
    for position, token in enumerate(word, start=1):
        if token % 2 == 0:
            depth += 1
            result *= (p if token == 0 else 1 - p) * (q if depth > 1 else 1.0)
        else:
            depth -= 1
            left = len(word) - position
            result *= 1 - q if depth < left or (not strict and depth == left) else 1.0
    return result


def rows_of(world: Dyck, words) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.tensor([[world.start_token, *word] for word in words])
    return tokens, torch.full((len(words),), tokens.shape[1])


@pytest.mark.parametrize("length", [2, 4, 6, 8])
def test_word_probabilities_sum_to_one_and_equal_the_product_formula(length):
    world = complete(length)
    words = all_words(length)
    assert len(words) == count_words(length) == math.comb(length, length // 2) // (length // 2 + 1) * 2 ** (length // 2)
    ours = world.log_probability(*rows_of(world, words)).exp().numpy()
    assert ours.sum() == pytest.approx(1, abs=1e-12)
    assert np.allclose(ours, [printed_probability(word, 0.3, 0.6, strict=True) for word in words], atol=1e-14)


@pytest.mark.parametrize(("length", "total"), [(2, 0.5), (4, 0.375), (6, 0.3125), (8, 0.2734)])
def test_the_printed_exponent_counts_forced_brackets_and_does_not_sum_to_one(length, total):
    printed = [printed_probability(word, 0.2, 0.5, strict=False) for word in all_words(length)]
    assert sum(printed) == pytest.approx(total, abs=1e-4)


def test_prefix_marginal_is_the_sum_over_completions():
    world = complete(8)
    words = all_words(8)
    probs = dict(zip(words, world.log_probability(*rows_of(world, words)).exp().tolist()))
    prefixes = sorted({word[:5] for word in words})
    ours = world.log_probability(*rows_of(world, prefixes)).exp().tolist()
    for prefix, probability in zip(prefixes, ours):
        assert probability == pytest.approx(sum(probs[word] for word in words if word[:5] == prefix), abs=1e-13)


@pytest.mark.parametrize(
    "world", [complete(6), complete(8, depth=2), Dyck(length=5, depth=2), Dyck(length=6, words="bounded", end=0.3)]
)
def test_sampled_words_follow_their_probabilities(world):
    batch = world.sample(40_000, rng=sl.rng(0))
    strings = torch.cat([batch.inputs, batch.targets[:, -1:]], 1)
    counts = Counter(map(tuple, strings.tolist()))
    keys = list(counts)
    full = torch.tensor(keys)
    probs = world.log_probability(full, torch.full((len(keys),), full.shape[1])).exp().numpy()
    expected = probs * 40_000
    observed = np.array([counts[key] for key in keys])
    common = expected >= 5
    rest = 40_000 - observed[common].sum(), 40_000 - expected[common].sum()
    pairs = [np.append(observed[common], rest[0]), np.append(expected[common], rest[1])]
    if rest[1] < 1:
        pairs = [observed[common], expected[common] * observed[common].sum() / expected[common].sum()]
    assert stats.chisquare(*pairs).pvalue > 1e-3


def test_prefix_law_sums_to_one_over_its_support():
    world = Dyck(types=2, depth=3, length=6, opening=0.4)
    tokens = torch.cartesian_prod(*[torch.arange(4)] * 6)
    rows = torch.cat([torch.full((len(tokens), 1), world.start_token), tokens], 1)
    valid = world.completable(rows, torch.full((len(rows),), 7))
    probs = world.log_probability(rows[valid], torch.full((int(valid.sum()),), 7)).exp()
    assert float(probs.sum()) == pytest.approx(1, abs=1e-12)
    assert bool((world.accepts(tokens) == valid).all())


def test_bounded_words_are_the_ending_process_given_that_it_ends_in_time():
    world = Dyck(types=1, depth=2, length=6, words="bounded", opening=0.4, end=0.3)
    probs = {}
    for length in (0, 2, 4, 6):
        for word in all_words(length, types=1, depth=2):
            probability, depth = 1.0, 0
            for token in word:
                opens = token == 0
                chance = {0: 0.7, 1: 0.4, 2: 0.0}[depth]
                probability *= chance if opens else (1 - chance)
                depth += 1 if opens else -1
            probs[word] = probability * 0.3
    total = sum(probs.values())
    for word, probability in probs.items():
        tokens = torch.tensor([[2, *word, 3]])
        ours = float(world.log_probability(tokens, torch.tensor([len(word) + 2])).exp())
        assert ours == pytest.approx(probability / total, abs=1e-12)


def test_closing_is_certain_when_the_depth_equals_the_positions_left():
    world = complete(8)
    batch = world.sample(500, rng=sl.rng(1))
    probs = world.oracle(batch).exp()
    left = 8 - torch.arange(9)
    depth = batch.truth["depth"]
    forced = (depth == left) & (depth > 0)
    assert bool(forced.any())
    chosen = probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1)
    assert torch.allclose(chosen[forced], torch.ones(1, dtype=torch.float64))
    assert bool((probs[:, -1, world.end_token] == 1).all())


def test_oracle_loss_of_prefixes_is_the_entropy_of_the_depth_chain():
    # Depth 0: ln k; in between: H(q) + q ln k; largest depth: 0, averaged over the chain of depths.
    world = Dyck(types=2, depth=4, length=28, opening=0.5)
    entropy = np.array([math.log(2), *[1.5 * math.log(2)] * 3, 0.0])
    probs, total = np.eye(1, 5)[0], 0.0
    for _ in range(28):
        total += probs @ entropy
        up = probs * np.array([1, 0.5, 0.5, 0.5, 0])
        probs = np.roll(up, 1) + np.roll(probs - up, -1)
    assert total / 28 == pytest.approx(0.878810, abs=1e-6)
    batch = world.sample(20_000, rng=sl.rng(2))
    assert world.optimal_loss(batch) == pytest.approx(total / 28, abs=0.003)
    expected = (world.oracle(batch).exp() * -world.oracle(batch).clamp(min=-1e9)).sum(-1).mean()
    assert float(expected) == pytest.approx(total / 28, abs=0.003)


def test_completions_follow_the_conditional_law():
    world = complete(8)
    prefix = torch.tensor([[world.start_token, 0, 2, 3]]).expand(20_000, 4)
    whole = world.complete(prefix, torch.full((20_000,), 4), rng=sl.rng(3))
    assert torch.equal(whole[:, :4], prefix)
    counts = Counter(map(tuple, whole.tolist()))
    words = torch.tensor(list(counts))
    probs = world.log_probability(words, torch.full((len(words),), words.shape[1]))
    probs = (probs - world.log_probability(prefix[:1], torch.tensor([4]))).exp().numpy()
    assert probs.sum() == pytest.approx(1)
    assert stats.chisquare(list(counts.values()), probs * 20_000).pvalue > 1e-3


def test_prompts_are_prefixes_of_words_with_uniform_lengths():
    world = complete(32, p=0.8, q=0.5)
    tokens, lengths = world.prompts(7000, 25, 31, rng=sl.rng(4))
    assert tokens.shape == (7000, 32)
    assert bool(world.completable(tokens, lengths).all())
    assert stats.chisquare(np.bincount(lengths.numpy() - 26, minlength=7)).pvalue > 1e-3


def naive_error(string: list[int], types: int, max_depth: int, total: int) -> tuple[int, int]:
    """The first error, straight from the definitions."""
    stack: list[int] = []
    for position, token in enumerate(string):
        if (token == 2 * types) != (position == 0):
            return position, BracketError.START_INCORRECT
        if 2 * types + 1 in string[:position]:
            return position, BracketError.END_INCORRECT
        if token == 2 * types + 1 and (stack or position != total + 1):
            return position, BracketError.END_INCORRECT
        if token < 2 * types and token % 2 == 1:
            if not stack:
                return position, BracketError.STACK_UNDERFLOW
            if stack.pop() != token // 2:
                return position, BracketError.INCORRECT_CLOSING_BRACKET
        elif token < 2 * types:
            stack.append(token // 2)
            if len(stack) > max_depth:
                return position, BracketError.MAX_STACK_DEPTH_EXCEEDED
        if len(stack) > max(total - position, 0):
            return position, BracketError.STACK_DEPTH_EXCEEDS_REMAINING_LENGTH
    return -1, BracketError.NONE


def test_first_error_is_that_of_a_stack_in_plain_python():
    world = complete(8, depth=3)
    generator = sl.rng(5)
    valid = torch.cat([world.sample(3000, rng=generator).inputs, torch.full((3000, 1), world.end_token)], 1)
    damage = torch.rand(valid.shape, generator=generator) < 0.12
    strings = torch.where(damage, torch.randint(0, 6, valid.shape, generator=generator), valid)
    lengths = torch.randint(1, 11, (3000,), generator=generator)
    position, kind = first_error(strings, lengths, 2, max_depth=3, total=8)
    expected = [naive_error(row[:cut], 2, 3, 8) for row, cut in zip(strings.tolist(), lengths.tolist())]
    assert list(zip(position.tolist(), kind.tolist())) == expected
    assert len(set(kind.tolist())) == 7


def test_a_prefix_is_completable_exactly_when_a_word_continues_it():
    world = complete(6, depth=2)
    words = {(world.start_token, *word, world.end_token) for word in all_words(6, depth=2)}
    for length in range(1, 9):
        starts = {word[:length] for word in words}
        stems = {(world.start_token, *rest) for rest in itertools.product(range(6), repeat=min(length - 1, 4))}
        stems = {stem[: length - 1] for stem in words} if length > 5 else stems
        rows = sorted({(*stem, token) for stem in stems for token in range(6)} if length > 5 else stems)
        ours = world.completable(torch.tensor(rows), torch.full((len(rows),), length)).tolist()
        assert ours == [row in starts for row in rows]


def test_stack_scan_gives_depth_top_and_opener():
    scan = scan_brackets(torch.tensor([[4, 0, 2, 3, 0, 1, 1, 5]]), 2)
    assert scan.depth.tolist() == [[0, 1, 2, 1, 2, 1, 0, 0]]
    assert scan.top.tolist() == [[-1, 0, 1, 0, 0, 0, -1, -1]]
    assert scan.opener.tolist() == [[-1, 1, 2, 1, 4, 1, -1, -1]]


@pytest.mark.parametrize("max_depth", [None, 2, 3])
def test_number_of_completions_is_that_of_enumeration(max_depth):
    for depth, remaining in itertools.product(range(4), range(6)):
        if max_depth is not None and depth > max_depth:
            continue
        stem = (0,) * depth
        count = sum(balanced((*stem, *rest), max_depth) for rest in itertools.product(range(4), repeat=remaining))
        assert count_completions(depth, remaining, 2, max_depth) == count


def test_membership_and_rendering():
    world = complete(4)
    assert world.accepts(torch.tensor([0, 2, 3, 1])) and not world.accepts(torch.tensor([0, 2, 1, 3]))
    assert world.render(torch.tensor([4, 0, 2, 3, 1, 5])) == "^([])$"
    assert world.accepts(torch.tensor([[0, 1, 2, 3], [1, 0, 2, 3]])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": 0}, "types must be a whole number of at least 1"),
        ({"words": "complete", "length": 7}, "length must be even for complete words, got 7"),
        ({"type_probs": (0.5, 0.6)}, "type_probs must be probabilities that sum to 1"),
        ({"words": "all"}, "words must be one of"),
        ({"depth": 0}, "depth must be a whole number of at least 1"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(sl.BadInput, match=message):
        Dyck(**options)
