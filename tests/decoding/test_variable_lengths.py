"""Strings that end at different lengths: every decoder that promises a law keeps it, by enumeration.

A language is a random tree with an end token: after it nothing follows, which the exact tables write as padding with
more end tokens. Strings that reach the full length without it are words of the model, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats

import sandlab as sl
from sandlab.decoding.decoders.adaptive import AdaptiveRejection
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.rejection import BestOfN, EarlyAbort, Rejection, TokenwiseRejection
from sandlab.decoding.decoders.sampling import Temperature
from sandlab.decoding.decoders.walks import VGB, SinclairJerrum, ValueGuided
from sandlab.decoding.exact.distributions import (
    best_of_n_distribution,
    restricted_distribution,
    tokenwise_distribution,
    total_variation,
    value_guided_distribution,
)
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator
from sandlab.decoding.exact.walks import first_leaf_distribution
from sandlab.decoding.text import decoder_names

SHAPES = [(1, 8), (1, 9), (2, 4), (2, 5), (3, 4), (1, 7), (2, 6), (4, 4), (1, 6), (3, 5)]  # letters, longest


@dataclass(frozen=True, eq=False)
class Language:
    """A random model of strings that end, and the words that are accepted."""

    tree: Tree
    accepted: np.ndarray

    @property
    def end(self) -> int:
        return self.tree.tokens - 1

    @property
    def verdicts(self) -> list[np.ndarray]:
        return self.tree.verdicts(self.accepted)

    def values(self, tree: Tree | None = None) -> list[np.ndarray]:
        return (tree or self.tree).values(self.accepted)

    @property
    def noisy(self) -> list[np.ndarray]:
        chance = np.random.default_rng(len(self.accepted))
        levels, ended = [], np.zeros(1, dtype=bool)
        for exact in self.values():
            noise = np.exp(0.5 * chance.normal(size=exact.shape))
            # A string that has ended is complete: its outcome is known.
            levels.append(np.where(ended, exact, np.clip(exact * noise, 0, 1)))
            ended = (ended[:, None] | (np.arange(self.tree.tokens) == self.end)).ravel()
        return [*levels[:-1], self.accepted]

    @property
    def uniform(self) -> Tree:
        """All tokens alike until the end."""
        return Tree(
            tuple(
                np.where((probs[:, -1:] == 1) & (probs[:, :1] == 0), probs, 1 / self.tree.tokens)
                for probs in self.tree.probs
            )
        )


@cache
def language(number: int) -> Language:
    letters, depth = SHAPES[number % len(SHAPES)]
    tree = Tree.ending(letters, depth, rng=sl.rng(number, "language"))
    chance = np.random.default_rng(number)
    accepted = (chance.uniform(size=tree.tokens**depth) < 0.5) & (tree.reach[-1] > 0)
    likely = int(tree.reach[-1].argmax())
    accepted[likely] = True
    assert (tree.reach[-1] > 0).sum() <= 5000
    return Language(tree, accepted.astype(float))


Law = Callable[[Language], np.ndarray]
given: Law = lambda each: restricted_distribution(each.tree, each.accepted)  # noqa: E731
local: Law = lambda each: tokenwise_distribution(each.tree, each.verdicts)  # noqa: E731
LAWS: dict[str, Law] = {
    "the model": lambda each: each.tree.reach[-1],
    "the model given the language": given,
    "the model, renormalised among the allowed tokens at each step": local,
    "uniform tokens given the language": lambda each: restricted_distribution(each.uniform, each.accepted),
    "uniform among the allowed tokens at each step": lambda each: tokenwise_distribution(each.uniform, each.verdicts),
}
PROMISES = {
    "temperature": (Temperature(), None, LAWS["the model"]),
    "rejection": (Rejection(), "verdicts", given),
    "early abort": (EarlyAbort(), "verdicts", given),
    "adaptive rejection": (AdaptiveRejection(), "verdicts", given),
    "masking": (ValueGuided(), "verdicts", local),
    "tokenwise rejection": (TokenwiseRejection(max_draws=10**7), "verdicts", local),
    "value-guided, exact values": (ValueGuided(), "values", given),
    "value-guided, children sampled": (ValueGuided(children="sampled", max_draws=10**7), "values", given),
    "value-guided, values that err": (
        ValueGuided(),
        "noisy",
        lambda each: value_guided_distribution(each.tree, each.noisy),
    ),
    "walk, exact values": (VGB(), "values", given),
    "walk, children sampled": (VGB(children="sampled", max_steps=10**7), "values", given),
    "walk on the constrained model": (VGB(base="constrained"), "verdicts", local),
    "walk, values that err": (VGB(), "noisy", lambda each: first_leaf_distribution(each.tree, each.noisy)),
    "Sinclair-Jerrum": (SinclairJerrum(), "counts", LAWS["uniform tokens given the language"]),
    "Sinclair-Jerrum among the allowed tokens": (
        SinclairJerrum(base="constrained"),
        "verdicts",
        LAWS["uniform among the allowed tokens at each step"],
    ),
    "best of 3": (BestOfN(candidates=3), "verdicts", lambda each: best_of_n_distribution(each.tree, each.accepted, 3)),
}


def says(each: Language, what: str) -> list[np.ndarray]:
    if what == "counts":
        return each.values(each.uniform)
    made = getattr(each, what)
    return made() if callable(made) else made


def leaf_counts(decoder, each: Language, what: str | None, runs: int, seed: int) -> np.ndarray:
    """How often each string came out, strings that ended early padded with end tokens."""
    done = decoder.generate(
        TreeGenerator(each.tree),
        torch.zeros(runs, 0, dtype=torch.long),
        verifier=None if what is None else TableVerifier(says(each, what), each.tree.tokens),
        max_new=each.tree.depth,
        eos=each.end,
        rng=sl.rng(seed),
    )
    assert bool(done.done.all())
    place = torch.arange(each.tree.depth)
    padded = torch.where(place < done.lengths.unsqueeze(1), done.tokens[:, : each.tree.depth], each.end)
    powers = torch.tensor([each.tree.tokens**power for power in reversed(range(each.tree.depth))])
    return np.bincount((padded * powers).sum(1).numpy(), minlength=each.tree.tokens**each.tree.depth)


def chance_of(counts: np.ndarray, probs: np.ndarray) -> float:
    """The p-value of a chi-square test; strings with fewer than 5 expected runs are taken together."""
    assert probs.sum() == pytest.approx(1)
    assert counts[probs < 1e-15].sum() == 0
    expected = probs * counts.sum()
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 5 and len(expected) > 2:
        observed = np.append(observed[:-2], observed[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    if len(expected) < 2 or expected[-1] == 0:
        observed, expected = observed[expected > 0], expected[expected > 0]
    return 1.0 if len(expected) < 2 else float(stats.chisquare(observed, expected).pvalue)


def promise(name: str, number: int, runs: int) -> float:
    decoder, what, law = PROMISES[name]
    each = language(number)
    counts = leaf_counts(decoder, each, what, runs, zlib.crc32(f"{name} {number}".encode()))
    return chance_of(counts, law(each))


@pytest.mark.parametrize("name", PROMISES)
def test_a_promised_law_is_kept_where_strings_end_at_different_lengths(name):
    for number in range(4):
        assert promise(name, number, 5_000) > 1e-3, number


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISES)
def test_a_promised_law_is_kept_on_fifty_languages_over_a_hundred_thousand_runs(name):
    chances = [promise(name, number, 100_000) for number in range(50)]
    # Of 50 true laws one in a thousand fails a test at 1e-3.
    assert sum(chance < 1e-3 for chance in chances) <= 1 and min(chances) > 1e-5


def two_words(longest: int) -> Language:
    """ "a$" and "a…a$" with one half each: the tree of the walk is a path with an early exit."""
    tables, ended = [], np.zeros(1, dtype=bool)
    for level in range(longest + 1):
        own = [0.0, 1.0] if level == longest else [0.5, 0.5] if level == 1 else [1.0, 0.0]
        tables.append(np.where(ended[:, None], [0.0, 1.0], own))
        ended = (ended[:, None] | (np.arange(2) == 1)).ravel()
    tree = Tree(tuple(tables))
    return Language(tree, (tree.reach[-1] > 0).astype(float))


@pytest.mark.gate(1)
@pytest.mark.parametrize("longest", [4, 8])
def test_as_printed_the_first_leaf_favours_short_strings_and_padding_mends_it(longest):
    each = two_words(longest)
    long = np.flatnonzero(each.accepted)[0]
    printed = leaf_counts(VGB(leaves="as-printed"), each, "values", 20_000, 1) / 20_000
    padded = leaf_counts(VGB(), each, "values", 20_000, 2) / 20_000
    # Behind the fork the short exit has one edge of resistance, the long one `longest` of them.
    assert printed[long] == pytest.approx(1 / (longest + 1), abs=0.01)
    assert padded[long] == pytest.approx(0.5, abs=0.015)


def test_masking_is_far_from_the_model_given_the_language_where_the_model_would_hardly_have_finished():
    """After "a" the model ends one time in a hundred, after "b" at once: masking writes both equally often."""
    tree = Tree(
        (
            np.array([[0.5, 0.5, 0.0]]),
            np.array([[0.495, 0.495, 0.01], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]),
        )
    )
    accepted = np.zeros(9)
    accepted[[2, 5]] = 1  # "a$" and "b$"
    each = Language(tree, accepted)
    masked = leaf_counts(ValueGuided(), each, "verdicts", 4000, 1) / 4000
    true = leaf_counts(AdaptiveRejection(), each, "verdicts", 4000, 2) / 4000
    assert masked[2] == pytest.approx(0.5, abs=0.04)
    assert true[2] == pytest.approx(0.01 / 1.01, abs=0.01)


def test_padding_is_the_first_leaf_of_the_padded_tree():
    for number in range(10):
        each = language(number)
        assert total_variation(first_leaf_distribution(each.tree, each.values()), given(each)) < 1e-12


# -- what decoders say -------------------------------------------------------------------------------------------------

MET = {
    "if the values are exact": ("values", "counts"),
    "if the verdicts are exact": ("verdicts",),
    "if the outcomes are exact": ("values", "counts", "verdicts", "noisy"),
}


def said(decoder: Decoder) -> tuple[str, str]:
    """The law that a decoder names, and under which condition."""
    law, _, condition = decoder.law.partition(", if ")
    return law, f"if {condition}" if condition else ""


def test_every_decoder_says_which_law_it_samples():
    for name in decoder_names():
        options = {"block": 2} if name == "block-best-of-n" else {}
        law, condition = said(sl.get("decoders", name)(**options))
        assert law in LAWS or law == "none is promised"
        assert not condition or condition in MET
    assert ValueGuided.law == TokenwiseRejection.law != Rejection.law


# Values that are exact, or err, give another law than verdicts do; of the best of n nothing is said.
MORE = {
    *(f"value-guided, {what}" for what in ("exact values", "children sampled", "values that err")),
    "walk, values that err",
    "best of 3",
}


@pytest.mark.parametrize("name", sorted(PROMISES.keys() - MORE))
def test_the_law_that_is_tested_is_the_one_that_is_said(name):
    decoder, what, law = PROMISES[name]
    told, condition = said(decoder)
    assert not condition or what in MET[condition]
    assert total_variation(LAWS[told](language(3)), law(language(3))) < 1e-12


# -- the walk on the tree as it is, not padded -------------------------------------------------------------------------


@dataclass(frozen=True)
class Unpadded:
    """The lazy walk on the prefixes of a language, written down from the algorithm: texts that have ended are leaves.

    chain    P(y → z); leaf: whether a node is a complete text; word: its number among the padded strings
    """

    chain: np.ndarray
    leaf: np.ndarray
    word: np.ndarray
    words: int

    @classmethod
    def of(cls, each: Language, values: list[np.ndarray]) -> Unpadded:
        nodes: list[tuple[int, ...]] = [()]
        for node in nodes:
            nodes += [(*node, letter) for letter in range(each.tree.tokens) if not _ended(node, each)]
        place = {node: index for index, node in enumerate(nodes)}
        chain = np.eye(len(nodes)) / 2
        for node in nodes:
            weights = {}
            if node:
                weights[node[:-1]] = values[len(node)][_number(node, each)]
            if not _ended(node, each):
                law = each.tree.probs[len(node)][_number(node, each)]
                for letter, share in enumerate(law):
                    child = (*node, letter)
                    weights[child] = share * values[len(child)][_number(child, each)]
            for other, weight in weights.items():
                # A node that is never entered has no edges: it stays, and nobody notices.
                chain[place[node], place[other]] = weight / 2 / sum(weights.values()) if weight else 0.0
        padded = [node + (each.end,) * (each.tree.depth - len(node)) for node in nodes]
        return cls(
            chain,
            np.array([_ended(node, each) for node in nodes]),
            np.array([_number(node, each) for node in padded]),
            len(each.accepted),
        )

    def of_words(self, weights: np.ndarray) -> np.ndarray:
        """Weights of the nodes as a law of complete texts."""
        found = np.bincount(self.word[self.leaf], weights[self.leaf], minlength=self.words)
        return found / found.sum()

    def first_leaf(self) -> np.ndarray:
        inner = ~self.leaf
        visits = np.linalg.inv(np.eye(inner.sum()) - self.chain[inner][:, inner])[0]
        weights = np.zeros(len(self.leaf))
        weights[self.leaf] = visits @ self.chain[inner][:, self.leaf]
        return self.of_words(weights)

    def at_a_uniform_time(self, steps: int) -> np.ndarray:
        now, total = np.eye(1, len(self.leaf)).ravel(), np.zeros(len(self.leaf))
        for _ in range(steps):
            now = now @ self.chain
            total += now
        return self.of_words(total)


def _ended(node: tuple[int, ...], each: Language) -> bool:
    return len(node) == each.tree.depth or each.end in node


def _number(node: tuple[int, ...], each: Language) -> int:
    return sum(letter * each.tree.tokens ** (len(node) - 1 - place) for place, letter in enumerate(node))


@pytest.mark.gate(2)
@pytest.mark.parametrize("number", [5, 8, 2])
def test_as_printed_the_first_leaf_has_the_law_of_the_walk_and_not_the_target_s(number):
    each = language(number)
    walk = VGB(leaves="as-printed")
    law = Unpadded.of(each, each.values()).first_leaf()
    assert chance_of(leaf_counts(walk, each, "values", 20_000, number), law) > 1e-3
    assert total_variation(law, given(each)) > 0.05
    assert walk.law == f"{VGB().law} and all texts have one length"


@pytest.mark.parametrize("base", ["model", "constrained"])
def test_as_printed_the_first_leaf_has_the_law_it_says_where_texts_have_one_length(base):
    """The words of full length: the end token, if it comes, comes last."""
    each = language(2)
    early = np.array([each.end in string[:-1] for string in each.tree.strings()])
    each = Language(each.tree, np.where(early, 0.0, (each.tree.reach[-1] > 0).astype(float)))
    what, law = ("values", given) if base == "model" else ("verdicts", local)
    counts = leaf_counts(VGB(leaves="as-printed", base=base), each, what, 20_000, 3)
    assert chance_of(counts, law(each)) > 1e-3


def test_at_a_uniform_time_the_walk_nears_its_target_whatever_the_values_inside():
    each = language(5)
    unpadded = Unpadded.of(each, each.noisy)
    walk = VGB(returns="uniform-time", max_steps=150, restarts=10_000)
    assert chance_of(leaf_counts(walk, each, "noisy", 5_000, 1), unpadded.at_a_uniform_time(150)) > 1e-3
    far = [total_variation(unpadded.at_a_uniform_time(steps), given(each)) for steps in (150, 1_500, 15_000)]
    assert far[0] > 4 * far[1] > 16 * far[2] and far[2] < 0.01
    assert walk.law == "the model given the language, if the outcomes are exact, in the limit of many steps"


def test_adaptive_rejection_computes_no_prefix_twice_and_samples_of_one_prompt_learn_together():
    each = language(3)
    generator = TreeGenerator(each.tree)
    done = AdaptiveRejection().generate(
        generator,
        torch.zeros(500, 0, dtype=torch.long),
        verifier=TableVerifier(each.verdicts, each.tree.tokens),
        max_new=each.tree.depth,
        eos=each.end,
        rng=sl.rng(0),
    )
    inner = sum(each.tree.tokens**level for level in range(each.tree.depth))
    assert generator.evaluations == done.total("oracle_calls") <= inner


def test_a_walk_with_memory_makes_the_same_moves_with_fewer_queries():
    each = language(3)
    runs = [
        VGB(remember=megabytes).generate(
            TreeGenerator(each.tree),
            torch.zeros(50, 0, dtype=torch.long),
            verifier=TableVerifier(each.noisy, each.tree.tokens),
            max_new=each.tree.depth,
            eos=each.end,
            rng=sl.rng(5),
        )
        for megabytes in (0, 1)
    ]
    assert [runs[0].string(row) for row in range(50)] == [runs[1].string(row) for row in range(50)]
    assert runs[1].total("oracle_calls") < runs[0].total("oracle_calls") / 2
    assert runs[1].total("oracle_calls") + runs[1].total("remembered") == runs[0].total("oracle_calls")
