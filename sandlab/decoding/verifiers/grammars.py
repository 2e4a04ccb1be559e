"""Grammars, regular expressions and JSON schemas as verifiers of token prefixes.

Tokens are not characters: a token may end in the middle of a word, a number or even a character, and one text has
many tokenisations. A verifier must therefore decide about *bytes* and for all tokens at once. Of the libraries that do
incremental parsing,

- llguidance works on bytes, takes Lark grammars, regular expressions and JSON schemas, is an Earley parser with lazy
  lexing (so any context-free grammar), gives the mask of all allowed tokens in some ten microseconds and, what
  backtracking needs, can roll back tokens;
- lark parses characters: its interactive parser is LALR only, and its lexer must see a whole terminal before it can
  say anything, so a half-written number has no verdict;
- outlines-core compiles a regular expression to an automaton over the vocabulary in advance: fast masks, but only
  regular languages, and building the index takes long for large vocabularies.

llguidance is the one that fits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sandlab.decoding.generators.hugging_face import LanguageModel
from sandlab.decoding.verifiers.base import Verifier
from sandlab.errors import BadInput

__all__ = ["GrammarVerifier", "compile_grammar"]


def compile_grammar(
    *,
    lark: str | Path | None = None,
    regex: str | None = None,
    json_schema: str | Path | dict[str, object] | None = None,
) -> str:
    """The grammar in llguidance's own form, checked. A Path is read; JSON is written without blanks between tokens."""
    from_llguidance = _llguidance()
    given = [value for value in (lark, regex, json_schema) if value is not None]
    if len(given) != 1:
        raise BadInput(f"give one of a grammar, a regular expression or a JSON schema, got {len(given)} of them")
    if lark is not None:
        what, made = "grammar", from_llguidance.grammar_from_lark(_text(lark, "grammar"))
    elif regex is not None:
        what, made = "regular expression", from_llguidance.grammar_from_regex(regex)
    else:
        assert json_schema is not None
        what, made = "JSON schema", _from_schema(json_schema)
    problem = from_llguidance.validate_grammar(made)
    if problem and not problem.startswith("WARNING"):
        raise BadInput(f"the {what} does not parse: {_in_one_line(problem)}")
    return made


def _in_one_line(problem: str) -> str:
    """A parser's message without the excerpts of the source and the arrows below them."""
    lines = [line for line in problem.splitlines() if line.strip() and not re.match(r"\s|\d+ *\|", line)]
    return " ".join(" ".join(lines or [problem]).split())


def _from_schema(schema: str | Path | dict[str, object]) -> str:
    if not isinstance(schema, dict):
        text = _text(schema, "JSON schema")
        try:
            schema = json.loads(text)
        except json.JSONDecodeError as problem:
            raise BadInput(f"the JSON schema is not JSON: {problem}") from None
        if not isinstance(schema, (dict, bool)):
            raise BadInput(f"a JSON schema is an object like {{'type': 'object'}}, got {text[:60]!r}")
    # Free blanks between tokens would let a model write blanks for ever.
    compact = {"whitespace_flexible": False}
    return str(_llguidance().grammar_from_json_schema(json.dumps(schema), overrides=compact))


def _text(source: str | Path, what: str) -> str:
    if not isinstance(source, Path):
        return str(source)
    if not source.is_file():
        raise BadInput(f"there is no {what} file {str(source)!r}")
    return source.read_text(encoding="utf-8")


def _llguidance() -> Any:
    try:
        from llguidance import LLMatcher
    except ImportError as missing:
        raise BadInput("grammars need llguidance: pip install 'sandlab[grammar]'") from missing
    return LLMatcher


