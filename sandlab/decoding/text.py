"""Decoding text with a verifier on a real language model: one call, one result per sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sandlab.decoding._session.session import Generations, Session
from sandlab.decoding._session.streams import hashed_prefix, mix
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.generators.hugging_face import Chat, LanguageModel, load_language_model
from sandlab.decoding.results import Decoded, Frame
from sandlab.decoding.verifiers.base import NoisyVerifier, TextVerifier, Verifier
from sandlab.decoding.verifiers.grammars import GrammarVerifier
from sandlab.decoding.verifiers.healing import HeadVerifier, heal_prompt
from sandlab.decoding.verifiers.schemas import TextLanguage, compile_grammar
from sandlab.errors import BadInput, choice, integer, nearest, number
from sandlab.progress import ProgressBar
from sandlab.registry import get, names

__all__ = ["decode_text"]

ALIASES = {
    "backtrack": "backtracking",
    "tokenwise": "tokenwise-rejection",
    "constrained": "value-guided",
    "masking": "value-guided",
}
_PROMPTS = "prompts are texts or chats, lists of messages {'role': …, 'content': …}"
LARGE_VOCABULARY = 512  # above it, a verifier that reads the network is asked about sampled children only


def decode_text(
    model: LanguageModel | str | Path | Any,
    prompts: str | Chat | Sequence[str] | Sequence[Chat],
    *,
    tokenizer: object = None,
    algorithm: str | Decoder | None = None,
    law: str = "local",
    grammar: str | Path | None = None,
    regex: str | None = None,
    json_schema: object = None,
    choices: Sequence[str] | type[Enum] | None = None,
    whole: bool = False,
    heal: bool = False,
    fast_forward: bool = True,
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
    listener: Callable[[int, str], None] | None = None,
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
    grammar      Lark text, or a Path to it; or `regex`; or `json_schema` (text, Path, dictionary, True, pydantic
                 model, type or function); or `choices`, a list of texts or an enumeration
    whole        the language describes prompt and answer together; otherwise the answer alone
    heal         a prompt's last tokens, where they are the beginning of a longer token, are written anew: the model
                 goes on from the tokens before them, but only with texts that begin with their characters. `law` then
                 speaks about texts with these characters in front, after the shorter prompt. Chats stay as they are
    fast_forward masking writes a stretch of text about which the language leaves no choice in the tokenizer's own
                 tokens, without asking the model. False: in any tokens, drawn from the model like all others, which is
                 what the other algorithms do
    verifier     one's own instead of a grammar: a function of the answer's text so far, which may be unfinished, to a
                 number (at least ½: go on), or a `Verifier`, which sees the tokens of prompt and answer. A language
                 given as well then only judges the result
    error        the grammar's verdicts on prefixes are flipped with this probability (complete texts are judged truly)
    n            samples of each prompt, one after the other in the list that is returned
    stop         texts that end the answer, and are cut off it
    budget       largest number of queries to the model per sample (default: 4·max_new² + 100, at most 20 000)
    trace        keep what was erased
    progress     tell on the standard error how far it has come, if it takes longer than two seconds
    listener     called with the number of a sample and its text so far whenever it has changed
    """
    number("error", error, low=0.0, high=1.0)
    integer("max_new", max_new, low=1)
    integer("n", n, low=1)
    choice("law", law, ("local", "given"))
    budget = min(4 * max_new**2 + 100, 20_000) if budget is None else budget
    integer("budget", budget, low=1, hint="it is the number of queries to the model per prompt")
    stops = _stops(stop)
    language = None
    if any(source is not None for source in (grammar, regex, json_schema, choices)):
        language = compile_grammar(lark=grammar, regex=regex, json_schema=json_schema, choices=choices)
    texts = [text for text in _prompts(prompts) for _ in range(n)]
    if heal and (verifier is not None or error > 0):
        raise BadInput("heal is for languages and for plain sampling: leave out verifier and error")
    name = algorithm if algorithm is not None else _default(language, verifier, error, law, heal)
    _check_name(name, options or {})
    loaded = _loaded(model, tokenizer, device)
    decoder = _decoder(name, options or {}, error, language, verifier, loaded)
    _check_decoder(decoder, heal, stops, guided=heal or language is not None or verifier is not None)
    whole_starts = [loaded.encode(text) for text in texts]
    starts, heads = _healed(loaded, texts, whole_starts, heal)
    forced = fast_forward and language is not None and verifier is None and isinstance(decoder, ValueGuided)
    judge = _judge(language, loaded, texts, starts, heads, whole, forced)
    told = _law(decoder, forced, graded=verifier is not None)
    frame = Frame(loaded, told, language, whole, stops, heads, max_new, budget)
    guide, own = _guide(judge, verifier, decoder, frame, starts, error, seed)
    bar = ProgressBar("decoding", len(texts), unit="prompts", show=progress)
    done = decoder.generate(
        loaded.generator,
        starts,
        max_new=max_new,
        verifier=guide,
        eos=loaded.ends,
        keys=_keys(whole_starts, seed, loaded.generator.device),
        budget=budget,
        trace=trace,
        progress=bar.update,
        stopped=_stopper(frame) if stops else None,
        listener=None if listener is None else _teller(frame, listener),
    )
    bar.close()
    inside = _inside(done, judge, own, frame)
    return [frame.result(row, text, row % n, done, inside[row]) for row, text in enumerate(texts)]


