"""Models saved by SandLab 0.1 give the same logits today.

Each folder of `format_1` was written by version 0.1: `config.json`, `weights.safetensors`, and in
`expected.safetensors` tokens with the logits of that version.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sandlab.models.io import load
from sandlab.models.transformer import Transformer

FOLDERS = sorted((Path(__file__).parent / "format_1").iterdir())


def test_every_renamed_model_and_option_has_a_case() -> None:
    assert len(FOLDERS) == 14


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_model_of_version_0_1_gives_the_same_logits(folder: Path, tmp_path: Path) -> None:
    model, expected = load(folder).eval(), load_file(folder / "expected.safetensors")
    with torch.no_grad():
        torch.testing.assert_close(model(expected["tokens"]), expected["logits"], atol=1e-6, rtol=1e-6)
        again = load(model.save(tmp_path)).eval()
        assert torch.equal(again(expected["tokens"]), model(expected["tokens"]))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("placed-slope", {"positions": "linear", "position_slope": 0.3, "position_shift": 2}),
        ("placed-shift", {"positions": "sinusoidal", "position_shift": 3, "token_std": 0.5}),
        ("bracket-pre", {"norm": "pre", "positions": "learned-linear", "readout_bias": True}),
        ("bracket-gpt", {"norm": "attention-post", "positions": "learned-linear"}),
        ("bracket-theory", {"norm": "attention-branch", "positions": "none"}),
    ],
)
def test_the_former_special_transformers_are_options_of_the_transformer(name: str, options: dict[str, object]) -> None:
    model = load(Path(__file__).parent / "format_1" / name)
    assert isinstance(model, Transformer)
    assert {option: getattr(model.config, option) for option in options} == options
