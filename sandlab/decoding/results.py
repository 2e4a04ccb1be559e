"""What comes out of decoding text: one result per sample, and how it is made from the tokens that were written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from sandlab.decoding._session.session import Event, Generations, Status
from sandlab.decoding.generators.hugging_face import Chat, LanguageModel
from sandlab.decoding.verifiers.schemas import TextLanguage

__all__ = ["Decoded"]


@dataclass(frozen=True)
class Decoded:
    """One sample of one prompt.

    prompt, sample  what was continued, and the number of the sample (0 … n − 1)
    text, tokens    what was generated (without the prompt); the text ends before a stop string. Where the prompt's end
                    was healed, the tokens begin with those that write it anew
    valid           whether the text belongs to the language, or what a verifier of one's own says about it at the end
                    (above ½); None without either
    finish          "stop" (an end token or a stop string), "length" (cut at max_new) or "gave up"
    status          "complete", "cut off", "gave up" or "out of budget"; `message` says it in a sentence
    law             which distribution the algorithm samples, in words
    logprob         log-probability of the generated tokens under the model; None if the algorithm never asked it
    counters        queries to the model and to the verifier, backtracks, erased tokens, steps
    value           what the text stands for: JSON read, a pydantic object; None unless it is valid
    erased          the pieces of text that were written and taken back, in order (with trace=True)
    events          everything that happened, for `draw_trace` (with trace=True)
    """

    prompt: str | Chat
    text: str
    tokens: tuple[int, ...]
    valid: bool | None
    finish: str
    status: str
    message: str
    law: str
    logprob: float | None
    counters: dict[str, int]
    sample: int = 0
    value: Any = field(default=None, repr=False)
    erased: tuple[str, ...] | None = None
    events: tuple[Event, ...] | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, object]:
        """For JSON; without the events, of which there may be thousands, and the value, which the text says."""
        return {name: value for name, value in asdict(self).items() if name not in ("events", "value")}


@dataclass(frozen=True)
class Frame:
    """What all results of one call share; `heads` are the ends of the prompts that are written anew, "" for none."""

    model: LanguageModel
    law: str
    language: TextLanguage | None
    whole: bool
    stops: Sequence[str]
    heads: Sequence[str]
    max_new: int
    budget: int

    def result(self, row: int, prompt: str | Chat, sample: int, done: Generations, inside: bool | None) -> Decoded:
        tokens, logprob = done.generated(row), float(done.logprob[row])
        status, text = Status(int(done.status[row])), self.text(row, tokens)
        finish = self._finish(row, status, tokens, text)
        valid = inside if status == Status.DONE or inside is None else False
        name, message = self._words(status, finish, valid)
        return Decoded(
            prompt=prompt,
            sample=sample,
            text=text,
            tokens=tuple(tokens),
            valid=valid,
            finish=finish,
            status=name,
            message=message,
            law=f"{self.law}, with the prompt's end {self.heads[row]!r} written anew" if self.heads[row] else self.law,
            logprob=None if math.isnan(logprob) else logprob,
            counters={name: int(values[row]) for name, values in done.counters.items()},
            value=self._value(prompt, text) if valid else None,
            erased=None if done.events is None else _erased(done.events[row], self.model),
            events=None if done.events is None else tuple(done.events[row]),
        )

    def written(self, row: int, tokens: Sequence[int]) -> str:
        """The text of the tokens behind the prompt, whose end may be among them."""
        text, head = self.model.decode(tokens), self.heads[row]
        # A half-written end of the prompt is no text yet; a draft that was refused need not begin with it.
        return "" if head.startswith(text) else text.removeprefix(head)

    def text(self, row: int, tokens: Sequence[int]) -> str:
        """The text before the first stop string."""
        text = self.written(row, tokens)
        cuts = [text.index(stop) for stop in self.stops if stop in text]
        return text[: min(cuts)] if cuts else text

    def kept(self, row: int, tokens: list[int]) -> list[int]:
        """The tokens of the text before a stop string."""
        whole = self.written(row, tokens)
        if not any(stop in whole for stop in self.stops):
            return tokens
        text = self.heads[row] + self.text(row, tokens)
        return list(self.model.tokenizer(text, add_special_tokens=False).input_ids)

    def _value(self, prompt: str | Chat, text: str) -> object:
        """What the text of the language stands for; with `whole`, the prompt is part of it."""
        if self.language is None:
            return None
        said = f"{prompt}{text}" if self.whole else text
        return said if self.language.read is None else self.language.read(said)

    def _finish(self, row: int, status: Status, tokens: Sequence[int], text: str) -> str:
        if status != Status.DONE:
            return "gave up"
        ended = bool(tokens) and tokens[-1] in self.model.ends
        return "stop" if ended or text != self.written(row, tokens) else "length"

    def _words(self, status: Status, finish: str, valid: bool | None) -> tuple[str, str]:
        if status == Status.BUDGET:
            return "out of budget", (
                f"the budget of {self.budget} queries ran out before a complete text was found: raise it"
            )
        if status == Status.FAILED:
            late = self.language is not None and self.language.check is not None
            # Without these words one would look for the reason in the length alone.
            more = " or max_tries, for a part of this language is checked at the end of texts only" if late else ""
            return "gave up", (
                f"no complete text of the language was found within {self.max_new} tokens: raise max_new{more}"
            )
        if finish == "length" and not valid:
            return "cut off", f"the text was cut at {self.max_new} tokens: raise max_new"
        if valid is False:
            return "complete", "the text is not in the language: this algorithm does not promise it, masking does"
        return "complete", "complete" if valid is None else "complete and in the language"


def _erased(events: Sequence[Event], model: LanguageModel) -> tuple[str, ...]:
    """Runs of erased tokens as text; what was put back is left out."""
    pieces: list[list[int]] = []
    for kind, run in groupby(events, key=lambda event: event.kind):
        tokens = [event.token for event in run]
        if kind == "erased":
            pieces.append(tokens[::-1])
        elif kind == "restored":
            pieces.remove(tokens)
    return tuple(filter(None, map(model.decode, pieces)))
