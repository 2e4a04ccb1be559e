"""The end of a prompt, written anew: where a prompt ends within what would have been one token.

A prompt that ends with "http:" is cut into tokens as if the text were over. The token "://", with which the model has
always seen it go on, can no longer come, and the model continues a text that it has hardly ever seen. The remedy: take
the last tokens off, and let the model write again from there, but only what begins with their characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from sandlab.decoding.generators.hugging_face import LanguageModel
from sandlab.decoding.verifiers.base import Verifier
from sandlab.decoding.verifiers.grammars import read_tokens

__all__ = ["HeadVerifier", "heal_prompt"]

_TABLES: WeakKeyDictionary[object, dict[int, TokenBytes]] = WeakKeyDictionary()


class TokenBytes:
    """The bytes of every token of a tokenizer; None for special tokens, which write nothing."""

    def __init__(self, tokenizer: object, vocab: int) -> None:
        reader = read_tokens(tokenizer, vocab)
        plain = [None if reader.is_special_token(token) else reader.decode_bytes([token]) for token in range(vocab)]
        self.of: list[bytes | None] = [each or None for each in plain]
        self.beginnings = {each[:size] for each in self.of if each for size in range(1, len(each))}
        self.longest = max(len(each) for each in self.of if each)
        self._masks: dict[bytes, tuple[Bool[np.ndarray, " vocab"], Bool[np.ndarray, " vocab"]]] = {}

    def towards(self, head: bytes) -> tuple[Bool[np.ndarray, " vocab"], Bool[np.ndarray, " vocab"]]:
        """The tokens that begin these bytes or begin with them; those that begin with them."""
        if head not in self._masks:
            covers = np.array([each is not None and each.startswith(head) for each in self.of])
            begins = np.array([each is not None and head.startswith(each) for each in self.of])
            self._masks[head] = covers | begins, covers
        return self._masks[head]


def heal_prompt(model: LanguageModel, text: str) -> tuple[list[int], str]:
    """The tokens of a prompt without the last ones, and the characters of those: "" if the prompt's end is whole.

    The longest row of last tokens is taken off whose text is the beginning of a longer token. Special tokens stay, and
    so does what a tokenizer has put in front of the text. If nothing is left, the model's begin (or end) token is.
    """
    tokens, table = model.encode(text), token_bytes(model)
    taken, best, head = b"", 0, ""
    for count, token in enumerate(reversed(tokens), start=1):
        own = table.of[token]
        if own is None or len(own) + len(taken) >= table.longest:
            break
        taken = own + taken
        characters = taken.decode("utf-8", errors="ignore")
        whole = characters.encode() == taken and text.endswith(characters)
        if whole and taken in table.beginnings:
            best, head = count, characters
    return tokens[: len(tokens) - best] or model.encode(""), head


def token_bytes(model: LanguageModel) -> TokenBytes:
    known, vocab = _TABLES.setdefault(model.tokenizer, {}), model.generator.vocab
    if vocab not in known:
        known[vocab] = TokenBytes(model.tokenizer, vocab)
    return known[vocab]


class HeadVerifier(Verifier):
    """V = 1 while a text is a beginning of its head or begins with it; with `inner`, times what that says.

    starts   for each string, the number of tokens before the text
    heads    for each string, the characters that the text must begin with
    inner    a verifier that knows the ends and speaks about the text with its head
    """

    knows_ends: ClassVar[bool] = True

    def __init__(
        self, model: LanguageModel, starts: Sequence[int], heads: Sequence[str], inner: Verifier | None = None
    ) -> None:
        self.table, self.starts, self.heads, self.inner = token_bytes(model), list(starts), list(heads), inner

    def start(self, strings: int, capacity: int) -> None:
        if self.inner is not None:
            self.inner.start(strings, capacity)

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        own = torch.tensor([left is not None for left in self._left(tokens, lengths, rows)], device=tokens.device)
        return own.double() if self.inner is None else own * self.inner.value(tokens, lengths, rows)

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        own = torch.tensor([left == b"" for left in self._left(tokens, lengths, rows)], device=tokens.device)
        return own.double() if self.inner is None else own * self.inner.outcome(tokens, lengths, rows)

    def children(self, tokens: Tensor, lengths: Tensor, rows: Tensor, vocab: int) -> Bool[Tensor, "row vocab"]:
        own = self._masks(tokens, lengths, rows, 0)
        return own if self.inner is None else own & self.inner.children(tokens, lengths, rows, vocab).bool()

    def child_outcomes(self, tokens: Tensor, lengths: Tensor, rows: Tensor, letters: Tensor) -> Tensor:
        own = self._masks(tokens, lengths, rows, 1)[:, letters]
        return own if self.inner is None else own * self.inner.child_outcomes(tokens, lengths, rows, letters)

    def _masks(self, tokens: Tensor, lengths: Tensor, rows: Tensor, kind: int) -> Bool[Tensor, "row vocab"]:
        masks = np.zeros((len(rows), len(self.table.of)), dtype=bool)
        for place, left in enumerate(self._left(tokens, lengths, rows)):
            if left is not None:
                masks[place] = self.table.towards(left)[kind] if left else True
        return torch.from_numpy(masks).to(tokens.device)

    def _left(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> list[bytes | None]:
        """What each string has still to write of its head; None if it has written something else."""
        listed = zip(tokens, lengths.tolist(), rows.tolist())
        return [self._after(row, string[self.starts[row] : cut].tolist()) for string, cut, row in listed]

    def _after(self, row: int, written: Sequence[int]) -> bytes | None:
        left = self.heads[row].encode()
        for token in written:
            own = self.table.of[token]
            if not left:
                break
            if own is None or not (own.startswith(left) or left.startswith(own)):
                return None
            left = left[len(own) :]
        return left
