"""A small local Hugging Face model through everything that people do with one."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import inspect
import json
import re
from typing import ClassVar, Literal

import pytest
import torch
from scipy.stats import chisquare

import sandlab as sl
from sandlab.decoding.decoders.adaptive import AdaptiveRejection
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.base import penalise, warp_logits
from sandlab.decoding.decoders.sampling import Temperature
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.generators.hugging_face import LanguageModel, load_language_model
from sandlab.decoding.generators.in_generate import generation_strategy, logits_processor
from sandlab.decoding.streaming import stream_text
from sandlab.decoding.text import decode_text
from sandlab.decoding.verifiers.base import FunctionVerifier
from sandlab.decoding.verifiers.schemas import compile_grammar

pydantic = pytest.importorskip("pydantic")


class Person(pydantic.BaseModel):
    model_config: ClassVar[dict[str, str]] = {"extra": "forbid"}
    name: Literal["Ada", "Alan", "Emmy", "Kurt"]
    age: int = pydantic.Field(ge=0, le=99)
    tags: list[Literal["x", "yy", "z"]] = pydantic.Field(max_length=3)


def people(count: int) -> list[str]:
    return [f"Person {number}: " for number in range(count)]


@pytest.fixture(scope="module")
def loaded(json_folder) -> LanguageModel:
    return load_language_model(json_folder)


@pytest.fixture
def parts(json_folder):
    """The model and its tokenizer as transformers loads them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(json_folder).eval(), AutoTokenizer.from_pretrained(json_folder)


def test_a_model_in_memory_decodes_a_pydantic_model(parts):
    model, tokenizer = parts
    results = decode_text(model, people(6), tokenizer=tokenizer, json_schema=Person, max_new=40)
    assert all(result.finish == "stop" and isinstance(result.value, Person) for result in results)
    with pytest.raises(sl.BadInput, match="a model in memory needs its tokenizer"):
        decode_text(model, "x")


class Even(pydantic.BaseModel):
    number: int = pydantic.Field(ge=0, le=9)

    @pydantic.field_validator("number")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


def test_a_model_s_own_validators_and_a_prompt_within_the_language_are_kept(loaded):
    results = decode_text(loaded, people(12), json_schema=Even, max_new=20)
    assert all(result.valid and result.value.number % 2 == 0 for result in results)
    (whole,) = decode_text(loaded, '{"number":', json_schema=Even, whole=True, max_new=8)
    assert whole.value.number % 2 == 0 and not whole.text.startswith("{")


def test_function_signatures_and_choices_are_languages(loaded):
    def move(piece: Literal["king", "rook"], steps: int, far: bool = False) -> None: ...

    (call,) = decode_text(loaded, "x", json_schema=move, max_new=60, seed=1)
    inspect.signature(move).bind(**call.value)
    assert call.value["piece"] in ("king", "rook")
    answers = decode_text(loaded, people(8), choices=["yes", "no", "no.", "a|b"], max_new=8, n=2)
    assert {answer.value for answer in answers} <= {"yes", "no", "no.", "a|b"}
    with pytest.raises(sl.BadInput, match="choices are a list of texts that are not empty"):
        decode_text(loaded, "x", choices=[])


@dataclasses.dataclass
class Point:
    x: Literal[0, 1]
    y: bool


class Answer(enum.Enum):
    yes = "yes"
    no = "no"


@pytest.mark.parametrize("kind", [Point, list[Point], Literal["a", "b"], Point | None, Answer, bool])
def test_types_that_pydantic_reads_are_languages_and_their_values_come_back(loaded, kind):
    adapter = pydantic.TypeAdapter(kind)
    results = decode_text(loaded, people(4), json_schema=kind, max_new=60)
    assert all(result.valid and result.value == adapter.validate_json(result.text) for result in results)


def test_an_enumeration_of_texts_is_a_list_of_choices(loaded):
    results = decode_text(loaded, people(4), choices=Answer, max_new=8)
    assert all(result.value is Answer(result.text) for result in results)


