"""Decoding text with a verifier on a real language model: one call, one result per sample."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sandlab.decoding._session.session import Event, Generations, Session, Status
from sandlab.decoding._session.streams import hashed_prefix, mix
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.generators.hugging_face import Chat, LanguageModel, load_language_model
from sandlab.decoding.verifiers.base import NoisyVerifier, TextVerifier, Verifier
from sandlab.decoding.verifiers.grammars import GrammarVerifier
from sandlab.decoding.verifiers.schemas import TextLanguage, compile_grammar
from sandlab.errors import BadInput, choice, integer, nearest, number
from sandlab.progress import ProgressBar
from sandlab.registry import get, names

__all__ = ["Decoded", "decode_text"]

ALIASES = {
    "backtrack": "backtracking",
    "tokenwise": "tokenwise-rejection",
    "constrained": "value-guided",
    "masking": "value-guided",
}
LARGE_VOCABULARY = 512  # above it, a verifier that reads the network is asked about sampled children only


@dataclass(frozen=True)
class Decoded:
    """One sample of one prompt.

    prompt, sample  what was continued, and the number of the sample (0 … n − 1)
    text, tokens    what was generated (without the prompt); the text ends before a stop string
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


def decode_text(
    model: LanguageModel | str | Path | Any,
    prompts: str | Chat | Sequence[str] | Sequence[Chat],
    *,
    tokenizer: Any = None,
    algorithm: str | Decoder | None = None,
    law: str = "local",
    grammar: str | Path | None = None,
    regex: str | None = None,
    json_schema: Any = None,
    choices: Sequence[str] | None = None,
    whole: bool = False,
    verifier: Verifier | Callable[[str], float] | None = None,
    error: float = 0.0,
    n: int = 1,
    stop: str | Sequence[str] = (),
    max_new: int = 64,
    budget: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    trace: bool = False,
    progress: bool = False,
    options: Mapping[str, object] | None = None,
    listener: Callable[[Session, Tensor], None] | None = None,
) -> list[Decoded]:
    """Continue prompts with a causal language model so that the text obeys a grammar.

    >>> decode_text("my-model/", ["Describe Ada: "], json_schema={"type": "object"}, max_new=80)

    model        a folder written by save_pretrained, what `load_language_model` returned, or a Hugging Face model in
                 memory with its `tokenizer`
    prompts      texts; or chats (lists of {"role": …, "content": …}), written by the tokenizer's template
    algorithm    a decoder's registered name with `options` for its parameters, or a decoder. None: with a language,
                 masking, which renormalises the model among the allowed tokens at each step (law="local"), or adaptive
                 rejection, which samples the model given the language (law="given"); with a verifier that errs, the
                 walk; with a function of the text, backtracking; with nothing, plain sampling
    grammar      Lark text, or a Path to it; or `regex`; or `json_schema` (text, Path, dictionary, True, pydantic model
                 or function); or `choices`, a list of texts
    whole        the language describes prompt and answer together; otherwise the answer alone
    verifier     one's own instead of a grammar: a function of the answer's text so far, which may be unfinished, to a
                 number (at least ½: go on), or a `Verifier`, which sees the tokens of prompt and answer. A language
                 given as well then only judges the result
    error        the grammar's verdicts on prefixes are flipped with this probability (complete texts are judged truly)
    n            samples of each prompt, one after the other in the list that is returned
    stop         texts that end the answer, and are cut off it
    budget       largest number of queries to the model per sample (default: 4·max_new² + 100, at most 20 000)
    trace        keep what was erased
    progress     tell on the standard error how far it has come, if it takes longer than two seconds
    """
    number("error", error, low=0.0, high=1.0)
    integer("max_new", max_new, low=1)
    integer("n", n, low=1)
    choice("law", law, ("local", "given"))
    budget = min(4 * max_new**2 + 100, 20_000) if budget is None else budget
    integer("budget", budget, low=1, hint="it is the number of queries to the model per prompt")
    stops = [stop] if isinstance(stop, str) else list(stop)
    language = None
    if any(source is not None for source in (grammar, regex, json_schema, choices)):
        language = compile_grammar(lark=grammar, regex=regex, json_schema=json_schema, choices=choices)
    texts = [text for text in _prompts(prompts) for _ in range(n)]
    name = algorithm if algorithm is not None else _default(language, verifier, error, law)
    _check_name(name, options or {})
    loaded = _loaded(model, tokenizer, device)
    decoder = _decoder(name, options or {}, error, language, verifier, loaded)
    if decoder.needs_verifier and language is None and verifier is None:
        raise BadInput(f"{type(decoder).__name__} asks a verifier: give a grammar, a regex or a JSON schema")
    if stops and isinstance(decoder, VGB) and decoder.children == "all":
        raise BadInput(
            "a walk over all children does not see stop strings: use children='sampled' or another algorithm"
        )
    starts = [loaded.encode(text) for text in texts]
    judge = _judge(language, loaded, texts, starts, whole)
    guide, own = _guide(judge, verifier, decoder, loaded, starts, error, seed)
    bar = ProgressBar("decoding", len(texts), unit="prompts", show=progress)
    done = decoder.generate(
        loaded.generator,
        starts,
        max_new=max_new,
        verifier=guide,
        eos=loaded.ends,
        keys=_keys(starts, seed, loaded.generator.device),
        budget=budget,
        trace=trace,
        progress=bar.update,
        stopped=_stopper(stops, loaded) if stops else None,
        listener=listener,
    )
    bar.close()
    frame = _Frame(loaded, decoder, language, whole, stops, max_new, budget)
    inside = _inside(done, judge, own, frame)
    return [frame.result(row, text, row % n, done, inside[row]) for row, text in enumerate(texts)]


