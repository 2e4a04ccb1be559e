"""What masking does to the words of a document: probabilities in closed form."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from sandlab.errors import integer, number, require

__all__ = ["InfiniteDocuments", "MaskedStatistics", "check_masking", "topic_of_word"]


def topic_of_word(word: Int[np.ndarray, "*shape"], words: int) -> Int[np.ndarray, "*shape"]:
    """⌈i/v⌉: topic 1 … T of word i ≥ 1 when each topic owns `words` of them; 0, no topic, for [MASK] = 0."""
    return -(-np.asarray(word) // integer("words", words, low=1))


def check_masking(rate: float, keep: float, swap: float) -> None:
    """Refuse shares of masked, kept and swapped positions that are no probabilities."""
    for name, value in (("rate", rate), ("keep", keep), ("swap", swap)):
        number(name, value, low=0.0, high=1.0)
    require(keep + swap <= 1, "keep + swap", keep + swap, "at most 1")


@dataclass(frozen=True)
class MaskedStatistics:
    """Token probabilities of a document after masking (Proposition 2.1.1 of Li 2024).

        m  = p_m(1 − p_c − p_r)              [MASK]
        k  = 1 − (1 − p_c)p_m                words that are still the true ones
        p₁ = k/(vτ) + p_m p_r/(vT)           a word of a present topic
        p₂ = p_m p_r/(vT)                    a word of an absent topic

    topics, words, present   T, v, τ
    rate, keep, swap         p_m, p_c, p_r
    """

    topics: int = 10
    words: int = 10
    present: int = 2
    rate: float = 0.15
    keep: float = 0.1
    swap: float = 0.1

    def __post_init__(self) -> None:
        integer("topics", self.topics, low=1)
        integer("words", self.words, low=1)
        integer("present", self.present, low=1, high=self.topics)
        check_masking(self.rate, self.keep, self.swap)

    @property
    def vocab(self) -> int:
        """[MASK] and Tv words."""
        return self.topics * self.words + 1

    @property
    def mask_mass(self) -> float:
        """m"""
        return self.rate * (1 - self.keep - self.swap)

    @property
    def true_mass(self) -> float:
        """k"""
        return 1 - (1 - self.keep) * self.rate

    @property
    def p_absent(self) -> float:
        """p₂"""
        return self.rate * self.swap / (self.words * self.topics)

    @property
    def p_present(self) -> float:
        """p₁"""
        return self.true_mass / (self.words * self.present) + self.p_absent

    @property
    def c1(self) -> float:
        """p_r/((1 − p_c − p_r) k T v)"""
        return self.swap / ((1 - self.keep - self.swap) * self.true_mass * self.topics * self.words)

    @property
    def c2(self) -> float:
        """1/m − 1"""
        return 1 / self.mask_mass - 1

    @property
    def c3(self) -> float:
        """1/k"""
        return 1 / self.true_mass

    @property
    def offset(self) -> float:
        """p_m p_r/(k T v): what q(x) = c₃x − offset, and the output bias of Theorem 2.1.1, subtract"""
        return self.p_absent / self.true_mass

    def masked(self, frequencies: Float[np.ndarray, "*lead vocab"]) -> Float[np.ndarray, "*lead vocab"]:
        """Token frequencies after masking: x_i = k P(i) + p_m p_r/(Tv), x₀ = m."""
        seen = self.true_mass * frequencies + self.p_absent
        seen[..., 0] = self.mask_mass
        return seen

    @property
    def topic_sums(self) -> Float[np.ndarray, "topics vocab"]:
        """The matrix that adds up the words of each topic."""
        return (topic_of_word(np.arange(self.vocab), self.words) == np.arange(1, self.topics + 1)[:, None]).astype(
            float
        )


@dataclass(frozen=True)
class InfiniteDocuments:
    """Documents so long that word frequencies are exact: P(i) = θ_topic(i)/v (Assumption 2.1.1).

    Here θ is 1/τ on τ present topics; `weighted` takes any weights, such as draws of a Dirichlet distribution.
    """

    statistics: MaskedStatistics

    def every(self) -> Float[np.ndarray, "documents vocab"]:
        """Frequencies of all (T choose τ) documents."""
        s = self.statistics
        chosen = np.array(list(itertools.combinations(range(s.topics), s.present)))
        weights = np.zeros((len(chosen), s.topics))
        np.put_along_axis(weights, chosen, 1 / s.present, axis=1)
        return self.weighted(weights)

    def dirichlet(self, n: int, concentration: float, rng: np.random.Generator) -> Float[np.ndarray, "documents vocab"]:
        """Frequencies of n documents with weights from Dirichlet(concentration)."""
        return self.weighted(rng.dirichlet(np.full(self.statistics.topics, concentration), size=n))

    def weighted(self, weights: Float[np.ndarray, "documents topics"]) -> Float[np.ndarray, "documents vocab"]:
        """Frequencies of documents with the given topic weights."""
        return weights @ self.statistics.topic_sums / self.statistics.words
