"""Every world with every model at the terminal's defaults: it trains, or one sentence says which models fit (D9)."""

from __future__ import annotations

import dataclasses

import pytest

import sandlab as sl
from sandlab.cli.browse import make_world
from sandlab.errors import BadInput
from sandlab.lab import training
from sandlab.learning.experiment import Experiment, Members, Training, train_members

BRIEF = Training(steps=1, batch_size=2, eval_examples=2, evals=1)


def worlds() -> list[str]:
    return [name for name in sl.names("worlds") if dataclasses.is_dataclass(sl.get("worlds", name))]


def try_pairs(world_name: str, models: list[str]) -> tuple[int, int]:
    """How many of the models train on the world, and how many are refused; any other end is an error."""
    try:
        world = make_world(world_name, {})
    except BadInput:
        return 0, len(models)
    trained = 0
    for name in models:
        try:
            config = training._fitted(world, sl.get("models", name), {})
        except BadInput:
            continue
        if not training._misfit(world, config, None):
            runs = train_members(Members(Experiment(world, config, BRIEF), (0,)))
            assert runs.loss.shape == (1, 1)
            trained += 1
    return trained, len(models) - trained


@pytest.mark.parametrize("world", ["grid", "dihedral", "addition", "flip-flop", "mixture", "in-context-markov"])
def test_a_pair_trains_or_is_refused(world: str) -> None:
    assert try_pairs(world, ["transformer", "rnn"]) == (2, 0)
    assert try_pairs(world, ["mlp", "density-ratio"]) == (0, 2)


def test_a_model_of_two_classes_is_refused_where_two_examples_show_the_first_two_of_four() -> None:
    with pytest.raises(BadInput, match=r"it tells 2 classes apart, the world has 4\): models that fit: .*transformer"):
        training.fit_config(sl.worlds.HMM(length=3), sl.models.OneLayerMarkov, {})
    assert try_pairs("hmm", ["three-parameter-markov", "transformer"]) == (1, 1)
    assert try_pairs("markov-chain", ["one-layer-markov", "three-parameter-markov"]) == (2, 0)


@pytest.mark.slow
def test_all_pairs_train_or_are_refused() -> None:
    models = [name for name in sl.names("models") if name != "own-module"]
    counts = [try_pairs(world, models) for world in worlds()]
    trained, refused = (sum(column) for column in zip(*counts))
    print(f"{trained} pairs train, {refused} are refused")
    assert trained > 100


def test_the_refusal_names_models_that_fit() -> None:
    with pytest.raises(BadInput, match=r"MLP does not fit Grid \(.*\): models that fit: .*transformer"):
        training.fit_config(sl.worlds.Grid(), sl.models.MLP, {})
    with pytest.raises(BadInput, match=r"models that fit|no model of the laboratory fits"):
        training.fit_config(sl.worlds.Addition(), sl.get("models", "density-ratio"), {})
