"""Dyck languages: balanced brackets of several types, with bounded depth or bounded length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.dyck.brackets import BracketScan, first_error, scan_brackets

__all__ = ["Dyck"]

PAIRS = ("()", "[]", "{}", "<>", "⟨⟩", "«»", "⌈⌉", "⌊⌋")
OPEN, CLOSE, END = 0, 1, 2


@register("worlds")
@dataclass(frozen=True)
class Dyck(World):
    """Balanced brackets: a stack decides which closing bracket may come.

    At depth 0 a bracket opens; at the largest depth D the top bracket closes; in between one opens with probability q
    and the top one closes with probability 1 − q. An opened bracket is of type t with probability π(t).

    types       k, the number of kinds of brackets
    depth       D, the largest number of open brackets (None: no bound but the length's)
    length      N, the number of brackets of a word, or of tokens of a prefix
    opening     q, the probability to open where both are allowed
    type_probs  π, the probabilities of the kinds (uniform unless given)
    words       "prefix", the first N tokens of that process: P(w) is the product of π(w_i) over brackets that open at
                depth 0, of q·π(w_i) over others that open, and of 1 − q over those that close from a depth below D;
                "complete", words of exactly N brackets: the same process, but closing as soon as the depth equals the
                number of positions left (P(w) as above, with 1 − q for every closing bracket that was not forced), then
                END; "bounded": at depth 0 the word ends with probability `end`, and words of more than N brackets are
                rejected
    end         of "bounded" words: the probability to end at depth 0

    Tokens: type t opens with 2t and closes with 2t+1; START is 2k and comes first; END is 2k+1.
    Sources: Wen, Li, Liu & Risteski 2023 (prefixes, bounded depth); Botta, Li et al. 2025 (complete words).
    """

    types: int = 2
    depth: int | None = 4
    length: int = 28
    opening: float = 0.5
    type_probs: tuple[float, ...] | None = None
    words: str = "prefix"
    end: float = 0.5

    def __post_init__(self) -> None:
        integer("types", self.types, low=1)
        integer("length", self.length, low=1)
        choice("words", self.words, ("prefix", "complete", "bounded"))
        if self.depth is not None:
            integer("depth", self.depth, low=1)
        number("opening", self.opening, low=0.0, high=1.0)
        number("end", self.end, low=0.0, high=1.0)
        if self.words == "complete":
            require(self.length % 2 == 0, "length", self.length, "even for complete words", "brackets come in pairs")
        if self.words == "bounded":
            require(self.end > 0, "end", self.end, "above 0", "otherwise no word ever ends")
        if self.type_probs is not None:
            object.__setattr__(self, "type_probs", tuple(self.type_probs))
            require(len(self.type_probs) == self.types, "type_probs", self.type_probs, f"{self.types} probabilities")
            proper = min(self.type_probs) >= 0 and abs(sum(self.type_probs) - 1) < 1e-9
            require(proper, "type_probs", self.type_probs, "probabilities that sum to 1")

    # ------------------------------------------------------------------ alphabet

    @property
    def start_token(self) -> int:
        return 2 * self.types

    @property
    def end_token(self) -> int:
        return 2 * self.types + 1

    @property
    def vocab(self) -> int:
        return 2 * self.types + (1 if self.words == "prefix" else 2)

    @property
    def outputs(self) -> int:
        """Brackets for prefixes; END and (never) START too for words that end."""
        return 2 * self.types if self.words == "prefix" else self.vocab

    @property
    def letters(self) -> list[str]:
        if self.types <= len(PAIRS):
            brackets = list("".join(PAIRS[: self.types]))
        else:
            brackets = [f"{side}{kind}" for kind in range(self.types) for side in "()"]
        return [*brackets, "^", "$"][: self.vocab]

    # ------------------------------------------------------------------ distribution

    @property
    def largest_depth(self) -> int:
        """The depth that no string exceeds."""
        bound = self.length if self.words == "prefix" else self.length // 2
        return bound if self.depth is None else min(self.depth, bound)

    @cached_property
    def kinds(self) -> Float[np.ndarray, "types"]:
        """π(t)."""
        return np.full(self.types, 1 / self.types) if self.type_probs is None else np.array(self.type_probs)

    @cached_property
    def moves(self) -> Float[np.ndarray, "position depth 3"]:
        """Probabilities of opening, closing and ending after `position` brackets, by depth."""
        free = np.zeros((self.largest_depth + 1, 3))
        free[:, OPEN], free[:, CLOSE] = self.opening, 1 - self.opening
        free[0] = (1, 0, 0)
        free[self.largest_depth, :2] = (0, 1) if self._capped else free[self.largest_depth, :2]
        if self.words == "bounded":
            free[0] = (1 - self.end, 0, self.end)
            return _ending_in_time(free, self.length)
        table = np.tile(free, (self.length + 1, 1, 1))
        if self.words == "complete":
            for position in range(self.length + 1):
                forced = min(self.length - position, self.largest_depth)
                table[position, forced] = (0, 1, 0) if forced else (0, 0, 1)
        return table

    @property
    def _capped(self) -> bool:
        return self.largest_depth > 0 and (self.depth is not None or self.words != "prefix")

    def next_logprobs(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Float[Tensor, "row out"]:
        """log P(next token | START w_1 … ) for prefixes of the language, `lengths` tokens each, START included."""
        last = (lengths - 1).unsqueeze(1)
        scan = scan_brackets(tokens, self.types)
        depth, top = scan.depth.gather(1, last), scan.top.gather(1, last)
        ended = tokens.gather(1, last) == self.end_token
        return self._log_probs(last, depth, top, ended).squeeze(1)

    def oracle(self, batch: Batch) -> Float[Tensor, "n time out"]:
        """Exact log-probabilities of the next token, from position, depth and the bracket on top of the stack."""
        scan = self.scan(batch.inputs)
        position = torch.arange(batch.inputs.shape[1], device=batch.inputs.device).expand_as(batch.inputs)
        return self._log_probs(position, scan.depth, scan.top, batch.inputs == self.end_token)

    def _log_probs(self, position: Tensor, depth: Tensor, top: Tensor, ended: Tensor) -> Tensor:
        moves = torch.from_numpy(self.moves).to(position.device)
        kinds = torch.from_numpy(self.kinds).to(position.device)
        move = moves[position.clamp(max=self.length), depth.clamp(max=self.largest_depth)]
        probs = torch.zeros(*position.shape, self.outputs, dtype=torch.float64, device=position.device)
        probs[..., 0 : 2 * self.types : 2] = move[..., OPEN, None] * kinds
        # An empty stack closes nothing: its closing probability is 0 already.
        probs.scatter_(-1, (2 * top.clamp(min=0) + 1).unsqueeze(-1), move[..., CLOSE, None])
        if self.words != "prefix":
            probs[..., self.end_token] = torch.where(ended, 1.0, move[..., END])
            probs[..., : 2 * self.types] = torch.where(ended.unsqueeze(-1), 0.0, probs[..., : 2 * self.types])
        return probs.log()

    def log_probability(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Float[Tensor, "row"]:
        """log P of each prefix START w_1 … w_{length−1}: the exact marginal."""
        blank = torch.zeros_like(tokens, dtype=torch.bool)
        log_probs = self.oracle(Batch(tokens[:, :-1], tokens[:, 1:], blank[:, 1:]))
        steps = log_probs.gather(-1, tokens[:, 1:].clamp(max=self.outputs - 1).unsqueeze(-1)).squeeze(-1)
        inside = torch.arange(1, tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)
        return torch.where(inside, steps, 0.0).sum(1)

    # ------------------------------------------------------------------ sampling

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        tokens, depth = self._write(n, rng)
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        mask = inputs != self.end_token if self.words == "bounded" else torch.ones_like(targets, dtype=torch.bool)
        return Batch(inputs, targets, mask, {"depth": depth[:, : inputs.shape[1]]})

    def complete(
        self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"], *, rng: torch.Generator
    ) -> Int[Tensor, "row longer"]:
        """Continue prefixes START w_1 … to the full length, sampling from the world's distribution."""
        return self._write(len(tokens), rng, tokens[:, 1:], lengths - 1)[0]

    def prompts(
        self, n: int, low: int, high: int, *, rng: torch.Generator
    ) -> tuple[Int[Tensor, "n time"], Int[Tensor, "n"]]:
        """START and the first L brackets of n words, L uniform in low..high; tokens and their lengths (L + 1)."""
        integer("high", high, low=low, high=self.length)
        tokens, _ = self._write(n, rng)
        cut = torch.randint(low, high + 1, (n,), generator=rng, device=rng.device)
        return tokens[:, : high + 1], cut + 1

    def _write(
        self, n: int, rng: torch.Generator, given: Tensor | None = None, lengths: Tensor | None = None
    ) -> tuple[Int[Tensor, "n longer"], Int[Tensor, "n longer"]]:
        """START, n words (END), continuing `given` brackets where there are some; and the depth after each token.

        Time comes first inside, and numbers are short: most of the work is moving memory.
        """
        device, length = rng.device, self.length
        tokens = torch.zeros(length, n, dtype=torch.int32, device=device)
        fixed = None
        if given is not None and lengths is not None:
            width = min(given.shape[1], length)
            tokens[:width] = given[:, :width].T.to(torch.int32)
            fixed = torch.arange(length, device=device).unsqueeze(1) < lengths
        opens, counts, kinds = self._climb(n, rng, fixed, tokens)
        depths = 2 * counts - torch.arange(1, length + 1, device=device, dtype=torch.int32).unsqueeze(1)
        if self.words == "bounded":
            depths = torch.where(counts > length, 0, depths)
        words = 2 * self._match(opens, depths, kinds) + ~opens
        if self.words == "bounded":
            words = torch.where(counts > length, self.end_token, words)
        ends = 0 if self.words == "prefix" else 1
        strings = torch.empty(n, length + 1 + ends, dtype=torch.long, device=device)
        strings[:, 0], strings[:, 1 : length + 1] = self.start_token, words.T
        strings[:, length + 1 :] = self.end_token
        return strings, torch.nn.functional.pad(depths, (0, 0, 1, ends)).T

    def _climb(
        self, n: int, rng: torch.Generator, fixed: Tensor | None, tokens: Tensor
    ) -> tuple[Bool[Tensor, "length n"], Int[Tensor, "length n"], Int[Tensor, "length n"]]:
        """Which positions open, how many brackets were opened so far (above the length: END was written), their types.

        The count c determines the depth 2c − position, so a step is one look-up, one comparison and one sum. Given
        that a bracket opens, the uniform number that decided it is uniform below P(open), so it also gives the type.
        """
        device, length = rng.device, self.length
        u = torch.rand(length, n, generator=rng, device=device)
        opening, going_on = (table.to(device) for table in self._coins)
        chance = torch.empty_like(u)
        opens = torch.empty(length, n, dtype=torch.bool, device=device)
        counts = torch.empty(length, n, dtype=torch.int32, device=device)
        count = torch.zeros(n, dtype=torch.int32, device=device)
        for position in range(length):
            torch.index_select(opening[position], 0, count, out=chance[position])
            torch.lt(u[position], chance[position], out=opens[position])
            if fixed is not None:
                opens[position] = torch.where(fixed[position], tokens[position] % 2 == 0, opens[position])
            if self.words == "bounded":
                ends = u[position] >= going_on[position].index_select(0, count)
                if fixed is not None:
                    ends = torch.where(fixed[position], tokens[position] >= self.start_token, ends)
                opens[position] &= ~ends
                counts[position] = torch.where(ends, length + 1, count + opens[position])
            else:
                torch.add(count, opens[position], out=counts[position])
            count = counts[position]
        kinds = torch.zeros_like(counts)
        for edge in np.cumsum(self.kinds)[:-1].tolist():
            kinds += u >= edge * chance
        return opens, counts, kinds if fixed is None else torch.where(fixed, tokens // 2, kinds)

    @cached_property
    def _coins(self) -> tuple[Float[Tensor, "position count"], Float[Tensor, "position count"]]:
        """P(open) and 1 − P(end) by position and number of brackets opened so far; the last column means ended."""
        position, count = np.meshgrid(np.arange(self.length), np.arange(self.length + 2), indexing="ij")
        depth = 2 * count - position
        possible = (depth >= 0) & (depth <= self.largest_depth) & (count <= self.length)
        moves = np.where(possible[..., None], self.moves[position, depth.clip(0, self.largest_depth)], (0.0, 0.0, 1.0))
        return torch.from_numpy(moves[..., OPEN]).float(), torch.from_numpy(1 - moves[..., END]).float()

    def _match(self, opens: Tensor, depths: Tensor, kinds: Tensor) -> Int[Tensor, "length n"]:
        """The type of every bracket; a closing one takes that of the bracket on top of the stack."""
        if self.types == 1:
            return torch.zeros_like(kinds)
        n = kinds.shape[1]
        row = torch.arange(n, device=kinds.device)
        slot = (depths + ~opens).long() * n + row
        stack = torch.zeros((self.largest_depth + 2) * n, dtype=torch.int32, device=kinds.device)
        for position in range(self.length):
            top = stack.index_select(0, slot[position])
            kinds[position] = torch.where(opens[position], kinds[position], top)
            stack.index_copy_(0, slot[position], kinds[position])
        return kinds

    # ------------------------------------------------------------------ membership

    def scan(self, tokens: Int[Tensor, "row time"]) -> BracketScan:
        """Stack depth, top and opener after each token."""
        return scan_brackets(tokens, self.types)

    def errors(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> tuple[Tensor, Tensor]:
        """Position of the first wrong token of START w … (−1: none) and what is wrong (`BracketError`)."""
        total = None if self.words == "prefix" else self.length
        exact = self.words == "complete"
        return first_error(tokens, lengths, self.types, max_depth=self.depth, total=total, exact=exact)

    def completable(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether START w_1 … can still become a word of the language: the exact process verifier."""
        return self.errors(tokens, lengths)[0] < 0

    def contains(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether START w (END) is a whole example: for words that end, END included."""
        last = tokens.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
        whole = lengths == self.length + 1 if self.words == "prefix" else last == self.end_token
        return whole & self.completable(tokens, lengths)

    def accepts(self, tokens: Tensor) -> bool | Tensor:
        """Membership of bracket strings, without START and END."""
        rows = tokens if tokens.ndim == 2 else tokens.unsqueeze(0)
        mark = torch.full_like(rows[:, :1], self.start_token)
        parts = [mark, rows] if self.words == "prefix" else [mark, rows, mark + 1]
        whole = torch.cat(parts, 1)
        lengths = torch.full((len(rows),), whole.shape[1], device=rows.device)
        inside = self.completable(whole, lengths) if self.words == "prefix" else self.contains(whole, lengths)
        return inside if tokens.ndim == 2 else bool(inside[0])


def _ending_in_time(free: Float[np.ndarray, "depth 3"], length: int) -> Float[np.ndarray, "position depth 3"]:
    """The process given that it ends after at most `length` brackets: each move reweighted by its chance to make it.

    f(d, r) = P(the word ends within r more brackets | depth d); P(move | d, r) = P(move)·f(after)/f(d, r).
    """
    depths = len(free)
    chance = np.zeros((length + 1, depths))
    table = np.zeros((length + 1, depths, 3))
    for left in range(length + 1):
        earlier = chance[left - 1] if left else np.zeros(depths)
        reach = np.stack([np.append(earlier[1:], 0.0), np.insert(earlier[:-1], 0, 0.0), np.eye(1, depths)[0]], 1)
        weights = free * reach
        chance[left] = weights.sum(1)
        total = chance[left][:, None]
        table[length - left] = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return table
