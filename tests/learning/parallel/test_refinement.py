"""Corruption, the multi-stage loss and teacher forcing."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.objectives import Forward, member_loss
from sandlab.learning.parallel.refinement import RefinementLoss, TeacherForcing, corrupt, stutters
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.models.base import seeded
from sandlab.models.parallel.encoder_decoder import EncoderDecoder
from sandlab.worlds.parallel.translation import END, MASK, PAD, RESERVED, START, ToyTranslation

WORLD = ToyTranslation(longest=4)
BATCH = WORLD.sample(400, rng=sl.rng(0))


def model(*, causal: bool = False) -> EncoderDecoder:
    with seeded(0):
        return EncoderDecoder(
            vocab=WORLD.vocab, source_length=4, target_length=9, width=16, heads=2, layers=1, causal=causal
        )


def test_a_share_of_words_stays_and_marks_stay_in_place() -> None:
    spoilt = corrupt(BATCH.targets, 0.15, WORLD.vocab, rng=sl.rng(1))
    words = (BATCH.targets != PAD) & (BATCH.targets != END)
    assert float((spoilt == BATCH.targets)[words].double().mean()) == pytest.approx(0.15 + 0.85 / 46, abs=0.03)
    assert bool((spoilt == BATCH.targets)[~words].all()) and int(spoilt[words].min()) >= RESERVED
    masked = corrupt(BATCH.targets, 0.0, WORLD.vocab, noise="mask", rng=sl.rng(1))
    assert bool((masked[words] == MASK).all())


def test_stutters_mark_the_second_of_two_equal_words() -> None:
    assert stutters(torch.tensor([[5, 5, 5, 6, END, PAD, PAD]])).tolist() == [[False, True, True] + [False] * 4]


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_the_loss_is_the_mean_over_stages_fed_with_their_own_answers(stages: int) -> None:
    net, goal = model(), RefinementLoss(WORLD.vocab, stages=stages, length=0.5)
    batch = goal.prepare(BATCH, sl.rng(2))
    found = goal.whole(Forward(net, net), batch)
    fed, total = batch.inputs[:, 4:], torch.zeros(())
    for _ in range(stages):
        logits = net(torch.cat([batch.inputs[:, :4], fed], 1))
        total = total + member_loss(logits[:, 1:], batch) / stages
        answer = logits[:, 1:].argmax(-1)
        answer = torch.where(stutters(answer), fed, answer)
        fed = torch.where(BATCH.targets <= END, BATCH.targets, answer)
    lengths = torch.nn.functional.cross_entropy(net(batch.inputs)[:, 0], BATCH.truth["length"] - 1)
    assert float(found) == pytest.approx(float(total + 0.5 * lengths), rel=1e-5)


def test_the_loss_may_count_corrupted_words_only() -> None:
    batch = RefinementLoss(WORLD.vocab, counted="noise").prepare(BATCH, sl.rng(3))
    assert bool((batch.inputs[:, 4:] != batch.targets)[batch.mask].all())


def test_teacher_forcing_shifts_the_target() -> None:
    batch = TeacherForcing().prepare(BATCH, sl.rng(4))
    assert bool((batch.inputs[:, 4] == START).all()) and bool((batch.inputs[:, 5:] == BATCH.targets[:, :-1]).all())


@pytest.mark.parametrize("causal", [False, True])
def test_training_lowers_the_loss(causal: bool) -> None:
    goal = TeacherForcing() if causal else RefinementLoss(WORLD.vocab)
    history = train(
        model(causal=causal), WORLD, steps=40, batch_size=16, lr=5e-3, objective=goal, rng=sl.rng(5), progress=False
    )
    assert history.loss[-5:].mean() < 0.8 * history.loss[:3].mean()


@pytest.mark.parametrize("causal", [False, True])
def test_members_train_together_as_they_do_alone(causal: bool) -> None:
    goal = TeacherForcing() if causal else RefinementLoss(WORLD.vocab)
    losses = []
    for strategy in ("native", "sequential"):
        members = Population(lambda seed: model(causal=causal), seeds=range(2), strategy=strategy)
        histories = train(
            members, WORLD, steps=3, batch_size=8, objective=goal, rng=sl.rng(6), progress=False, data="separate"
        )
        losses.append([history.loss.tolist() for history in histories])
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-4)
    assert losses[0][1] == pytest.approx(losses[1][1], rel=1e-4)


def test_members_that_share_examples_are_refused() -> None:
    members = Population(lambda seed: model(), seeds=range(2), strategy="native")
    with pytest.raises(BadInput, match="separate"):
        train(
            members, WORLD, steps=1, batch_size=4, objective=RefinementLoss(WORLD.vocab), rng=sl.rng(7), progress=False
        )
