"""Decoding text with a verifier on a real language model: one call, one result per prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import groupby
from pathlib import Path

import torch

from sandlab.decoding._session.session import Event, Generations, Status
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.walks import VGB
from sandlab.decoding.generators.hugging_face import LanguageModel, load_language_model
from sandlab.decoding.verifiers.base import NoisyVerifier, TextVerifier, Verifier
from sandlab.decoding.verifiers.grammars import GrammarVerifier, compile_grammar
from sandlab.errors import BadInput, integer, nearest, number
from sandlab.progress import ProgressBar
from sandlab.random import rng
from sandlab.registry import get, names

__all__ = ["Decoded", "decode_text"]

ALIASES = {"backtrack": "backtracking", "tokenwise": "tokenwise-rejection", "constrained": "value-guided"}


@dataclass(frozen=True)
class Decoded:
    """One prompt's result.

    text, tokens   what was generated (without the prompt)
    valid          whether the text belongs to the language, or what a verifier of one's own says about it at the end
                   (above ½); None without either
    status         "complete", "gave up" or "out of budget"; `message` says it in a sentence
    logprob        log-probability of the generated tokens under the model; None if the algorithm never asked it
    counters       queries to the model and to the verifier, backtracks, erased tokens, steps
    erased         the pieces of text that were written and taken back, in order (with trace=True)
    events         everything that happened, for `draw_trace` (with trace=True)
    """

    prompt: str
    text: str
    tokens: tuple[int, ...]
    valid: bool | None
    status: str
    message: str
    logprob: float | None
    counters: dict[str, int]
    erased: tuple[str, ...] | None = None
    events: tuple[Event, ...] | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, object]:
        """For JSON; without the events, of which there may be thousands."""
        return {name: value for name, value in asdict(self).items() if name != "events"}


def decode_text(
    model: LanguageModel | str | Path,
    prompts: str | Sequence[str],
    *,
    algorithm: str | Decoder = "vgb",
    grammar: str | Path | None = None,
    regex: str | None = None,
    json_schema: str | Path | dict[str, object] | None = None,
    whole: bool = False,
    verifier: Verifier | Callable[[str], float] | None = None,
    error: float = 0.0,
    max_new: int = 64,
    budget: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    trace: bool = False,
    progress: bool = False,
    options: Mapping[str, object] | None = None,
) -> list[Decoded]:
    """Continue prompts with a causal language model so that the text obeys a grammar.

    >>> decode_text("my-model/", ["Describe Ada: "], json_schema={"type": "object"}, algorithm="vgb", max_new=80)

    model        a folder written by save_pretrained, or what `load_language_model` returned
    algorithm    a decoder's registered name with `options` for its parameters, or a decoder
    grammar      Lark text, or a Path to it; or `regex`; or `json_schema` (text, Path or dictionary)
    whole        the language describes prompt and answer together; otherwise the answer alone
    verifier     one's own instead of a grammar: a function of the answer's text so far, which may be unfinished, to a
                 number (at least ½: go on), or a `Verifier`, which sees the tokens of prompt and answer. A language
                 given as well then only judges the result
    error        the grammar's verdicts on prefixes are flipped with this probability (complete texts are judged truly)
    budget       largest number of queries to the model per prompt (default: 4·max_new² + 100, at most 20 000)
    trace        keep what was erased
    progress     tell on the standard error how far it has come, if it takes longer than two seconds
    """
    number("error", error, low=0.0, high=1.0)
    integer("max_new", max_new, low=1)
    budget = min(4 * max_new**2 + 100, 20_000) if budget is None else budget
    integer("budget", budget, low=1, hint="it is the number of queries to the model per prompt")
    texts = [prompts] if isinstance(prompts, str) else list(prompts)
    if not texts:
        raise BadInput("there is no prompt: give at least one")
    decoder = _decoder(algorithm, options or {}, error)
    language = None
    if any(source is not None for source in (grammar, regex, json_schema)):
        language = compile_grammar(lark=grammar, regex=regex, json_schema=json_schema)
    if getattr(decoder, "keep_prompt", None) is not None:
        raise BadInput("keep_prompt is for tokens: where text is decoded, the prompt is not cut into")
    if decoder.needs_verifier and language is None and verifier is None:
        raise BadInput(f"{type(decoder).__name__} asks a verifier: give a grammar, a regex or a JSON schema")
    loaded = model if isinstance(model, LanguageModel) else load_language_model(model, device=device)
    starts = [loaded.encode(text) for text in texts]
    judge = _judge(language, loaded, texts, starts, whole)
    own = verifier
    if own is not None and not isinstance(own, Verifier):
        own = TextVerifier(own, loaded.decode, [len(start) for start in starts])
    guide: Verifier | None = own or judge
    if judge is not None and own is None and error > 0:
        guide = NoisyVerifier(judge, error, seed=seed, prior=0.9 if decoder_reads_values(decoder) else None)
    bar = ProgressBar("decoding", len(texts), unit="prompts", show=progress)
    done = decoder.generate(
        loaded.generator,
        starts,
        max_new=max_new,
        verifier=guide,
        eos=loaded.eos,
        rng=rng(seed),
        budget=budget,
        trace=trace,
        progress=bar.update,
    )
    bar.close()
    inside = _inside(done, judge, own)
    return [_result(row, text, done, loaded, inside[row], max_new, budget) for row, text in enumerate(texts)]


def decoder_reads_values(decoder: Decoder) -> bool:
    """Whether a verifier's numbers are weights for this decoder, and not only compared with a threshold."""
    return isinstance(decoder, VGB)


