"""Every circuit and every architecture as a torch.export file that gives the same logits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lab.torch_export import export_torch
from sandlab.models.base import Model

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from circuit_instances import INSTANCES, MODELS

QUICK = ("memory-transformer", "counter-circuit", "suffix-table", "embedding-topics")
ROTARY = {"transformer": lambda: sl.models.Transformer(vocab=4, length=12, width=8, layers=2, positions="rotary")}
ARCHITECTURES = {**MODELS, **ROTARY}


def check(model: Model, inputs: torch.Tensor, file: Path) -> str:
    path, takes = export_torch(model, file, inputs=inputs)
    program = torch.export.load(path).module()
    batches = [inputs[:1], inputs, inputs[:1].repeat(5, 1)] if takes.startswith("any number") else inputs.split(1)
    with torch.no_grad():
        for batch in batches:
            torch.testing.assert_close(program(batch), model(batch), rtol=0, atol=1e-5)
    return takes


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in INSTANCES]
)
def test_every_circuit_keeps_its_logits(name: str, tmp_path: Path) -> None:
    model, inputs = INSTANCES[name]()
    assert isinstance(model, Model)
    check(model, inputs, tmp_path / "circuit.pt2")


@pytest.mark.parametrize(
    "name", [name if name == "lstm" else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES]
)
def test_every_architecture_takes_any_number_of_inputs(name: str, tmp_path: Path) -> None:
    model, tokens = ARCHITECTURES[name](), torch.randint(4, (2, 12), generator=sl.rng(0))
    assert check(model, tokens, tmp_path / "net") == "any number of inputs, 12 tokens each"
    assert model.training


def test_the_file_says_what_it_takes_and_ends_in_pt2(tmp_path: Path) -> None:
    table = sl.circuits.suffix_table(sl.worlds.MarkovChain.binary(0.2, 0.3, length=8), (1,))
    path, takes = export_torch(table, tmp_path / "new" / "v0.2", length=9)
    assert path == tmp_path / "new" / "v0.2.pt2" and path.is_file()
    assert takes == "any number of inputs, 9 tokens each"


def test_what_cannot_be_traced_is_refused_in_one_sentence(tmp_path: Path) -> None:
    lego, clauses = INSTANCES["ideal-lego-transformer"]()
    with pytest.raises(BadInput, match="give another length") as refusal:
        export_torch(lego, tmp_path / "lego.pt2")
    assert clauses.shape[1] % 5 == 0 and "\n" not in str(refusal.value)
    with pytest.raises(BadInput, match="a model of SandLab"):
        export_torch(torch.nn.Linear(2, 2), tmp_path / "linear.pt2")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
