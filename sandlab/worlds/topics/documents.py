"""Documents of disjoint topics with masked words: a fixed number of topics, or Dirichlet weights (LDA)."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, Predictor, World
from sandlab.worlds.topics.masking import MaskedStatistics, check_masking

__all__ = ["DisjointTopics", "LDATopics", "TopicWorld", "corrupt", "posterior_mean"]

MOST_SETS = 20_000


def corrupt(
    tokens: Int[Tensor, "*shape"],
    words: int,
    *,
    rate: float,
    keep: float,
    swap: float,
    rng: torch.Generator,
) -> tuple[Int[Tensor, "*shape"], Bool[Tensor, "*shape"]]:
    """Masked tokens and the positions M that are predicted (§2.1.1 of the source).

    Each position is in M with probability `rate`. Of these a share `keep` stays, a share `swap` becomes a uniform
    word of 1 … `words` (perhaps the true one), and the others become [MASK] = 0.
    """
    chosen, fate = (torch.rand(tokens.shape, generator=rng, device=rng.device) for _ in range(2))
    other = torch.randint(1, words + 1, tokens.shape, generator=rng, device=rng.device)
    hidden = torch.where(fate < swap, other, 0)
    hidden = torch.where(fate >= 1 - keep, tokens, hidden)
    predicted = chosen < rate
    return torch.where(predicted, hidden, tokens), predicted


@dataclass(frozen=True)
class TopicWorld(World):
    """What both worlds share. Token 0 is [MASK], words are 1 … Tv, the last token Tv + 1 fills up short documents.

    topics, words      T topics with v words of their own each
    lengths            shortest and longest document; uniform between
    rate, keep, swap   p_m, p_c, p_r: see `corrupt`
    attend_to_masked   False: tokens at predicted positions come as a second alphabet, token + Tv + 2, by which a
                       model knows not to attend to them
    word_probs         probabilities of the words inside each topic; uniform if empty
    last               0: every position has a target, in the order of the document. k: predicted positions stand last
                       and only the last k positions have targets, which is faster for models without positions. Those
                       few beyond k are not predicted
    """

    topics: int = 10
    words: int = 10
    lengths: tuple[int, int] = (100, 150)
    rate: float = 0.15
    keep: float = 0.1
    swap: float = 0.1
    attend_to_masked: bool = True
    word_probs: tuple[float, ...] = ()
    last: int = 0

    def __post_init__(self) -> None:
        integer("topics", self.topics, low=1)
        integer("words", self.words, low=1)
        shortest, longest = self.lengths
        integer("lengths", shortest, low=1)
        integer("lengths", longest, low=shortest)
        integer("last", self.last, low=0, high=longest)
        check_masking(self.rate, self.keep, self.swap)
        good = not self.word_probs or (len(self.word_probs) == self.words and abs(sum(self.word_probs) - 1) < 1e-6)
        require(good, "word_probs", self.word_probs, f"{self.words} probabilities or none")

    @property
    def filler(self) -> int:
        """The token after the end of a document."""
        return self.topics * self.words + 1

    @property
    def vocab(self) -> int:
        return (self.filler + 1) * (1 if self.attend_to_masked else 2)

    @property
    def outputs(self) -> int:
        return self.filler

    @property
    def letters(self) -> list[str]:
        words = [f"{topic + 1}.{word + 1}" for topic in range(self.topics) for word in range(self.words)]
        once = ["_", *words, "·"]
        return once if self.attend_to_masked else [*once, *(f"({letter})" for letter in once)]

    @abstractmethod
    def weights(self, n: int, rng: torch.Generator) -> Float[Tensor, "n topics"]:
        """Topic weights of n documents."""

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        weights = self.weights(n, rng)
        words = self._words(weights, rng)
        lengths = torch.randint(self.lengths[0], self.lengths[1] + 1, (n, 1), generator=rng, device=rng.device)
        real = torch.arange(self.lengths[1], device=rng.device) < lengths
        return self.mask(torch.where(real, words, self.filler), weights, rng=rng)

    def mask(self, words: Int[Tensor, "n time"], weights: Float[Tensor, "n topics"], *, rng: torch.Generator) -> Batch:
        """Documents with some of their words masked; the filler never is."""
        real = words != self.filler
        shown, predicted = corrupt(
            words, self.topics * self.words, rate=self.rate, keep=self.keep, swap=self.swap, rng=rng
        )
        predicted = predicted & real
        shown = torch.where(real, shown, self.filler)
        marked = shown if self.attend_to_masked else shown + (self.filler + 1) * predicted
        batch = Batch(marked, torch.where(real, words, 0), predicted, {"weights": weights, "words": words})
        return _predicted_last(batch, self.last) if self.last else batch

    def shown(self, inputs: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
        """Tokens without the marks of predicted positions."""
        return inputs % (self.filler + 1)

    def _words(self, weights: Float[Tensor, "n topics"], rng: torch.Generator) -> Int[Tensor, "n time"]:
        size = (len(weights), self.lengths[1])
        topic = _draw(weights, size, rng)
        if not self.word_probs:
            word = torch.randint(self.words, size, generator=rng, device=rng.device)
        else:
            word = _draw(torch.tensor([self.word_probs], device=rng.device).expand(size[0], -1), size, rng)
        return 1 + topic * self.words + word

    @property
    def _word_law(self) -> Float[Tensor, " words"]:
        uniform = (1 / self.words,) * self.words
        return torch.tensor(self.word_probs or uniform, dtype=torch.float64)

    def _counts(self, batch: Batch) -> Float[Tensor, "batch topics"]:
        """Number of words of each topic that stand outside M."""
        word = self.shown(batch.inputs)
        hidden = torch.nn.functional.pad(batch.mask, (word.shape[1] - batch.mask.shape[1], 0))
        word = torch.where(hidden, 0, word)
        topic = torch.where(word == self.filler, 0, (word + self.words - 1) // self.words)
        counts = torch.zeros(len(batch), self.topics + 1, dtype=torch.float64, device=word.device)
        return counts.scatter_add(1, topic, torch.ones_like(topic, dtype=torch.float64))[:, 1:]

    def _predict(
        self, weights: Float[Tensor, "batch #time topics"], batch: Batch, use_shown: bool
    ) -> Float[Tensor, "batch asked outputs"]:
        """log P(true word | shown token) at a position of M, for topic weights θ.

        P(w) = θ_topic(w)·p(w | topic) at [MASK]; at a shown q, ∝ P(w)(p_c·1[w = q] + p_r/(Tv)).
        """
        law = (weights.double()[..., None] * self._word_law.to(weights.device)).flatten(-2)
        asked = batch.mask.shape[1]
        law = law[:, -asked:].expand(-1, asked, -1)
        if use_shown:
            token = self.shown(batch.inputs)[:, -asked:, None]
            same = token == torch.arange(1, self.filler, device=law.device)
            spoken = (token > 0) & (token < self.filler)
            law = torch.where(spoken, law * (self.keep * same + self.swap / (self.topics * self.words)), law)
        law = law / law.sum(-1, keepdim=True)
        return torch.nn.functional.pad(law, (1, 0)).log()


def _predicted_last(batch: Batch, count: int) -> Batch:
    """The same documents with their predicted positions at the end, and targets for the last `count` positions."""
    order = batch.mask.int().argsort(dim=1, stable=True)
    inputs, targets, mask = (value.gather(1, order) for value in (batch.inputs, batch.targets, batch.mask))
    truth = batch.truth | {"words": batch.truth["words"].gather(1, order)}
    return Batch(inputs, targets[:, -count:], mask[:, -count:], truth)


def _draw(weights: Float[Tensor, "n k"], size: tuple[int, int], rng: torch.Generator) -> Int[Tensor, "n time"]:
    """Classes of the given weights, `size[1]` for each row."""
    edges = weights.double().cumsum(1)
    spots = torch.rand(size, generator=rng, device=rng.device, dtype=torch.float64) * edges[:, -1:]
    return torch.searchsorted(edges.contiguous(), spots, right=True).clamp(max=weights.shape[1] - 1)


def posterior_mean(batch: Batch, world: LDATopics, *, use_shown: bool = True) -> Float[Tensor, "batch time outputs"]:
    """Predictions with the posterior mean of the weights, θ̂_t = (α + n_t)/(Tα + Σn), n counted outside M.

    use_shown   False: ignore what the predicted position itself shows, as a bag of words must
    Tokens kept or swapped in M are not counted, so this is very nearly but not exactly Bayes' prediction.
    """
    counts = world._counts(batch)
    total = world.topics * world.concentration + counts.sum(1, keepdim=True)
    return world._predict(((world.concentration + counts) / total)[:, None], batch, use_shown)


def _known_weights(batch: Batch, world: TopicWorld, *, use_shown: bool) -> Float[Tensor, "batch time outputs"]:
    return world._predict(batch.truth["weights"][:, None], batch, use_shown)


@register("worlds")
@dataclass(frozen=True)
class LDATopics(TopicWorld):
    """Latent Dirichlet allocation with disjoint topics: θ ~ Dirichlet(α), topics ~ θ, words uniform in their topic.

    concentration   α (§2.1.5.1 of Li 2024; Blei et al. 2003)
    """

    concentration: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        number("concentration", self.concentration, low=1e-6)

    def weights(self, n: int, rng: torch.Generator) -> Float[Tensor, "n topics"]:
        shape = torch.full((n, self.topics), self.concentration, dtype=torch.float64, device=rng.device)
        # All draws of a document may underflow when α is tiny: it then has equal weights rather than none.
        draws = torch._standard_gamma(shape, generator=rng) + 1e-300
        return draws / draws.sum(1, keepdim=True)

    def baselines(self) -> dict[str, Predictor]:
        """Posterior means with and without the shown token, and the predictions that know the weights."""
        found: dict[str, Predictor] = {
            "bag of words": partial(posterior_mean, world=self, use_shown=False),
            "full": partial(posterior_mean, world=self, use_shown=True),
        }
        return found | {"known weights": partial(_known_weights, world=self, use_shown=True)}


@register("worlds")
@dataclass(frozen=True)
class DisjointTopics(TopicWorld):
    """Documents of τ distinct topics of T, chosen uniformly; each word: a topic of these, then a word of the topic.

    present   τ (§2.1.1 of Li 2024)
    """

    present: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("present", self.present, low=1, high=self.topics)

    @property
    def statistics(self) -> MaskedStatistics:
        """Token probabilities after masking."""
        return MaskedStatistics(self.topics, self.words, self.present, self.rate, self.keep, self.swap)

    def weights(self, n: int, rng: torch.Generator) -> Float[Tensor, "n topics"]:
        order = torch.rand(n, self.topics, generator=rng, device=rng.device).argsort(1)
        return (order < self.present).double() / self.present

    def oracle(self, batch: Batch) -> Float[Tensor, "batch time outputs"]:
        """Bayes: sums over all sets of topics, given all shown tokens, at a position known to be predicted.

        The tokens at other positions may be swapped ones: given the set D they are independent, with p₁ or p₂. This is
        exact for words that are equally likely in their topic and a reader who does not know which other positions are
        predicted. With `word_probs`, or with marks (attend_to_masked=False), sets are weighed by p₁ and p₂ all the
        same, and a better prediction exists.
        """
        likelihood, weights = self._set_likelihood(batch), self._set_weights().to(batch.inputs.device)
        token = self.shown(batch.inputs)
        own = torch.where((token > 0) & (token < self.filler), (token + self.words - 1) // self.words, 0)
        s, inside = self.statistics, torch.nn.functional.pad(weights > 0, (1, 0)).mT[own]
        single = torch.where(inside, _log(s.p_present), _log(s.p_absent))
        others = likelihood[:, None] - torch.where((own > 0)[..., None], single, 0.0)
        posterior = torch.softmax(others, -1)
        return self._predict(posterior @ weights, batch, True)

    def baselines(self) -> dict[str, Predictor]:
        """Predictions that know the topics of the document, with and without the shown token."""
        return {
            "known topics, bag of words": partial(_known_weights, world=self, use_shown=False),
            "known topics": partial(_known_weights, world=self, use_shown=True),
        }

    def _set_weights(self) -> Float[Tensor, "sets topics"]:
        sets = list(itertools.islice(itertools.combinations(range(self.topics), self.present), MOST_SETS + 1))
        require(len(sets) <= MOST_SETS, "present", self.present, f"such that topics have at most {MOST_SETS} sets")
        weights = torch.zeros(len(sets), self.topics, dtype=torch.float64)
        return weights.scatter(1, torch.tensor(sets), 1 / self.present)

    def _set_likelihood(self, batch: Batch) -> Float[Tensor, "batch sets"]:
        """log P(shown tokens | set), up to what all sets share."""
        counts = self._counts(Batch(batch.inputs, batch.targets, torch.zeros_like(batch.mask)))
        inside = (self._set_weights() > 0).double().to(counts.device)
        s = self.statistics
        within, outside = counts @ inside.mT, counts @ (1 - inside).mT
        return within * _log(s.p_present) + outside * _log(s.p_absent)


def _log(p: float) -> float:
    """log p; words that cannot occur count as very unlikely, so that 0 · log 0 is 0."""
    return float(torch.tensor(max(p, 1e-300), dtype=torch.float64).log())
