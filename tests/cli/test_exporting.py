"""Models elsewhere: every format gives the same logits; a saved model is measured and continued."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import sandlab as sl
from sandlab.cli import call

TOKENS = torch.tensor([[0, 1, 2, 2, 1, 0, 0, 1]])
Saved = tuple[sl.models.Transformer, str]


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    with sl.models.seeded(0):
        model = sl.models.Transformer(vocab=3, length=8, width=8, layers=1)
    return model, str(model.save(tmp_path / "model"))


def test_all_formats_have_the_same_logits(saved: Saved, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model, folder = saved
    for to in ("hf", "gpt2"):
        assert call(["export", folder, "--to", to, "--out", str(tmp_path / to), "--world", "in-context-markov"]) == 0
        twin = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / to)
        torch.testing.assert_close(twin(TOKENS).logits, model(TOKENS), rtol=0, atol=1e-5)
    assert call(["export", folder, "--to", "torch", "--out", str(tmp_path / "net.pt2")]) == 0
    program = torch.export.load(tmp_path / "net.pt2").module()
    torch.testing.assert_close(program(TOKENS), model(TOKENS), rtol=0, atol=1e-5)


def test_lens_weights_are_those_of_the_twin(saved: Saved, tmp_path: Path) -> None:
    pytest.importorskip("transformer_lens")
    model, folder = saved
    assert call(["export", folder, "--to", "lens", "--out", str(tmp_path / "lens.safetensors")]) == 0
    twin = sl.models.to_transformer_lens(model)
    twin.load_state_dict(load_file(tmp_path / "lens.safetensors"), strict=False)
    torch.testing.assert_close(twin(TOKENS), model(TOKENS), rtol=0, atol=1e-5)


def test_what_has_no_equivalent_is_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(sl.models.RNN(vocab=3, width=4).save(tmp_path / "rnn"))
    assert call(["export", folder, "--to", "gpt2", "--out", str(tmp_path / "out")]) == 2
    assert "use --to hf" in capsys.readouterr().err
    assert call(["export", folder, "--to", "onyx"]) == 2


def test_eval_and_sample_use_the_weights(saved: Saved, capsys: pytest.CaptureFixture[str]) -> None:
    _, folder = saved
    assert call(["eval", folder, "--world", "in-context-markov", "--set", "length=8"]) == 0
    assert "the best possible" in capsys.readouterr().out
    chain = ["in-context-markov", "--set", "length=8", "--model", folder]
    assert call(["sample", *chain, "-n", "2", "--prompt", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines] == [9, 9] and all(line[3] == "|" for line in lines)
    assert call(["eval", folder, "--world", "dyck"]) == 2
    assert "trained on another world" in capsys.readouterr().err


def test_a_circuit_is_exported_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    transformers = pytest.importorskip("transformers")
    words = ["export", "induction-head", "--set", "states=3", "--set", "length=8", "--out", str(tmp_path / "head")]
    assert call([*words, "--world", "in-context-markov"]) == 0
    twin = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "head")
    torch.testing.assert_close(twin(TOKENS).logits, sl.circuits.induction_head(3, 8)(TOKENS), rtol=0, atol=1e-5)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "head")("021")["input_ids"] == [0, 2, 1]
    about = (tmp_path / "head" / "README.md").read_text()
    assert "The circuit induction-head" in about and "AutoTokenizer" in about
    machine = ["export", "counter-circuit", "--set", "machine=C3", "--set", "length=6", "--to", "torch"]
    assert call([*machine, "--out", str(tmp_path / "counter.pt2")]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("induction-head", "needs states, length: add --set states=… --set length=…"),
        ("induction-head --set state=3", "did you mean 'states'"),
        ("induction-hed", "did you mean 'induction-head'"),
        ("step-up", "a part of circuits and no model by itself"),
        ("nowhere --set length=3", "no model in nowhere"),
        ("flip-flop-parser --set world.length=3", "add --world NAME"),
    ],
)
def test_a_circuit_that_cannot_be_made_is_refused(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["export", *words.split()]) == 2
    assert said in capsys.readouterr().err
