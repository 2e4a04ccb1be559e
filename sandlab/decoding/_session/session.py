"""The state of a batch of strings while they are decoded: tokens, counters, random numbers, what happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.decoding._session.memory import Memory
from sandlab.decoding._session.streams import Streams, hashed_prefix
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.errors import BadInput, require

__all__ = ["COUNTERS", "Event", "Generations", "Session", "Status"]

COUNTERS = (
    "oracle_calls",
    "verifier_calls",
    "strings_generated",
    "backtracks",
    "tokens_erased",
    "quota_left",
    "steps",
    "remembered",
    "forced",
)


class Status(IntEnum):
    """How a string ended."""

    RUNNING = 0
    DONE = 1  # complete: an end token, a stop string, or the length asked for
    FAILED = 2  # the algorithm gave up: FAIL
    BUDGET = 3  # the budget of queries ran out first


@dataclass(frozen=True)
class Event:
    """One thing that happened to a string: a token "sampled", taken as "argmax", "rejected", "erased" or "restored"."""

    kind: str
    position: int
    token: int
    value: float


@dataclass(frozen=True)
class Generations:
    """What a decoder returns, one row per prompt.

    tokens, lengths      prompt and generation together; row i ends at lengths[i]
    starts               where the generation begins (less than the prompt's length if the prompt was cut into)
    status               DONE, FAILED or BUDGET
    logprob              log-probability of the generated tokens under the generator itself (temperature 1, no cut-off)
    counters             the names of COUNTERS → one number per row
    """

    tokens: Int[Tensor, "row time"]
    lengths: Int[Tensor, "row"]
    starts: Int[Tensor, "row"]
    status: Int[Tensor, "row"]
    logprob: Float[Tensor, "row"]
    counters: dict[str, Int[Tensor, "row"]]
    events: list[list[Event]] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def done(self) -> Tensor:
        return self.status == Status.DONE

    def string(self, row: int) -> list[int]:
        """Prompt and generation of one row."""
        return self.tokens[row, : int(self.lengths[row])].tolist()

    def generated(self, row: int) -> list[int]:
        """The generation of one row without its prompt."""
        return self.tokens[row, int(self.starts[row]) : int(self.lengths[row])].tolist()

    def total(self, counter: str) -> int:
        return int(self.counters[counter].sum())


class Session:
    """A batch of strings being decoded. Algorithms move the strings; the session counts, draws and remembers."""

    def __init__(
        self,
        generator: Generator,
        prompts: Tensor | Sequence[Sequence[int]],
        *,
        verifier: Verifier | None,
        max_new: int | Sequence[int] | Tensor,
        eos: int | Sequence[int] | None,
        rng: torch.Generator | None = None,
        keys: Int[Tensor, "row"] | None = None,
        budget: int | None = None,
        trace: bool = False,
        progress: Callable[[int, str], None] | None = None,
        stopped: Callable[[Session, Tensor], Tensor] | None = None,
        listener: Callable[[Session, Tensor], None] | None = None,
    ) -> None:
        device = generator.device
        listed = prompts.tolist() if isinstance(prompts, Tensor) else prompts
        rows = [list(prompt) for prompt in listed]
        if not rows:
            raise BadInput("there is no prompt: give at least one, an empty one ([]) if the model needs none")
        self.prompt_lengths = torch.tensor([len(row) for row in rows], device=device)
        new = torch.as_tensor(max_new, device=device).expand(len(rows))
        require(bool((new >= 1).all()), "max_new", max_new, "at least 1", "it is the number of tokens to generate")
        require(budget is None or budget >= 1, "budget", budget, "at least 1", "it is the number of queries per prompt")
        self.limits = self.prompt_lengths + new
        capacity = int(self.limits.max())
        padded = [row + [0] * (capacity - len(row)) for row in rows]
        self.tokens = torch.tensor(padded, device=device, dtype=torch.long).view(len(rows), capacity)
        self._check_prompt(rows, generator.vocab)
        self.lengths, self.starts = self.prompt_lengths.clone(), self.prompt_lengths.clone()
        ends = [] if eos is None else [eos] if isinstance(eos, int) else list(eos)
        self.ends = torch.tensor(ends, dtype=torch.long, device=device)
        self.budget, self.generator, self.verifier = budget, generator, verifier
        self.stopped, self.listener, self.memory = stopped, listener, Memory(0)
        self.status = torch.zeros(len(rows), dtype=torch.long, device=device)
        self.logprobs = torch.zeros(len(rows), capacity, dtype=torch.float64, device=device)
        self.counters = {name: torch.zeros_like(self.status) for name in COUNTERS}
        if keys is None and rng is None:
            raise BadInput("a decoder draws at random: give rng=sl.rng(seed)")
        streams = Streams(keys) if keys is not None else Streams.from_rng(len(rows), rng)  # type: ignore[arg-type]
        self.streams = Streams(streams.keys.to(device))
        self.progress = progress
        self.trace: list[tuple[str, Tensor, Tensor, Tensor, Tensor]] | None = [] if trace else None
        generator.start(len(rows), capacity)
        if verifier is not None:
            verifier.start(len(rows), capacity)

    # -- questions ------------------------------------------------------------------------------------------------

    def running(self) -> Int[Tensor, "some"]:
        """Rows still at work; those whose budget is spent are stopped here."""
        if self.budget is not None:
            spent = (self.status == Status.RUNNING) & (self.counters["oracle_calls"] >= self.budget)
            self.status[spent] = Status.BUDGET
        if self.progress is not None:
            ended = int((self.status != Status.RUNNING).sum())
            self.progress(ended, f"{int(self.counters['oracle_calls'].sum())} queries")
        return (self.status == Status.RUNNING).nonzero().squeeze(1)

    def complete(self, rows: Tensor) -> Tensor:
        """Whether these strings are at an end token (generated, not prompted), a stop string or their full length."""
        return (self.lengths[rows] >= self.limits[rows]) | self.ended(rows)

    def ended(self, rows: Tensor) -> Tensor:
        """Whether these strings end by an end token or a stop string, not by their length."""
        lengths = self.lengths[rows]
        last = self.tokens[rows, (lengths - 1).clamp(min=0)]
        over = (last.unsqueeze(1) == self.ends).any(1) & (lengths > self.starts[rows])
        if self.stopped is not None and len(rows):
            over = over | self.stopped(self, rows)
        return over

    def next_log_probs(self, rows: Tensor, *, count: bool = True) -> Float[Tensor, "some vocab"]:
        """log p(next) after each of these strings: one query to the generator each."""
        if count:
            self.counters["oracle_calls"][rows] += 1
        return self.generator.next_logprobs(self.tokens[rows], self.lengths[rows], rows)

    def remembered_log_probs(self, rows: Tensor) -> Float[Tensor, "some vocab"]:
        """The same, but a prefix that this row has asked about before costs no query while memory lasts."""
        return self._recall("law", rows, self.next_log_probs)

    def remembered_child_values(self, rows: Tensor) -> Tensor:
        """`child_values`, from memory where the row has asked before."""
        return self._recall("values", rows, self.child_values)

    def remembered_value(self, rows: Tensor) -> Float[Tensor, "some"]:
        """The verifier's number for each string, its outcome where it is complete; from memory where possible."""
        return self._recall("value", rows, self._value_or_outcome)

    def _value_or_outcome(self, rows: Tensor) -> Tensor:
        whole = self.complete(rows)
        values = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
        for some, outcome in ((whole, True), (~whole, False)):
            if bool(some.any()):
                values[some] = self.value(rows[some], outcome=outcome).to(torch.float64)
        return values

    def _recall(self, kind: str, rows: Tensor, ask: Callable[[Tensor], Tensor]) -> Tensor:
        if not self.memory.room:
            return ask(rows)
        marks = hashed_prefix(self.tokens[rows], self.lengths[rows], 0).tolist()
        keys = [(kind, row, mark) for row, mark in zip(rows.tolist(), marks)]
        found = [self.memory.get(key) for key in keys]
        missing = [place for place, value in enumerate(found) if value is None]
        if missing:
            for place, value in zip(missing, ask(rows[missing])):
                found[place] = value
                self.memory.put(keys[place], value)
        if kind == "law":
            known = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
            known[missing] = False
            self.counters["remembered"][rows[known]] += 1
        return torch.stack([value for value in found if value is not None])

    def value(self, rows: Tensor, *, outcome: bool = False) -> Float[Tensor, "some"]:
        """The verifier's number for each of these strings: one query to the verifier each."""
        verifier = self._verifier()
        self.counters["verifier_calls"][rows] += 1
        ask = verifier.outcome if outcome else verifier.value
        return ask(self.tokens[rows], self.lengths[rows], rows)

    def child_values(self, rows: Tensor) -> Tensor:
        """The verifier's number for every one-token extension; extensions that are complete get their outcome."""
        vocab = self.generator.vocab
        self.counters["verifier_calls"][rows] += vocab
        verifier, tokens, lengths = self._verifier(), self.tokens[rows], self.lengths[rows]
        values = verifier.children(tokens, lengths, rows, vocab).clone()
        # Masks stay masks: eight bytes a token are felt where there are many tokens.
        if values.dtype != torch.bool:
            values = values.to(torch.float64)
        last = (lengths + 1 >= self.limits[rows]).nonzero().squeeze(1)
        if len(self.ends) and not verifier.knows_ends:
            values[:, self.ends] = verifier.child_outcomes(tokens, lengths, rows, self.ends).to(values.dtype)
        if len(last):
            letters = torch.arange(vocab, device=tokens.device)
            outcomes = verifier.child_outcomes(tokens[last], lengths[last], rows[last], letters)
            values[last] = outcomes.to(values.dtype)
        return values

    def uniform(self, rows: Tensor) -> Float[Tensor, "some"]:
        return self.streams.uniform(rows)

    # -- moves ----------------------------------------------------------------------------------------------------

    def append(self, rows: Tensor, letters: Tensor, logprob: Tensor, kind: str = "sampled") -> None:
        """Write one token at the end of each of these strings; `logprob` is the generator's own for it."""
        places = self.lengths[rows]
        self.tokens[rows, places] = letters
        self.logprobs[rows, places] = logprob.to(torch.float64)
        self.lengths[rows] = places + 1
        self.note(kind, rows, places, letters)
        self._tell(rows)

    def erase(self, rows: Tensor, to: Tensor) -> None:
        """Cut these strings back to length `to`; the cut may reach into the prompt."""
        removed = self.lengths[rows] - to
        self.counters["tokens_erased"][rows] += removed
        if self.trace is not None:
            for back in range(1, int(removed.max()) + 1 if len(removed) else 1):
                still = removed >= back
                places = self.lengths[rows[still]] - back
                self.note("erased", rows[still], places, self.tokens[rows[still], places])
        self.lengths[rows] = to
        self.starts[rows] = torch.minimum(self.starts[rows], to)
        self._tell(rows)

    def put_back(self, rows: Tensor, tokens: Tensor, lengths: Tensor, logprobs: Tensor) -> None:
        """Continue these strings by what was erased earlier: it counts as erased no longer."""
        before = self.lengths[rows]
        self.counters["tokens_erased"][rows] -= lengths - before
        self.tokens[rows], self.logprobs[rows], self.lengths[rows] = tokens, logprobs, lengths
        for place in range(int(before.min()), int(lengths.max())) if self.trace is not None and len(rows) else ():
            inside = (before <= place) & (place < lengths)
            self.note("restored", rows[inside], torch.full_like(rows[inside], place), tokens[inside, place])
        self._tell(rows)

    def finish(self, rows: Tensor, status: Status = Status.DONE) -> None:
        self.status[rows] = status

    def note(self, kind: str, rows: Tensor, places: Tensor, letters: Tensor, values: Tensor | None = None) -> None:
        if self.trace is not None and len(rows):
            values = torch.full(places.shape, torch.nan) if values is None else values
            self.trace.append((kind, rows.cpu(), places.cpu(), letters.cpu(), values.cpu()))

    def result(self) -> Generations:
        self._fill_in()
        place = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        inside = (place >= self.starts.unsqueeze(1)) & (place < self.lengths.unsqueeze(1))
        return Generations(
            tokens=self.tokens,
            lengths=self.lengths,
            starts=self.starts,
            status=self.status,
            logprob=torch.where(inside, self.logprobs, 0.0).sum(1),
            counters=self.counters,
            events=self._events(),
        )

    # -- inside ---------------------------------------------------------------------------------------------------

    def _fill_in(self) -> None:
        """Log-probabilities of tokens that were written without asking the generator: one pass at the end."""
        forced = (self.counters["forced"] > 0).nonzero().squeeze(1)
        if not len(forced):
            return
        place = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        inside = (place >= self.starts.unsqueeze(1)) & (place < self.lengths.unsqueeze(1))
        unknown = (self.logprobs.isnan() & inside)[forced]
        forced, unknown = forced[unknown.any(1)], unknown[unknown.any(1)]
        if not len(forced):
            return
        begins = unknown.long().argmax(1)
        found = self.generator.token_logprobs(self.tokens[forced], begins, self.lengths[forced], forced)
        self.logprobs[forced] = torch.where(unknown, found.to(torch.float64), self.logprobs[forced])

    def _tell(self, rows: Tensor) -> None:
        if self.listener is not None and len(rows):
            self.listener(self, rows)

    def _verifier(self) -> Verifier:
        if self.verifier is None:
            raise BadInput("this algorithm asks a verifier: give verifier=")
        return self.verifier

    def _check_prompt(self, prompts: list[list[int]], vocab: int) -> None:
        for prompt in prompts:
            outside = [token for token in prompt if not 0 <= token < vocab]
            if outside:
                raise BadInput(f"the prompt has token {outside[0]}, the generator's tokens are 0 to {vocab - 1}")

    def _events(self) -> list[list[Event]] | None:
        if self.trace is None:
            return None
        events: list[list[Event]] = [[] for _ in range(len(self.status))]
        for kind, rows, places, letters, values in self.trace:
            for row, place, letter, value in zip(rows.tolist(), places.tolist(), letters.tolist(), values.tolist()):
                events[row].append(Event(kind, place, letter, value))
        return events
