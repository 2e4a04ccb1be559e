"""Every model is one graph for `torch.compile`, alone and with a member axis: nothing inside asks the device back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.func import functional_call, stack_module_state

from sandlab.models.base import Model, seeded
from sandlab.models.hybrid import Hybrid
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.mlp import MLP
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.models.recurrent import LSTM, RNN
from sandlab.models.state_space import StateSpace
from sandlab.models.transformer import Transformer

QUICK = [lambda: SimplifiedTransformer(vocab=3, length=6, boundary="bos")]
SLOW = [
    lambda: Transformer(vocab=3, length=6, width=8, heads=2, layers=1),
    lambda: Transformer(vocab=3, length=6, width=8, heads=2, positions="rotary", norm_kind="rms", loops=2, tied=True),
    lambda: Transformer(vocab=3, length=6, width=8, positions="relative", attention="hard", window=3),
    lambda: Transformer(vocab=3, length=6, width=8, positions="alibi", attention="linear", norm="post"),
    lambda: DisentangledTransformer(vocab=3, length=6, heads=(2, 1), value=True),
    lambda: RNN(vocab=3, width=8),
    lambda: LSTM(vocab=3, width=8),
    lambda: StateSpace(vocab=3, width=8),
    lambda: Hybrid(vocab=3, length=6, width=8, layers=2),
    lambda: MLP(vocab=3, length=6),
]


@pytest.mark.parametrize("make", [*QUICK, *(pytest.param(make, marks=pytest.mark.slow) for make in SLOW)])
def test_a_model_and_its_population_are_one_graph(make: Callable[[], Model]) -> None:
    torch.compiler.reset()
    with seeded(0):
        models = [make().double() for _ in range(2)]
        tokens = torch.randint(3, (2, 4, 6))
    weights = stack_module_state(models)[0]

    def members(weights: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
        return functional_call(models[0], weights, (tokens,))

    alone = torch.compile(models[0], backend="aot_eager", fullgraph=True)
    together = torch.compile(members, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(alone(tokens[0]), models[0](tokens[0]))
    expected = torch.stack([model(x) for model, x in zip(models, tokens)])
    torch.testing.assert_close(together(weights, tokens), expected)
