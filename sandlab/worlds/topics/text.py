"""Text of one's own: documents, tokenizer, stop words, and masked windows as a world."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.topics._sample_text import SAMPLE
from sandlab.worlds.topics.masked import MaskedWords

__all__ = ["TextCorpus", "TopicText", "read_documents", "split_words", "tokenize"]

Tokenizer: TypeAlias = Callable[[str], Sequence[str]]
SPLITS = ("articles", "paragraphs", "lines", "file")
UNKNOWN = "[UNK]"


@dataclass(frozen=True, eq=False)
class TextCorpus:
    """Documents as token numbers.

    documents   token numbers of each document
    types       text of each token
    stop        tokens that no topic is asked of: stop words, numbers, punctuation, special tokens
    whole       tokens whose text is also a word between blanks somewhere in the documents
    """

    documents: tuple[Int[np.ndarray, "_time"], ...]
    types: tuple[str, ...]
    stop: Bool[np.ndarray, " vocab"]
    whole: Bool[np.ndarray, " vocab"]

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def vocab(self) -> int:
        return len(self.types)

    def counts(self) -> Float[np.ndarray, "documents vocab"]:
        """How often each token occurs in each document."""
        return np.stack([np.bincount(each, minlength=self.vocab) for each in self.documents]).astype(float)

    def windows(self, length: int) -> TextCorpus:
        """Documents cut into pieces of at most `length` tokens; pieces of one token are left out."""
        pieces = [each[start : start + length] for each in self.documents for start in range(0, len(each), length)]
        return TextCorpus(tuple(piece for piece in pieces if len(piece) > 1), self.types, self.stop, self.whole)

    def numbers(self, words: Iterable[str]) -> list[int]:
        """Token numbers of words; those that are no tokens of their own are left out."""
        known = {_plain(text): number for number, text in reversed(list(enumerate(self.types)))}
        return [known[word] for word in words if word in known]


def read_documents(path: str | Path = "", split: str = "articles") -> list[str]:
    """Texts of a file, or of all .txt files of a folder; without a path, nine short articles of the laboratory's own.

    split   "articles": a line "= Title =" begins one; "paragraphs" between empty lines; "lines"; "file"
    """
    choice("split", split, SPLITS)
    if not str(path):
        texts = [SAMPLE]
    else:
        place = Path(path)
        files = sorted(place.glob("*.txt")) if place.is_dir() else [place]
        require(bool(files) and all(file.is_file() for file in files), "path", str(path), "a text file or a folder")
        texts = [file.read_text(encoding="utf-8") for file in files]
    borders = {"articles": r"^ *=(?: [^=\n]+ )= *$", "paragraphs": r"\n\s*\n", "lines": r"\n", "file": r"\Z"}
    parts = [part.strip() for text in texts for part in re.split(borders[split], text, flags=re.MULTILINE)]
    found = [part for part in parts if part]
    require(bool(found), "path", str(path), "a text that is not empty")
    return found


def split_words(text: str) -> list[str]:
    """Words in lower case, numbers, and single signs."""
    return re.findall(r"\[unk\]|[^\W\d_]+|\d+|[^\w\s]", text.lower().replace("<unk>", UNKNOWN.lower()))


def tokenize(texts: Sequence[str], tokenizer: Tokenizer | Any = split_words, *, size: int = 30_000) -> TextCorpus:
    """Documents as token numbers, by any tokenizer.

    tokenizer   a function from text to strings, the `size` most frequent of which become tokens 2, 3, … after [MASK]
                and [UNK]; or an object with `convert_ids_to_tokens` (a Hugging Face tokenizer), whose numbers are kept
    """
    require(len(texts) > 0, "texts", len(texts), "at least one")
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return _with_own_numbers(texts, tokenizer)
    pieces = [list(tokenizer(text)) for text in texts]
    counted = Counter(piece for each in pieces for piece in each if piece != UNKNOWN.lower())
    common = [text for text, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:size]]
    types = ("[MASK]", UNKNOWN, *common)
    number = {text: index for index, text in enumerate(types)}
    documents = tuple(np.array([number.get(piece, 1) for piece in each]) for each in pieces)
    return _described(texts, documents, types, special={0, 1})


def _with_own_numbers(texts: Sequence[str], tokenizer: Any) -> TextCorpus:
    documents = tuple(np.array(tokenizer(text, add_special_tokens=False).input_ids, dtype=int) for text in texts)
    types = tuple(str(text) for text in tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    return _described(texts, documents, types, special=set(tokenizer.all_special_ids))


def _described(
    texts: Sequence[str], documents: tuple[np.ndarray, ...], types: tuple[str, ...], special: set[int]
) -> TextCorpus:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    spoken = {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())}
    plain = [_plain(text) for text in types]
    stop = [number in special or not text.isalpha() or text in ENGLISH_STOP_WORDS for number, text in enumerate(plain)]
    whole = [number not in special and text in spoken for number, text in enumerate(plain)]
    return TextCorpus(documents, types, np.array(stop), np.array(whole))


def _plain(text: str) -> str:
    """A token's text without the marks of tokenizers, in lower case; a piece inside a word keeps its mark."""
    return text.removeprefix("Ġ").removeprefix("▁").removesuffix("</w>").lower()