def decoder_names() -> list[str]:
    """The decoders that write from left to right with any generator."""
    return [name for name in names("decoders") if issubclass(get("decoders", name), Decoder)]


def _prompts(given: Any) -> list[str | Chat]:
    """The prompts, one by one: a text or a chat alone is one prompt."""
    if isinstance(given, str):
        return [given]
    listed = list(given)
    if not listed:
        raise BadInput("there is no prompt: give at least one")
    return [listed] if isinstance(listed[0], Mapping) else listed


def _loaded(model: Any, tokenizer: Any, device: str) -> LanguageModel:
    if isinstance(model, LanguageModel):
        return model
    if isinstance(model, (str, Path)):
        return load_language_model(model, device=device)
    if tokenizer is None:
        raise BadInput(f"a model in memory needs its tokenizer: decode_text({type(model).__name__}, …, tokenizer=…)")
    return LanguageModel.of(model, tokenizer)


def _keys(starts: Sequence[Sequence[int]], seed: int, device: torch.device) -> Tensor:
    """Random streams by seed, prompt and number of the sample: a prompt gets the same text in any company."""
    width = max(map(len, starts))
    tokens = torch.tensor([[*start, *[0] * (width - len(start))] for start in starts])
    own = hashed_prefix(tokens, torch.tensor([len(start) for start in starts]), seed)
    seen: Counter[tuple[int, ...]] = Counter()
    samples = []
    for start in map(tuple, starts):
        samples.append(seen[start])
        seen[start] += 1
    return mix(own + mix(torch.tensor(samples) + 1)).to(device)


def _default(language: TextLanguage | None, verifier: Any, error: float, law: str) -> str:
    if isinstance(verifier, Verifier) or (language is not None and verifier is None and error > 0):
        return "vgb"
    if verifier is not None:
        return "backtracking"
    if language is None:
        return "temperature"
    return "value-guided" if law == "local" else "adaptive-rejection"


def _check_name(algorithm: str | Decoder, options: Mapping[str, object]) -> None:
    if isinstance(algorithm, Decoder):
        return
    name = ALIASES.get(algorithm, algorithm)
    known = decoder_names()
    if name not in known:
        hint = nearest(algorithm, [*known, *ALIASES]) or f"there are {', '.join(known)}"
        raise BadInput(f"no algorithm called {algorithm!r}: {hint}")
    own = [each.name for each in fields(get("decoders", name))]
    for option in options:
        if option not in own:
            raise BadInput(f"{name} has no option {option!r}: {nearest(option, own) or 'it has ' + ', '.join(own)}")
    if options.get("keep_prompt") is not None:
        raise BadInput("keep_prompt is for tokens: where text is decoded, the prompt is not cut into")


def _decoder(
    algorithm: str | Decoder,
    options: Mapping[str, object],
    error: float,
    language: TextLanguage | None,
    verifier: Any,
    model: LanguageModel,
) -> Decoder:
    """The decoder with the settings that suit the verifier, where none are given."""
    if isinstance(algorithm, Decoder):
        return algorithm
    made, settings = get("decoders", ALIASES.get(algorithm, algorithm)), dict(options)
    exact = language is not None and verifier is None and error == 0
    asks_network = isinstance(verifier, Verifier) and model.generator.vocab > LARGE_VOCABULARY
    if issubclass(made, VGB):
        # Exact verdicts are 0 or 1: on the model itself the walk would drift back to the root (see VGB). Verdicts that
        # err must not close a branch for good, nor may their errors be read as values of nodes.
        settings.setdefault("base", "constrained" if exact else "model")
        settings.setdefault("values", "path" if error > 0 and verifier is None else "node")
        settings.setdefault("remember", 64)
    if issubclass(made, (VGB, ValueGuided)) and asks_network:
        settings.setdefault("children", "sampled")
        settings.setdefault("remember", 64)
    if issubclass(made, ValueGuided) and exact and language is not None and language.check is not None:
        # What only complete texts show may be wrong at the end of a text that was followed token by token.
        settings.setdefault("max_tries", 20)
    decoder: Decoder = made(**settings)
    return decoder


