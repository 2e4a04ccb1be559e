"""Walks that share what was read: the same strings at the same counted cost as the decoders themselves."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sandlab as sl
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.quality import verifier_quality
from sandlab.decoding.verifiers.trained import ProbeNetwork
from sandlab.decoding.verifiers.values import TrainedValue
from sandlab.studies.verifier._cost_runs import Bench, Task, records_experiment

END, VOCAB, LIMIT = 0, 5, 12


class Even:
    """Strings whose tokens add up to an even number."""

    end_token = END

    def contains(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        inside = torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)
        return (tokens * inside).sum(1) % 2 == 0


def a_bench(seed: int) -> Bench:
    """A random model and random values on a vocabulary of five."""
    torch.manual_seed(seed)
    model = sl.models.Transformer(vocab=VOCAB, length=LIMIT, layers=2, heads=2, width=16, init_std=0.3)
    experiment = records_experiment(seeds=1, steps=1, width=16, layers=2)
    task = Task("even", experiment, Even(), LIMIT, 9, "layers.1.resid_post", lambda n, seed: [], len)
    quality = verifier_quality([0.2, 0.8], [0, 1])
    network = ProbeNetwork(16, 2, 8)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.8)
    # Mostly above a half, so that walks come to their end.
    network.maps[-1].bias.data[1] += 2
    return Bench(task, model.eval(), TrainedValue(network, task.point, quality, 1), seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("budget", [5, 200])
@pytest.mark.parametrize(
    "decoder",
    [
        VGB(children="sampled", remember=64, max_steps=1500),
        VGB(children="sampled", remember=64, max_steps=40),
        ValueGuided(children="sampled", max_tries=3, max_draws=4, remember=64),
    ],
    ids=["walk", "short walk", "value-guided"],
)
def test_strings_and_costs_are_those_of_the_decoders(decoder: VGB | ValueGuided, budget: int, seed: int) -> None:
    bench = a_bench(seed)
    # Some prompts are the same, and their lengths differ.
    prompts = [[1], [1], [2, 3], [4, 1, 2], [2, 3], [1], [3, 3, 3, 2]] * 3
    right, alone = bench.run_alone(decoder, prompts, "stream", budget)
    expected, together = bench.run_together(decoder, prompts, "stream", budget)
    assert right.tolist() == expected.tolist()
    assert alone.cost == pytest.approx(together.cost) and alone.asked == pytest.approx(together.asked)
    assert alone.strings == together.strings
    # What other runs have read changes nothing.
    again, shared = bench.run_alone(decoder, prompts, "stream", budget)
    assert again.tolist() == right.tolist() and shared == alone


def test_the_comparison_sees_walks_that_end_and_walks_that_do_not() -> None:
    bench, prompts = a_bench(0), [[1], [2, 3]] * 20
    ended = [
        float(bench.run_alone(VGB(children="sampled", max_steps=steps), prompts, "s", 200)[0].double().mean())
        for steps in (40, 1500)
    ]
    assert ended[0] < ended[1] and ended[1] > 0.2
