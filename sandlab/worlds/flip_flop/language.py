"""Flip-flop languages: a memory cell that is written, ignored and read (Liu et al. 2023)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot, pad

from sandlab.errors import choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["FlipFlop", "FlipFlopTransduction", "chat_prompt"]

WRITE, READ, IGNORE = 0, 1, 2


@register("worlds")
@dataclass(frozen=True)
class FlipFlop(World):
    """Strings of (instruction, symbol) pairs in which every read must repeat the symbol of the latest write.

    FFL(T, p): T tokens, instructions w, r, i at even positions (counted from 0), each followed by a symbol. The first
    instruction is w, the last r, the others are drawn from p = (p_w, p_r, p_i). The symbol after w or i is uniform, the
    symbol after r is the stored one. Tokens: w=0, r=1, i=2, then the symbols.

    probs    one pair (p_w, p_r), or several: each string draws one of them uniformly. `FlipFlop.ignoring(0.8)` is
             FFL(0.8)
    symbols  size of the memory cell's alphabet
    mode     "clean": only answers to reads count; "generative": every next token counts
    tokens   "fine": instruction and symbol are two tokens; "coarse": one token per pair, where a read hides its symbol
             and has it as its target
    """

    length: int = 512
    probs: tuple[tuple[float, float], ...] = ((0.1, 0.1),)
    symbols: int = 2
    mode: str = "clean"
    tokens: str = "fine"

    def __post_init__(self) -> None:
        integer("length", self.length, low=4)
        require(self.length % 2 == 0, "length", self.length, "even", "a string is made of (instruction, symbol) pairs")
        integer("symbols", self.symbols, low=2)
        choice("mode", self.mode, ("clean", "generative"))
        choice("tokens", self.tokens, ("fine", "coarse"))
        require(self.tokens == "fine" or self.mode == "clean", "mode", self.mode, "'clean' with coarse tokens")
        require(len(self.probs) >= 1, "probs", self.probs, "at least one (p_w, p_r)")
        for pair in self.probs:
            require(len(pair) == 2, "probs", self.probs, "pairs (p_w, p_r)", "p_i = 1 − p_w − p_r")
            for part in pair:
                number("probs", part, low=0.0, high=1.0)
            require(sum(pair) <= 1 + 1e-12, "probs", pair, "pairs with p_w + p_r of at most 1")

    @classmethod
    def ignoring(
        cls, *shares: float, length: int = 512, symbols: int = 2, mode: str = "clean", tokens: str = "fine"
    ) -> FlipFlop:
        """FFL(p_i), in which p_w = p_r = (1 − p_i)/2; several shares p_i give a mixture over strings."""
        probs = tuple(((1 - share) / 2, (1 - share) / 2) for share in shares)
        return cls(length, probs, symbols, mode, tokens)

    @property
    def pairs(self) -> int:
        return self.length // 2

    @property
    def vocab(self) -> int:
        return 3 + self.symbols if self.tokens == "fine" else 2 * self.symbols + 1

    @property
    def outputs(self) -> int:
        return self.vocab if self.tokens == "fine" else self.symbols

    @property
    def letters(self) -> list[str]:
        symbols = [str(symbol) for symbol in range(self.symbols)]
        if self.tokens == "fine":
            return ["w", "r", "i", *symbols]
        return [f"w{symbol}" for symbol in symbols] + [f"i{symbol}" for symbol in symbols] + ["r"]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        instructions = self._instructions(n, rng)
        symbols = torch.randint(self.symbols, (n, self.pairs), generator=rng, device=rng.device, dtype=torch.int32)
        latest = latest_write(instructions)
        stored = symbols.gather(1, latest)
        symbols = torch.where(instructions == READ, stored, symbols)
        truth = {"stored": stored.long(), "latest_write": latest}
        if self.tokens == "coarse":
            return self._coarse(instructions, symbols, truth)
        strings = torch.stack([instructions, symbols + 3], -1).flatten(1).long()
        inputs, targets = strings[:, :-1], strings[:, 1:]
        mask = inputs == READ if self.mode == "clean" else torch.ones_like(inputs, dtype=torch.bool)
        return Batch(inputs, targets, mask, truth)

    def _instructions(self, n: int, rng: torch.Generator) -> Int[Tensor, "n pairs"]:
        probs = torch.tensor(self.probs, device=rng.device)
        chosen = probs[0].expand(n, 2)
        if len(probs) > 1:
            chosen = probs[torch.randint(len(probs), (n,), generator=rng, device=rng.device)]
        write, read = chosen[:, :1], chosen[:, 1:]
        draw = torch.rand(n, self.pairs, generator=rng, device=rng.device)
        # Below p_w: write (0); below p_w + p_r: read (1); else ignore (2).
        instructions = (draw >= write).to(torch.int32) + (draw >= write + read).to(torch.int32)
        instructions[:, 0], instructions[:, -1] = WRITE, READ
        return instructions

    def _coarse(self, instructions: Tensor, symbols: Tensor, truth: dict[str, Tensor]) -> Batch:
        reads = instructions == READ
        block = (instructions == IGNORE) * self.symbols
        inputs = torch.where(reads, 2 * self.symbols, symbols + block)
        return Batch(inputs.long(), symbols.long(), reads, truth)

    def oracle(self, batch: Batch) -> Float[Tensor, "n time outputs"]:
        """Next-token distribution: certain after r, uniform after w and i, posterior mean of p after a symbol.

        Prefixes of any length are answered; a read before anything was written is uniform.
        """
        if self.tokens == "coarse":
            return one_hot(batch.truth["stored"], self.symbols).double().log()
        inputs = batch.inputs
        probs = torch.zeros(*inputs.shape, self.vocab, dtype=torch.float64, device=inputs.device)
        instructions, symbols = inputs[:, 0::2], inputs[:, 1::2]
        probs[:, 0::2, 3:] = 1 / self.symbols
        if symbols.shape[1] > 0:  # else nothing has been written
            certain = one_hot(self.stored_symbol(instructions, symbols), self.symbols).double()
            probs[:, 0::2, 3:] = torch.where((instructions == READ).unsqueeze(-1), certain, probs[:, 0::2, 3:])
        probs[:, 1::2, :3] = self._instruction_probs(instructions)[:, : symbols.shape[1]]
        before_last_read = slice(self.length - 3, self.length - 2)
        probs[:, before_last_read, :3] = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64, device=inputs.device)
        return probs.log()

    def stored_symbol(self, instructions: Int[Tensor, "n pairs"], symbols: Tensor) -> Int[Tensor, "n pairs"]:
        """Content of the cell at each pair, from the tokens before the pair's symbol (the answer, for a read)."""
        latest = latest_write(instructions).clamp(max=symbols.shape[1] - 1)
        return symbols.gather(1, latest) - 3

    def _instruction_probs(self, instructions: Int[Tensor, "n pairs"]) -> Float[Tensor, "n pairs 3"]:
        """Distribution of the next instruction after each pair: posterior mean over the mixture's components."""
        probs = torch.tensor(self.probs, dtype=torch.float64, device=instructions.device)
        probs = torch.cat([probs, 1 - probs.sum(1, keepdim=True)], 1).clamp(min=0)
        likelihood = probs.log().T[instructions.long()]
        likelihood[:, 0] = 0.0  # the first instruction is always a write: it carries no information about p
        posterior = likelihood.cumsum(1).softmax(-1)
        return posterior @ probs

    def label(self, inputs: Int[Tensor, "n time"]) -> Batch:
        """The batch of given fine-token prefixes that end with an instruction; only the answer to a final r counts.

        A prefix that does not begin with w, or that contains a wrong answer to an earlier read, has an empty mask.
        """
        instructions, symbols = inputs[:, 0::2], inputs[:, 1::2]
        if symbols.shape[1] == 0:  # a single instruction: nothing has been written
            return Batch(inputs, torch.full_like(inputs, 3), torch.zeros_like(inputs, dtype=torch.bool))
        latest = latest_write(instructions).clamp(max=symbols.shape[1] - 1)
        stored = symbols.gather(1, latest)
        consistent = (instructions[:, :-1] != READ) | (symbols == stored[:, :-1])
        valid = (instructions[:, 0] == WRITE) & (instructions[:, -1] == READ) & consistent.all(1)
        truth = {"stored": stored - 3, "latest_write": latest}
        return Batch(inputs, stored[:, -1:], valid.unsqueeze(1), truth)

    def since_write(self, batch: Batch) -> Int[Tensor, "n time"]:
        """Number of pairs from each token back to the latest write: how far a read must look back."""
        return self._distance(batch, batch.truth["latest_write"])

    def since_told(self, batch: Batch) -> Int[Tensor, "n time"]:
        """Number of pairs back to the latest earlier write or read: both show the stored symbol."""
        inputs = batch.inputs
        if self.tokens == "coarse":
            silent = (inputs >= self.symbols) & (inputs < 2 * self.symbols)
        else:
            silent = inputs[:, 0::2] == IGNORE
        told = latest_write(torch.where(silent, IGNORE, WRITE))
        return self._distance(batch, pad(told[:, :-1], (1, 0)))

    def _distance(self, batch: Batch, pairs: Int[Tensor, "n pairs"]) -> Int[Tensor, "n time"]:
        """Distance in pairs of every token to a pair given for each pair."""
        away = torch.arange(pairs.shape[1], device=pairs.device) - pairs
        return away if self.tokens == "coarse" else away.repeat_interleave(2, 1)[:, : batch.inputs.shape[1]]

    def accepts(self, tokens: Int[Tensor, "*n time"]) -> bool | Bool[Tensor, "n"]:
        """Whether a string of fine tokens belongs to the language (of any even length of at least 4)."""
        strings = torch.atleast_2d(tokens)
        if strings.shape[1] < 4 or strings.shape[1] % 2:
            verdict = torch.zeros(len(strings), dtype=torch.bool)
            return bool(verdict[0]) if tokens.ndim == 1 else verdict
        instructions, symbols = strings[:, 0::2], strings[:, 1::2] - 3
        well_formed = (instructions <= IGNORE) & (instructions >= 0) & (symbols >= 0) & (symbols < self.symbols)
        bounded = (instructions[:, 0] == WRITE) & (instructions[:, -1] == READ)
        stored = symbols.gather(1, latest_write(instructions))
        verdict = well_formed.all(1) & bounded & ((instructions != READ) | (symbols == stored)).all(1)
        return bool(verdict[0]) if tokens.ndim == 1 else verdict

    def enumerate(self) -> tuple[Int[Tensor, "string time"], Float[Tensor, "string"]]:
        """All symbols · (2·symbols + 1)^(T/2 − 2) strings of the language, and their probabilities."""
        inner = list(itertools.product(range(3), repeat=self.pairs - 2))
        strings, weights = [], []
        for middle in inner:
            instructions = (WRITE, *middle, READ)
            free = [index for index, kind in enumerate(instructions) if kind != READ]
            weight = sum(
                w ** middle.count(WRITE) * r ** middle.count(READ) * (1 - w - r) ** middle.count(IGNORE)
                for w, r in self.probs
            ) / len(self.probs)
            for chosen in itertools.product(range(self.symbols), repeat=len(free)):
                value = dict(zip(free, chosen))
                cell, string = 0, []
                for index, kind in enumerate(instructions):
                    symbol = value.get(index, cell)
                    cell = symbol if kind == WRITE else cell
                    string += [kind, symbol + 3]
                strings.append(string)
                weights.append(weight / self.symbols ** len(free))
        return torch.tensor(strings), torch.tensor(weights, dtype=torch.float64)

    def expected_reads(self) -> float:
        """Expected reads per string: E[#r] = 1 + (T/2 − 2) p_r, averaged over the mixture."""
        return 1 + (self.pairs - 2) * sum(read for _, read in self.probs) / len(self.probs)

    def loss_floor(self) -> float:
        """Least generative loss without a mixture, nats per token: [(I−2) H(p) + (1+(I−2)(1−p_r)) ln n] / (T−1)."""
        hint = "for a mixture take optimal_loss of a batch"
        require(len(self.probs) == 1, "probs", self.probs, "a single pair (p_w, p_r)", hint)
        write, read = self.probs[0]
        entropy = -sum(part * math.log(part) for part in (write, read, 1 - write - read) if part > 0)
        free_symbols = 1 + (self.pairs - 2) * (1 - read)
        return ((self.pairs - 2) * entropy + free_symbols * math.log(self.symbols)) / (self.length - 1)

    def ngram_error(self, window: int) -> float:
        """Read error of the best predictor that sees only the last `window` tokens, including the r.

        With g = ⌊window/2⌋ pairs whose symbol it sees before the read, it errs with probability 1 − 1/n if all of them
        are ignores and the string began earlier: [p_r max(0, I−g−2) + 1[I ≥ g+2]] (1 − 1/n) p_i^g / E[#r].
        """
        integer("window", window, low=1)
        require(len(self.probs) == 1, "probs", self.probs, "a single pair (p_w, p_r)")
        write, read = self.probs[0]
        visible = window // 2  # without its instruction, the oldest symbol is still the best guess
        blind = (1 - write - read) ** visible * (1 - 1 / self.symbols)
        reads = read * max(0, self.pairs - visible - 2) + (self.pairs >= visible + 2)
        return reads * blind / self.expected_reads()


