"""Value functions: calibrated where the truth is known, exact on complete strings, and cheap at large vocabularies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.generators.neural import ModelGenerator
from sandlab.decoding.verifiers.values import Rollouts, ValueFunction, collect_rollouts, train_value
from sandlab.models.transformer import Transformer

LENGTH, POINT = 9, "layers.1.resid_post"


def network(vocab: int = 4, length: int = LENGTH) -> Transformer:
    torch.manual_seed(0)
    return Transformer(vocab=vocab, length=length, layers=2, heads=2, width=16, init_std=0.3).eval()


def few_ones(tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Right: at most one token 1."""
    inside = torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)
    return ((tokens == 1) & inside).sum(1) <= 1


def rollouts(n: int = 600) -> tuple[ModelGenerator, Rollouts]:
    generator = ModelGenerator(network(), points=[POINT])
    return generator, collect_rollouts(generator, [[0]] * n, few_ones, max_new=LENGTH - 1, eos=None, rng=sl.rng(0))


def test_a_value_is_the_share_of_continuations_that_end_well():
    generator, found = rollouts(2000)
    assert 0.1 < found.success < 0.95
    trained = train_value(generator, found, POINT, rng=sl.rng(1))
    assert trained.calibration_error < 0.12 and trained.quality.area > 0.65
    value = ValueFunction(generator, POINT, trained.network, few_ones)
    # The model's own prefixes with four tokens to come, against the sum over all 4⁴ endings.
    done = sl.decoding.Temperature().generate(generator, [[0]] * 60, max_new=LENGTH - 5, rng=sl.rng(2))
    tokens = done.tokens[:, : LENGTH - 4]
    generator.start(60, LENGTH)
    ours = value.value(tokens, torch.full((60,), LENGTH - 4), torch.arange(60))
    true = torch.tensor([chance_of_success(generator.model, row) for row in tokens])
    assert float(torch.corrcoef(torch.stack([ours, true]))[0, 1]) > 0.5


def chance_of_success(model: Transformer, prefix: torch.Tensor) -> float:
    """P(few ones | prefix) by enumeration."""
    endings = torch.cartesian_prod(*[torch.arange(4)] * 4)
    strings = torch.cat([prefix.expand(len(endings), -1), endings], 1)
    with torch.no_grad():
        law = model(strings[:, :-1]).double().log_softmax(-1)[:, -4:]
    weights = law.gather(2, endings.unsqueeze(-1)).sum((1, 2)).exp()
    return float((weights * few_ones(strings, torch.full((len(strings),), LENGTH))).sum())


def test_complete_strings_are_judged_exactly_whatever_the_network_says():
    generator, found = rollouts(200)
    value = ValueFunction(
        generator, POINT, train_value(generator, found, POINT, rng=sl.rng(1), steps=10).network, few_ones
    )
    for decoder in (VGB(children="sampled", remember=4), VGB(), ValueGuided(children="sampled", max_tries=50)):
        done = decoder.generate(generator, [[0]] * 12, max_new=LENGTH - 1, verifier=value, rng=sl.rng(2))
        assert bool(few_ones(done.tokens, done.lengths)[done.done].all()) and int(done.done.sum()) > 6


def test_rollouts_of_one_kind_teach_nothing_and_that_is_said():
    generator, found = rollouts(50)
    with pytest.raises(sl.BadInput, match="rollouts ended well: a value needs both kinds"):
        train_value(generator, Rollouts(found.prefixes, torch.ones_like(found.labels)), POINT, rng=sl.rng(0))


def test_sampled_children_cost_about_one_evaluation_each_whatever_the_vocabulary():
    generator = ModelGenerator(network(vocab=3000), points=[POINT])
    found = collect_rollouts(
        generator, [[0]] * 60, lambda tokens, lengths: tokens[:, 1] % 2 == 0, max_new=8, eos=None, rng=sl.rng(0)
    )
    trained = train_value(generator, found, POINT, rng=sl.rng(1), steps=20)
    value = ValueFunction(generator, POINT, trained.network, lambda tokens, lengths: torch.ones(len(lengths)))
    before = generator.evaluations
    done = VGB(children="sampled", remember=64).generate(
        generator, [[0]] * 2, max_new=8, verifier=value, rng=sl.rng(3), budget=50
    )
    asked = done.total("oracle_calls") + done.total("verifier_calls")
    assert generator.evaluations - before <= asked < 400


def test_values_above_one_are_refused_where_they_are_probabilities():
    generator = ModelGenerator(network(), points=[POINT])
    verifier = sl.decoding.FunctionVerifier(lambda tokens, lengths: torch.full((len(lengths),), 2.0))
    with pytest.raises(sl.BadInput, match="needs values of at most 1, got 2"):
        VGB(children="sampled").generate(generator, [[0]], max_new=3, verifier=verifier, rng=sl.rng(0))


@pytest.mark.slow
def test_a_query_at_fifty_thousand_tokens_costs_less_than_three_plain_steps_and_a_hundred_megabytes():
    pytest.importorskip("transformers")
    program = Path(__file__).parents[3] / "benchmarks" / "constrained_decoding.py"
    words = [sys.executable, str(program), "--only", json.dumps(["trained", 50_257])]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    steps, megabytes = json.loads(done.stdout.splitlines()[-1])
    assert 0 < steps < 3 and megabytes < 100