def decoder_names() -> list[str]:
    """The decoders that write from left to right with any generator."""
    return [name for name in names("decoders") if issubclass(get("decoders", name), Decoder)]


def _prompts(given: Any) -> list[str | Chat]:
    """The prompts, one by one: a text or a chat alone is one prompt."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, (bytes, Mapping)):
        raise BadInput(f"{_PROMPTS}, got {given!r}")
    listed = list(given)
    if not listed:
        raise BadInput("there is no prompt: give at least one")
    prompts = [listed] if isinstance(listed[0], Mapping) else listed
    for prompt in prompts:
        if not isinstance(prompt, str) and not _is_chat(prompt):
            raise BadInput(f"{_PROMPTS}, got {prompt!r}")
    return prompts


def _is_chat(prompt: object) -> bool:
    if isinstance(prompt, (bytes, Mapping)) or not isinstance(prompt, Sequence):
        return False
    return bool(prompt) and all(isinstance(message, Mapping) for message in prompt)


def _stops(given: str | Sequence[str]) -> list[str]:
    stops = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for stop in stops:
        if not isinstance(stop, str) or not stop:
            raise BadInput(f"stop strings are texts that are not empty, got {stop!r}")
    return stops


def _loaded(model: object, tokenizer: object, device: str) -> LanguageModel:
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


def _default(language: TextLanguage | None, verifier: object, error: float, law: str, heal: bool) -> str:
    if isinstance(verifier, Verifier) or (language is not None and verifier is None and error > 0):
        return "vgb"
    if verifier is not None:
        return "backtracking"
    if language is None and not heal:
        return "temperature"
    return "value-guided" if law == "local" else "adaptive-rejection"


def _law(decoder: Decoder, forced: bool, graded: bool) -> str:
    """Which law comes out, in words; numbers between 0 and 1 weigh tokens, where verdicts only allow them."""
    if forced:
        return f"{decoder.law}; forced text in the tokenizer's own tokens"
    if graded and isinstance(decoder, ValueGuided):
        return "the model, weighted by the verifier's numbers and renormalised at each step"
    return decoder.law


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


def _check_decoder(decoder: Decoder, heal: bool, stops: Sequence[str], *, guided: bool) -> None:
    name = type(decoder).__name__
    if decoder.needs_verifier and not guided:
        raise BadInput(f"{name} asks a verifier: give a grammar, a regex or a JSON schema")
    if heal and (not decoder.needs_verifier or decoder.law == Decoder.law):
        raise BadInput(
            f"{name} keeps no promise about a prompt's end: heal with masking (which takes temperature, top_p, …), "
            "rejection or a walk"
        )
    if stops and isinstance(decoder, VGB) and decoder.children == "all":
        raise BadInput(
            "a walk over all children does not see stop strings: use children='sampled' or another algorithm"
        )


def _healed(
    model: LanguageModel, texts: Sequence[str | Chat], starts: list[list[int]], heal: bool
) -> tuple[list[list[int]], list[str]]:
    """The tokens that the model continues, and the end of each prompt that is written anew."""
    if not heal:
        return starts, [""] * len(starts)
    pairs = [heal_prompt(model, text) if isinstance(text, str) else (start, "") for text, start in zip(texts, starts)]
    return [start for start, _ in pairs], [head for _, head in pairs]


def _decoder(
    algorithm: str | Decoder,
    options: Mapping[str, object],
    error: float,
    language: TextLanguage | None,
    verifier: object,
    model: LanguageModel,
) -> Decoder:
    """The decoder with the settings that suit the verifier, where none are given."""
    if isinstance(algorithm, Decoder):
        return algorithm
    made, settings = get("decoders", ALIASES.get(algorithm, algorithm)), dict(options)
    exact = verifier is None and error == 0
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
    heads: list[str],
    whole: bool,
    forced: bool,
) -> GrammarVerifier | None:
    """The exact verifier; with `whole`, prompts that leave the language are refused."""
    if language is None:
        return None
    places = [len(start) for start in starts]
    if not whole:
        return GrammarVerifier(language, model, places, heads=heads, forced=forced)
    plain = [text for text in texts if isinstance(text, str)]
    if len(plain) < len(texts):
        raise BadInput("whole=True is for prompts that are texts: a chat is no part of the language")
    before = [text.removesuffix(head) for text, head in zip(plain, heads)]
    judge = GrammarVerifier(language, model, places, before, forced=forced)
    for text in dict.fromkeys(plain):
        tokens = judge.reader.tokenize_str(text)
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
    frame: Frame,
    starts: list[list[int]],
    error: float,
    seed: int,
) -> tuple[Verifier | None, Verifier | None]:
    """The verifier that is asked while decoding, and one's own if there is one."""
    own, places = verifier, [len(start) for start in starts]
    if own is not None and not isinstance(own, Verifier):
        own = TextVerifier(own, frame.model.decode, places)
    if own is None and judge is not None and error > 0:
        # A walk reads the numbers as weights, the others compare them with a threshold.
        return NoisyVerifier(judge, error, seed=seed, prior=0.9 if isinstance(decoder, VGB) else None), None
    if decoder.needs_verifier and own is None and (judge is None or (frame.whole and any(frame.heads))):
        return HeadVerifier(frame.model, places, frame.heads, judge), None
    return own or judge, own


