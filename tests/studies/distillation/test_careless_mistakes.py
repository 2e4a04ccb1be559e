"""What a careless builder of these experiments gets wrong (specification 06, 4.11): each mistake would fail here."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from course_cases import small
from jaxtyping import Float
from matplotlib.figure import Figure
from stand_in import LAB
from torch import Tensor, nn

from sandlab.learning.distillation.checkpoint_store import CheckpointStore, keep_weights
from sandlab.learning.distillation.lesson_plans import EqualSplit, KappaSplit
from sandlab.learning.distillation.lessons import Lesson, distil
from sandlab.learning.distillation.phases import equally_spaced
from sandlab.learning.experiment import Runs, Snapshot
from sandlab.learning.population import Population
from sandlab.lenses.distillation.monomials import monomial_correlations
from sandlab.lenses.distillation.ngram_dependence import NgramDependence
from sandlab.models.base import Config, Model, configured
from sandlab.random import rng
from sandlab.studies.distillation import hierarchy, masked_grammar, next_token, one_checkpoint, parity_mlp, text
from sandlab.studies.distillation._courses import for_steps, teach
from sandlab.studies.distillation._shared import Curves, final_of
from sandlab.studies.distillation.transformers import next_token_sizes, parity_transformer, teacher_phases
from sandlab.worlds.distillation.parities import SparseParity


@dataclass(frozen=True)
class SteepConfig(Config):
    """No options."""

    length: int = 6


class Steep(Model):
    """Logits ± ½ x₁ of the first coordinate: its probability is σ(x₁)."""

    config: SteepConfig

    @configured(SteepConfig)
    def __init__(self, config: SteepConfig) -> None:
        super().__init__(config)
        self.scale = nn.Parameter(torch.full((1,), 0.5))

    def forward(self, inputs: Tensor) -> Float[Tensor, "*lead 1 2"]:
        sign = self.scale * (1.0 - 2.0 * inputs[..., 0])
        return torch.stack([sign, -sign], -1).unsqueeze(-2)


def test_no_plan_of_a_course_is_ever_taught_by_the_untrained_teacher() -> None:
    """The i-th interval has checkpoint i·T₀/N, i from 1: the first is not step 0, the last is the final one."""
    among = equally_spaced(800, 8)
    for plan in (EqualSplit(among, 1600), KappaSplit(among, 0.5, 800), KappaSplit(among, 1.0, 800)):
        taught_by = [plan.checkpoint(step) for step in range(1600)]
        assert (taught_by[0], taught_by[-1]) == (100, 800) and taught_by == sorted(taught_by)
    assert [KappaSplit(among, 1.0, 800).checkpoint(step) for step in (99, 100, 799)] == [100, 200, 800]
    assert [EqualSplit(among, 1600).checkpoint(step) for step in (199, 200, 1399, 1400)] == [100, 200, 700, 800]


def test_every_budget_is_a_run_of_its_own_with_its_own_schedule() -> None:
    course = replace(small(masked_grammar.QUICK.course), budgets=(3, 6), methods=("labels", "one-shot"))
    course = replace(course, student=replace(course.student, training=replace(course.student.training, evals=6)))
    found = teach(course, LAB)
    teacher = replace(course.teacher, probes=(*course.teacher.probes, keep_weights))
    store = CheckpointStore.of(LAB.train(teacher), course.teacher.model)
    for index, budget in enumerate(course.budgets):
        student = replace(for_steps(course.student, budget), final=())
        plan, tau = course.plan("one-shot", store.final, budget)
        (alone,) = distil(LAB, [Lesson(teacher, student, plan, tau)], [store])
        assert np.allclose(found.loss["one-shot"][index], alone.metrics["loss"][:, -1], atol=1e-6)
    long = found.curves["one-shot"]
    half_way = long.metrics["loss"][:, list(long.eval_steps).index(3)]
    assert not np.allclose(found.loss["one-shot"][0], half_way, atol=1e-4)


@pytest.mark.parametrize("settings", [parity_mlp.QUICK, parity_mlp.FULL])
def test_one_shot_students_have_a_teacher_that_is_past_its_transition(settings: parity_mlp.Settings) -> None:
    """Teachers go on for a while after the last has learnt, and the checkpoint that teaches lies in that while."""
    teacher = settings.teacher
    assert teacher.settle >= 4 * settings.spacing
    saved = tuple(range(0, 20_001, teacher.save))
    store = CheckpointStore(SteepConfig(), teacher.seeds, saved, {"any": torch.zeros(1, len(saved), 1)})
    assert 0 <= saved[-1] - final_of(store, settings.spacing) < settings.spacing <= teacher.settle // 4


def test_steps_are_not_samples() -> None:
    """The source's 8 million samples of Figure 4.4 (middle) are 250 000 steps of 32: what the text compares with."""
    how = parity_transformer.FULL.teacher.training
    assert 8_000_000 // 32 == 250_000 and f"{how.steps / 250_000:g}" in parity_transformer.study.text
    steps, ones = np.arange(11) * 1000, np.ones((2, 11))
    metrics = {"accuracy": ones, "correlation": np.ones((2, 11, 5)), "path on": ones, "path off": ones}
    runs = Runs((0, 1), steps, np.zeros((2, 1)), metrics)
    figure = parity_transformer.learning(parity_transformer.Results(runs, {"labels": Curves(steps, ones)}, 3, 20_000))
    assert isinstance(figure, Figure) and all(axis.get_xlabel().endswith("step") for axis in figure.axes)
    assert {float(np.asarray(line.get_xdata())[-1]) for axis in figure.axes for line in axis.lines} == {10_000.0}