def _load_tokenizer(name: str) -> Tokenizer | Any:
    """ "words", "characters", or a folder with a saved Hugging Face tokenizer."""
    if name in ("words", "characters"):
        return split_words if name == "words" else list
    if not Path(name).exists():
        raise BadInput(f"tokenizer must be 'words', 'characters' or the folder of a saved tokenizer, got {name!r}")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name, local_files_only=True)


@register("worlds")
@dataclass(frozen=True)
class TopicText(MaskedWords):
    """Windows of `length` tokens from texts of one's own, each place as likely, with masked tokens.

    path        a text file or a folder of .txt files; empty: a few short articles of the laboratory's own
    tokenizer   "words", "characters", or the folder of a saved Hugging Face tokenizer
    size        number of most frequent words that are tokens (with a saved tokenizer: all of its tokens are)
    split       see `read_documents`; windows do not cross documents
    Token numbers are those of the corpus; with a saved tokenizer they are one larger, because 0 is [MASK].
    """

    path: str = ""
    tokenizer: str = "words"
    size: int = 5000
    length: int = 32
    split: str = "articles"

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("size", self.size, low=2)
        integer("length", self.length, low=2)
        choice("split", self.split, SPLITS)

    @property
    def corpus(self) -> TextCorpus:
        """The documents, read once."""
        return _read(self.path, self.tokenizer, self.size, self.split)

    @property
    def shift(self) -> int:
        """What is added to the corpus's numbers, so that token 0 is [MASK]."""
        return 0 if self.tokenizer in ("words", "characters") else 1

    @property
    def words(self) -> int:
        return self.corpus.vocab - 1 + self.shift

    @property
    def letters(self) -> list[str]:
        once = [*(["[MASK]"] * self.shift), *self.corpus.types, "·"]
        return once if not self.marked else [*once, *(f"({text})" for text in once)]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        tokens, starts = _windows(self, str(rng.device))
        chosen = starts[torch.randint(len(starts), (n, 1), generator=rng, device=rng.device)]
        return self.mask(tokens[chosen + torch.arange(self.length, device=rng.device)], {}, rng=rng)


@lru_cache(maxsize=4)
def _read(path: str, tokenizer: str, size: int, split: str) -> TextCorpus:
    return tokenize(read_documents(path, split), _load_tokenizer(tokenizer), size=size)


@lru_cache(maxsize=4)
def _windows(world: TopicText, device: str) -> tuple[Int[Tensor, " tokens"], Int[Tensor, " windows"]]:
    """All tokens in a row, and the places at which a window may start."""
    documents = [each + world.shift for each in world.corpus.documents]
    ends = np.cumsum([len(each) for each in documents])
    starts = [np.arange(end - len(each), end - world.length + 1) for each, end in zip(documents, ends, strict=True)]
    places = np.concatenate(starts)
    require(len(places) > 0, "length", world.length, "no longer than the longest document")
    return torch.from_numpy(np.concatenate(documents)).to(device), torch.from_numpy(places).to(device)
