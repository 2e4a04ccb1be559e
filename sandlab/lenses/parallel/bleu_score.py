"""BLEU of a corpus, with the tokenisers 13a, intl and zh of SacreBLEU."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from sandlab.errors import BadInput, choice
from sandlab.registry import register

__all__ = ["bleu", "tokenise"]

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_PUNCTUATION = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
# As SacreBLEU has them: two of its ranges, meant for planes beyond the first, cover general punctuation instead.
_CHINESE = (
    (0x3400, 0x4DB5), (0x4E00, 0x9FA5), (0x9FA6, 0x9FBB), (0xF900, 0xFA2D), (0xFA30, 0xFA6A), (0xFA70, 0xFAD9),
    (0x2001, 0x2A6D), (0x2F81, 0x2FA1), (0xFF00, 0xFFEF), (0x2E80, 0x2EFF), (0x3000, 0x303F), (0x31C0, 0x31EF),
    (0x2F00, 0x2FDF), (0x2FF0, 0x2FFF), (0x3100, 0x312F), (0x31A0, 0x31BF), (0xFE10, 0xFE1F), (0xFE30, 0xFE4F),
    (0x2600, 0x26FF), (0x2700, 0x27BF), (0x3200, 0x32FF), (0x3300, 0x33FF),
)  # fmt: skip


def tokenise(line: str, kind: str = "13a") -> list[str]:
    """The words of a line: "13a" (mteval v13a), "intl" (Unicode punctuation), "zh" (characters apart) or "none"."""
    choice("kind", kind, ("13a", "intl", "zh", "none"))
    if kind == "none":
        return line.split()
    if kind == "intl":
        return _international(line).split()
    if kind == "zh":
        line = "".join(f" {letter} " if _chinese(letter) else letter for letter in line.strip())
    else:
        line = line.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
        for entity, letter in _ENTITIES:
            line = line.replace(entity, letter)
        line = f" {line} "
    for pattern, spaced in _PUNCTUATION:
        line = pattern.sub(spaced, line)
    return line.split()


def _chinese(letter: str) -> bool:
    return any(low <= ord(letter) <= high for low, high in _CHINESE)


def _international(line: str) -> str:
    """Punctuation apart from what is no number beside it, symbols apart from everything."""
    kinds = {letter: unicodedata.category(letter)[0] for letter in set(line)}
    marks = "".join(re.escape(letter) for letter, kind in kinds.items() if kind == "P")
    digits = "".join(re.escape(letter) for letter, kind in kinds.items() if kind == "N")
    symbols = "".join(re.escape(letter) for letter, kind in kinds.items() if kind == "S")
    other = f"[^{digits}]" if digits else r"[\s\S]"
    if marks:
        line = re.sub(f"({other})([{marks}])", r"\1 \2 ", line)
        line = re.sub(f"([{marks}])({other})", r" \1 \2", line)
    return re.sub(f"([{symbols}])", r" \1 ", line) if symbols else line


@register("lenses")
def bleu(outputs: Sequence[str], references: Sequence[str], *, kind: str = "13a", smooth: str = "exp") -> float:
    """Corpus BLEU in per cent: geometric mean of n-gram precisions, n ≤ 4, times min(1, e^{1 − r/c}).

    smooth   "exp": the i-th precision without a match is 1/(2^i · number of n-grams); "none": such a corpus has BLEU 0

    Source: Papineni et al. 2002; Post 2018 (SacreBLEU).
    """
    choice("smooth", smooth, ("exp", "none"))
    if len(outputs) != len(references) or not outputs:
        raise BadInput(f"bleu needs one reference for each output, got {len(outputs)} and {len(references)}")
    matches, totals, ours, theirs = [0] * 4, [0] * 4, 0, 0
    for output, reference in zip(outputs, references):
        words, right = tokenise(output, kind), tokenise(reference, kind)
        ours, theirs = ours + len(words), theirs + len(right)
        for n in range(1, 5):
            found, known = _ngrams(words, n), _ngrams(right, n)
            matches[n - 1] += sum((found & known).values())
            totals[n - 1] += sum(found.values())
    return _score(matches, totals, ours, theirs, smooth)


def _ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _score(matches: list[int], totals: list[int], ours: int, theirs: int, smooth: str) -> float:
    if not any(matches) or not all(totals):
        return 0.0
    precisions, halves = [], 1.0
    for match, total in zip(matches, totals):
        if match == 0:
            halves *= 2 if smooth == "exp" else math.inf
        precisions.append(match / total if match else 1 / (halves * total))
    if not all(precisions):
        return 0.0
    brevity = 1.0 if ours >= theirs else math.exp(1 - theirs / ours)
    return 100 * brevity * math.exp(sum(map(math.log, precisions)) / 4)
