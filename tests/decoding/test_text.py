"""Decoding text on real Hugging Face models in local folders."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.decoding.generators.hugging_face import HuggingFaceGenerator, load_language_model
from sandlab.decoding.generators.neural import RecomputingGenerator
from sandlab.decoding.text import decode_text
from sandlab.decoding.verifiers.base import FunctionVerifier
from sandlab.decoding.verifiers.grammars import GrammarVerifier
from sandlab.decoding.verifiers.schemas import compile_grammar

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"enum": ["Ada", "Alan", "Emmy", "Kurt"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["x", "yy", "z"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


class Plain(torch.nn.Module):
    """Logits only, so that the plain generator can recompute everything from scratch."""

    def __init__(self, model) -> None:
        super().__init__()
        self.model = model
        self.config = type("Config", (), {"vocab": model.config.vocab_size, "outputs": None})()

    def forward(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits


def obeys(text: str) -> bool:
    """The schema checked by hand."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return False
    if not isinstance(value, dict) or set(value) != {"name", "age", "tags"}:
        return False
    tags = value["tags"]
    right_tags = isinstance(tags, list) and len(tags) <= 3 and all(tag in ("x", "yy", "z") for tag in tags)
    age = value["age"]
    return value["name"] in ("Ada", "Alan", "Emmy", "Kurt") and type(age) is int and 0 <= age <= 99 and right_tags


def people(count: int) -> list[str]:
    return [f"Person {number % 100}: " for number in range(count)]


def families():
    from transformers import (
        BloomConfig,
        BloomForCausalLM,
        GPT2Config,
        GPT2LMHeadModel,
        MistralConfig,
        MistralForCausalLM,
        Qwen2Config,
        Qwen2ForCausalLM,
    )

    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(0)
    return {
        "gpt2": GPT2LMHeadModel(
            GPT2Config(vocab_size=40, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=1)
        ),
        "qwen2": Qwen2ForCausalLM(Qwen2Config(vocab_size=40, num_key_value_heads=2, **small)),
        "sliding window": MistralForCausalLM(
            MistralConfig(vocab_size=40, num_key_value_heads=2, sliding_window=8, **small)
        ),
        "no such mask": BloomForCausalLM(BloomConfig(vocab_size=40, hidden_size=32, n_layer=2, n_head=4)),
    }


@pytest.mark.parametrize("family", ["gpt2", "qwen2", "sliding window", "no such mask"])
def test_the_cache_of_a_hugging_face_model_gives_what_recomputation_gives(family):
    model = families()[family].eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.15)
    prompts = [[3, 4, 5], [7], [9, 2, 6, 8, 11], [30, 31]]
    verifier = FunctionVerifier(
        lambda tokens, lengths: (tokens.gather(1, lengths.unsqueeze(1) - 1) % 3 != 0).squeeze(1)
    )
    for decoder in (Sampling(), Backtracking(quota=3, stride=2)):
        options = {"max_new": 14, "verifier": verifier, "rng": sl.rng(0)}
        cached = decoder.generate(HuggingFaceGenerator(model), prompts, **options)
        plain = decoder.generate(RecomputingGenerator(Plain(model)), prompts, **{**options, "rng": sl.rng(0)})
        assert [cached.string(row) for row in range(4)] == [plain.string(row) for row in range(4)]
        assert torch.allclose(cached.logprob, plain.logprob, atol=1e-3)


def test_hidden_states_can_be_watched(random_folder):
    generator = load_language_model(random_folder).generator
    generator.watch("hidden.1")
    generator.start(2, 10)
    tokens = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]])
    lengths, rows = torch.tensor([4, 2]), torch.arange(2)
    ours = generator.features(tokens, lengths, rows, "hidden.1")
    hidden = generator.model(input_ids=tokens, output_hidden_states=True).hidden_states[1]
    assert torch.allclose(ours, hidden[torch.arange(2), lengths - 1], atol=1e-4)


def test_a_grammar_is_followed_at_token_boundaries(random_folder):
    """Every tokenisation of every prefix of a word is alive; nothing else is."""
    model = load_language_model(random_folder)
    verifier = GrammarVerifier(compile_grammar(regex=r'(\{"name"|ab+)'), model, [0])
    words = ['{"name"', "ab", "abb"]

    def pieces(text: str) -> list[list[int]]:
        single = [token for character in text for token in model.tokenizer(character).input_ids]
        return [model.tokenizer(text).input_ids, single]

    for word in words:
        for tokens in pieces(word):
            for cut in range(len(tokens) + 1):
                row = torch.tensor([tokens + [0]])
                assert float(verifier.value(row, torch.tensor([cut]), torch.tensor([0]))) == 1.0
            ended = torch.tensor([[*tokens, model.eos]])
            assert float(verifier.outcome(ended, torch.tensor([len(tokens) + 1]), torch.tensor([0]))) == 1.0
    for text in ('{"nome"', "aab", "b"):
        for tokens in pieces(text):
            row = torch.tensor([tokens])
            assert float(verifier.value(row, torch.tensor([len(tokens)]), torch.tensor([0]))) == 0.0


