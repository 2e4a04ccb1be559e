"""The source's test-case protocol on a Hugging Face model in memory."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.decoding.append_protocol import AppendProtocol, append_prompt
from sandlab.decoding.generators.hugging_face import LanguageModel
from sandlab.decoding.verifiers.base import RandomVerifier


def test_the_prompt_is_that_of_the_source():
    text = append_prompt("abc", rng=sl.rng(0))
    lines = text.split("\n")
    assert lines[:2] == ["def f(a, b):", "    return a + b"]
    assert lines[3] == "List 8 test cases of the above function f, one in each line:"
    assert all(eval(line.removeprefix("assert f").replace(",", "+", 1)) for line in lines[4:12])
    assert lines[13:17] == ["def abc(l, item):", "    assert type(l) is list", "    l.append(item)", "    return l"]
    assert text.endswith("\n\nList 8 test cases of the above function abc, one in each line:\n")


@pytest.fixture(scope="module")
def writer(json_folder) -> LanguageModel:
    """A model that writes right and wrong test cases from memory, whatever it is asked."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(json_folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=1024, eos_token_id=1, bos_token_id=0, **shape)
    )
    return LanguageModel.of(model, tokenizer)


def test_the_protocol_runs_on_any_model(writer, monkeypatch):
    lines = ["assert {}([1],2)==[1,2]\n", "assert {}([1],2)==[2,1]\n", "assert {}([], 7) == [7]\n"]
    calls, used = iter(range(10**6)), []

    def answers(self, model, names, decoder, guide, stream):
        """Stands in for a model that can write Python: some lines right, some wrong."""
        used.append((decoder, guide))
        prompts = [model.encode(append_prompt(name, rng=sl.rng(next(calls)), cases=2)) for name in names]
        texts = [lines[place % 3].format(name) + lines[2].format(name) for place, name in enumerate(names)]
        return prompts, [model.encode(text) for text in texts], 100

    protocol = AppendProtocol(names=2, completions=3, searched=30, cases=2, max_new=4, layer=1, candidates=(2,))
    with pytest.raises(sl.BadInput, match="correct strings among 1 completions"):
        AppendProtocol(names=1, completions=1, searched=1, cases=2, max_new=1, layer=1).run(writer)
    accuracy, queries = protocol.score(writer, sl.decoding.Nucleus(), RandomVerifier())
    assert accuracy == 0.0 and queries <= 2 * 3 * 4
    monkeypatch.setattr(AppendProtocol, "_complete", answers)
    report = protocol.run(writer)
    assert report.errors == 10 and 0.5 < report.validation <= 1
    assert list(report.accuracy) == ["nucleus sampling", "backtracking", "block best of 2"]
    # Of six test cases a name gets, two different ones are right.
    assert report.accuracy["backtracking"] == pytest.approx(2 * 2 / (2 * 3 * 2))
    misleading = AppendProtocol(names=2, completions=1, searched=1, cases=2, misleading=True)
    assert misleading._test_names() == ["pop", "add"]
    # Lines end at newlines, stop after as many as were asked for, and have a verifier of their own.
    (_, guide), (blocks, judge) = used[-2:]
    assert (blocks.candidates, blocks.blocks) == (2, 2) and writer.decode([blocks.separator]) == "\n"
    assert guide is not judge


def test_a_verifier_of_lines_learns_the_end_of_the_wrong_line_and_of_the_one_before(writer, monkeypatch):
    text = "assert {0}([1],2)==[1,2]\nassert {0}([1],2)==[2,1]\nassert {0}([], 7) == [7]\n"

    def answers(self, model, names, decoder, guide, stream):
        return [[5]] * len(names), [model.encode(text.format(name)) for name in names], 0

    monkeypatch.setattr(AppendProtocol, "_complete", answers)
    tokens, lines = AppendProtocol(searched=3, cases=3).find_errors(writer)
    assert lines.labels == [1, 0] * 3 and sorted(tokens.labels) == [0] * 3 + [1] * 3
    read = [writer.decode(string[1:]) for string in lines.strings]
    assert all(written.count("\n") == place % 2 + 1 and written.endswith("]\n") for place, written in enumerate(read))
    wrong = [string for string, label in zip(tokens.strings, tokens.labels) if label == 0]
    second = [writer.decode(string[1:]).split("\n")[1:] for string in wrong]
    assert all(len(begun) == 1 and "([1],2)==[" in begun[0] for begun in second)
