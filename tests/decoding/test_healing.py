"""Prompts that end within a token: what is taken off, and the laws of what is written, by enumeration."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import torch
from scipy.stats import chisquare

import sandlab as sl
from sandlab.cli import call
from sandlab.decoding.generators.hugging_face import LanguageModel, load_language_model
from sandlab.decoding.streaming import stream_text
from sandlab.decoding.text import decode_text
from sandlab.decoding.verifiers.healing import heal_prompt, token_bytes

PROMPT = 'Person 7: {"na'
SAMPLES = 1500


@pytest.fixture(scope="module")
def loaded(json_folder) -> LanguageModel:
    return load_language_model(json_folder)


@pytest.fixture(scope="module")
def uneven(random_folder) -> LanguageModel:
    """A model that knows nothing, but prefers some tokens clearly."""
    model = load_language_model(random_folder)
    with torch.no_grad():
        model.generator.model.lm_head.weight *= 6
    return model


def law_after(model: LanguageModel, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model.generator.model(torch.tensor([tokens])).logits[0, -1].double().softmax(-1)


def continuations(
    model: LanguageModel, start: list[int], texts: set[bytes], *, local: bool, right: set[bytes] | None = None
) -> dict[bytes, float]:
    """The law of the ended texts among these: each token string by itself, from the model's own probabilities.

    right   the texts that may end, if not all of them may: what a check of complete texts leaves
    """
    table, found = token_bytes(model).of, Counter()
    right = texts if right is None else right

    def walk(written: list[int], so_far: bytes, weight: float) -> None:
        law = law_after(model, start + written)
        go_on = [token for token, own in enumerate(table) if own and any(t.startswith(so_far + own) for t in texts)]
        ends = [model.eos] if so_far in right else []
        total = float(law[go_on + ends].sum()) if local else 1.0
        for token in ends:
            found[so_far] += weight * float(law[token]) / total
        for token in go_on:
            walk([*written, token], so_far + table[token], weight * float(law[token]) / total)

    walk([], b"", 1.0)
    every = sum(found.values())
    return {text: share / every for text, share in found.items()}


def same_law(seen: list[str], law: dict[str, float]) -> bool:
    counts = Counter(seen)
    assert set(counts) <= set(law)
    return chisquare([counts[text] for text in law], [len(seen) * law[text] for text in law]).pvalue > 1e-3


# -- what is taken off -------------------------------------------------------------------------------------------------


def test_the_longest_end_that_begins_a_longer_token_is_taken_off(loaded):
    tokens = loaded.encode(PROMPT)
    assert [loaded.decode([token]) for token in tokens[-3:]] == ['{"', "n", "a"]
    assert heal_prompt(loaded, PROMPT) == (tokens[:-2], "na")
    assert heal_prompt(loaded, "Person 7: ") == (loaded.encode("Person 7: "), "")
    name = loaded.encode("name")
    assert len(name) == 1 and heal_prompt(loaded, "name") == (name, "")
    assert heal_prompt(loaded, "nam") == (loaded.encode(""), "nam")


def test_special_tokens_and_a_blank_that_the_tokenizer_put_in_front_stay(loaded, blank_folder):
    assert heal_prompt(loaded, "x</s>na")[0] == loaded.encode("x</s>")
    assert heal_prompt(loaded, "x</s>") == (loaded.encode("x</s>"), "")
    blank = load_language_model(blank_folder)
    # " a" is the beginning of " ab", but nobody has written the blank.
    assert heal_prompt(blank, "a") == (blank.encode("a")[:-1], "a")
    tokens, head = heal_prompt(blank, "cd a")
    assert head == " a" and blank.encode("cd a")[: len(tokens)] == tokens


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.gate(2)
@pytest.mark.parametrize("heal", [True, False])
@pytest.mark.parametrize("law", ["local", "given"])
def test_with_a_language_the_law_is_the_one_that_is_told(uneven, law, heal):
    """Renormalised at each step, or given the language; healed, after the shorter prompt, with the head in front."""
    start, head = heal_prompt(uneven, PROMPT) if heal else (uneven.encode(PROMPT), "")
    assert head == ("na" if heal else "")
    texts = {f"{head}{text}".encode() for text in ("me", "mea", "m", "x")}
    exact = continuations(uneven, start, texts, local=law == "local")
    exact = {text.decode().removeprefix(head): share for text, share in exact.items()}
    assert max(exact.values()) < 0.9
    results = decode_text(uneven, PROMPT, regex="mea?|m|x", heal=heal, law=law, n=SAMPLES, max_new=8)
    assert all(each.valid and each.value == each.text for each in results)
    assert same_law([each.text for each in results], exact)
    assert results[0].law.endswith("with the prompt's end 'na' written anew") == heal


@pytest.mark.gate(1)
@pytest.mark.parametrize("law", ["local", "given"])
def test_what_is_checked_at_the_end_leaves_the_law_given_success(uneven, law):
    """Odd numbers up to 12: "0" is a dead end of the grammar, from which masking begins anew."""
    odd = {"type": "integer", "minimum": 0, "maximum": 12, "not": {"multipleOf": 2}}
    texts = {str(number).encode() for number in range(13)}
    right = {str(number).encode() for number in range(1, 13, 2)}
    exact = continuations(uneven, uneven.encode("x"), texts, local=law == "local", right=right)
    results = decode_text(uneven, "x", json_schema=odd, law=law, n=SAMPLES, max_new=4)
    # Twenty times in dead ends, one after the other, and masking gives up: that says nothing about the rest.
    seen = [each.text for each in results if each.valid]
    assert len(seen) > 0.97 * SAMPLES
    assert same_law(seen, {text.decode(): share for text, share in exact.items()})


@pytest.mark.parametrize("law", ["local", "given"])
def test_without_a_language_it_is_the_model_s_own_law_once_the_head_is_written(uneven, law):
    """First tokens of answers of two tokens: enumerated by hand."""
    start, head = heal_prompt(uneven, PROMPT)
    table, first = token_bytes(uneven).of, law_after(uneven, start)
    covers = [token for token, own in enumerate(table) if own and own.startswith(head.encode())]
    begins = [token for token, own in enumerate(table) if own == b"n"]
    weights = {token: float(first[token]) for token in covers}
    for token in begins:
        after = law_after(uneven, [*start, token])
        ways = [rest for rest, own in enumerate(table) if own and own.startswith(b"a")]
        weights[token] = float(first[token]) * (float(after[ways].sum()) if law == "given" else 1.0)
    exact = {str(token): weight / sum(weights.values()) for token, weight in weights.items()}
    assert len(exact) > 1
    results = decode_text(uneven, PROMPT, heal=True, law=law, n=SAMPLES, max_new=2)
    assert same_law([str(each.tokens[0]) for each in results], exact)
    assert all(uneven.decode(each.tokens) == "na" + each.text and each.valid is None for each in results)


def test_the_law_of_a_language_over_prompt_and_answer_is_kept_too(uneven):
    words = {"name", "nano", "na", "nx"}
    exact = continuations(uneven, heal_prompt(uneven, "{na")[0], {b"name", b"nano", b"na"}, local=True)
    results = decode_text(uneven, "{na", regex=r"\{(" + "|".join(words) + ")", whole=True, heal=True, n=SAMPLES)
    assert same_law(["na" + each.text for each in results], {text.decode(): share for text, share in exact.items()})
    assert results[0].value == "{na" + results[0].text


def test_what_is_written_is_what_the_model_has_seen(loaded):
    """Cut within "name", the model is lost; healed, it goes on as it has learnt."""
    healed = decode_text(loaded, [f'Person {number}: {{"na' for number in range(40)], heal=True, max_new=40)
    plain = decode_text(loaded, [f'Person {number}: {{"na' for number in range(40)], max_new=40)
    good = [sum(each.text.startswith('me":"') for each in some) for some in (healed, plain)]
    assert good[0] > 35 and good[0] > good[1]


# -- at home everywhere ------------------------------------------------------------------------------------------------


def test_a_healed_text_does_not_depend_on_its_company(loaded):
    """Two prompts that are the same without their ends: neither learns from the other, nor shares its numbers."""
    prompts = [PROMPT, 'Person 7: {"ag', "Person 7: "]
    for law in ("local", "given"):
        settings = {"heal": True, "law": law, "regex": r"[^}]+\}", "max_new": 30}
        together = decode_text(loaded, prompts, n=2, **settings)
        alone = [each for prompt in prompts for each in decode_text(loaded, prompt, n=2, **settings)]
        assert [each.text for each in together] == [each.text for each in alone]
        assert all(each.valid or law == "local" for each in together)


def test_checks_values_stop_strings_streams_and_the_terminal_see_the_answer_alone(loaded, json_folder, capsys):
    odd = {"type": "integer", "minimum": 0, "maximum": 20, "not": {"multipleOf": 2}}
    results = decode_text(loaded, [PROMPT] * 6, json_schema=odd, heal=True, max_new=8)
    assert all(each.valid and each.value % 2 and each.text == str(each.value) for each in results)
    (stopped,) = decode_text(loaded, PROMPT, heal=True, stop=['":', "na"], max_new=12, seed=1)
    assert (stopped.text, stopped.finish) == ("me", "stop")
    pieces = list(stream_text(loaded, PROMPT, heal=True, max_new=6))
    assert "".join(piece.text for piece in pieces) == pieces[-1].result.text
    assert call(["decode", "--model", str(json_folder), "-p", PROMPT, "--heal", "--max-new", "6", "--json"]) == 5
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["text"] == pieces[-1].result.text


@pytest.mark.parametrize("algorithm", ["vgb", "tokenwise-rejection", "early-abort", "rejection"])
def test_every_algorithm_with_a_law_heals(loaded, algorithm):
    (result,) = decode_text(loaded, PROMPT, regex=r'me":"[^}]+\}', heal=True, algorithm=algorithm, max_new=30)
    assert result.valid and result.text.startswith('me":"') and result.text.endswith("}")


def test_chats_stay_as_their_template_writes_them(json_folder):
    model = load_language_model(json_folder)
    model.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    chat = [{"role": "user", "content": PROMPT}]
    (healed,) = decode_text(model, chat, heal=True, choices=["a", "b"], max_new=4)
    (plain,) = decode_text(model, chat, choices=["a", "b"], max_new=4)
    assert healed.tokens == plain.tokens and "written anew" not in healed.law


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "nucleus"}, "Nucleus keeps no promise about a prompt's end: heal with masking"),
        ({"algorithm": "backtracking"}, "Backtracking keeps no promise"),
        ({"verifier": lambda text: 1.0}, "leave out verifier and error"),
        ({"error": 0.1, "regex": "a"}, "leave out verifier and error"),
    ],
)
def test_what_cannot_heal_says_so_in_one_sentence(loaded, settings, message):
    with pytest.raises(sl.BadInput, match=message) as refusal:
        decode_text(loaded, PROMPT, heal=True, **settings)
    assert "\n" not in str(refusal.value)