class Named(pydantic.BaseModel):
    name: Literal["Ada", "Alan", "Emmy", "Kurt"]


class Open(Named):
    model_config: ClassVar[dict[str, str]] = {"extra": "allow"}


def test_a_pydantic_model_is_written_with_its_own_fields_unless_it_allows_others(loaded):
    closed, wide = (
        [set(json.loads(each.text)) for each in decode_text(loaded, people(8), json_schema=kind, max_new=40)]
        for kind in (Named, Open)
    )
    assert all(names == {"name"} for names in closed)
    assert any(names > {"name"} for names in wide)


def test_a_type_without_a_schema_is_refused_in_one_sentence(loaded):
    with pytest.raises(sl.BadInput, match=r"^Language has no JSON schema: [^\n]*$"):
        decode_text(loaded, "x", json_schema=type("Language", (), {}))


def test_a_chat_goes_by_the_tokenizer_s_template(parts):
    model, tokenizer = parts
    chat = [{"role": "user", "content": "Person 3: "}]
    with pytest.raises(sl.BadInput, match="has no chat template"):
        decode_text(model, chat, tokenizer=tokenizer)
    tokenizer.chat_template = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<bot>"
    (answer,) = decode_text(model, chat, tokenizer=tokenizer, json_schema=Person, max_new=40)
    (plain,) = decode_text(model, "<user>Person 3: <bot>", tokenizer=tokenizer, json_schema=Person, max_new=40)
    assert answer.valid and answer.text == plain.text and answer.prompt == chat
    assert len(decode_text(model, [chat, chat], tokenizer=tokenizer, max_new=4)) == 2


def test_every_end_token_of_the_generation_config_ends_a_text(parts):
    model, tokenizer = parts
    (before,) = decode_text(model, "Person 1: ", tokenizer=tokenizer, json_schema=Person, max_new=40)
    second = before.tokens[-3]
    model.generation_config.eos_token_id = [1, second]
    results = decode_text(model, people(20), tokenizer=tokenizer, algorithm="temperature", max_new=40)
    lasts = {result.tokens[-1] for result in results if result.finish == "stop"}
    assert second in lasts and lasts <= {1, second}
    assert all(second not in result.tokens[:-1] for result in results)


def test_a_stop_string_ends_the_text_and_is_cut_off(loaded):
    results = decode_text(loaded, people(20), algorithm="temperature", stop=["age", "never"], max_new=40)
    stopped = [result for result in results if result.finish == "stop" and result.text.endswith('"')]
    assert len(stopped) > 15
    assert all("age" not in result.text for result in results)
    (guided,) = decode_text(loaded, "Person 1: ", json_schema=Person, stop="age", max_new=40)
    assert guided.finish == "stop" and guided.valid is False and guided.text.endswith(',"')
    with pytest.raises(sl.BadInput, match="does not see stop strings"):
        decode_text(loaded, "x", algorithm="vgb", json_schema=Person, stop="age")


def test_the_finish_reason_tells_stop_from_length_from_giving_up(loaded):
    (cut,) = decode_text(loaded, "Person 1: ", algorithm="temperature", max_new=3)
    assert (cut.finish, cut.status) == ("length", "cut off") and "raise max_new" in cut.message
    (whole,) = decode_text(loaded, "Person 1: ", json_schema=Person, max_new=40)
    assert (whole.finish, whole.status) == ("stop", "complete")
    (poor,) = decode_text(loaded, "Person 1: ", json_schema=Person, max_new=3)
    assert (poor.finish, poor.status) == ("gave up", "gave up")


