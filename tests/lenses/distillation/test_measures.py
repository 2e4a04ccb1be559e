"""Lenses on predictors whose dependence is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.learning.experiment import Experiment, Members, Training, train_members
from sandlab.lenses.distillation.attention_paths import attention_paths
from sandlab.lenses.distillation.monomials import monomial_correlations, monomial_sets, support_report
from sandlab.lenses.distillation.ngram_dependence import NgramDependence, closeness, neighbourhood, robustness
from sandlab.lenses.distillation.nonterminals import nonterminal_probe
from sandlab.models.base import build, seeded
from sandlab.models.distillation.published import bert, gpt2, gpt2_parity
from sandlab.models.hooks import record
from sandlab.random import rng
from sandlab.worlds.distillation.grammar_tasks import BoundaryGrammar, MaskedGrammar, WindowOracle

WORLD = MaskedGrammar("cfg3b", "13|14|15")


def test_neighbourhoods_are_those_of_the_definition() -> None:
    assert np.flatnonzero(neighbourhood(5, 3, 10)).tolist() == [4, 5, 6]
    assert np.flatnonzero(neighbourhood(5, 2, 10)).tolist() == [4, 5]
    assert np.flatnonzero(neighbourhood(5, 4, 10)).tolist() == [3, 4, 5, 6]
    assert np.flatnonzero(neighbourhood(0, 5, 10)).tolist() == [0, 1, 2]
    assert np.flatnonzero(neighbourhood(5, 3, 10, causal=True)).tolist() == [3, 4]


def sentences(n: int = 24) -> torch.Tensor:
    clean = WORLD.sample(n, rng=rng(0)).targets
    return torch.where(clean == WORLD.pad, WORLD.pad + WORLD.vocab, clean)


def test_a_predictor_without_context_depends_on_nothing() -> None:
    constant = lambda inputs: torch.full((*inputs.shape, 8), 1 / 8)  # noqa: E731
    for measure in (robustness, closeness):
        assert float(measure(constant, sentences(), 8, 3, vocab=8, mask=6).abs().max()) == 0.0


def test_the_oracle_of_one_token_on_each_side_is_close_at_3_and_equally_robust_from_there() -> None:
    """The window's oracle reads MASK where a token is masked, hidden or not."""
    window = WindowOracle(WORLD, 1)

    def predict(inputs: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(window.probs(inputs), (0, 0, 1, 0))

    clean = sentences()
    for n in (3, 4, 5):
        assert float(closeness(predict, clean, 8, n, vocab=8, mask=6).max()) < 1e-12
    values = [robustness(predict, clean, 8, n, vocab=8, mask=6) for n in (3, 4, 5, 7)]
    assert float(values[0].max()) > 0.05
    assert all(torch.allclose(values[0], each) for each in values[1:])
    halves = robustness(predict, clean, 8, 3, vocab=8, mask=6, tv="l1")
    assert torch.allclose(halves, 2 * values[0])


def test_causal_measures_hide_tokens_without_moving_the_others() -> None:
    with seeded(0):
        model = build(gpt2(8, 20, 2, layers=2, dropout=0.0, hidden_keys=True)).eval()
    seen: list[torch.Tensor] = []

    def predict(inputs: torch.Tensor) -> torch.Tensor:
        seen.append(inputs)
        with torch.no_grad():
            return model(inputs).softmax(-1)

    clean = BoundaryGrammar("cfg3b", "13|14|15").sample(4, rng=rng(1)).inputs[:, :20]
    robustness(predict, clean, 9, 4, vocab=8, mask=None)
    assert (seen[1] >= 8).nonzero()[:, 1].unique().tolist() == [6, 7]
    closeness(predict, clean, 9, 4, vocab=8, mask=None)
    assert (seen[3] < 8).nonzero()[:, 1].unique().tolist() == [6, 7, 8]
    assert torch.equal(seen[3] % 8, clean)


def test_the_probe_measures_every_member_on_masked_and_causal_tasks() -> None:
    probe = NgramDependence(ns=(2, 3), places=(4, 8), examples=8)
    training = Training(2, batch_size=2, evals=1, eval_examples=8)
    masked = Experiment(WORLD, bert(8, WORLD.length, 1, layers=1), training, 2, probes=(probe,))
    causal = BoundaryGrammar("cfg3b", "13|14|15")
    following = Experiment(causal, gpt2(8, causal.length, 1, layers=1), training, 2, probes=(probe,))
    for experiment in (masked, following):
        runs = train_members(Members(experiment, (0, 1)))
        assert runs.metrics["robust"].shape == runs.metrics["close"].shape == (2, 2, 2)
        assert np.isfinite(runs.metrics["robust"]).all()


def test_correlations_find_the_monomials_of_a_known_probability() -> None:
    p = lambda x: 0.5 + 0.2 * x[:, 0] - 0.1 * x[:, 1] * x[:, 2]  # noqa: E731
    found = monomial_correlations(p, 6, [(0,), (1, 2), (3,)], rng=rng(0), examples=40_000)
    assert found == pytest.approx([0.2, 0.1, 0.0], abs=0.01)
    report = support_report(p, (0, 1, 2), 6, examples=20_000)
    assert report.inside.shape == (3,) and report.rest.shape == (3,) and report.ratio > 5
    inside, rest = monomial_sets((0, 1, 2), 12, 2, rng=rng(0), rest=30)
    assert inside == [(0, 1), (0, 2), (1, 2)] and len(rest) == 30
    assert all(not set(each) <= {0, 1, 2} for each in rest)


def test_path_attention_is_the_product_of_both_layers() -> None:
    with seeded(1):
        model = build(gpt2_parity(7, 2, dropout=0.0))
    tokens = torch.randint(2, (5, 7), generator=rng(2))
    with record(model, "layers.*.attention.pattern") as cache:
        model(tokens)
    first, second = (cache[f"layers.{layer}.attention.pattern"].sum(1) for layer in (0, 1))
    expected = torch.stack([sum(second[b, -1, i] * first[b, i] for i in range(7)) for b in range(5)]).median(0).values
    assert torch.allclose(attention_paths(model, tokens), expected.detach(), atol=1e-6)


@pytest.mark.slow
def test_non_terminals_of_the_lowest_layers_can_be_read_off_an_untrained_encoder() -> None:
    world = MaskedGrammar("cfg3b", "13", latent=True)
    with seeded(3):
        model = build(bert(8, world.length, 4, layers=1, dropout=0.0))
    found = nonterminal_probe(model, world, train=640, test=64, epochs=1, heads=2, width=16, positions="all")
    assert found.shape == (3,) and found[0] > 0.99
