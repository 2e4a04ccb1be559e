"""The terminal's doors to the rooms: compiled automata and decoding with a grammar."""

from __future__ import annotations

import json
import re

import pytest
import torch

import sandlab as sl
from sandlab.cli import call


def answer(capsys, *arguments: str, code: int = 0):
    assert call(list(arguments)) == code, capsys.readouterr()
    printed = capsys.readouterr()
    return json.loads(printed.out) if "--json" in arguments else printed.out + printed.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A language model of two small layers with random weights, over single bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator([], trainers.BpeTrainer(special_tokens=["<s>", "</s>"], initial_alphabet=alphabet))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=128, bos_token_id=0, eos_token_id=1
    )
    place = tmp_path_factory.mktemp("model")
    tokenizer.save_pretrained(place)
    GPT2LMHeadModel(config).save_pretrained(place)
    return str(place)


def test_compile_prints_algebra_sizes_and_a_clean_check_and_saves_the_model(capsys, tmp_path):
    text = answer(capsys, "compile", "(ab)*", "--length", "8", "--save", str(tmp_path / "model"))
    assert "semigroup" in text and "scan" in text and "no wrong label" in text
    model = sl.models.load(tmp_path / "model")
    machine = sl.worlds.read_machine("(ab)*")
    words = torch.cartesian_prod(*[torch.arange(2)] * 6)
    truth = torch.as_tensor(machine.labels)[machine.run(words)]
    assert torch.equal(model(words).argmax(-1), truth)
    facts = answer(capsys, "compile", "C3", "--length", "8", "--method", "scan", "--no-compare", "--json")
    assert facts["algebra"]["states"] == 3
    assert facts["check"]["exhaustive_errors"] == 0


def test_decode_obeys_the_regular_expression_and_counts_its_queries(capsys, folder):
    options = ["--model", folder, "--prompt", "Year: ", "--regex", "[0-9]{4}", "--max-new", "8"]
    (result,) = answer(capsys, "decode", *options, "--algorithm", "constrained", "--json")
    assert result["valid"], result
    assert re.fullmatch("[0-9]{4}", result["text"])
    text = answer(capsys, "decode", *options, "--set", "temperature=0.5", "--algorithm", "value-guided", "--trace")
    assert "Year: │" in text and "log-probability" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compile", "(ab"], "never closed"),
        (["compile", "(ab)*", "--method", "skan"], "did you mean 'scan'"),
        (["compile", "(ab)*", "--length", "0"], "length must be"),
        (["decode", "--model", "nowhere", "--prompt", "x", "--regex", "a"], "nowhere"),
        (["decode", "--model", "m", "--prompt", "x", "--algorithm", "vgbb", "--regex", "a"], "did you mean 'vgb'"),
        (["decode", "--model", "m", "--prompt", "x", "--algorithm", "vgbb", "--set", "a=1"], "no algorithm called"),
        (["decode", "--model", "m", "--prompt", "x", "--regex", "["], "does not parse"),
        (["decode", "--model", "m", "--prompt", "x", "--json-schema", "no.json"], "no.json"),
        (["decode", "--model", "m"], "prompt"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(capsys, arguments, words):
    text = answer(capsys, *arguments, code=2)
    assert words in text
    assert "Traceback" not in text