def test_samples_differ_and_a_text_does_not_depend_on_its_company(loaded):
    settings = {"json_schema": Person, "max_new": 40}
    four = decode_text(loaded, "Person 7: ", n=4, **settings)
    assert [each.sample for each in four] == [0, 1, 2, 3] and len({each.text for each in four}) > 1
    crowd = decode_text(loaded, ["Person 5: ", "Person 7: ", "Person 6 and more: ", "Person 7: "], n=2, **settings)
    assert [each.text for each in crowd if each.prompt == "Person 7: "] == [each.text for each in four]
    (alone,) = decode_text(loaded, "Person 7: ", **settings)
    assert alone.text == four[0].text
    for algorithm in ("backtracking", "adaptive-rejection", "temperature", "vgb"):
        kept = {"algorithm": algorithm, **settings}
        together = decode_text(loaded, people(3), **kept)
        assert [decode_text(loaded, each, **kept)[0].text for each in people(3)] == [each.text for each in together]


@pytest.mark.parametrize("algorithm", ["value-guided", "backtracking", "adaptive-rejection"])
def test_pieces_of_a_stream_make_up_the_text(loaded, algorithm):
    settings = {"json_schema": Person, "max_new": 40, "algorithm": algorithm, "n": 2}
    texts, results = {}, {}
    for piece in stream_text(loaded, people(3), **settings):
        before = texts.get(piece.row, "")
        texts[piece.row] = before[: len(before) - piece.erased] + piece.text
        if piece.result is not None:
            results[piece.row] = piece.result
    whole = decode_text(loaded, people(3), **settings)
    assert [texts[row] for row in range(6)] == [each.text for each in whole]
    assert [results[row].text for row in range(6)] == [each.text for each in whole]
    with pytest.raises(sl.BadInput, match="no algorithm called"):
        list(stream_text(loaded, "x", algorithm="nothing"))


def test_forced_tokens_cost_no_query_and_their_log_probability_is_known(loaded):
    for result in decode_text(loaded, people(6), json_schema=Person, max_new=40):
        assert result.counters["forced"] + result.counters["oracle_calls"] == len(result.tokens)
        assert result.counters["forced"] > 0
        whole = torch.tensor([loaded.encode(result.prompt) + list(result.tokens)])
        law = loaded.generator.model(input_ids=whole).logits[0].log_softmax(-1)
        begin = whole.shape[1] - len(result.tokens)
        true = law[begin - 1 : -1].gather(1, whole[0, begin:].unsqueeze(1)).sum()
        assert result.logprob == pytest.approx(float(true), abs=1e-3)


def test_forced_text_is_written_in_the_tokenizer_s_own_tokens_and_otherwise_in_any(parts):
    """A model that knows nothing of JSON: asked, it writes a forced text in all sorts of tokens."""
    model, tokenizer = parts
    with torch.no_grad():
        model.lm_head.weight.normal_(std=0.02, generator=sl.rng(0))
    loaded = LanguageModel.of(model, tokenizer)
    settings = {"regex": r'\{"name":"Ada","age":[0-9]\}', "max_new": 30}
    own = tokenizer('{"name":"Ada","age":').input_ids[:-1]  # the last may go on into the number
    fast = decode_text(loaded, people(6), **settings)
    slow = decode_text(loaded, people(6), fast_forward=False, **settings)
    assert all(list(each.tokens[: len(own)]) == own for each in fast)
    assert all(each.valid and list(each.tokens[: len(own)]) != own for each in slow)
    assert all("own tokens" in each.law for each in fast) and not any("own tokens" in each.law for each in slow)
    assert sum(each.counters["forced"] for each in slow) < sum(each.counters["forced"] for each in fast)


# -- the library's own samplers ----------------------------------------------------------------------------------------


