"""The simplest predictor that uses part of the past: a table of logits, one row per suffix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.errors import integer, require
from sandlab.models.base import Config, Model, configured
from sandlab.registry import register
from sandlab.worlds.markov.chain import MarkovChain, context_indices

__all__ = ["SuffixTable", "SuffixTableConfig", "suffix_table"]


@dataclass(frozen=True)
class SuffixTableConfig(Config):
    """Options of the table.

    vocab   alphabet size
    lags    distances back from the predicted token to those that the prediction depends on
    """

    vocab: int
    lags: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        integer("vocab", self.vocab, low=1)
        object.__setattr__(self, "lags", tuple(sorted({integer("lag", lag, low=1) for lag in self.lags})))
        require(self.vocab ** len(self.lags) <= 2**20, "lags", self.lags, "few enough for a table of 2^20 rows")


class SuffixTable(Model):
    """p(x) = softmax(table[x_{T−h}, h in lags]): logits that depend on the suffix alone. One prediction, at the end."""

    config: SuffixTableConfig

    @configured(SuffixTableConfig)
    def __init__(self, config: SuffixTableConfig) -> None:
        super().__init__(config)
        self.table = nn.Parameter(torch.zeros(config.vocab ** len(config.lags), config.vocab))

    def forward(self, inputs: Int[Tensor, "example time"]) -> Float[Tensor, "example 1 vocab"]:
        longest = max(self.config.lags, default=0)
        time = inputs.shape[-1]
        require(time >= longest, "sequence length", time, f"at least {longest}", "the largest lag must exist")
        return self.table[context_indices(inputs, self.config.vocab, self.config.lags, time)]


@register("circuits")
def suffix_table(chain: MarkovChain, lags: tuple[int, ...]) -> SuffixTable:
    """The table of a fixed chain's exact next-token probabilities given the tokens at the given lags only.

    It is a stationary point of the population loss although the chain itself uses more tokens: the score depends on
    the suffix alone, so p_τ(·|x) may be replaced by p_τ(·|suffix), which the table equals.

    Source: Varre, Yüce and Flammarion 2025, Proposition 3 and Remark C.2.
    """
    model = SuffixTable(vocab=chain.states, lags=lags).double()
    with torch.no_grad():
        model.table.copy_(chain.conditional(model.config.lags).log())
    return model