def _decoder(algorithm: str | Decoder, options: Mapping[str, object], error: float) -> Decoder:
    if isinstance(algorithm, Decoder):
        return algorithm
    name = ALIASES.get(algorithm, algorithm)
    if name not in names("decoders"):
        hint = nearest(algorithm, [*names("decoders"), *ALIASES]) or f"there are {', '.join(names('decoders'))}"
        raise BadInput(f"no algorithm called {algorithm!r}: {hint}")
    made = get("decoders", name)
    settings = dict(options)
    if issubclass(made, VGB):
        # Exact verdicts are 0 or 1: on the model itself the walk would drift back to the root (see VGB). Verdicts that
        # err must not close a branch for good, nor may their errors be read as values of nodes.
        settings.setdefault("base", "constrained" if error == 0 else "model")
        settings.setdefault("values", "node" if error == 0 else "path")
    known = [field.name for field in fields(made)]
    for option in settings:
        if option not in known:
            raise BadInput(f"{name} has no option {option!r}: {nearest(option, known) or 'it has ' + ', '.join(known)}")
    return made(**settings)


def _judge(
    language: str | None, model: LanguageModel, texts: Sequence[str], starts: list[list[int]], whole: bool
) -> GrammarVerifier | None:
    """The exact verifier; with `whole`, prompts that leave the language are refused."""
    if language is None:
        return None
    judge = GrammarVerifier(language, model, [len(start) for start in starts], texts if whole else None)
    for text, tokens in zip(texts, judge.before):
        read = judge.reads(0, tokens)
        if read < len(tokens):
            good = judge.reader.decode_str(tokens[:read])
            place = f"goes on like this after {good!r}" if good else "begins like this"
            raise BadInput(f"the prompt {text!r} is outside the language: no text of the language {place}")
    return judge


def _inside(done: Generations, judge: GrammarVerifier | None, own: Verifier | None) -> list[bool] | list[None]:
    """Whether each text is in the language or, without one, good in the eyes of one's own verifier."""
    if judge is not None:
        return [judge.contains(row, done.string(row)[start:]) for row, start in enumerate(judge.starts)]
    if own is not None:
        rows = torch.arange(len(done), device=done.tokens.device)
        return (own.outcome(done.tokens, done.lengths, rows) > 0.5).tolist()
    return [None] * len(done)


def _result(
    row: int,
    prompt: str,
    done: Generations,
    model: LanguageModel,
    inside: bool | None,
    max_new: int,
    budget: int,
) -> Decoded:
    tokens, logprob = done.generated(row), float(done.logprob[row])
    status = Status(int(done.status[row]))
    valid = inside if status == Status.DONE or inside is None else False
    name, message = _words(status, valid, max_new, budget)
    return Decoded(
        prompt=prompt,
        text=model.decode(tokens),
        tokens=tuple(tokens),
        valid=valid,
        status=name,
        message=message,
        logprob=None if math.isnan(logprob) else logprob,
        counters={name: int(values[row]) for name, values in done.counters.items()},
        erased=None if done.events is None else _erased(done.events[row], model),
        events=None if done.events is None else tuple(done.events[row]),
    )


def _words(status: Status, valid: bool | None, max_new: int, budget: int) -> tuple[str, str]:
    if status == Status.BUDGET:
        return "out of budget", f"the budget of {budget} queries ran out before a complete text was found: raise it"
    if status == Status.FAILED:
        return "gave up", f"no complete text of the language was found within {max_new} tokens: raise max_new"
    if valid is False:
        return "complete", "the text is not in the language: this algorithm does not promise it, vgb does"
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
