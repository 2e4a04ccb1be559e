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
