"""Masked prediction as data: targets against tokens, oracles against the joint law."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.worlds.hmm.masked import MaskedPrediction, MaskedStrings
from sandlab.worlds.hmm.models import HMM, GaussianHMM


@pytest.mark.parametrize("task", ["2|1", "2x3|1", "1x3|2", "2|1,3"])
def test_the_mean_of_the_targets_given_the_tokens_is_the_predictor(task: str) -> None:
    world = MaskedPrediction(HMM(), task)
    batch = world.sample(200_000, rng=sl.rng(0))
    assert batch.targets.shape == (200_000, 1, world.outputs)
    first = batch.inputs.unique(dim=0)
    for row in first[:4]:
        chosen = (batch.inputs == row).all(1)
        found = batch.targets[chosen].mean(0).double()
        torch.testing.assert_close(found, world.optimal(batch[chosen][:1])[0], atol=0.02, rtol=0)
    assert world.optimal_loss(batch[:1000]) > 0


def test_the_residual_of_the_gaussian_predictor_is_orthogonal_to_functions_of_the_input() -> None:
    world = MaskedPrediction(GaussianHMM(), "1x3|2")
    batch = world.sample(200_000, rng=sl.rng(0))
    gap = (batch.targets.double() - world.optimal(batch))[:, 0]
    for weight in (torch.ones(len(batch)), batch.inputs[:, 0], torch.tanh(batch.inputs[:, 2])):
        assert float((gap * weight[:, None]).mean(0).abs().max()) < 0.02
    with pytest.raises(NotImplementedError, match="optimal"):
        world.oracle(batch)


@pytest.mark.parametrize(("masked", "joint"), [(1, False), (2, False), (2, True)])
def test_the_oracle_of_masked_strings_is_the_conditional_of_the_joint(masked: int, joint: bool) -> None:
    hmm = HMM()
    world, table = MaskedStrings(hmm, masked, joint), hmm.joint(3)
    batch = world.sample(30, rng=sl.rng(0))
    answers = world.oracle(batch).exp().numpy()
    for row, hidden, answer in zip(batch.inputs.numpy(), batch.mask.numpy(), answers):
        visible = tuple(slice(None) if token == 4 else int(token) for token in row)
        law = table[visible] / table[visible].sum()
        if joint:
            np.testing.assert_allclose(answer[0], law.ravel(), atol=1e-12)
            continue
        places = [place for place in range(3) if row[place] == 4]
        for axis, place in enumerate(places):
            assert hidden[place]
            others = tuple(each for each in range(len(places)) if each != axis)
            np.testing.assert_allclose(answer[place], law.sum(others), atol=1e-12)


def test_joint_classes_name_the_hidden_tokens() -> None:
    world = MaskedStrings(HMM(), 2, joint=True)
    batch = world.sample(100_000, rng=sl.rng(0))
    counts = torch.bincount(batch.targets[:, 0], minlength=16).double().numpy() / len(batch)
    np.testing.assert_allclose(counts, HMM().joint(3).sum(0).ravel(), atol=5e-3)
    with pytest.raises(BadInput, match="fewer"):
        MaskedStrings(HMM(), 3)
