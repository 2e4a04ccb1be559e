"""Sentences of a grammar as tasks: predict masked tokens, or the tokens that end spans of a level."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, Predictor, World
from sandlab.worlds.distillation.chart import next_token_probs, token_posteriors
from sandlab.worlds.distillation.derivations import Derivations, check_layered, derivations, sample_sentences
from sandlab.worlds.distillation.pcfg import PCFG
from sandlab.worlds.distillation.synthetic_grammars import grammar

__all__ = ["BoundaryGrammar", "MaskedGrammar", "WindowOracle", "boundaries"]


def boundaries(trees: Derivations, height: int) -> Bool[Tensor, "example time"]:
    """C^(ℓ): positions that are the last token of a node of height ℓ (terminals 1, the root the grammar's height)."""
    layers = trees.ends.shape[1]
    integer("height", height, low=1, high=layers)
    return trees.ends[:, layers - height]


@dataclass(frozen=True)
class _GrammarWorld(World):
    """What tasks on sentences share: the grammar, special tokens, positions.

    Tokens: terminals 0 … v − 1, then BOS (before every sentence), EOS (unused), PAD, MASK and one spare; with
    `hidden` the same numbers plus the vocabulary stand for tokens whose key no position may attend to.
    """

    grammar: str = "toy-english"
    root: str | None = None
    longest: int | None = None
    latent: bool = False

    def __post_init__(self) -> None:
        if self.longest is not None:
            integer("longest", self.longest, low=1)
        if self.latent:
            check_layered(self.rules)

    @property
    def rules(self) -> PCFG:
        return grammar(self.grammar, self.root)

    @property
    def words(self) -> int:
        """Number of terminals."""
        return len(self.rules.terminals)

    @property
    def vocab(self) -> int:
        return self.words + 5

    @property
    def bos(self) -> int:
        return self.words

    @property
    def pad(self) -> int:
        return self.words + 2

    @property
    def mask_token(self) -> int:
        return self.words + 3

    @property
    def letters(self) -> list[str]:
        return [*self.rules.terminals, "<s>", "</s>", ".", "_", "?", *(f"({i})" for i in range(self.vocab))]

    @property
    def width(self) -> int:
        """Tokens of a row, BOS not counted: the longest sentence, or what is kept of it."""
        longest = self.rules.spans(self.rules.start)[1]
        return longest if self.longest is None else min(longest, self.longest)

    @property
    def length(self) -> int:
        """Positions of the inputs: BOS and the tokens."""
        return self.width + 1

    def _draw(self, n: int, rng: torch.Generator) -> tuple[Tensor, dict[str, Tensor], Derivations | None]:
        """Tokens (example, width), −1 in the padding, and the latent truth."""
        self._check_count(n)
        trees = derivations(self.rules, n, rng=rng) if self.latent else None
        tokens = (trees or sample_sentences(self.rules, n, rng=rng)).tokens[:, : self.width]
        truth = {}
        if trees is not None:
            truth = {"ancestors": trees.ancestors[..., : self.width], "ends": trees.ends[..., : self.width]}
        return tokens, truth, trees

    def _with_bos(self, tokens: Int[Tensor, "example time"]) -> Int[Tensor, "example position"]:
        return torch.cat([tokens.new_full((len(tokens), 1), self.bos), tokens.masked_fill(tokens < 0, self.pad)], 1)

    def _log_probs(self, probs: Float[Tensor, "example time word"]) -> Float[Tensor, "example time class"]:
        """Logarithms over the whole vocabulary: no special token is ever predicted."""
        return torch.nn.functional.pad(probs, (0, self.vocab - self.words)).log()


@register("worlds")
@dataclass(frozen=True)
class MaskedGrammar(_GrammarWorld):
    """Masked prediction on sentences of a grammar.

    Each token is selected with probability `rate`; of the selected, `keep` stay, `swap` become a random terminal, the
    others become MASK. The loss counts the selected ones.

    grammar, root        a name of `GRAMMARS` or rules as text; the symbol to start from
    longest              tokens kept of a sentence (None: all)
    hide_selected        no position attends to a selected one, as in the authors' code (False: Definition 24)
    latent               give the truth "ancestors" and "ends" (example, layer, time), root first

    Source: Panigrahi et al. 2024, Definition 24 of the thesis's section 4.2; rules of Allen-Zhu and Li 2023.
    """

    rate: float = 0.3
    keep: float = 0.1
    swap: float = 0.1
    hide_selected: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rate", "keep", "swap"):
            number(name, getattr(self, name), low=0.0, high=1.0)
        require(self.keep + self.swap <= 1, "keep + swap", self.keep + self.swap, "at most 1")

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        tokens, truth, _ = self._draw(n, rng)
        exists = tokens >= 0
        selected = (torch.rand(tokens.shape, generator=rng, device=rng.device) < self.rate) & exists
        fate = torch.rand(tokens.shape, generator=rng, device=rng.device)
        other = torch.randint(self.words, tokens.shape, generator=rng, device=rng.device)
        shown = torch.where(fate < self.swap, other, self.mask_token)
        shown = torch.where(fate >= 1 - self.keep, tokens, shown)
        inputs = self._with_bos(torch.where(selected, shown, tokens))
        hidden = torch.cat([torch.zeros_like(exists[:, :1]), ~exists | (selected & self.hide_selected)], 1)
        # Keys of the padding are hidden always: sentences do not see how much longer others are.
        first = torch.zeros_like(selected[:, :1])
        return Batch(inputs + self.vocab * hidden, self._with_bos(tokens), torch.cat([first, selected], 1), truth)

    def evidence(self, inputs: Int[Tensor, "example position"]) -> Float[Tensor, "example time word"]:
        """e_i(w): how likely the shown token is when w is the true one; 1 for all w where MASK is shown.

        (1 − p)1[w = o] + p(keep 1[w = o] + swap/v) for a shown terminal o.
        """
        shown = inputs[:, 1:] % self.vocab
        same = (shown.unsqueeze(-1) == torch.arange(self.words, device=inputs.device)).double()
        weights = (1 - self.rate + self.rate * self.keep) * same + self.rate * self.swap / self.words
        return torch.where((shown < self.words).unsqueeze(-1), weights, 1.0)

    def own_evidence(self, inputs: Int[Tensor, "example position"]) -> Float[Tensor, "example time word"]:
        """The same at a position that is known to be selected, as all predicted ones are: keep 1[w = o] + swap/v."""
        shown = inputs[:, 1:] % self.vocab
        same = (shown.unsqueeze(-1) == torch.arange(self.words, device=inputs.device)).double()
        weights = self.keep * same + self.swap / self.words
        usable = (shown < self.words).unsqueeze(-1) & (self.keep + self.swap > 0)
        return torch.where(usable, weights, 1.0)

    def lengths(self, inputs: Int[Tensor, "example position"]) -> Int[Tensor, "example"]:
        return (inputs[:, 1:] % self.vocab != self.pad).sum(1)

    def oracle(self, batch: Batch) -> Float[Tensor, "example position class"]:
        """P(token | the corrupted sentence, selected): inside probabilities with the channel's likelihoods."""
        if self.longest is not None:
            raise NotImplementedError("the oracle needs whole sentences: leave out longest")
        evidence, own = self.evidence(batch.inputs), self.own_evidence(batch.inputs)
        found = token_posteriors(self.rules, evidence, self.lengths(batch.inputs), own)
        found = torch.where(found.sum(-1, keepdim=True) > 0.5, found, 1 / self.words)
        return self._log_probs(torch.nn.functional.pad(found, (0, 0, 1, 0), value=1 / self.words))

    def baselines(self) -> dict[str, Predictor]:
        windows = {f"window of {r} on each side": WindowOracle(self, r) for r in (0, 1, 2)}
        return {name: window.predict for name, window in windows.items()}

    @property
    def plateau(self) -> tuple[float, float]:
        """Loss and accuracy of the best predictor that sees a selected position's own token and no other.

        For uniform terminals: 0.8 log 3 + 0.2 H(2/3, 1/6, 1/6) = 1.0524 nats and 0.4.
        """
        unigram = torch.from_numpy(self.rules.unigram)
        joint = self.swap * unigram.unsqueeze(1) / self.words + self.keep * torch.diag(unigram)
        hidden = 1 - self.keep - self.swap
        seen = torch.special.xlogy(joint, joint / joint.sum(0)).sum()
        loss = hidden * torch.special.entr(unigram).sum() - seen
        return float(loss), float(hidden * unigram.max() + joint.max(0).values.sum())


@register("worlds")
@dataclass(frozen=True)
class BoundaryGrammar(_GrammarWorld):
    """Next-token prediction where the loss counts only the last tokens of spans of one height (eq. 4.98).

    height   ℓ of C^(ℓ): 1 counts every token; spans of height 2 are those of the lowest non-terminals

    Targets: the token itself, predicted from all tokens before it; one position per input (BOS predicts the first).

    Source: Panigrahi et al. 2024, thesis section 4.2.9.
    """

    height: int = 2
    latent: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_layered(self.rules)
        integer("height", self.height, low=1, high=self.rules.heights[self.rules.start])
        choice("latent", self.latent, (True,), hint="boundaries are read off the trees")

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        tokens, truth, trees = self._draw(n, rng)
        assert trees is not None
        whole = self._with_bos(tokens)
        counted = boundaries(trees, self.height)[:, : self.width]
        return Batch(whole[:, :-1], whole[:, 1:], counted, truth)

    @property
    def length(self) -> int:
        return self.width

    def oracle(self, batch: Batch) -> Float[Tensor, "example position class"]:
        """P(x_t | x_<t, the sentence goes on)."""
        tokens = torch.where(batch.targets < self.words, batch.targets, -1)
        following, _ = next_token_probs(self.rules, tokens)
        total = following.sum(-1, keepdim=True)
        return self._log_probs(torch.where(total > 0, following / total.clamp(min=1e-300), 1 / self.words))


@dataclass(frozen=True)
class WindowOracle:
    """The best masked prediction from `radius` tokens on each side, wherever they stand in a sentence.

    P(w | neighbours) from the exact numbers of (2r + 1)-grams, start and end marks included; neighbours that are
    masked are summed out, and visible ones count with the channel's likelihoods, as in the full oracle.
    """

    world: MaskedGrammar
    radius: int = 1

    def __post_init__(self) -> None:
        integer("radius", self.radius, low=0, high=4)

    @functools.cached_property
    def counts(self) -> Float[Tensor, "..."]:
        """Expected (2r + 1)-grams, the middle axis first."""
        grams = torch.from_numpy(self.world.rules.ngrams(2 * self.radius + 1, padding=max(1, self.radius)))
        return grams.movedim(self.radius, 0)[: self.world.words]

    def probs(self, inputs: Int[Tensor, "example position"]) -> Float[Tensor, "example time word"]:
        """Posterior of every token if it is selected, its own shown token included."""
        own = self.world.evidence(inputs)
        likely = torch.nn.functional.pad(own, (0, 2))
        shown = inputs[:, 1:] % self.world.vocab
        likely[shown == self.world.pad] = torch.eye(self.world.words + 2, dtype=likely.dtype)[-1].to(likely)
        found = self.counts.to(own).expand(*own.shape[:2], *self.counts.shape)
        for offset in [*range(-self.radius, 0), *range(1, self.radius + 1)]:
            found = torch.einsum("btwg...,btg->btw...", found, self._beside(likely, offset))
        found = found * self.world.own_evidence(inputs)
        return found / found.sum(-1, keepdim=True).clamp(min=1e-300)

    def _beside(self, likely: Tensor, offset: int) -> Tensor:
        """Likelihoods of the neighbour at an offset: start marks before the sentence, end marks after it."""
        shape, time = (*likely.shape[:1], abs(offset), likely.shape[2]), likely.shape[1]
        mark = likely.new_zeros(shape)
        mark[..., -2 if offset < 0 else -1] = 1.0
        joined = torch.cat([mark, likely], 1)[:, :time] if offset < 0 else torch.cat([likely, mark], 1)[:, -time:]
        return joined

    def predict(self, batch: Batch) -> Float[Tensor, "example position class"]:
        """Log-probabilities at every position, as the world's oracle gives them."""
        found = self.probs(batch.inputs)
        found = torch.where(found.sum(-1, keepdim=True) > 0.5, found, 1 / self.world.words)
        return self.world._log_probs(torch.nn.functional.pad(found, (0, 0, 1, 0), value=1 / self.world.words))