def _judge(
    language: TextLanguage | None,
    model: LanguageModel,
    texts: Sequence[str | Chat],
    starts: list[list[int]],
    whole: bool,
) -> GrammarVerifier | None:
    """The exact verifier; with `whole`, prompts that leave the language are refused."""
    if language is None:
        return None
    if not whole:
        return GrammarVerifier(language, model, [len(start) for start in starts])
    plain = [text for text in texts if isinstance(text, str)]
    if len(plain) < len(texts):
        raise BadInput("whole=True is for prompts that are texts: a chat is no part of the language")
    judge = GrammarVerifier(language, model, [len(start) for start in starts], plain)
    for text, tokens in zip(plain, judge.before):
        read = judge.reads(0, tokens)
        if read < len(tokens):
            good = judge.reader.decode_str(tokens[:read])
            place = f"goes on like this after {good!r}" if good else "begins like this"
            raise BadInput(f"the prompt {text!r} is outside the language: no text of the language {place}")
    return judge


def _guide(
    judge: GrammarVerifier | None,
    verifier: Verifier | Callable[[str], float] | None,
    decoder: Decoder,
    model: LanguageModel,
    starts: list[list[int]],
    error: float,
    seed: int,
) -> tuple[Verifier | None, Verifier | None]:
    """The verifier that is asked while decoding, and one's own if there is one."""
    own = verifier
    if own is not None and not isinstance(own, Verifier):
        own = TextVerifier(own, model.decode, [len(start) for start in starts])
    if own is None and judge is not None and error > 0:
        # A walk reads the numbers as weights, the others compare them with a threshold.
        return NoisyVerifier(judge, error, seed=seed, prior=0.9 if isinstance(decoder, VGB) else None), None
    return own or judge, own


def _stopper(stops: Sequence[str], model: LanguageModel) -> Callable[[Session, Tensor], Tensor]:
    """Whether a stop string stands at the end of what each row has written: its last tokens are enough to see."""
    reach = 4 * max(map(len, stops)) + 4

    def stopped(session: Session, rows: Tensor) -> Tensor:
        ends = []
        for row in rows.tolist():
            cut = int(session.lengths[row])
            text = model.decode(session.tokens[row, max(int(session.starts[row]), cut - reach) : cut].tolist())
            ends.append(any(stop in text for stop in stops))
        return torch.tensor(ends, dtype=torch.bool, device=rows.device)

    return stopped


def _inside(
    done: Generations, judge: GrammarVerifier | None, own: Verifier | None, frame: _Frame
) -> list[bool] | list[None]:
    """Whether each text is in the language or, without one, good in the eyes of one's own verifier."""
    if judge is not None:
        return [judge.contains(row, frame.kept(done.string(row)[start:])) for row, start in enumerate(judge.starts)]
    if own is not None:
        rows = torch.arange(len(done), device=done.tokens.device)
        return (own.outcome(done.tokens, done.lengths, rows) > 0.5).tolist()
    return [None] * len(done)


@dataclass(frozen=True)
class _Frame:
    """What all results of one call share."""

    model: LanguageModel
    decoder: Decoder
    language: TextLanguage | None
    whole: bool
    stops: Sequence[str]
    max_new: int
    budget: int

    def result(self, row: int, prompt: str | Chat, sample: int, done: Generations, inside: bool | None) -> Decoded:
        tokens, logprob = done.generated(row), float(done.logprob[row])
        status, text = Status(int(done.status[row])), self.text(tokens)
        finish = self._finish(status, tokens, text)
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
            law=self.decoder.law,
            logprob=None if math.isnan(logprob) else logprob,
            counters={name: int(values[row]) for name, values in done.counters.items()},
            value=self._value(prompt, text) if valid else None,
            erased=None if done.events is None else _erased(done.events[row], self.model),
            events=None if done.events is None else tuple(done.events[row]),
        )

    def _value(self, prompt: str | Chat, text: str) -> object:
        """What the text of the language stands for; with `whole`, the prompt is part of it."""
        if self.language is None:
            return None
        said = f"{prompt}{text}" if self.whole else text
        return said if self.language.read is None else self.language.read(said)

    def text(self, tokens: Sequence[int]) -> str:
        """The text before the first stop string."""
        text = self.model.decode(tokens)
        cuts = [text.index(stop) for stop in self.stops if stop in text]
        return text[: min(cuts)] if cuts else text

    def kept(self, tokens: list[int]) -> list[int]:
        """The tokens of the text before a stop string."""
        whole = self.model.decode(tokens)
        if not any(stop in whole for stop in self.stops):
            return tokens
        return list(self.model.tokenizer(self.text(tokens), add_special_tokens=False).input_ids)

    def _finish(self, status: Status, tokens: Sequence[int], text: str) -> str:
        if status != Status.DONE:
            return "gave up"
        ended = bool(tokens) and tokens[-1] in self.model.ends
        return "stop" if ended or text != self.model.decode(tokens) else "length"

    def _words(self, status: Status, finish: str, valid: bool | None) -> tuple[str, str]:
        if status == Status.BUDGET:
            return "out of budget", (
                f"the budget of {self.budget} queries ran out before a complete text was found: raise it"
            )
        if status == Status.FAILED:
            return "gave up", f"no complete text of the language was found within {self.max_new} tokens: raise max_new"
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
