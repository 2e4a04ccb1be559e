"""Three programs of a newcomer: own modules on three worlds; a regex taken to other libraries; own world and study."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.cli import call

MODULES = """
import torch
from torch import nn

class MyGRU(nn.Module):
    def __init__(self, vocab, outputs, width=8):
        super().__init__()
        self.embed, self.gru = nn.Embedding(vocab, width), nn.GRU(width, width, batch_first=True)
        self.read = nn.Linear(width, outputs)

    def forward(self, x):
        return self.read(self.gru(self.embed(x))[0])

class MyEncoder(nn.Module):
    def __init__(self, vocab, outputs, length, width=8):
        super().__init__()
        self.embed, self.places = nn.Embedding(vocab, width), nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.read = nn.Linear(width, outputs)

    def forward(self, x):
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        return self.read(self.layers(self.embed(x) + self.places[: x.shape[1]], mask=mask))
"""
WORLDS = {"in-context-markov": "length=12", "flip-flop": "length=12", "dyck": "length=12"}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of one's own, and no plug-in of another test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SANDLAB_STORE", str(tmp_path / "runs"))
    monkeypatch.setenv("SANDLAB_PLUGINS", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sandlab.plugins._loaded", {})


def told(capsys: pytest.CaptureFixture[str], line: str, *more: str) -> str:
    """What a command prints; it must succeed."""
    code = call([*line.split(), *more])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def test_ones_own_gru_and_encoder_on_three_worlds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "newcomers_lab.py").write_text(MODULES)
    for world, setting in WORLDS.items():
        for kind in ("MyGRU", "MyEncoder"):
            line = f"train --world {world} --model newcomers_lab.py:{kind} --set world.{setting} --set steps=2"
            assert "the best possible" in told(capsys, line)
    saved = sorted((tmp_path / "runs" / "training").glob("*/model"))
    assert len(saved) == 6
    assert "accuracy" in told(capsys, f"eval {saved[0]} --world in-context-markov --set length=12 -n 20")
    assert "|" in told(capsys, f"sample in-context-markov --set length=12 -n 1 --model {saved[0]}")
    model = sl.models.load(saved[0])
    tokens = torch.zeros(1, 12, dtype=torch.long)
    with sl.record(model, "inner.gru*") as tape:
        model(tokens)
    assert any(value.shape == (1, 12, 8) for value in tape.values() if isinstance(value, torch.Tensor))


def test_a_regular_expression_becomes_a_circuit_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    transformers = pytest.importorskip("transformers")
    assert "no wrong label" in told(capsys, "compile (abab)* --length 8 --save circuit --no-compare --pictures drawn")
    assert (tmp_path / "drawn" / "wiring.svg").is_file()
    circuit, word = sl.models.load("circuit"), torch.tensor([[0, 1, 0, 1, 0, 1, 0, 1]])
    with sl.record(circuit, "*pattern") as tape:
        truth = circuit(word)
    assert all(torch.allclose(p.sum(-1), torch.ones_like(p[..., 0])) for p in tape.values())
    told(capsys, "export circuit --to hf --out there --letters ab")
    assert transformers.AutoTokenizer.from_pretrained("there")("abab")["input_ids"] == [0, 1, 0, 1]
    twin = transformers.AutoModelForCausalLM.from_pretrained("there")
    torch.testing.assert_close(twin(word).logits, truth, rtol=0, atol=1e-5)
    told(capsys, "export circuit --to torch --out there.pt2")
    torch.testing.assert_close(torch.export.load("there.pt2").module()(word), truth, rtol=0, atol=1e-5)
    assert call(["export", "circuit", "--to", "lens"]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "bridge_to_transformer_lens" in sentence


def test_a_regular_expression_is_read_with_transformer_lens() -> None:
    pytest.importorskip("transformer_lens")
    circuit, word = sl.circuits.compile("(abab)*", 8), torch.tensor([[0, 1, 0, 1, 0, 1, 0, 1]])
    logits, cache = sl.lab.bridge_to_transformer_lens(circuit).run_with_cache(word)
    torch.testing.assert_close(logits, circuit(word), rtol=0, atol=1e-5)
    assert cache["layers.0.attention.pattern"].shape[0] == 1


def test_ones_own_world_and_study_from_outside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "new world newcomers-coin")
    assert told(capsys, "sample newcomers-coin -n 3 --plugin newcomers_coin.py").strip()
    assert "newcomers-coin" in told(capsys, "list worlds")
    assert "this model" in told(capsys, "train --world newcomers-coin --model rnn --set steps=2")
    told(capsys, "new study newcomers/first-look")
    run = "run newcomers/first-look --plugin first_look.py --set experiment.training.steps=2 --seeds 2 --on local"
    assert call(run.split()) in (0, 1)  # two steps need not be enough for the claim
    assert "newcomers/first-look.learns" in capsys.readouterr().out
    assert "custom" in told_any(capsys, "claims newcomers/first-look")
    assert (tmp_path / told(capsys, "report").split()[-1]).is_file()
    for module in ("newcomers_coin", "first_look"):
        assert module in sys.modules


def told_any(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """What a command prints when it ends with 0 or, for a claim that fails, with 1."""
    assert call(line.split()) in (0, 1)
    return capsys.readouterr().out