def _stopper(frame: Frame) -> Callable[[Session, Tensor], Tensor]:
    """Whether a stop string stands at the end of what each row has written: its last tokens are enough to see."""
    reach = 4 * max(map(len, frame.stops)) + 4

    def stopped(session: Session, rows: Tensor) -> Tensor:
        ends = []
        for row in rows.tolist():
            begin, cut = int(session.starts[row]), int(session.lengths[row])
            # A healed end of the prompt stands in the first tokens, and is no part of the answer.
            far = begin if frame.heads[row] else max(begin, cut - reach)
            tokens = session.tokens[row, far:cut].tolist()
            text = frame.written(row, tokens)
            ends.append(any(stop in text for stop in frame.stops))
        return torch.tensor(ends, dtype=torch.bool, device=rows.device)

    return stopped


def _teller(frame: Frame, listener: Callable[[int, str], None]) -> Callable[[Session, Tensor], None]:
    def tell(session: Session, rows: Tensor) -> None:
        for row in rows.tolist():
            tokens = session.tokens[row, int(session.starts[row]) : int(session.lengths[row])].tolist()
            # Half a character is decoded as U+FFFD: it is shown once it is whole.
            listener(row, frame.written(row, tokens).rstrip("\ufffd"))

    return tell


def _inside(
    done: Generations, judge: GrammarVerifier | None, own: Verifier | None, frame: Frame
) -> list[bool] | list[None]:
    """Whether each text is in the language or, without one, good in the eyes of one's own verifier."""
    if judge is not None:
        return [
            judge.contains(row, frame.kept(row, done.string(row)[start:])) for row, start in enumerate(judge.starts)
        ]
    if own is not None:
        rows = torch.arange(len(done), device=done.tokens.device)
        return (own.outcome(done.tokens, done.lengths, rows) > 0.5).tolist()
    return [None] * len(done)