class GrammarVerifier(Verifier):
    """V = 1 if the generated text can be continued to a text of the language; complete texts end with the end token.

    starts   for each string, the number of tokens before the text that the grammar speaks about (the prompt)
    prompts  for each string, a text that the grammar reads first, if the language is to cover the prompt as well; its
             own bytes, since many tokenizers put a blank in front of a text
    One matcher per string follows it as it grows and shrinks.
    """

    def __init__(
        self, grammar: str, model: LanguageModel, starts: Sequence[int], prompts: Sequence[str] | None = None
    ) -> None:
        self.reader, self.base = _matcher(grammar, model.tokenizer, model.generator.vocab)
        self.eos, self.vocab, self.starts = model.eos, model.generator.vocab, list(starts)
        texts = prompts if prompts is not None else [""] * len(self.starts)
        self.before = [list(self.reader.tokenize_str(text)) for text in texts]
        self.start(len(self.starts), 0)

    def start(self, strings: int, capacity: int) -> None:
        if strings != len(self.starts):
            raise BadInput(f"the verifier was made for {len(self.starts)} strings, got {strings}")
        self.matchers = [self.base.deep_copy() for _ in range(strings)]
        self.read: list[list[int]] = [[] for _ in range(strings)]

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._each(tokens, lengths, rows, self._alive)

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._each(tokens, lengths, rows, self._whole)

    def children(self, tokens: Tensor, lengths: Tensor, rows: Tensor, vocab: int) -> Tensor:
        masks = np.zeros((len(rows), vocab))
        for place, (row, text) in enumerate(self._texts(tokens, lengths, rows)):
            if self._follow(row, text):
                allowed = np.frombuffer(self.matchers[row].compute_logit_bias(), dtype=np.uint8)
                masks[place, : min(len(allowed), vocab)] = allowed[:vocab] > 0
                masks[place, self.eos] = self.matchers[row].is_accepting()
        return torch.from_numpy(masks).to(tokens.device)

    def child_outcomes(self, tokens: Tensor, lengths: Tensor, rows: Tensor, letters: Tensor) -> Tensor:
        # A text is complete only with the end token: every other letter at the last place makes it incomplete.
        accepting = self._each(tokens, lengths, rows, lambda row, text: self._follow(row, text) and self._done(row))
        return accepting.unsqueeze(1) * (letters == self.eos)

    def contains(self, row: int, text: Sequence[int]) -> bool:
        """Whether a string's text, with or without an end token, belongs to the language."""
        text = [*self.before[row], *text]
        if text and text[-1] == self.eos:
            text = text[:-1]
        return self._follow(row, text) and self._done(row)

    def reads(self, row: int, text: Sequence[int]) -> int:
        """How many of these tokens can be read before the language is left."""
        matcher = self.base.deep_copy()
        return int(matcher.try_consume_tokens(list(text)))

    def _alive(self, row: int, text: list[int]) -> bool:
        if text and text[-1] == self.eos:
            return self._whole(row, text)
        return self._follow(row, text)

    def _whole(self, row: int, text: list[int]) -> bool:
        return bool(text) and text[-1] == self.eos and self._follow(row, text[:-1]) and self._done(row)

    def _done(self, row: int) -> bool:
        return bool(self.matchers[row].is_accepting())

    def _each(self, tokens: Tensor, lengths: Tensor, rows: Tensor, question: Any) -> Tensor:
        answers = [float(question(row, text)) for row, text in self._texts(tokens, lengths, rows)]
        return torch.tensor(answers, dtype=torch.float64, device=tokens.device)

    def _texts(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> list[tuple[int, list[int]]]:
        listed = zip(tokens.tolist(), lengths.tolist(), rows.tolist())
        return [(row, self.before[row] + string[self.starts[row] : cut]) for string, cut, row in listed]

    def _follow(self, row: int, text: list[int]) -> bool:
        """Bring the row's matcher to this text; False if the text leaves the language on the way."""
        matcher, read = self.matchers[row], self.read[row]
        common = next(
            (place for place, pair in enumerate(zip(read, text)) if pair[0] != pair[1]), min(len(read), len(text))
        )
        if common < len(read):
            matcher.rollback(len(read) - common)
            del read[common:]
        if self.eos in text[common:]:
            return False
        taken = matcher.try_consume_tokens(text[common:])
        read += text[common : common + taken]
        if matcher.is_error():
            raise BadInput(f"the grammar cannot be followed: {matcher.get_error()}")
        return len(read) == len(text)


def _matcher(grammar: str, tokenizer: Any, vocab: int) -> tuple[Any, Any]:
    """The tokens' bytes, and what follows the grammar over them."""
    matcher_class = _llguidance()
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise BadInput("grammars need a fast tokenizer: save the model with its tokenizer.json")
    import llguidance.hf

    reader = llguidance.hf.from_tokenizer(tokenizer, n_vocab=max(vocab, len(tokenizer)))
    matcher = matcher_class(reader, grammar)
    if matcher.is_error():
        raise BadInput(f"the grammar cannot be used with this tokenizer: {matcher.get_error()}")
    return reader, matcher
