"""Prefixes of documents with test cases, labelled by the exact checker: what verifiers are trained on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from sandlab.worlds.verifier.append_cases import AppendCases

__all__ = ["LabelledPrefixes", "label_prefixes"]


@dataclass(frozen=True)
class LabelledPrefixes:
    """Strings and their labels: the last token or line is wrong (0), or all of it is correct (1)."""

    strings: list[list[int]] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def add(self, string: list[int], label: int) -> None:
        self.strings.append(string)
        self.labels.append(label)


def label_prefixes(
    world: AppendCases, documents: Iterable[tuple[list[int], int]], *, rng: torch.Generator
) -> tuple[LabelledPrefixes, LabelledPrefixes]:
    """Prefixes of finished documents (tokens, and where the completion of the prompt starts), by token and by line.

    tokens   a wrong completion gives its prefix up to the first wrong token (0) and up to a random earlier one (1); a
             correct completion, up to a random token (1)
    lines    a wrong completion gives its prefix up to the end of the first wrong line (0) and of the line before (1);
             a correct completion, up to the end of a random line (1)
    Botta, Li et al. 2025, code generation; the rules are those of the released code.
    """
    tokens, lines = LabelledPrefixes(), LabelledPrefixes()

    def below(high: int) -> int:
        return int(torch.randint(high, (1,), generator=rng))

    for string, start in documents:
        error = world.first_error(string)
        ends = [index for index in range(start, len(string)) if string[index] in (world.newline, world.end_token)]
        if error is None:
            tokens.add(string[: start + 1 + below(len(string) - start)], 1)
            lines.add(string[: ends[below(len(ends))] + 1], 1)
            continue
        first, _ = error
        if first == len(string):  # cut off before anything was wrong
            continue
        tokens.add(string[: first + 1], 0)
        if first > start:
            tokens.add(string[: start + 1 + below(first - start)], 1)
        earlier, later = [end for end in ends if end < first], [end for end in ends if end >= first]
        if later:
            lines.add(string[: later[0] + 1], 0)
        lines.add(string[: earlier[-1] + 1] if earlier else string[:start], 1)
    return tokens, lines
