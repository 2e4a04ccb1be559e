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
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from sandlab.decoding.generators.hugging_face import LanguageModel
from sandlab.decoding.verifiers.base import Verifier
from sandlab.decoding.verifiers.schemas import TextLanguage
from sandlab.errors import BadInput

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

__all__ = ["GrammarVerifier"]

MOST_CHARACTERS = 1_000_000
Question: TypeAlias = Callable[[int, list[int]], float]  # of a row and its tokens
_READERS: WeakKeyDictionary[object, dict[int, LLTokenizer]] = WeakKeyDictionary()


class GrammarVerifier(Verifier):
    """V = 1 if the generated text can be continued to a text of the language; complete texts end with the end token.

    starts   for each string, the number of tokens before the text that the grammar speaks about (the prompt)
    prompts  for each string, a text that the grammar reads first, if the language is to cover the prompt as well; its
             own bytes, since many tokenizers put a blank in front of a text
    heads    for each string, characters that come before the text of the language ("" for none): the end of a prompt
             that is written anew. A token may hold the last of them and the first of the text
    forced   a stretch of text about which the language leaves no choice is written in the tokenizer's own tokens:
             `children` then allow one token, and a decoder need not ask the model. Otherwise they allow every way to
             write it, as `value` does
    One matcher per string follows it as it grows and shrinks.
    """

    knows_ends: ClassVar[bool] = True

    def __init__(
        self,
        language: str | TextLanguage,
        model: LanguageModel,
        starts: Sequence[int],
        prompts: Sequence[str] | None = None,
        heads: Sequence[str] | None = None,
        forced: bool = False,
    ) -> None:
        self.language = TextLanguage(language) if isinstance(language, str) else language
        self.ends, self.vocab, self.starts = list(model.ends), model.generator.vocab, list(starts)
        self.heads = list(heads) if heads is not None else [""] * len(self.starts)
        self.reader = read_tokens(model.tokenizer, self.vocab)
        grammar = self.language.grammar
        self.bases = {head: _matcher(_framed(grammar, head, forced), self.reader) for head in {*self.heads}}
        texts = prompts if prompts is not None else [""] * len(self.starts)
        self.before = [list(self.reader.tokenize_str(text)) for text in texts]
        self.start(len(self.starts), 0)

    def start(self, strings: int, capacity: int) -> None:
        if strings != len(self.starts):
            raise BadInput(f"the verifier was made for {len(self.starts)} strings, got {strings}")
        self.matchers = [self.bases[head].deep_copy() for head in self.heads]
        self.read: list[list[int]] = [[] for _ in range(strings)]

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._each(tokens, lengths, rows, self._alive)

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self._each(tokens, lengths, rows, self._whole)

    def children(self, tokens: Tensor, lengths: Tensor, rows: Tensor, vocab: int) -> Bool[Tensor, "row vocab"]:
        masks = np.zeros((len(rows), vocab), dtype=bool)
        for place, (row, text) in enumerate(self._texts(tokens, lengths, rows)):
            if self._follow(row, text):
                allowed = np.frombuffer(self.matchers[row].compute_logit_bias(), dtype=np.bool_)
                masks[place, : min(len(allowed), vocab)] = allowed[:vocab]
                masks[place, self.ends] = self._done(row)
        return torch.from_numpy(masks).to(tokens.device)

    def child_outcomes(self, tokens: Tensor, lengths: Tensor, rows: Tensor, letters: Tensor) -> Tensor:
        # A text is complete only with an end token: every other letter at the last place makes it incomplete.
        accepting = self._each(tokens, lengths, rows, lambda row, text: self._follow(row, text) and self._done(row))
        return accepting.unsqueeze(1) * torch.isin(letters, torch.tensor(self.ends, device=letters.device))

    def contains(self, row: int, text: Sequence[int]) -> bool:
        """Whether a string's text, with or without an end token, belongs to the language."""
        text = [*self.before[row], *text]
        if text and text[-1] in self.ends:
            text = text[:-1]
        return self._follow(row, text) and self._done(row)

    def reads(self, row: int, text: Sequence[int]) -> int:
        """How many of these tokens can be read before the language is left."""
        matcher = self.bases[self.heads[row]].deep_copy()
        return int(matcher.try_consume_tokens(list(text)))

    def _alive(self, row: int, text: list[int]) -> bool:
        if text and text[-1] in self.ends:
            return self._whole(row, text)
        return self._follow(row, text)

    def _whole(self, row: int, text: list[int]) -> bool:
        return bool(text) and text[-1] in self.ends and self._follow(row, text[:-1]) and self._done(row)

    def _done(self, row: int) -> bool:
        """Whether the row's text, as far as it was read, is complete."""
        if not self.matchers[row].is_accepting():
            return False
        check = self.language.check
        return check is None or check(self.reader.decode_str(self.read[row])[len(self.heads[row]) :])

    def _each(self, tokens: Tensor, lengths: Tensor, rows: Tensor, question: Question) -> Tensor:
        answers = [float(question(row, text)) for row, text in self._texts(tokens, lengths, rows)]
        return torch.tensor(answers, dtype=torch.float64, device=tokens.device)

    def _texts(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> list[tuple[int, list[int]]]:
        listed = enumerate(zip(lengths.tolist(), rows.tolist()))
        return [
            (row, self.before[row] + tokens[place, self.starts[row] : cut].tolist()) for place, (cut, row) in listed
        ]

    def _follow(self, row: int, text: list[int]) -> bool:
        """Bring the row's matcher to this text; False if the text leaves the language on the way."""
        matcher, read = self.matchers[row], self.read[row]
        common = _common(read, text)
        if common < len(read):
            matcher.rollback(len(read) - common)
            del read[common:]
        more = text[common:]
        if any(end in more for end in self.ends):
            return False
        taken = matcher.try_consume_tokens(more)
        read += more[:taken]
        if matcher.is_error():
            raise BadInput(f"the grammar cannot be followed: {matcher.get_error()}")
        return len(read) == len(text)


def _common(first: list[int], second: list[int]) -> int:
    """How many tokens two texts share at the beginning."""
    if second[: len(first)] == first:
        return len(first)
    return next(place for place, pair in enumerate(zip([*first, None], [*second, -1])) if pair[0] != pair[1])


def read_tokens(tokenizer: Any, vocab: int) -> LLTokenizer:
    """The bytes of a tokenizer's tokens: the same for every grammar, and larger than most of them."""
    try:
        import llguidance.hf
    except ImportError as missing:
        raise BadInput("grammars need llguidance: pip install 'sandlab[grammar]'") from missing
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise BadInput("grammars need a fast tokenizer: save the model with its tokenizer.json")
    known, size = _READERS.setdefault(tokenizer, {}), max(vocab, len(tokenizer))
    if size not in known:
        known[size] = llguidance.hf.from_tokenizer(tokenizer, n_vocab=size)
    return known[size]


def _framed(grammar: str, head: str, forced: bool) -> str:
    """The grammar of the texts of a grammar with some characters in front, and whether forced text is forced tokens."""
    if forced and not head:
        return grammar
    # Lark text stands for itself; regular expressions and schemas come as a list of one grammar.
    own = json.loads(grammar)["grammars"][0] if grammar.startswith('{"grammars"') else {"lark_grammar": grammar}
    if not head and (lark := own.get("lark_grammar")):
        # In its own text, for what else it says there counts in the first grammar only.
        return _any_tokens(lark)
    start = f"start: {json.dumps(head, ensure_ascii=False)} @text" if head else "start: @text"
    first = {"name": "frame", "lark_grammar": start if forced else _any_tokens(start)}
    return json.dumps({"grammars": [first, {**own, "name": "text"}]})


def _any_tokens(lark: str) -> str:
    """A Lark grammar that leaves open in which tokens a forced text is written."""
    said = re.search(r"^%llguidance\s*(\{[^}]*\})", lark, re.MULTILINE)
    options = json.dumps({**(json.loads(said[1]) if said else {}), "no_forcing": True})
    rest = lark if said is None else lark[: said.start()] + lark[said.end() :]
    return f"%llguidance {options}\n{rest}"


def _matcher(grammar: str, reader: LLTokenizer) -> LLMatcher:
    """What follows the grammar over the tokens' bytes."""
    from llguidance import LLMatcher

    if len(grammar) > MOST_CHARACTERS:
        raise BadInput(f"a grammar is a text of at most {MOST_CHARACTERS} characters, got {len(grammar)}")
    matcher = LLMatcher(reader, grammar)
    if matcher.is_error():
        raise BadInput(f"the grammar cannot be used with this tokenizer: {matcher.get_error()}")
    return matcher
