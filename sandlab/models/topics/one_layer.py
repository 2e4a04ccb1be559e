"""One layer of attention over words without positions: the model of the topic chapter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.errors import choice, require
from sandlab.models.base import Config, Model, configured
from sandlab.models.layers import HookPoint
from sandlab.registry import register

__all__ = ["OneLayerTopics", "OneLayerTopicsConfig"]

WEIGHTS = ("embedding", "key", "query", "value", "key_bias", "query_bias", "value_bias", "output_bias", "head")


@dataclass(frozen=True)
class OneLayerTopicsConfig(Config):
    """Options of the one-layer topic model.

    vocab        number of words, [MASK] = 0 included; token `vocab` fills up short documents
    width        of the embeddings; None: one-hot embeddings, frozen
    key_width    of keys and queries; as wide as the embeddings by default
    attention    "trained", or "uniform": keys and queries are zero
    trained      which weights are trained, of embedding, key, query, value, key_bias, query_bias, value_bias,
                 output_bias, head. Those that are not stay as they are drawn; biases are drawn as zero
    tied         whether the prediction head is the embedding transposed; one-hot embeddings have no head to train
    init         "normal": N(0, std²); "torch": uniform ±1/√width; "noise": uniform on [0, std)
    embedding_std   of the embeddings, N(0, std²)
    path         "fast": over distinct words; "full": over positions. Both compute the same
    read         None: outputs at every position; k: at the last k alone
    """

    vocab: int
    width: int | None = None
    key_width: int | None = None
    attention: str = "trained"
    trained: tuple[str, ...] = ("embedding", "key", "query", "value", "key_bias", "query_bias", "value_bias")
    tied: bool = True
    init: str = "normal"
    std: float = 0.01
    embedding_std: float = 0.1
    path: str = "fast"
    read: int | None = None

    def __post_init__(self) -> None:
        self.check_integers("vocab", "width", "key_width", "read")
        self.check_numbers("std", "embedding_std", low=0.0)
        choice("attention", self.attention, ("trained", "uniform"))
        choice("init", self.init, ("normal", "torch", "noise"))
        choice("path", self.path, ("fast", "full"))
        for name in self.trained:
            choice("trained", name, WEIGHTS)
        require(self.tied or self.width is not None, "tied", self.tied, "True for one-hot embeddings")

    @property
    def inner(self) -> int:
        return self.vocab if self.width is None else self.width


@register("models")
class OneLayerTopics(Model):
    """f(X) = W_Eᵀ(W_V Z A + b_V) + b,  Z = W_E X,  A = colsoftmax((W_K Z + b_K)ᵀ(W_Q Z + b_Q)/√d_a).

    Equations (2.6) and, with one-hot embeddings, (2.7) of Li 2024: one head; no residual, norm, MLP or positions. A
    token t > vocab is the token t − vocab − 1 at a position that nothing attends to.

    Without positions, queries that show the same word have the same output, and keys count by how often they occur:
    over words l with n_l occurrences, a(l | q) = softmax_l(S_lq + log n_l). The fast path computes this.
    """

    config: OneLayerTopicsConfig

    @configured(OneLayerTopicsConfig)
    def __init__(self, config: OneLayerTopicsConfig) -> None:
        super().__init__(config)
        self.vocab, self.path, self.uniform = config.vocab, config.path, config.attention == "uniform"
        self.one_hot = config.width is None
        width, keys = config.inner, config.key_width or config.inner
        if not self.one_hot:
            self.embedding = nn.Parameter(config.embedding_std * torch.randn(width, config.vocab))
        if not config.tied:
            self.head = nn.Parameter(_draw(config, config.vocab, width))
        if not self.uniform:
            self.key, self.query = (nn.Parameter(_draw(config, keys, width)) for _ in range(2))
            self.key_bias, self.query_bias = (nn.Parameter(torch.zeros(keys)) for _ in range(2))
        self.value = nn.Parameter(_draw(config, width, width))
        self.value_bias, self.output_bias = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(config.vocab))
        self.pattern = HookPoint()
        for name, weight in self.named_parameters():
            weight.requires_grad_(name in config.trained)

    def table(self) -> Float[Tensor, "width vocab"]:
        """W_E"""
        return torch.eye(self.vocab, dtype=self.dtype, device=self.device) if self.one_hot else self.embedding

    def scores(self) -> Float[Tensor, "key_word query_word"]:
        """S: how much each word attends to each other, before the softmax."""
        if self.uniform:
            return torch.zeros(self.vocab, self.vocab, dtype=self.dtype, device=self.device)
        keys, queries = (
            (weight if self.one_hot else weight @ self.embedding) + bias[..., None]
            for weight, bias in ((self.key, self.key_bias), (self.query, self.query_bias))
        )
        return keys.mT @ queries / math.sqrt(keys.shape[-2])

    def forward(self, inputs: Int[Tensor, "batch time"]) -> Float[Tensor, "batch read vocab"]:
        words, seen = inputs % (self.vocab + 1), inputs < self.vocab
        asked = words if self.config.read is None else words[..., -self.config.read :]
        if self.path == "full":
            return self._over_positions(words, seen)[..., -asked.shape[-1] :, :]
        counts = self.counts(words, seen)
        if self.uniform:
            mixed = self._output(counts / counts.sum(-1, keepdim=True))
            return mixed.unsqueeze(-2).expand(*asked.shape, self.vocab)
        asked = asked.clamp(max=self.vocab - 1)
        if asked.shape[-1] < self.vocab:
            return self._output(self.word_attention(counts, asked))
        index = asked[..., None].expand(*asked.shape, self.vocab)
        return self._output(self.word_attention(counts)).gather(-2, index)

    def counts(
        self, words: Int[Tensor, "batch time"], seen: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch vocab"]:
        """How often each word occurs among the positions that are attended to."""
        empty = torch.zeros(*words.shape[:-1], self.vocab + 1, dtype=self.dtype, device=words.device)
        return empty.scatter_add(-1, words, seen.to(self.dtype))[..., :-1]

    def word_attention(
        self, counts: Float[Tensor, "batch vocab"], queries: Int[Tensor, "batch query"] | None = None
    ) -> Float[Tensor, "batch query key_word"]:
        """a(l | q): attention from each word, or from those asked, to all occurrences of another."""
        scores = self.scores().mT if queries is None else self.scores().mT[queries]
        return self.pattern(torch.softmax(scores + counts.log().unsqueeze(-2), -1))

    def _over_positions(
        self, words: Int[Tensor, "batch time"], seen: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time vocab"]:
        known = words.clamp(max=self.vocab - 1)
        scores = self.scores()[known[..., None, :], known[..., :, None]]
        pattern = self.pattern(torch.softmax(scores.masked_fill(~seen.unsqueeze(-2), -math.inf), -1))
        return self._output(pattern @ torch.eye(self.vocab, dtype=self.dtype, device=self.device)[known])

    def _output(self, mixture: Float[Tensor, "*lead vocab"]) -> Float[Tensor, "*lead vocab"]:
        """The prediction from a mixture of words."""
        if self.one_hot:
            return mixture @ self.value.mT + self.value_bias + self.output_bias
        attended = mixture @ (self.value @ self.embedding).mT + self.value_bias
        return attended @ (self.embedding if not hasattr(self, "head") else self.head.mT) + self.output_bias


def _draw(config: OneLayerTopicsConfig, rows: int, columns: int) -> Float[Tensor, "rows columns"]:
    if config.init == "torch":
        return (2 * torch.rand(rows, columns) - 1) / math.sqrt(columns)
    return config.std * (torch.randn(rows, columns) if config.init == "normal" else torch.rand(rows, columns))