@register("worlds")
@dataclass(frozen=True)
class FlipFlopTransduction(World):
    """The flip-flop automaton as a labelling task: the content of the cell after each operation.

    Inputs: 0 = no-op, 1 … n = write that symbol; the first operation is a write. Target at t: the symbol of the latest
    write up to and including t (counted from 0). Every position counts.

    length   number of operations; idle: probability of a no-op; symbols: n, size of the cell's alphabet
    """

    length: int = 32
    idle: float = 0.9
    symbols: int = 2

    def __post_init__(self) -> None:
        integer("length", self.length, low=1)
        number("idle", self.idle, low=0.0, high=1.0)
        integer("symbols", self.symbols, low=2)

    @property
    def vocab(self) -> int:
        return self.symbols + 1

    @property
    def outputs(self) -> int:
        return self.symbols

    @property
    def letters(self) -> list[str]:
        return ["·", *(str(symbol) for symbol in range(self.symbols))]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        shape = (n, self.length)
        writes = torch.rand(shape, generator=rng, device=rng.device) >= self.idle
        writes[:, 0] = True
        symbols = torch.randint(self.symbols, shape, generator=rng, device=rng.device)
        inputs = torch.where(writes, symbols + 1, 0)
        latest = latest_write(torch.where(writes, WRITE, IGNORE))
        states = symbols.gather(1, latest)
        return Batch(inputs, states, torch.ones_like(writes), {"state": states, "latest_write": latest})

    def label(self, inputs: Int[Tensor, "n time"]) -> Batch:
        """The batch of the given operations (for hand-made inputs)."""
        latest = latest_write(torch.where(inputs > 0, WRITE, IGNORE))
        states = inputs.gather(1, latest) - 1
        mask = torch.ones_like(inputs, dtype=torch.bool)
        return Batch(inputs, states, mask, {"state": states, "latest_write": latest})

    def oracle(self, batch: Batch) -> Float[Tensor, "n time symbols"]:
        return one_hot(self.label(batch.inputs).targets, self.symbols).double().log()


def latest_write(instructions: Int[Tensor, "n pairs"]) -> Int[Tensor, "n pairs"]:
    """Index of the latest write up to and including each index (0 when there is none)."""
    index = torch.arange(instructions.shape[1], device=instructions.device)
    return torch.where(instructions == WRITE, index, 0).cummax(1).values


def chat_prompt(string: Int[Tensor, "time"]) -> str:
    """A prompt for a chat model: the rules of the memory cell and one string of fine tokens without its last answer.

    (Liu et al. 2023, Figure 8 show such a dialogue: right up to about 400 tokens, wrong beyond.)
    """
    letters = ["w", "r", "i", "0", "1"]
    written = " ".join(letters[token] for token in string[:-1].tolist())
    return (
        "A machine has one memory cell that holds a bit. It is given pairs of an instruction and a bit: 'w b' writes "
        "b into the cell, 'i b' changes nothing, 'r b' reads, and then b is what the cell holds. Continue this "
        f"sequence with one bit and say nothing else: {written}"
    )
