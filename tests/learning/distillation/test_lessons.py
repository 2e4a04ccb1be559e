"""Distillation: a perfect cold teacher is the labels, each student has its own teacher, stores come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float
from pretended_gpu import pretended_gpu
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.learning._engine.scratch import scratch_folder
from sandlab.learning.distillation.checkpoint_store import CheckpointStore, Teachers, keep_weights, soften
from sandlab.learning.distillation.lesson_plans import NT, OneShot, TwoShot
from sandlab.learning.distillation.lessons import (
    HingeMix,
    LabelCache,
    Lesson,
    TaughtWorld,
    Together,
    distil,
    distillation_loss,
    learn,
    learn_together,
)
from sandlab.learning.distillation.perceptrons import Drill, PerceptronStack, drill
from sandlab.learning.experiment import Experiment, Members, Training, join, train_members
from sandlab.models.base import Config, Model, build, configured, seeded
from sandlab.models.distillation.published import bert
from sandlab.models.distillation.theory_perceptron import perceptron
from sandlab.random import rng
from sandlab.worlds.base import Batch
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar
from sandlab.worlds.distillation.parities import SparseParity

WORLD = SparseParity(6, 2)


@dataclass(frozen=True)
class ProductConfig(Config):
    """No options."""

    size: int = 6


class Product(Model):
    """The perfect teacher of x₁x₂: logits ± scale."""

    config: ProductConfig

    @configured(ProductConfig)
    def __init__(self, config: ProductConfig) -> None:
        super().__init__(config)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, inputs: Tensor) -> Float[Tensor, "*lead 1 2"]:
        product = self.scale * inputs[..., 0] * inputs[..., 1]
        return torch.stack([product, -product], -1).unsqueeze(-2)


TRAINING = Training(20, batch_size=8, lr=0.1, optimizer="sgd", evals=4, eval_examples=32)
STUDENT = Experiment(WORLD, perceptron(6, 5), TRAINING, (0, 1))


def perfect() -> CheckpointStore:
    return CheckpointStore(ProductConfig(), (0, 1), (0, 20), {"scale": torch.ones(2, 2, 1)})


@pytest.mark.parametrize("tau", [0.0, 1e-4])
def test_one_shot_from_a_perfect_cold_teacher_is_training_on_the_labels(tau: float) -> None:
    labels = train_members(Members(STUDENT, (0, 1), weights=True))
    teacher = Experiment(WORLD, ProductConfig(), TRAINING, (0, 1))
    taught = learn(Lesson(teacher, STUDENT, OneShot(20), tau, (0, 1), weights=True), perfect())
    assert labels.weights is not None and taught.weights is not None
    for name, value in labels.weights.items():
        assert float((value - taught.weights[name]).abs().max()) <= 1e-6
    assert np.allclose(labels.metrics["accuracy"], taught.metrics["accuracy"])
    warm = learn(Lesson(teacher, STUDENT, OneShot(20), 1.0, (0, 1), weights=True), perfect())
    assert warm.weights is not None
    assert any(float((value - warm.weights[name]).abs().max()) > 1e-3 for name, value in labels.weights.items())


TEACHER = Experiment(WORLD, perceptron(6, 7), TRAINING, (0, 1), probes=(keep_weights,))


class Here:
    """A laboratory that runs jobs where it is."""

    device = "cpu"

    def map(self, job: Any, configs: Sequence[Any], *, given: Sequence[Any], label: str = "") -> list[Any]:
        return [job(config, store) for config, store in zip(configs, given)]


def lessons_of(store: CheckpointStore) -> list[Lesson]:
    by_seed = (TwoShot((5,), 7, 20), TwoShot((15,), 7, 20))
    plans: list[tuple[Any, float]] = [(None, 0.0), (OneShot(20), 1.0), (NT(4, 5, 20), 1e-4), (by_seed, 0.5)]
    return [Lesson(TEACHER, STUDENT, plan, tau, store.seeds, weights=True) for plan, tau in plans]


def taught_by_hand(lesson: Lesson, seed: int, store: CheckpointStore) -> dict[str, Tensor]:
    """Autograd and torch's optimiser on the predictions of the checkpoint that the plan names."""
    with seeded(seed):
        model = build(STUDENT.model)
    optimizer, generator = torch.optim.SGD(model.parameters(), lr=0.1), rng(seed, "data")
    plan = lesson.plan_of(seed)
    for step in range(20):
        batch = WORLD.sample(8, rng=generator)
        target = nn.functional.one_hot(batch.targets[:, 0], 2).float()
        if plan is not None:
            logits = store.model(store.seeds.index(seed), plan.checkpoint(step))(batch.inputs)[:, 0]
            target = (logits.detach() / lesson.tau).softmax(-1)
        loss = nn.functional.cross_entropy(model(batch.inputs)[:, 0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.state_dict()


def test_lessons_that_share_a_job_teach_what_each_plan_says() -> None:
    store = CheckpointStore.of(join([train_members(Members(TEACHER, (seed,))) for seed in (0, 1)]), TEACHER.model)
    lessons = lessons_of(store)
    for lesson, runs in zip(lessons, distil(Here(), lessons, [store] * len(lessons))):
        assert runs.seeds == (0, 1) and runs.weights is not None
        for place, seed in enumerate(runs.seeds):
            for name, value in taught_by_hand(lesson, seed, store).items():
                assert torch.allclose(runs.weights[name][place], value, atol=1e-5), (lesson.plan, seed, name)


def test_members_of_lessons_together_are_those_of_each_alone() -> None:
    store = CheckpointStore.of(train_members(Members(TEACHER, (0, 1))), TEACHER.model)
    lessons = lessons_of(store)
    together = learn_together(Together(tuple(lessons)), store)
    assert together.seeds == (0, 1) * len(lessons)
    for place, lesson in enumerate(lessons):
        alone = learn(lesson, store)
        own = together.metrics["loss"][2 * place : 2 * place + 2]
        assert np.allclose(alone.metrics["loss"], own, atol=1e-5)


def test_lessons_together_keep_to_their_device() -> None:
    world = MaskedGrammar("cfg3b", root="13|14|15")
    how = replace(TRAINING, steps=4, evals=2, batch_size=2, eval_examples=4)
    teacher, student = (
        Experiment(world, bert(world.vocab, world.length, heads, layers=1, dropout=0.0), how, 2) for heads in (2, 1)
    )
    kept = replace(teacher, probes=(keep_weights,))
    store = CheckpointStore.of(train_members(Members(kept, (0, 1))), teacher.model)
    plans = (None, OneShot(4), (TwoShot((2,), 1, 4), TwoShot((4,), 1, 4)))
    lessons = tuple(Lesson(kept, student, plan, 1e-4, (0, 1), "cuda") for plan in plans)
    with pretended_gpu():
        runs = learn_together(Together(lessons), store)
    assert len(runs) == 6 and np.isfinite(runs.metrics["loss"]).all()


def test_a_plan_for_each_seed_needs_as_many_plans() -> None:
    with pytest.raises(BadInput, match="one for each of 2 seeds"):
        Lesson(TEACHER, STUDENT, (OneShot(20),))


def test_the_same_holds_for_drills() -> None:
    plain = Drill(SparseParity(6, 1), 4, 60, 4, 0.5, every=20, save=60, seeds=(0, 1))
    first = torch.zeros(2, 1, 2, 6)
    first[..., 0, 0], first[..., 1, 0] = 5.0, -5.0
    second = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).expand(2, 1, 2, 2)
    weights = dict(zip(PerceptronStack.names, (first, torch.zeros(2, 1, 2), second, torch.zeros(2, 1, 2))))
    store = CheckpointStore(perceptron(6, 2), (0, 1), (9,), weights)
    labels, taught = drill(plain), drill(replace(plain, plan=OneShot(9), tau=0.0), store)
    for name in PerceptronStack.names:
        assert float((labels.weights[name] - taught.weights[name]).abs().max()) <= 1e-6


def test_a_drill_is_plain_sgd() -> None:
    """Against autograd and torch's optimiser on the same data."""
    what = Drill(WORLD, 5, 7, 3, 0.2, every=7, save=7, seeds=(3,))
    runs = drill(what)
    model = CheckpointStore(perceptron(6, 5), (3,), runs.saved, runs.weights).model(0, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    generator = rng(3, "data")
    signs = 1.0 - 2.0 * torch.randint(2, (7 * 3, 6), generator=generator)
    for x in signs.unflatten(0, (7, 3)):
        loss = nn.functional.cross_entropy(model(x)[:, 0], WORLD.label(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for name, value in runs.weights.items():
        assert torch.allclose(value[0, -1], model.state_dict()[name], atol=1e-6)


def test_an_interrupted_drill_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = Drill(WORLD, 5, 300, 2, 0.2, every=50, save=100, seeds=(0, 1))
    whole = drill(what)
    import sandlab.learning.distillation.perceptrons as module

    monkeypatch.setattr(module, "_SECONDS", 0.0)
    with scratch_folder(tmp_path):
        drill(replace(what, updates=150))
        again = drill(what)
    assert np.array_equal(whole.accuracy, again.accuracy) and whole.saved[-1] == again.saved[-1]
    assert all(torch.equal(whole.weights[n][:, -1], again.weights[n][:, -1]) for n in PerceptronStack.names)


def test_a_teacher_stops_a_while_after_it_has_learnt() -> None:
    what = Drill(SparseParity(4, 1), 16, 5000, 16, 0.5, every=50, save=50, seeds=(0,), settle=100)
    runs = drill(what)
    learnt = runs.eval_steps[(runs.accuracy[0] > 0.999).argmax()]
    assert runs.eval_steps[-1] == learnt + 100 == runs.saved[-1]


def test_experiments_keep_checkpoints_that_are_the_weights_of_their_evaluations(tmp_path: Path) -> None:
    experiment = replace(STUDENT, probes=(keep_weights,))
    runs = train_members(Members(experiment, (0, 1), weights=True))
    store = CheckpointStore.of(runs, experiment.model)
    assert store.saved_steps == (0, 5, 10, 15, 20) and store.nearest(2) == 5
    assert runs.weights is not None
    assert all(torch.equal(store.at(20)[name], value) for name, value in runs.weights.items())
    back = CheckpointStore.load(store.save(tmp_path / "kept"), experiment.model)
    assert back.saved_steps == store.saved_steps and back.seeds == store.seeds
    assert all(torch.equal(back.weights[name], value) for name, value in store.weights.items())
    assert store.nbytes == sum(4 * value.numel() for value in store.weights.values())
    with pytest.raises(BadInput, match="no checkpoint at step 7"):
        store.at(7)
    with pytest.raises(BadInput, match="keep no checkpoints"):
        CheckpointStore.of(train_members(Members(STUDENT, (0,))), STUDENT.model)


def test_every_student_is_taught_by_its_own_teacher() -> None:
    weights = {"scale": torch.tensor([1.0, -1.0]).view(2, 1, 1)}
    store = CheckpointStore(ProductConfig(), (0, 1), (5,), weights)
    world = TaughtWorld(WORLD, Teachers(store, torch.device("cpu")), NT(1, 1, 5), 0.0)
    batch = world.at(0).sample(8, rng=rng(0))
    truth = WORLD.sample(8, rng=rng(0))
    assert torch.equal(batch.inputs, truth.inputs)
    assert torch.equal(batch.targets.argmax(-1)[:4], truth.targets[:4])
    assert torch.equal(batch.targets.argmax(-1)[4:], 1 - truth.targets[4:])
    assert torch.equal(world.sample(8, rng=rng(0)).targets, truth.targets)


def test_cold_predictions_split_ties_and_cached_labels_are_the_same() -> None:
    assert soften(torch.tensor([1.0, 1.0, 0.0]), 0.0).tolist() == [0.5, 0.5, 0.0]
    assert soften(torch.tensor([1.0, 0.0]), 1e-4).tolist() == [1.0, 0.0]
    assert torch.allclose(soften(torch.tensor([1.0, 0.0]), 1.0), torch.tensor([1.0, 0.0]).softmax(-1))
    teachers, cache = Teachers(perfect(), torch.device("cpu")), LabelCache(limit=40)
    world = TaughtWorld(WORLD, teachers, OneShot(20), 0.0, cache)
    first, second = (world.at(0).sample(8, rng=rng(0)).targets for _ in range(2))
    assert torch.equal(first, second) and len(cache.labels) == 1 and cache.used == 16
    world.at(1).sample(16, rng=rng(1))
    assert cache.used <= 40


def test_losses_written_out() -> None:
    batch = Batch(torch.zeros(3, 6), torch.tensor([[0], [1], [0]]), torch.ones(3, 1, dtype=torch.bool))
    f = torch.tensor([0.5, 0.5, 2.0]).view(3, 1, 1)
    assert float(HingeMix()(f, batch)) == pytest.approx((0.5 + 1.5 + 0.0) / 3)
    taught = replace(batch, truth={"teacher": torch.tensor([[1.0], [1.0], [-1.0]])})
    assert float(HingeMix(0.25)(f, taught)) == pytest.approx((0.25 * 2.0 + 0.75 * (0.5 + 0.5 + 3.0)) / 3)
    logits, teacher = torch.tensor([[[0.3, -0.2]]] * 3), torch.tensor([[[1.0, 0.0]]] * 3)
    p, q = teacher[0, 0].softmax(-1), logits[0, 0].softmax(-1)
    expected = float((p * (p / q).log()).sum())
    assert float(distillation_loss(logits, teacher, batch, 1.0)) == pytest.approx(expected, abs=1e-6)
