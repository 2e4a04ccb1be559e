"""Beam search with a causal encoder-decoder, and corpora distilled from one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import flag, integer, number, require
from sandlab.models.parallel.encoder_decoder import EncoderDecoder
from sandlab.worlds.parallel.sentence_pairs import SentencePairs
from sandlab.worlds.parallel.translation import END, PAD, START, TranslationWorld

__all__ = ["BeamSearch", "Searched", "distil"]


@dataclass(frozen=True, eq=False)
class Searched:
    """The best answer of each source, its log-probability, and decoder passes (the longest answer decides)."""

    tokens: Int[Tensor, "source target"]
    scores: Float[Tensor, "source"]
    passes: int


@dataclass(frozen=True)
class BeamSearch:
    """The `beam` likeliest prefixes grow token by token until all have ended; beam 1 is greedy.

    brevity   scores are divided by ((5 + length)/6)^brevity
    cached    keep keys and values of the tokens read; otherwise every pass reads the whole prefix again
    sample    draw tokens instead (beam 1)
    """

    beam: int = 5
    brevity: float = 0.0
    cached: bool = True
    sample: bool = False

    def __post_init__(self) -> None:
        integer("beam", self.beam, low=1)
        number("brevity", self.brevity)
        flag("cached", self.cached)
        require(not self.sample or self.beam == 1, "beam", self.beam, "1 when tokens are drawn")

    @torch.no_grad()
    def translate(
        self, model: EncoderDecoder, source: Int[Tensor, "source time"], *, rng: torch.Generator | None = None,
        length: int | None = None,
    ) -> Searched:  # fmt: skip
        """Translate sources; with `length` every answer is written that long (for timing)."""
        require(model.config.causal, "causal", False, "True", "beam search needs an autoregressive model")
        count, width = len(source), length or model.config.target_length
        rows = torch.arange(count, device=source.device).repeat_interleave(self.beam)
        cache = model.encode(source, remember=self.cached).select(rows)
        tokens = torch.full((count * self.beam, 1), START, device=source.device)
        score = torch.full((count, self.beam), -torch.inf, device=source.device)
        score[:, 0] = 0.0
        ended, passes = torch.zeros(count * self.beam, dtype=torch.bool, device=source.device), 0
        while passes < width and (length is not None or not bool(ended.all())):
            logits = model.decode(cache, tokens[:, -1:] if self.cached else tokens)[:, -1]
            passes += 1
            logs = self._continued(logits, ended if length is None else torch.zeros_like(ended))
            origin, token, score = self._choose(score, logs.view(count, self.beam, -1), rng)
            flat = (origin + self.beam * torch.arange(count, device=source.device).unsqueeze(1)).flatten()
            tokens = torch.cat([tokens[flat], token.view(-1, 1)], 1)
            ended = ended[flat] | (token.flatten() == END)
            cache = cache.select(flat) if self.beam > 1 else cache
        return self._best(tokens[:, 1:], score, count, model.config.target_length, passes)

    @staticmethod
    def _continued(logits: Tensor, ended: Tensor) -> Float[Tensor, "row vocab"]:
        """Log-probabilities of the next token; what has ended goes on with padding at no cost."""
        logs = logits.log_softmax(-1)
        logs[:, [PAD, START]] = -torch.inf
        over = torch.full_like(logs, -torch.inf)
        over[:, PAD] = 0.0
        return torch.where(ended.unsqueeze(1), over, logs)

    def _choose(
        self, score: Float[Tensor, "source beam"], logs: Float[Tensor, "source beam vocab"], rng: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if self.sample:
            token = torch.multinomial(logs[:, 0].exp(), 1, generator=rng)
            return torch.zeros_like(token), token, score + logs[:, 0].gather(1, token)
        total = (score.unsqueeze(-1) + logs).flatten(1)
        best, place = total.topk(self.beam, -1)
        return place // logs.shape[-1], place % logs.shape[-1], best

    def _best(self, tokens: Tensor, score: Tensor, count: int, width: int, passes: int) -> Searched:
        lengths = (tokens != PAD).sum(1).view(count, self.beam)
        chosen = (score / ((5.0 + lengths) / 6.0) ** self.brevity).argmax(1)
        rows = chosen + self.beam * torch.arange(count, device=tokens.device)
        found = torch.nn.functional.pad(tokens[rows], (0, max(0, width - tokens.shape[1])))
        return Searched(found, score.gather(1, chosen.unsqueeze(1)).squeeze(1), passes)


def distil(
    teacher: EncoderDecoder, world: TranslationWorld, sentences: int, *, beam: int = 5, batch: int = 512,
    rng: torch.Generator,
) -> SentencePairs:  # fmt: skip
    """Sources of a world, each with the one translation an autoregressive teacher gives it (Li 2024, §4.2.3)."""
    sources, targets = [], []
    for start in range(0, sentences, batch):
        drawn = world.sample(min(batch, sentences - start), rng=rng).inputs
        sources.append(drawn)
        targets.append(BeamSearch(beam).translate(teacher, drawn).tokens)
    return SentencePairs(torch.cat(sources), torch.cat(targets), world.vocab)
