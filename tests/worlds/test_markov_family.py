"""Every Markov-type world: defaults that work, an oracle that no baseline beats, text, refusal of bad input."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.worlds.base import cross_entropy

NAMES = [
    "associative-recall",
    "bigram-backcopy",
    "bigram-trigger",
    "copy-string",
    "in-context-dag",
    "in-context-markov",
    "in-context-ngrams",
    "in-context-tree",
    "induction-task",
    "interleaved-chains",
    "k-hop-induction",
    "markov-chain",
    "mixture",
    "needle-retrieval",
]


KNOWN = {"in-context-tree": {"roots": "uniform"}}
"""Parameters for which the Bayes predictor is known, where it is not for the default ones."""


def known(name):
    return sl.get("worlds", name)(**KNOWN.get(name, {}))


@pytest.mark.parametrize("name", NAMES)
def test_the_default_world_samples_tokens_it_can_predict_and_print(name):
    world = known(name)
    batch = world.sample(64, rng=sl.rng(0))
    assert batch.inputs.shape == (64, world.length)
    assert batch.inputs.dtype == torch.int64
    assert int(batch.inputs.min()) >= 0 and int(batch.inputs.max()) < world.vocab
    log_probs = world.oracle(batch)
    assert log_probs.dtype == torch.float64
    assert log_probs.shape == (*batch.mask.shape, world.outputs)
    assert torch.allclose(log_probs.logsumexp(-1), torch.zeros(batch.mask.shape, dtype=torch.float64), atol=1e-9)
    assert isinstance(world.render(batch.inputs[0]), str)
    assert torch.equal(world.sample(64, rng=sl.rng(0)).inputs, batch.inputs)


@pytest.mark.parametrize("name", NAMES)
def test_no_baseline_beats_the_oracle(name):
    world = known(name)
    batch = world.sample(4000, rng=sl.rng(1))
    best = world.optimal_loss(batch)
    for baseline, predict in world.baselines().items():
        assert float(cross_entropy(predict(batch), batch)) > best - 0.01, baseline


@pytest.mark.parametrize("name", NAMES)
def test_unknown_parameters_and_empty_batches_are_refused(name):
    kind = sl.get("worlds", name)
    with pytest.raises(sl.BadInput, match="no parameter"):
        kind.from_settings({"lenght": 3})
    with pytest.raises(sl.BadInput, match="n must be"):
        kind().sample(0, rng=sl.rng(0))


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_say_what_the_world_is(name):
    text = sl.get("worlds", name).__doc__
    assert len(text.strip().splitlines()[0]) > 30
    for parameter in sl.get("worlds", name).parameters():
        assert parameter.name in text, parameter.name


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("in-context-tree", {}),
        ("in-context-markov", {"start": "stationary"}),
        ("in-context-markov", {"states": 2, "order": 2, "start": "stationary"}),
        ("in-context-ngrams", {"start": "stationary"}),
    ],
)
def test_where_the_bayes_predictor_is_not_known_there_is_no_oracle(name, parameters):
    world = sl.get("worlds", name)(**parameters)
    batch = world.sample(8, rng=sl.rng(0))
    with pytest.raises(NotImplementedError, match="no closed form is known"):
        world.optimal_loss(batch)
    assert all(bool(predict(batch).isfinite().all()) for predict in world.baselines().values())