def test_correlations_are_those_of_probabilities_not_of_logits_or_predictions() -> None:
    """σ(2 · ½ x₁) correlates with x₁ by (σ(1) − σ(−1))/2 = 0.231; its logit by ½, the predicted class by ½ or 1."""
    expected = float(torch.sigmoid(torch.tensor(1.0)) - 0.5)
    world = SparseParity(6, 2, "tokens")
    population = Population(lambda _: Steep(), seeds=range(2))
    snapshot = Snapshot(population, world, world.sample(4, rng=rng(0)))
    found = parity_transformer.CoordinateCorrelations(100_000)(snapshot)["correlation"]
    assert found[:, 0] == pytest.approx([expected] * 2, abs=0.003) and found[:, 1:].max() < 0.01
    probability = lambda x: torch.sigmoid(x[:, 0])  # noqa: E731
    assert monomial_correlations(probability, 6, [(0,)], rng=rng(0)) == pytest.approx([expected], abs=0.003)


def test_correlations_of_full_presets_have_a_hundred_thousand_inputs() -> None:
    probe = parity_transformer.FULL.teacher.probes[0]
    assert isinstance(probe, parity_transformer.InParts)
    counts = (probe.probe.examples, hierarchy.FULL.examples, one_checkpoint.study.presets["full"].examples)
    assert min(counts) >= 100_000


def distances(value: Any) -> set[str]:
    """Which distance every probe of n-grams inside settings reports."""
    if isinstance(value, NgramDependence):
        return {value.tv}
    if is_dataclass(value) and not isinstance(value, type):
        return set().union(*(distances(getattr(value, each.name)) for each in fields(value)), set())
    return set().union(*map(distances, value), set()) if isinstance(value, tuple) else set()


@pytest.mark.parametrize("module", [masked_grammar, next_token, text, teacher_phases, next_token_sizes])
def test_a_text_says_which_distance_is_reported(module: ModuleType) -> None:
    study = module.study
    used = distances(study.presets["quick"]) | distances(study.presets["full"])
    assert "½‖p − q‖₁" in study.text and used <= {"half", "l1"}
    assert ("l1" in used) == (", ‖p − q‖₁ in full" in " ".join(study.text.split()))
