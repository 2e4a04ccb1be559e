"""Inside probabilities against enumeration of every sentence of small grammars."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import torch

from sandlab.random import rng
from sandlab.worlds.distillation.chart import inside_charts, next_token_probs, sentence_probs, token_posteriors
from sandlab.worlds.distillation.derivations import derivations, sample_sentences
from sandlab.worlds.distillation.pcfg import PCFG
from sandlab.worlds.distillation.synthetic_grammars import grammar

UNEVEN = PCFG.parse("S → A B [0.5] | B [0.2] | A A A [0.3]; A → a | b a; B → a b [0.9] | b [0.1]")


def strings(rules: PCFG, symbol: str) -> dict[tuple[int, ...], float]:
    """Every sentence of a symbol, as terminal numbers, with its probability."""
    if symbol not in rules.by_symbol:
        return {(rules.terminals.index(symbol),): 1.0}
    found: dict[tuple[int, ...], float] = Counter()
    for rule in rules.by_symbol[symbol]:
        for parts in itertools.product(*(strings(rules, child).items() for child in rule.children)):
            found[sum((text for text, _ in parts), ())] += rule.prob * float(np.prod([p for _, p in parts]))
    return found


def hot(tokens: torch.Tensor, words: int) -> torch.Tensor:
    return (tokens.unsqueeze(-1) == torch.arange(words)).double()


@pytest.mark.parametrize(
    ("rules", "symbol"),
    [(UNEVEN, "S"), (grammar("cfg3b", "10"), "10"), (grammar("cfg3f", "11"), "11"), (grammar("cfg3b", "13"), "13")],
)
def test_inside_probabilities_are_those_of_the_enumeration_and_sum_to_one(rules: PCFG, symbol: str) -> None:
    every = strings(rules, symbol)
    assert sum(every.values()) == pytest.approx(1)
    longest = max(map(len, every))
    tokens = torch.tensor([[*text, *[-1] * (longest - len(text))] for text in every])
    lengths = torch.tensor([len(text) for text in every])
    found = sentence_probs(rules, hot(tokens, len(rules.terminals)), lengths)
    assert found.numpy() == pytest.approx(np.array(list(every.values())), abs=1e-14)
    assert float(found.sum()) == pytest.approx(1, abs=1e-12)


def test_all_hidden_tokens_give_the_law_of_the_length() -> None:
    rules = grammar("cfg3b", "13")
    band = inside_charts(rules, torch.ones(1, 27, 3))["13"]
    law = rules.lengths[band.first : band.last + 1]
    assert band.cells[:, 0, 0].numpy() == pytest.approx(law, abs=1e-14)
    assert law.sum() == pytest.approx(1)


@pytest.mark.parametrize(("rules", "symbol"), [(UNEVEN, "S"), (grammar("cfg3b", "13"), "13")])
def test_posteriors_are_conditional_probabilities(rules: PCFG, symbol: str) -> None:
    every = strings(rules, symbol)
    texts = sorted(every)[:: max(1, len(every) // 6)]
    generator, words = np.random.default_rng(0), len(rules.terminals)
    for text in texts:
        weights = generator.random((len(text), words))
        weights[generator.random(len(text)) < 0.3] = 1.0
        expected = np.zeros((len(text), words))
        for other, prob in every.items():
            if len(other) == len(text):
                share = prob * np.prod(weights[np.arange(len(text)), list(other)])
                expected[np.arange(len(text)), list(other)] += share
        expected /= expected.sum(1, keepdims=True)
        padded = torch.ones(1, 27, words, dtype=torch.float64)
        padded[0, : len(text)] = torch.from_numpy(weights)
        found = token_posteriors(rules, padded, torch.tensor([len(text)]))[0, : len(text)]
        assert found.numpy() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("rules", "symbol"), [(UNEVEN, "S"), (grammar("cfg3f", "11"), "11")])
def test_next_tokens_have_the_probabilities_of_all_continuations(rules: PCFG, symbol: str) -> None:
    every = strings(rules, symbol)
    longest = max(map(len, every)) + 1
    texts = sorted(every)[:: max(1, len(every) // 8)]
    tokens = torch.tensor([[*text, *[-1] * (longest - len(text))] for text in texts])
    following, stops = next_token_probs(rules, tokens)
    for row, text in enumerate(texts):
        for place in range(len(text) + 1):
            alike = {other: p for other, p in every.items() if other[:place] == text[:place]}
            for word in range(len(rules.terminals)):
                expected = sum(p for other, p in alike.items() if len(other) > place and other[place] == word)
                assert float(following[row, place, word]) == pytest.approx(expected, abs=1e-14)
            assert float(stops[row, place]) == pytest.approx(every.get(text[:place], 0.0), abs=1e-14)


@pytest.mark.gate(3)
@pytest.mark.parametrize("name", ["cfg3b", "cfg3b-release", "cfg3i", "cfg3h", "cfg3g", "cfg3f"])
def test_sampled_lengths_follow_the_exact_law(name: str) -> None:
    rules = grammar(name)
    for sample in (sample_sentences, derivations):
        lengths = sample(rules, 10_000, rng=rng(0)).lengths.double().numpy()
        mean, spread = rules.lengths @ np.arange(len(rules.lengths)), lengths.std() / len(lengths) ** 0.5
        assert abs(lengths.mean() - mean) < 4 * spread
        for percent in (25, 50, 75, 95):
            assert abs(np.percentile(lengths, percent) - rules.length_percentile(percent)) <= 4


def test_sampled_sentences_belong_to_the_language_and_have_the_right_frequencies() -> None:
    every = strings(UNEVEN, "S")
    sentences = sample_sentences(UNEVEN, 20000, rng=rng(1))
    counts = Counter(tuple(row[:n]) for row, n in zip(sentences.tokens.tolist(), sentences.lengths.tolist()))
    assert set(counts) <= set(every)
    for text, prob in every.items():
        assert abs(counts[text] / 20000 - prob) < 5 * (prob / 20000) ** 0.5 + 1e-4


def test_trees_have_nested_boundaries_one_for_each_node() -> None:
    rules = grammar("cfg3b")
    trees = derivations(rules, 16, rng=rng(2))
    assert trees.ends.shape[1] == 7
    ends = trees.ends
    for layer in range(6):
        assert not (ends[:, layer] & ~ends[:, layer + 1]).any()
    assert (ends[:, 0].sum(1) == 1).all()
    assert torch.equal(ends[:, 6], trees.tokens >= 0)
    assert ends[:, :, :].gather(2, (trees.lengths - 1).view(-1, 1, 1).expand(-1, 7, 1)).all()
    assert set(trees.ancestors[:, 0].unique().tolist()) == {-1, trees.symbols.index("22")}
    for row, layer in itertools.product(range(4), range(6)):
        check_layer(rules, trees, row, layer)


def check_layer(rules: PCFG, trees: object, row: int, layer: int) -> None:
    """The nodes of a layer have the children that the next layer shows."""
    above, below = trees.ancestors[row, layer], trees.ancestors[row, layer + 1]  # type: ignore[attr-defined]
    ends, lower = trees.ends[row, layer], trees.ends[row, layer + 1]  # type: ignore[attr-defined]
    start = 0
    for end in ends.nonzero().flatten().tolist():
        children = tuple(trees.symbols[below[i]] for i in range(start, end + 1) if lower[i])  # type: ignore[attr-defined]
        parent = trees.symbols[above[end]]  # type: ignore[attr-defined]
        assert children in [rule.children for rule in rules.by_symbol[parent]]
        assert len(set(above[start : end + 1].tolist())) == 1
        start = end + 1
