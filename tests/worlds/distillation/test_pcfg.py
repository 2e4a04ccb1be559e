"""Grammars: exact lengths and n-grams against the published table and against enumeration."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from sandlab.errors import BadInput
from sandlab.worlds.distillation.pcfg import PCFG
from sandlab.worlds.distillation.synthetic_grammars import GRAMMARS, grammar

TABLE = {
    "cfg3b": ((251, 277, 307, 341), 275.62, (138, 432), 32, (1 / 3, 1 / 3, 1 / 3)),
    "cfg3b-release": ((269, 296, 329, 363), 294.00, (161, 432), 31, (0.3125, 0.3125, 0.375)),
    "cfg3i": ((274, 307, 341, 386), 308.09, (114, 564), 32, (0.4254, 0.3228, 0.2519)),
    "cfg3h": ((201, 237, 270, 301), 236.38, (97, 459), 39, (0.3567, 0.2357, 0.4076)),
    "cfg3g": ((212, 255, 291, 338), 252.43, (80, 729), 48, (0.3356, 0.3167, 0.3477)),
    "cfg3f": ((191, 248, 303, 365), 249.86, (64, 729), 54, (0.4273, 0.2659, 0.3068)),
}


def strings(rules: PCFG, symbol: str) -> dict[tuple[str, ...], float]:
    """Every sentence of a symbol with its probability, by plain recursion."""
    if symbol not in rules.by_symbol:
        return {(symbol,): 1.0}
    found: dict[tuple[str, ...], float] = Counter()
    for rule in rules.by_symbol[symbol]:
        for parts in itertools.product(*(strings(rules, child).items() for child in rule.children)):
            found[sum((text for text, _ in parts), ())] += rule.prob * float(np.prod([p for _, p in parts]))
    return found


@pytest.mark.parametrize("name", TABLE)
def test_lengths_and_unigrams_are_those_of_the_table(name: str) -> None:
    percentiles, mean, ends, rules, unigram = TABLE[name]
    found = grammar(name)
    assert tuple(found.length_percentile(p) for p in (25, 50, 75, 95)) == percentiles
    assert found.lengths @ np.arange(len(found.lengths)) == pytest.approx(mean, abs=0.005)
    assert found.spans(found.start) == ends
    assert len(found.rules) == rules
    assert found.unigram == pytest.approx(unigram, abs=5e-5)
    assert found.layered and found.heights[found.start] == 7


def test_published_degrees_and_repeats() -> None:
    degrees = {name: {len(rules) for rules in grammar(name).by_symbol.values()} for name in TABLE}
    assert degrees["cfg3b"] == degrees["cfg3i"] == {2}
    assert degrees["cfg3h"] == {2, 3} and degrees["cfg3g"] == {3} and degrees["cfg3f"] == {3, 4}
    repeats = {
        name: any(a == b for rule in grammar(name).rules for a, b in itertools.pairwise(rule.children))
        for name in TABLE
    }
    assert not repeats["cfg3b"] and repeats["cfg3i"]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_ngrams_are_those_of_all_sentences(n: int) -> None:
    rules = PCFG.parse("S → A B [0.5] | B [0.2] | A A A [0.3]; A → a | b a; B → a b [0.9] | b [0.1]")
    counts, padded = np.zeros((2,) * n), np.zeros((4,) * n)
    for text, prob in strings(rules, "S").items():
        tokens = [rules.terminals.index(word) for word in text]
        marked = [2, 2, *tokens, 3, 3]
        for place in range(len(tokens) - n + 1):
            counts[tuple(tokens[place : place + n])] += prob
        for place in range(len(marked) - n + 1):
            padded[tuple(marked[place : place + n])] += prob
    assert rules.ngrams(n) == pytest.approx(counts, abs=1e-12)
    assert rules.ngrams(n, padding=2) == pytest.approx(padded, abs=1e-12)


def test_bigrams_of_a_published_grammar_add_up_to_its_unigrams() -> None:
    rules = grammar("cfg3f")
    pairs = rules.ngrams(2, padding=1)
    assert pairs[:3].sum(1) == pytest.approx(rules.expected_counts)
    assert pairs[:, :3].sum(0) == pytest.approx(rules.expected_counts)


def test_text_is_read_back() -> None:
    for name in GRAMMARS:
        assert PCFG.parse(str(grammar(name)), start=grammar(name).start) == grammar(name)


def test_toy_english_says_the_cat_ran_away() -> None:
    assert strings(grammar("toy-english"), "S")["the", "cat", "ran", "away"] == pytest.approx(1 / 16)


def test_a_recursive_grammar_is_cut_at_a_depth_with_renormalised_probabilities() -> None:
    brackets = PCFG.parse("S → l S r [0.4] | x [0.6]")
    with pytest.raises(BadInput, match="recursive"):
        _ = brackets.lengths
    cut = brackets.cut(3)
    kept = {(1,): 0.6, (3,): 0.24, (5,): 0.096}
    total = sum(kept.values())
    for (length,), prob in kept.items():
        assert cut.lengths[length] == pytest.approx(prob / total)


def test_bad_grammars_are_refused() -> None:
    for text in ("", "S", "S → a [0.5] | b [0.4]", "S → a [x] | b [0.4]"):
        with pytest.raises(BadInput):
            PCFG.parse(text)
    with pytest.raises(BadInput, match="grammar"):
        grammar("cfg3z")


def test_a_root_below_the_start_gives_shorter_sentences() -> None:
    assert grammar("cfg3b", "13").spans("13") == (12, 18)
    assert grammar("cfg3b", "13|14|15").spans("root") == (12, 27)
