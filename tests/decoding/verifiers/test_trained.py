"""Trained verifiers: they separate what can be separated, and cost one evaluation per prefix."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.walks import VGB
from sandlab.decoding.generators.neural import ModelGenerator, RecomputingGenerator
from sandlab.decoding.verifiers.trained import ProbeVerifier, last_features, train_probe
from sandlab.models.transformer import Transformer


def network() -> Transformer:
    torch.manual_seed(0)
    return Transformer(vocab=6, length=14, layers=2, heads=2, width=16, init_std=0.3).eval()


def halves(count: int, width: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(count) % 2
    noise = torch.randn(count, width, generator=sl.rng(seed))
    return noise + 3.0 * labels.unsqueeze(1) * torch.nn.functional.one_hot(torch.tensor(2), width) + 5.0, labels


def test_a_linear_probe_finds_a_direction_and_a_deep_one_a_curve():
    features, labels = halves(800, 12, 0)
    assert train_probe(features, labels, rng=sl.rng(1)).validation_accuracy > 0.88
    ring = torch.randn(1200, 2, generator=sl.rng(2))
    inside = (ring.norm(dim=1) < 1.2).long()
    linear = train_probe(ring, inside, rng=sl.rng(3))
    deep = train_probe(ring, inside, rng=sl.rng(3), layers=2)
    assert linear.validation_accuracy < 0.75 < 0.93 < deep.validation_accuracy


def test_training_depends_on_its_seed_alone():
    features, labels = halves(200, 6, 0)
    torch.manual_seed(1)
    first = train_probe(features, labels, rng=sl.rng(5), steps=40)
    torch.manual_seed(2)
    second = train_probe(features, labels, rng=sl.rng(5), steps=40)
    assert torch.equal(first.network.score(features), second.network.score(features))


def test_labels_of_one_kind_are_refused():
    with pytest.raises(sl.BadInput, match="labels must be both 0 and 1"):
        train_probe(torch.zeros(4, 2), torch.ones(4, dtype=torch.long), rng=sl.rng(0))


def test_features_of_strings_are_those_of_a_plain_pass():
    model = network()
    strings = [[4, 0, 1], [4, 0, 2, 3, 1, 0], [4]]
    ours = last_features(ModelGenerator(model), strings, ["layers.0.resid_post", "ln_final"], batch=2)
    for point, values in ours.items():
        for row, string in enumerate(strings):
            alone = RecomputingGenerator(model).features(
                torch.tensor([string]), torch.tensor([len(string)]), torch.tensor([0]), point
            )
            assert torch.allclose(values[row], alone[0], atol=1e-5)


def test_a_probe_verifier_costs_one_evaluation_per_kept_prefix():
    generator = ModelGenerator(network())
    features = last_features(generator, [[4, token] for token in range(6)] * 10, ["ln_final"])["ln_final"]
    probe = train_probe(features, (torch.arange(60) % 6 < 3).long(), rng=sl.rng(0))
    assert probe.train_accuracy == 1.0
    verifier = ProbeVerifier(generator, "ln_final", probe.network)
    generator.evaluations = 0
    done = Backtracking(quota=2, stride=2).generate(
        generator, [[4]] * 20, verifier=verifier, max_new=12, eos=5, rng=sl.rng(1)
    )
    rejected = done.total("backtracks")
    finals = 20
    # Every query is an evaluation; beyond them only rejected and final strings are read for their features.
    assert done.total("oracle_calls") <= generator.evaluations <= done.total("oracle_calls") + rejected + finals


def test_a_probe_can_guide_the_walk():
    model = network()
    cached, plain = ModelGenerator(model), RecomputingGenerator(model)
    features = last_features(cached, [[4, token] for token in range(6)] * 10, ["ln_final"])["ln_final"]
    probe = train_probe(features, (torch.arange(60) % 6 < 3).long(), rng=sl.rng(0)).network
    results = [
        VGB(max_steps=40).generate(
            generator, [[4]] * 6, verifier=ProbeVerifier(generator, "ln_final", probe), max_new=5, eos=5, rng=sl.rng(1)
        )
        for generator in (cached, plain)
    ]
    assert [results[0].string(row) for row in range(6)] == [results[1].string(row) for row in range(6)]
