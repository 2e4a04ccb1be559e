"""Reading bracket strings: stack, depth, matching, the first error; counting balanced words.

Type t opens with token 2t and closes with token 2t+1. Everything here is vectorised over strings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["BracketError", "BracketScan", "count_completions", "count_words", "first_error", "scan_brackets"]


class BracketError(IntEnum):
    """What is wrong at the first wrong token of a string (0: nothing)."""

    NONE = 0
    START_INCORRECT = 1  # no start token first, or one later
    END_INCORRECT = 2  # an end token where the word is not complete, or anything after it
    MAX_STACK_DEPTH_EXCEEDED = 3
    STACK_DEPTH_EXCEEDS_REMAINING_LENGTH = 4
    STACK_UNDERFLOW = 5  # a closing bracket on an empty stack
    INCORRECT_CLOSING_BRACKET = 6  # a closing bracket of another type than the one on top of the stack


@dataclass(frozen=True)
class BracketScan:
    """The stack after each token; tokens that are not brackets leave it unchanged.

    depth     number of open brackets
    top       type of the bracket on top of the stack, −1 for an empty stack
    opener    position of the token that opened it, −1 for an empty stack
    matched   the token is an open bracket, or closes the bracket on top of the stack
    """

    depth: Int[Tensor, "row time"]
    top: Int[Tensor, "row time"]
    opener: Int[Tensor, "row time"]
    matched: Bool[Tensor, "row time"]


def scan_brackets(tokens: Int[Tensor, "row time"], types: int) -> BracketScan:
    """Run the stack over each string. A closing bracket pops whatever is on top; on an empty stack it does nothing."""
    rows, time = tokens.shape
    opens = (tokens < 2 * types) & (tokens % 2 == 0)
    closes = (tokens < 2 * types) & (tokens % 2 == 1)
    kind = tokens // 2
    here = torch.arange(rows, device=tokens.device)
    # Level 0 is the floor below the stack; level d holds the position of the d-th unmatched open bracket.
    stack = torch.full((rows, time + 1), -1, dtype=torch.long, device=tokens.device)
    level = torch.zeros(rows, dtype=torch.long, device=tokens.device)
    depth, opener = torch.empty_like(tokens), torch.empty_like(tokens)
    matched = torch.zeros_like(opens)
    for position in range(time):
        below = stack[here, level]
        same = (below >= 0) & (kind[here, below.clamp(min=0)] == kind[:, position])
        matched[:, position] = opens[:, position] | (closes[:, position] & same)
        level = level + opens[:, position].long() - (closes[:, position] & (level > 0)).long()
        stack[here, level] = torch.where(opens[:, position], position, stack[here, level])
        depth[:, position], opener[:, position] = level, stack[here, level]
    top = torch.where(opener >= 0, kind.gather(1, opener.clamp(min=0)), -1)
    return BracketScan(depth, top, opener, matched)


def first_error(
    tokens: Int[Tensor, "row time"],
    lengths: Int[Tensor, "row"],
    types: int,
    *,
    max_depth: int | None = None,
    total: int | None = None,
    exact: bool = True,
) -> tuple[Int[Tensor, "row"], Int[Tensor, "row"]]:
    """Position of the first wrong token of each string START w_1 w_2 … (END) and the kind of error there.

    total   number of brackets of a word, exactly or (unless `exact`) at most: a depth above what remains is an error
    Strings without an error have position −1. START is token 2·types, END the one after it.
    """
    start, end = 2 * types, 2 * types + 1
    scan = scan_brackets(tokens, types)
    position = torch.arange(tokens.shape[1], device=tokens.device)
    before = torch.nn.functional.pad(scan.depth, (1, 0))[:, :-1]
    closes = (tokens < start) & (tokens % 2 == 1)
    error = torch.zeros_like(tokens)
    # Later lines overwrite earlier ones: errors stand in the order of precedence, weakest first.
    if total is not None:
        error[scan.depth > (total - position).clamp(min=0)] = BracketError.STACK_DEPTH_EXCEEDS_REMAINING_LENGTH
    if max_depth is not None:
        error[scan.depth > max_depth] = BracketError.MAX_STACK_DEPTH_EXCEEDED
    error[closes & ~scan.matched] = BracketError.INCORRECT_CLOSING_BRACKET
    error[closes & (before == 0)] = BracketError.STACK_UNDERFLOW
    wrong_end = (tokens == end) & ((before > 0) | (total is not None and exact and (position != (total or 0) + 1)))
    ended_before = torch.nn.functional.pad((tokens == end).cumsum(1), (1, 0))[:, :-1] > 0
    error[wrong_end | ended_before] = BracketError.END_INCORRECT
    error[(tokens == start) != (position == 0)] = BracketError.START_INCORRECT
    error = torch.where(position < lengths.unsqueeze(1), error, 0)
    wrong = error > 0
    first = wrong.long().argmax(1)
    any_wrong = wrong.any(1)
    kind = error.gather(1, first.unsqueeze(1)).squeeze(1) if tokens.shape[1] else torch.zeros_like(lengths)
    return torch.where(any_wrong, first, -1), kind


def count_completions(depth: int, remaining: int, types: int = 2, max_depth: int | None = None) -> int:
    """How many strings of `remaining` brackets empty a stack of `depth` brackets.

    Without a bound on depth: k^((r−d)/2)·[C(r, (r−d)/2) − C(r, (r−d)/2 − 1)], the ballot number; 0 if r − d is odd.
    """
    if remaining < depth or (remaining - depth) % 2:
        return 0
    if max_depth is not None:
        return _bounded_completions(depth, remaining, types, max_depth)
    pairs = (remaining - depth) // 2
    paths = math.comb(remaining, pairs) - (math.comb(remaining, pairs - 1) if pairs else 0)
    return types**pairs * paths


def count_words(length: int, types: int = 2, max_depth: int | None = None) -> int:
    """How many balanced words have exactly `length` brackets: Catalan(length/2)·k^(length/2) without a depth bound."""
    return count_completions(0, length, types, max_depth)


@lru_cache(maxsize=100_000)
def _bounded_completions(depth: int, remaining: int, types: int, max_depth: int) -> int:
    if depth > max_depth or depth > remaining:
        return 0
    if remaining == 0:
        return 1
    closed = _bounded_completions(depth - 1, remaining - 1, types, max_depth) if depth else 0
    return closed + types * _bounded_completions(depth + 1, remaining - 1, types, max_depth)