@pytest.mark.parametrize(
    "source",
    [
        {"json_schema": SCHEMA},
        {"regex": r'\{"name":"Ada","age":[0-9]+\}'},
        {
            "lark": """%llguidance {"allow_initial_skip": true}
%ignore " "
start: "{" REST
REST: /"name":"Ada","age":[0-9]+}/"""
        },
    ],
    ids=lambda source: next(iter(source)),
)
def test_the_mask_of_children_agrees_with_asking_about_each_child(random_folder, source):
    """Also where the text is forced: every token that begins the rest of it is allowed."""
    model = load_language_model(random_folder)
    verifier = GrammarVerifier(compile_grammar(**source), model, [0])
    row, rows = torch.zeros(1, 40, dtype=torch.long), torch.tensor([0])
    text = model.tokenizer('{"name":"Ada","age":4').input_ids
    for cut in range(len(text) + 1):
        row[0, :cut] = torch.tensor(text[:cut])
        mask = verifier.children(row, torch.tensor([cut]), rows, model.generator.vocab)[0]
        assert 0 < float(mask.sum()) < model.generator.vocab
        for token in range(model.generator.vocab):
            longer = row.clone()
            longer[0, cut] = token
            assert float(verifier.value(longer, torch.tensor([cut + 1]), rows)) == float(mask[token])


@pytest.mark.parametrize(
    "algorithm", [pytest.param("vgb", marks=pytest.mark.slow), "value-guided", "tokenwise", "early-abort"]
)
def test_a_trained_model_writes_valid_json_under_every_exact_algorithm(json_folder, algorithm):
    results = decode_text(json_folder, people(24), json_schema=SCHEMA, algorithm=algorithm, max_new=40)
    assert all(result.valid and obeys(result.text) for result in results)
    assert len({result.text for result in results}) > 10


def test_without_a_verifier_the_same_model_errs(json_folder):
    results = decode_text(json_folder, people(100), json_schema=SCHEMA, algorithm="temperature", max_new=40)
    valid = [result.valid for result in results]
    assert 0 < sum(valid) < 100
    assert valid == [obeys(result.text) for result in results]


@pytest.mark.slow
def test_two_hundred_prompts_give_two_hundred_valid_texts(json_folder, random_folder):
    for folder in (json_folder, random_folder):
        results = decode_text(folder, people(200), json_schema=SCHEMA, algorithm="vgb", max_new=60)
        assert sum(obeys(result.text) for result in results) == 200


@pytest.mark.slow
def test_a_verifier_that_errs_one_time_in_twenty_still_gives_valid_texts_with_the_walk(json_folder):
    results = decode_text(json_folder, people(200), json_schema=SCHEMA, algorithm="vgb", max_new=40, error=0.05)
    for result in results:
        assert obeys(result.text) == bool(result.valid)
        assert result.valid or result.status == "out of budget"
    assert sum(bool(result.valid) for result in results) == 200


def test_a_verifier_that_errs_is_survived_by_the_walk_and_not_by_masking(json_folder):
    walk = decode_text(json_folder, people(5), json_schema=SCHEMA, algorithm="vgb", max_new=40, error=0.05)
    assert all(obeys(result.text) for result in walk)
    masked = decode_text(json_folder, people(40), json_schema=SCHEMA, algorithm="value-guided", max_new=40, error=0.05)
    assert any(not result.valid for result in masked)


def test_the_end_of_the_budget_is_said(random_folder):
    (result,) = decode_text(random_folder, "x", json_schema=SCHEMA, algorithm="vgb", max_new=60, budget=5)
    assert result.status == "out of budget" and not result.valid
    assert result.message == "the budget of 5 queries ran out before a complete text was found: raise it"
    assert result.counters["oracle_calls"] == 5


def test_a_text_that_cannot_fit_is_given_up_in_words(random_folder):
    (result,) = decode_text(random_folder, "x", regex="a{50}", algorithm="value-guided", max_new=10)
    assert result.status == "gave up" and "within 10 tokens" in result.message
    # What the walk remembers costs no query: its steps end before its budget does.
    (walk,) = decode_text(random_folder, "x", regex="a{50}", algorithm="vgb", max_new=6, budget=200)
    assert walk.status == "gave up" and walk.counters["oracle_calls"] < 200


