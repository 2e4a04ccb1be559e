import pytest
import torch

import sandlab as sl
from sandlab.circuits.flip_flop.memory import memory_transformer
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.flip_flop.memory_heads import (
    attention_entropy,
    head_differences,
    ideal_memory_score,
    misleading_rows,
    value_norm_importance,
)
from sandlab.worlds.flip_flop.language import FlipFlopTransduction

WORLD = FlipFlopTransduction(length=20, idle=0.8)


def test_the_memory_circuit_is_the_ideal_memory_head() -> None:
    batch = WORLD.sample(30, rng=sl.rng(0))
    (pattern,) = attention_maps(memory_transformer(20), batch.inputs, average=False).values()
    score = ideal_memory_score(pattern, batch.inputs, batch.truth["latest_write"])
    assert float(score["hit_idle"]) == 1.0 and float(score["hit_write"]) == 1.0
    assert float(score["mass_idle"]) > 0.99
    assert float(attention_entropy(pattern).max()) < 0.05


def test_uniform_attention_scores_what_counting_says() -> None:
    batch = WORLD.sample(10, rng=sl.rng(1))
    time = torch.arange(1, 21).double()
    uniform = (torch.ones(20, 20).tril().double() / time.unsqueeze(1)).expand(10, 1, 20, 20)
    score = ideal_memory_score(uniform, batch.inputs, batch.truth["latest_write"])
    idle = batch.inputs == 0
    expected = (1 / time).expand(10, 20)[idle].mean()
    assert torch.allclose(score["mass_idle"], expected)
    same, total = 0.0, 0
    for row, operations in enumerate(batch.inputs.tolist()):
        for time, operation in enumerate(operations):
            if operation == 0:
                stored = operations[int(batch.truth["latest_write"][row, time])]
                same += sum(value == stored for value in operations[: time + 1]) / (time + 1)
                total += 1
    assert float(score["type_mass"]) == pytest.approx(same / total)


def test_head_differences_are_frobenius_distances_of_all_pairs() -> None:
    pattern = torch.rand(3, 4, 5, 5, generator=sl.rng(2)).double().softmax(-1)
    found = head_differences(pattern)
    assert found.shape == (3, 6)
    assert torch.allclose(found[1, 5], torch.linalg.matrix_norm(pattern[1, 2] - pattern[1, 3]))


def test_importance_is_attention_times_the_length_of_what_is_written() -> None:
    model = sl.models.Transformer(vocab=3, outputs=2, length=20, layers=2, heads=2, width=8, init_std=None)
    inputs = WORLD.sample(4, rng=sl.rng(3)).inputs
    found = value_norm_importance(model, inputs, 1)
    with sl.record(model, "layers.1.attention.pattern", "layers.1.attention.value") as cache:
        model(inputs)
    head, query, key = 1, 12, 7
    value = cache["layers.1.attention.value"][2, key, 4:8]
    written = model.layers[1].attention.output.weight[:, 4:8] @ value
    expected = cache["layers.1.attention.pattern"][2, head, query, key] * written.norm()
    assert torch.allclose(found[2, head, query, key], expected.detach(), rtol=1e-5)


def test_the_memory_circuit_has_misleading_rows_only_when_its_attention_is_replaced() -> None:
    circuit, batch = memory_transformer(20), WORLD.sample(30, rng=sl.rng(4))
    assert misleading_rows(circuit, batch, 0) == (0.0, 0.0, 0.0)

    def uniform(pattern: torch.Tensor) -> torch.Tensor:
        return torch.ones_like(pattern).tril() / torch.arange(1, 21).unsqueeze(1)

    with sl.patch(circuit, {"layers.0.attention.pattern": uniform}):
        with torch.no_grad():
            right = circuit(batch.inputs).argmax(-1) == batch.targets
        share, repaired, gain = misleading_rows(circuit, batch, 0)
    # All weights of a row are equal, so the first token counts as its maximum.
    expected = right & (batch.inputs[:, :1] != batch.targets + 1)
    assert share == pytest.approx(float(expected.double().mean())) and share > 0
    assert 0 <= repaired <= 1 and -1 <= gain <= 1
