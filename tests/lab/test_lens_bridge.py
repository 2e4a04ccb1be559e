"""TransformerLens reads and writes the activations of any model, with the model's own logits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lab.lens_bridge import bridge_to_transformer_lens

pytest.importorskip("transformer_lens")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from circuit_instances import INSTANCES

WITH_PARTS = [name for name in INSTANCES if name != "suffix-table"]  # which is one table, without named activations


@pytest.mark.gate(12)
@pytest.mark.parametrize("name", WITH_PARTS)
def test_every_circuit_has_its_logits_and_activations_there(name: str) -> None:
    model, tokens = INSTANCES[name]()
    with sl.record(model, "*") as tape:
        truth = model(tokens)
    logits, cache = bridge_to_transformer_lens(model).run_with_cache(tokens)
    torch.testing.assert_close(logits, truth, rtol=0, atol=1e-5)
    points = [path for path, part in model.named_modules() if type(part).__name__ == "HookPoint"]
    shared = [path for path in points if path in tape and path in cache]
    assert set(cache) <= set(points) and len(shared) == len(cache)
    for path in shared:
        torch.testing.assert_close(cache[path], tape[path], rtol=0, atol=1e-5)


def test_a_table_without_named_activations_has_its_logits_and_weights_there() -> None:
    model, tokens = INSTANCES["suffix-table"]()
    bridge = bridge_to_transformer_lens(model)
    logits, cache = bridge.run_with_cache(tokens)
    torch.testing.assert_close(logits, model(tokens), rtol=0, atol=1e-5)
    assert len(cache) == 0 and dict(bridge.named_parameters()).keys() == dict(model.named_parameters()).keys()


def test_a_patched_pattern_changes_the_answer_and_the_model_stays() -> None:
    circuit, tokens = INSTANCES["induction-head"]()
    before = circuit(tokens)
    bridge = bridge_to_transformer_lens(circuit)
    cut = bridge.run_with_hooks(tokens, fwd_hooks=[("layers.1.attention.pattern", lambda value, hook: value * 0)])
    assert not torch.allclose(cut, before)
    torch.testing.assert_close(bridge(tokens), before)
    torch.testing.assert_close(circuit(tokens), before)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(BadInput, match="takes a model of SandLab"):
        bridge_to_transformer_lens(torch.nn.Linear(2, 2))  # type: ignore[arg-type]