def test_the_sharpened_law_is_that_of_transformers():
    from transformers.generation.logits_process import (
        MinPLogitsWarper,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    logits = torch.randn(6, 50, generator=sl.rng(0), dtype=torch.float64) * 3
    tokens = torch.randint(0, 50, (6, 9), generator=sl.rng(1))
    theirs = RepetitionPenaltyLogitsProcessor(1.3)(tokens, logits.clone())
    ours = penalise(logits, tokens, torch.full((6,), 9), 1.3)
    assert torch.allclose(ours, theirs)
    for warper in (TemperatureLogitsWarper(0.7), TopKLogitsWarper(20), TopPLogitsWarper(0.9), MinPLogitsWarper(0.05)):
        theirs = warper(tokens, theirs)
    assert torch.allclose(warp_logits(ours, 0.7, 0.9, 20, 0.05).exp(), theirs.softmax(-1), atol=1e-12)


def test_a_repetition_penalty_acts_on_the_network_s_own_logits(loaded):
    decoder = Temperature(temperature=0.0, repetition_penalty=1.5)
    tokens = loaded.encode("Person 1: ")
    ours = decoder.generate(loaded.generator, [tokens], max_new=12, eos=loaded.ends, rng=sl.rng(0)).generated(0)
    theirs = loaded.generator.model.generate(
        torch.tensor([tokens]),
        attention_mask=torch.ones(1, len(tokens), dtype=torch.long),
        do_sample=False,
        repetition_penalty=1.5,
        max_new_tokens=12,
    )[0, len(tokens) :].tolist()
    assert ours == theirs


# -- inside model.generate ---------------------------------------------------------------------------------------------


def generate(model, tokenizer, prompts, **options):
    tokenizer.padding_side = "left"
    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    out = model.generate(**inputs, max_new_tokens=40, **options)
    return [tokenizer.decode(row[inputs["input_ids"].shape[1] :], skip_special_tokens=True) for row in out]


@pytest.mark.parametrize("options", [{"do_sample": True}, {"do_sample": False}, {"num_beams": 3, "do_sample": False}])
def test_our_processor_keeps_generate_within_a_language(parts, options):
    model, tokenizer = parts
    torch.manual_seed(0)
    processor = logits_processor(model, tokenizer, compile_grammar(json_schema=Person))
    for text in generate(
        model, tokenizer, ["Person 7: ", "And then Person 12: "], logits_processor=[processor], **options
    ):
        assert Person.model_validate_json(text)


def test_one_processor_serves_one_call_after_the_other(parts):
    """Other prompts, more of them, one that goes on from the first: each call begins its own texts."""
    model, tokenizer = parts
    torch.manual_seed(0)
    processor = logits_processor(model, tokenizer, compile_grammar(json_schema=Person))
    calls = [["Person 7: "], ["Person 7: "], ["Person 7: Ada. Person 8: "], people(3), ["And then Person 12: "]]
    for prompts in calls:
        texts = generate(model, tokenizer, prompts, do_sample=True, logits_processor=[processor])
        assert len(texts) == len(prompts) and all(map(Person.model_validate_json, texts))


def test_an_assistant_model_changes_nothing_about_the_language(parts, random_folder):
    from transformers import AutoModelForCausalLM

    model, tokenizer = parts
    assistant = AutoModelForCausalLM.from_pretrained(random_folder).eval()
    language = compile_grammar(json_schema=Person)
    plain, assisted = (
        generate(
            model, tokenizer, ["Person 7: "], logits_processor=[logits_processor(model, tokenizer, language)], **more
        )
        for more in ({"do_sample": False}, {"do_sample": False, "assistant_model": assistant})
    )
    assert plain == assisted and Person.model_validate_json(plain[0])


def test_where_another_processor_forbids_every_right_token_the_text_ends(parts):
    """A shortest length beyond the longest text of the language: nothing is right, and nothing crashes."""
    model, tokenizer = parts
    processor = logits_processor(model, tokenizer, compile_grammar(choices=["x", "yy"]))
    options = {"do_sample": True, "min_new_tokens": 20, "logits_processor": [processor]}
    assert generate(model, tokenizer, ["tags "], **options)[0] in ("x", "yy")


def test_generate_with_our_processor_has_the_law_of_masking(parts):
    """Frequencies of both against the exact product of renormalised tokens, summed over the ways to write a text."""
    model, tokenizer = parts
    texts = ["x", "y", "yy", "z1", "z2"]
    exact = local_law(LanguageModel.of(model, tokenizer), "tags ", texts)
    torch.manual_seed(0)
    processor = logits_processor(model, tokenizer, compile_grammar(regex="x|yy?|z[12]"))
    theirs = generate(model, tokenizer, ["tags "] * 2000, do_sample=True, logits_processor=[processor])
    ours = decode_text(model, "tags ", tokenizer=tokenizer, regex="x|yy?|z[12]", n=2000, max_new=6)
    for some in (theirs, [each.text for each in ours]):
        assert set(some) <= set(texts)
        assert chisquare([some.count(text) for text in texts], [2000 * exact[text] for text in texts]).pvalue > 1e-3


def local_law(model: LanguageModel, prompt: str, texts: list[str]) -> dict[str, float]:
    """P(text) where each token is drawn from the model among those that lead to a text or end one."""
    found, pieces = (
        dict.fromkeys(texts, 0.0),
        [model.tokenizer.decode([token]) for token in range(model.generator.vocab)],
    )

    def walk(tokens: list[int], written: str, weight: float) -> None:
        law = model.generator.model(torch.tensor([tokens])).logits[0, -1].double().softmax(-1)
        on = [
            token
            for token, piece in enumerate(pieces)
            if token not in (0, model.eos) and piece and any(text.startswith(written + piece) for text in texts)
        ]
        total = float(law[on].sum()) + (float(law[model.eos]) if written in found else 0.0)
        if written in found:
            found[written] += weight * float(law[model.eos]) / total
        for token in on:
            walk([*tokens, token], written + pieces[token], weight * float(law[token]) / total)

    with torch.no_grad():
        walk(model.encode(prompt), "", 1.0)
    assert sum(found.values()) == pytest.approx(1)
    return found


@pytest.mark.parametrize(
    "decoder",
    [Backtracking(quota=20, stride=3), AdaptiveRejection(), ValueGuided(), VGB(base="constrained", remember=8)],
)
def test_our_decoders_are_strategies_of_generate(parts, decoder):
    model, tokenizer = parts
    language = compile_grammar(json_schema=Person)
    strategy = generation_strategy(decoder, tokenizer, language, seed=1)
    texts = generate(model, tokenizer, ["Person 7: ", "And then Person 12: "], custom_generate=strategy)
    if not isinstance(decoder, Backtracking):
        assert all(Person.model_validate_json(text) for text in texts)
    assert len(texts) == 2
    inputs = tokenizer("Person 7: ", return_tensors="pt")["input_ids"]
    given = model.generate(inputs, max_new_tokens=40, custom_generate=strategy, return_dict_in_generate=True)
    assert torch.equal(given.sequences[:, : inputs.shape[1]], inputs)


def test_a_verifier_of_one_s_own_guides_generate(parts):
    model, tokenizer = parts
    kurt = tokenizer("Kurt").input_ids[-1]
    never = FunctionVerifier(lambda tokens, lengths: (tokens.gather(1, (lengths - 1).unsqueeze(1)) != kurt).squeeze(1))
    torch.manual_seed(0)
    processor = logits_processor(model, tokenizer, lambda loaded, starts: never)
    texts = generate(model, tokenizer, people(20), do_sample=True, logits_processor=[processor])
    assert not any("Kurt" in text for text in texts)


# -- awkward schemas ---------------------------------------------------------------------------------------------------

AWKWARD = {
    "true": True,
    "oneOf": {"oneOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"type": "boolean"}]},
    "not": {"type": "integer", "minimum": 0, "maximum": 20, "not": {"multipleOf": 2}},
    "uniqueItems": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "maxItems": 3},
    "if": {"type": "integer", "minimum": 0, "maximum": 20, "if": {"minimum": 10}, "then": {"multipleOf": 5}},
    "recursive": {
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 1}},
    },
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "date-time"},
    "small letters": {"type": "string", "pattern": "^200[01]-01-0[1-9]t0[0-9]:00:00z$", "format": "date-time"},
    "listed names": {
        "type": "object",
        "propertyNames": {"$ref": "#/$defs/known"},
        "additionalProperties": {"enum": [1, 2]},
        "$defs": {"known": {"enum": ["a", "b"]}},
    },
    "unevaluated": {"type": "object", "properties": {"propertyNames": {"enum": [1]}}, "unevaluatedProperties": False},
    "dependent": {
        "type": "object",
        "properties": {"a": {"enum": [1]}, "b": {"enum": [2]}},
        "additionalProperties": False,
        "dependentRequired": {"a": ["b"]},
    },
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_schemas_decode_or_are_refused_in_one_sentence(loaded, name):
    jsonschema = pytest.importorskip("jsonschema")
    schema = AWKWARD[name]
    results = decode_text(loaded, people(8), json_schema=schema, max_new=60)
    for result in results:
        assert result.valid or (result.finish != "stop" and "\n" not in result.message), result
        if result.valid:
            jsonschema.validate(json.loads(result.text), schema)
            if name == "date":
                assert datetime.date.fromisoformat(json.loads(result.text))
    if name != "true":
        assert any(result.valid for result in results)