def test_the_language_may_cover_the_prompt_too(random_folder):
    (result,) = decode_text(random_folder, "ab", regex="ab[cd]{3}", whole=True, algorithm="vgb", max_new=8)
    assert re.fullmatch("[cd]{3}", result.text) and result.valid
    with pytest.raises(sl.BadInput, match="no text of the language goes on like this after 'a'"):
        decode_text(random_folder, "ax", regex="ab[cd]{3}", whole=True)
    with pytest.raises(sl.BadInput, match="'xy' is outside the language: no text of the language begins like this"):
        decode_text(random_folder, "xy", regex="ab[cd]{3}", whole=True)


def test_a_lark_grammar_and_what_was_erased(json_folder, tmp_path):
    grammar = tmp_path / "sum.lark"
    grammar.write_text('start: term ("+" term)*\nterm: /[0-9]/ | "(" start ")"\n')
    (result,) = decode_text(json_folder, "1+1: ", grammar=grammar, algorithm="vgb", max_new=24, trace=True, seed=3)
    assert result.valid and re.fullmatch(r"[0-9()+]+", result.text)
    assert result.erased and sum(map(len, result.erased)) >= len(result.erased)
    assert result.as_dict()["counters"]["tokens_erased"] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "nowhere/"}, "there is no model folder 'nowhere/'"),
        ({"json_schema": "{no json"}, "the JSON schema is not JSON"),
        ({"json_schema": {"type": "objekt"}}, "the JSON schema does not parse: Invalid type: objekt"),
        ({"json_schema": Path("missing.json")}, "there is no JSON schema file 'missing.json'"),
        ({"json_schema": None, "regex": "[a"}, "the regular expression does not parse"),
        ({"json_schema": None, "grammar": 'start: "a" b'}, 'the grammar does not parse: .*unknown name: "b"'),
        ({"json_schema": None, "algorithm": "vgb"}, "VGB asks a verifier: give a grammar, a regex or a JSON schema"),
        ({"regex": "a"}, "give one of a grammar, a regular expression, a JSON schema or a list of choices, got 2"),
        ({"law": "true"}, "law must be one of 'local', 'given', got 'true'"),
        ({"n": 0}, "n must be a whole number of at least 1, got 0"),
        ({"budget": 0}, "budget must be a whole number of at least 1, got 0"),
        ({"max_new": 0}, "max_new must be a whole number of at least 1, got 0"),
        ({"max_new": 1000}, "the model reads 256: lower max_new"),
        ({"algorithm": "vgbb"}, "no algorithm called 'vgbb': did you mean 'vgb'?"),
        ({"options": {"quotas": 3}}, "value-guided has no option 'quotas'"),
        ({"options": {"needs_verifier": 3}}, "value-guided has no option 'needs_verifier'"),
        ({"algorithm": "block-best-of-n"}, "needs a separator token or a block length, got neither: try block=8"),
        ({"device": "gpu"}, "device must be one of 'cpu', 'cuda', got 'gpu'"),
        ({"prompts": []}, "there is no prompt"),
        ({"prompts": None}, "prompts are texts or chats, .*, got None"),
        ({"prompts": [1, 2]}, "prompts are texts or chats, .*, got 1"),
        ({"prompts": {"role": "user", "content": "x"}}, "prompts are texts or chats, lists of messages"),
        ({"stop": ""}, "stop strings are texts that are not empty, got ''"),
        ({"stop": ["a", 5]}, "stop strings are texts that are not empty, got 5"),
        ({"algorithm": "backtrack", "options": {"keep_prompt": 0}}, "the prompt is not cut into"),
        ({"error": 2.0}, "error must be a number between 0.0 and 1.0, got 2.0"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(random_folder, change, message):
    settings = {"model": random_folder, "prompts": "x", "json_schema": SCHEMA, **change}
    with pytest.raises(sl.BadInput, match=message) as refusal:
        decode_text(settings.pop("model"), settings.pop("prompts"), **settings)
    assert "\n" not in str(refusal.value)


def test_a_folder_without_a_causal_model_is_refused(tmp_path):
    with pytest.raises(sl.BadInput, match=r"has no config\.json"):
        load_language_model(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "nothing-known"}')
    with pytest.raises(sl.BadInput, match="holds no causal language model"):
        load_language_model(tmp_path)


def test_a_model_without_a_tokenizer_is_refused_in_one_sentence(random_folder, tmp_path):
    for name in ("config.json", "model.safetensors"):
        shutil.copy(random_folder / name, tmp_path)
    with pytest.raises(sl.BadInput, match="holds no causal language model with a tokenizer") as refusal:
        decode_text(tmp_path, "x", regex="a")
    assert "\n" not in str(refusal.value)


def test_a_machine_without_a_gpu_says_so(random_folder):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(sl.BadInput, match="torch finds no CUDA device"):
        load_language_model(random_folder, device="cuda")


def test_an_end_token_that_the_tokenizer_adds_to_a_prompt_is_taken_away(random_folder):
    from tokenizers import processors

    model = load_language_model(random_folder)
    plain = model.encode("ab")
    model.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    assert model.encode("ab") == [0, *plain]
    assert model.encode("ab</s>")[-1] == model.eos


@pytest.mark.parametrize("algorithm", ["best-of-n", "block-best-of-n"])
def test_what_was_erased_and_what_was_kept_are_all_that_was_written(json_folder, algorithm):
    options = {"candidates": 3, **({"block": 4} if algorithm == "block-best-of-n" else {})}
    results = decode_text(
        json_folder, people(20), json_schema=SCHEMA, algorithm=algorithm, max_new=40, trace=True, options=options
    )
    for result in results:
        assert len(result.tokens) + result.counters["tokens_erased"] == result.counters["oracle_calls"]
        assert len(result.erased) <= result.counters["verifier_calls"]
    # The best candidate was erased, too, before it was put back: it is not told among the erased ones.
    kept = [result for result in results if result.text not in result.erased]
    assert len(kept) >= 18


def test_a_function_of_the_text_is_a_verifier(json_folder):
    seen: list[str] = []

    def no_kurt(text: str) -> bool:
        seen.append(text)
        return "Kurt" not in text

    options = {"quota": 20, "stride": 3, "redo": "none"}
    results = decode_text(json_folder, people(30), algorithm="backtrack", verifier=no_kurt, max_new=40, options=options)
    assert all("Kurt" not in result.text and result.valid for result in results)
    assert sum(result.counters["backtracks"] for result in results) > 0
    # It sees the answer alone, token by token, and nothing of the prompt or of the end token.
    assert all("Person" not in text and "</s>" not in text for text in seen)
    walk = decode_text(json_folder, people(2), algorithm="value-guided", verifier=no_kurt, max_new=40)
    assert all("Kurt" not in result.text for result in walk)
    beside = decode_text(
        json_folder, people(2), algorithm="value-guided", verifier=no_kurt, json_schema=SCHEMA, max_new=40
    )
    weighted = "the model, weighted by the verifier's numbers and renormalised at each step"
    assert {result.law for result in (*walk, *beside)} == {weighted}
    assert [result.text for result in beside] == [result.text for result in walk]


def test_one_s_own_verifier_guides_and_a_language_beside_it_judges(json_folder):
    results = decode_text(
        json_folder, people(40), algorithm="backtrack", verifier=lambda text: 1.0, json_schema=SCHEMA, max_new=40
    )
    assert [result.valid for result in results] == [obeys(result.text) for result in results]
    assert not all(result.valid for result in results)


def test_events_are_kept_for_pictures_and_left_out_of_json(json_folder):
    (result,) = decode_text(json_folder, "Person 1: ", json_schema=SCHEMA, algorithm="vgb", max_new=40, trace=True)
    assert sum(event.kind == "erased" for event in result.events) == result.counters["tokens_erased"]
    assert "events" not in result.as_dict() and json.loads(json.dumps(result.as_dict()))["valid"]


def test_a_tokenizer_that_puts_a_blank_in_front_of_texts_does_not_shift_the_language(blank_folder):
    model = load_language_model(blank_folder)
    assert model.tokenizer.convert_ids_to_tokens(model.encode("ab"))[0].startswith("▁")
    (blank,) = decode_text(model, "x", regex=" [ab]{1,3}", max_new=6)
    assert blank.valid and re.fullmatch(" [ab]{1,3}", blank.text)
    (none,) = decode_text(model, "x", regex="[ab]{1,3}", max_new=6)
    assert none.valid and re.fullmatch("[ab]{1,3}", none.text)
    (whole,) = decode_text(model, "ab", regex="ab[cd]{2}", whole=True, max_new=6)
    assert whole.valid and re.fullmatch("[cd]{2}", whole.text)
    with pytest.raises(sl.BadInput, match="no text of the language goes on like this after 'a'"):
        decode_text(model, "ax", regex="ab[cd]{2}", whole=True)
