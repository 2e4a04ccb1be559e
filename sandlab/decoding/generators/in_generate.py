"""Verifiers and decoders inside `model.generate` of transformers: a logits processor and a generation strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.walks import ValueGuided
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
    """A `LogitsProcessor` for `model.generate`: log V(s∘a) is added to the score of every next token.

    >>> language = compile_grammar(json_schema=Person)
    >>> model.generate(**inputs, do_sample=True, logits_processor=[logits_processor(model, tokenizer, language)])

    With a grammar that is a mask, and what `generate` samples is the model renormalised among the allowed tokens at
    each step (forced text in the tokenizer's own tokens, as by `decode_text`). Instead of a language, a function
    (model, prompt lengths) → Verifier may be given. Works with sampling, greedy and beam search, an assistant model and
    left padding: only what stands behind the prompt is judged. A call with other prompts begins new texts. Where no
    token is right, or another processor forbids those that are, a text may only end.
    """
    from transformers import LogitsProcessor

    class VerifierLogitsProcessor(LogitsProcessor):
        def __init__(self) -> None:
            self.guide: Verifier | None = None
            self.prompts = self.last = torch.zeros(0, 0, dtype=torch.long)
            self.ends = torch.tensor(LanguageModel.ends_of(model, tokenizer))

        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            guide, (rows, length) = self._guide(input_ids, scores.shape[1]), input_ids.shape
            lengths = torch.full((rows,), length, device=input_ids.device)
            values = guide.children(input_ids, lengths, torch.arange(rows), scores.shape[1]).to(scores.device)
            allowed = values > 0 if values.dtype != torch.bool else values
            guided = scores.masked_fill(~allowed, -torch.inf)
            if allowed is not values:
                guided = guided + torch.where(allowed, values, 1.0).log().to(scores.dtype)
            ends, written = self.ends.to(scores.device), input_ids[:, self.prompts.shape[1] :]
            # Texts that have ended are filled up by the library.
            over = torch.isin(written, ends).any(1).to(scores.device)
            if bool(over.any()):
                guided = torch.where(over.unsqueeze(1), scores, guided)
            stuck = guided.amax(1) == -torch.inf
            if bool(stuck.any()):
                ending = torch.full_like(scores, -torch.inf)
                ending[:, ends] = scores[:, ends].clamp(min=torch.finfo(scores.dtype).min)
                guided = torch.where(stuck.unsqueeze(1), ending, guided)
            return guided

        def _guide(self, tokens: Tensor, vocab: int) -> Verifier:
            """The verifier of the running call; each call has its own."""
            if self.guide is None or not self._goes_on(tokens):
                self.prompts = tokens.clone()
                loaded = LanguageModel(_Bare(model, vocab), tokenizer, "")
                self.guide = _verifier(language, loaded, [tokens.shape[1]] * len(tokens), forced=True)
                self.guide.start(len(tokens), tokens.shape[1])
            self.last = tokens
            return self.guide

        def _goes_on(self, tokens: Tensor) -> bool:
            """Whether it is still the same call: one token more, or fewer where an assistant's were refused."""
            (rows, start), known = self.prompts.shape, tokens.shape[1] - 1
            if len(tokens) != rows or not start <= known + 1 <= self.last.shape[1] + 1:
                return False
            if not torch.equal(tokens[:, :start], self.prompts):
                return False
            before, now = self.last[:, :known], tokens[:, :known]
            # Beams change places.
            return torch.equal(before, now) or {*map(tuple, now.tolist())} <= {*map(tuple, before.tolist())}

    return VerifierLogitsProcessor()


def generation_strategy(
    decoder: Decoder,
    tokenizer: Any,
    language: TextLanguage | MakeVerifier | None = None,
    *,
    seed: int | None = None,
    budget: int | None = None,
) -> Callable[..., object]:
    """A decoder as `custom_generate` of `model.generate`: backtracking, walks and rejection with the library's call.

    >>> model.generate(**inputs, max_new_tokens=40, custom_generate=generation_strategy(VGB(), tokenizer, language))

    Temperature, top-k and the rest are the decoder's own, not those of the generation config. Without a seed the random
    numbers come from torch's. Rows that failed hold what was written last. Streamers and stop strings do not reach a
    strategy: transformers keeps them for its own decoding; `stream_text` and `decode_text` have both.
    """

    from transformers.generation.utils import GenerateDecoderOnlyOutput

    def strategy(model: Any, input_ids: Tensor, **given: Any) -> object:
        config = given.get("generation_config")
        if config is None or config.max_length is None:
            raise BadInput("the strategy needs a length: give max_new_tokens")
        loaded = LanguageModel(HuggingFaceGenerator(model), tokenizer, "")
        prompts = _without_padding(input_ids, given.get("attention_mask"))
        starts, forced = [len(prompt) for prompt in prompts], isinstance(decoder, ValueGuided)
        guide = None if language is None else _verifier(language, loaded, starts, forced=forced)
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
        whole = torch.cat([input_ids, filled.to(input_ids.device)], 1)
        found = cast("torch.LongTensor", whole)
        return GenerateDecoderOnlyOutput(sequences=found) if config.return_dict_in_generate else whole

    return strategy


def _verifier(
    language: TextLanguage | MakeVerifier, model: LanguageModel, starts: list[int], *, forced: bool
) -> Verifier:
    """The verifier of a language, which masking asks about forced tokens, or one's own."""
    if isinstance(language, TextLanguage):
        return GrammarVerifier(language, model, starts, forced=forced)
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