class Kind(enum.Enum):
    cat = "cat"
    dog = "dog"


class Record(pydantic.BaseModel):
    flags: dict[Kind, bool]
    word: pydantic.SecretStr = pydantic.Field(max_length=4)
    when: datetime.date
    pair: tuple[bool, Literal["x", "y"]]
    some: set[Literal[1, 2, 3]]
    inner: Even | None = None


def test_a_pydantic_model_of_many_kinds_is_read_back(loaded):
    results = decode_text(loaded, people(4), json_schema=Record, max_new=120)
    assert all(isinstance(result.value, Record) for result in results)
    assert all(set(result.value.flags) <= set(Kind) for result in results)


def test_properties_come_in_the_order_of_the_schema_and_without_blanks(loaded):
    schema = {"properties": {"b": {"enum": [1]}, "a": {"enum": [2]}}, "required": ["a", "b"], "type": "object"}
    (result,) = decode_text(loaded, "x", json_schema={**schema, "additionalProperties": False}, max_new=20)
    assert result.text == '{"b":1,"a":2}'


def test_what_only_complete_texts_show_is_said_where_none_is_found(loaded):
    (result,) = decode_text(loaded, "x", json_schema={"type": "boolean", "not": {"type": "boolean"}}, max_new=8)
    assert result.finish == "gave up" and result.message.endswith("is checked at the end of texts only")

    def by_position(first: int, /) -> None: ...

    with pytest.raises(sl.BadInput, match="by_position takes first: a schema needs arguments that are given by name"):
        decode_text(loaded, "x", json_schema=by_position)


def test_a_schema_that_nothing_satisfies_is_refused(loaded):
    with pytest.raises(sl.BadInput, match="false has no texts"):
        decode_text(loaded, "x", json_schema=False)
    with pytest.raises(sl.BadInput, match="got list"):
        decode_text(loaded, "x", json_schema=[1])


def test_the_two_laws_of_a_grammar_are_told_apart_and_both_are_true(loaded):
    """Numbers of tags: adaptive rejection has early abort's mean, and each says its law."""
    few = {"json_schema": Person, "max_new": 40}
    given = decode_text(loaded, "Person 7: ", n=300, law="given", **few)
    plain = decode_text(loaded, "Person 7: ", n=300, algorithm="rejection", seed=1, **few)
    assert {each.law for each in given} == {each.law for each in plain} == {"the model given the language"}
    means = [torch.tensor([len(each.value.tags) for each in some]).double() for some in (given, plain)]
    error = sum(float(mean.var()) / 300 for mean in means) ** 0.5
    assert abs(float(means[0].mean() - means[1].mean())) < 4 * error
    local = decode_text(loaded, "Person 7: ", **few)[0].law
    assert re.match("the model, renormalised", local)
