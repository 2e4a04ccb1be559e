"""Verifiers and decoders inside `model.generate` of transformers: a logits processor and a generation strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.generators.hugging_face import HuggingFaceGenerator, LanguageModel
from sandlab.decoding.verifiers.base import Verifier
from sandlab.decoding.verifiers.grammars import GrammarVerifier
from sandlab.decoding.verifiers.schemas import TextLanguage
from sandlab.errors import BadInput
from sandlab.random import rng as seeded

if TYPE_CHECKING:
    from transformers import LogitsProcessor

__all__ = ["generation_strategy", "logits_processor"]

MakeVerifier = Callable[[LanguageModel, list[int]], Verifier]


def logits_processor(model: Any, tokenizer: Any, language: TextLanguage | MakeVerifier) -> LogitsProcessor:
    """A `LogitsProcessor` for one call of `model.generate`: log V(s∘a) is added to the score of every next token.

    >>> language = compile_grammar(json_schema=Person)
    >>> model.generate(**inputs, do_sample=True, logits_processor=[logits_processor(model, tokenizer, language)])

    With a grammar that is a mask, and what `generate` samples is the model renormalised among the allowed tokens at
    each step. Instead of a language, a function (model, prompt lengths) → Verifier may be given. Works with sampling,
    greedy and beam search and with left padding: only what stands behind the prompt is judged.
    """
    from transformers import LogitsProcessor

    class VerifierLogitsProcessor(LogitsProcessor):
        def __init__(self) -> None:
            self.guide: Verifier | None = None
            self.start = 0
            self.ends = torch.tensor(LanguageModel.ends_of(model, tokenizer))

        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            rows, length = input_ids.shape
            if self.guide is None:
                self.start = length
                loaded = LanguageModel(_Bare(model, scores.shape[1]), tokenizer, "")
                self.guide = _verifier(language, loaded, [length] * rows)
                self.guide.start(rows, length)
            written = input_ids[:, self.start :]
            over = torch.isin(written, self.ends.to(written.device)).any(1)
            lengths = torch.full((rows,), length, device=input_ids.device)
            values = self.guide.children(input_ids, lengths, torch.arange(rows), scores.shape[1]).to(scores.device)
            stuck = ~(values > 0).any(1)
            # Texts that have ended are filled up by the library; where no token is right, it may only end.
            values = torch.where((over | stuck).unsqueeze(1), torch.ones_like(values), values)
            guided = scores + values.to(scores.dtype).log()
            ending = torch.full_like(scores, -torch.inf)
            ending[:, self.ends] = scores[:, self.ends].clamp(min=torch.finfo(scores.dtype).min)
            return torch.where((stuck & ~over).unsqueeze(1), ending, guided)

    return VerifierLogitsProcessor()


def generation_strategy(
    decoder: Decoder,
    tokenizer: Any,
    language: TextLanguage | MakeVerifier | None = None,
    *,
    seed: int | None = None,
    budget: int | None = None,
) -> Callable[..., Tensor]:
    """A decoder as `custom_generate` of `model.generate`: backtracking, walks and rejection with the library's call.

    >>> model.generate(**inputs, max_new_tokens=40, custom_generate=generation_strategy(VGB(), tokenizer, language))

    Temperature, top-k and the rest are the decoder's own, not those of the generation config. Without a seed the random
    numbers come from torch's. Rows that failed hold what was written last.
    """

    def strategy(model: Any, input_ids: Tensor, **given: Any) -> Tensor:
        config = given.get("generation_config")
        if config is None or config.max_length is None:
            raise BadInput("the strategy needs a length: give max_new_tokens")
        loaded = LanguageModel(HuggingFaceGenerator(model), tokenizer, "")
        prompts = _without_padding(input_ids, given.get("attention_mask"))
        guide = None if language is None else _verifier(language, loaded, [len(prompt) for prompt in prompts])
        start = int(torch.randint(2**31, (1,))) if seed is None else seed
        done = decoder.generate(
            loaded.generator,
            prompts,
            max_new=config.max_length - input_ids.shape[1],
            verifier=guide,
            eos=loaded.ends,
            rng=seeded(start),
            budget=budget,
        )
        pad = config.pad_token_id if config.pad_token_id is not None else loaded.eos
        pad = int(pad[0] if isinstance(pad, (list, tuple)) else pad)
        answers = [done.generated(row) for row in range(len(done))]
        width = max(map(len, answers))
        filled = torch.tensor([answer + [pad] * (width - len(answer)) for answer in answers], dtype=torch.long)
        return torch.cat([input_ids, filled.to(input_ids.device)], 1)

    return strategy


def _verifier(language: TextLanguage | MakeVerifier, model: LanguageModel, starts: list[int]) -> Verifier:
    if isinstance(language, TextLanguage):
        return GrammarVerifier(language, model, starts)
    return language(model, starts)


def _without_padding(tokens: Tensor, mask: Tensor | None) -> list[list[int]]:
    if mask is None or mask.shape != tokens.shape:
        return [list(row) for row in tokens.tolist()]
    return [row[kept.bool()].tolist() for row, kept in zip(tokens, mask)]


class _Bare(Generator):
    """A model of which only the vocabulary and the end tokens are asked."""

    def __init__(self, model: Any, vocab: int) -> None:
        super().__init__()
        self.model, self.vocab = model, vocab
