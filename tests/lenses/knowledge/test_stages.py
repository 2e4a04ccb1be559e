"""What is known of a fact, and the stage at which the attribute is guessed."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.lenses.knowledge.stages import fact_losses, hallucination_stage
from sandlab.worlds.knowledge.facts import FactRecall

WORLD = FactRecall(subjects=8, relations=2, answers=4, noise=10, length=16, facts="structured")


class Fixed(nn.Module):
    def __init__(self, log_probs: torch.Tensor) -> None:
        super().__init__()
        self.log_probs = log_probs

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.log_probs.clamp(min=-50.0)


@pytest.mark.parametrize(
    ("name", "total", "relation", "subject"),
    [("relation", math.log(4), 0.0, math.log(4)), ("subject", math.log(2), math.log(2), 0.0)],
)
def test_half_knowledge_has_the_losses_of_its_half(name, total, relation, subject) -> None:
    batch = WORLD.sample(256, rng=sl.rng(0))
    found = fact_losses(Fixed(WORLD.baselines()[name](batch)), WORLD, batch)
    assert [float(found[part]) for part in ("total", "relation", "subject")] == pytest.approx(
        [total, relation, subject], abs=1e-9
    )


def test_the_stage_is_where_the_relation_is_known_and_the_attribute_guessed() -> None:
    level = math.log(4)
    total = [2.08, 1.60, level, level + 0.01, 0.7, 0.0]
    stage = hallucination_stage(range(6), total, [0.69, 0.2, 0.01, 0.0, 0.0, 0.0], 4)
    assert (stage.start, stage.stop) == (2, 3) and stage.loss == pytest.approx(level + 0.005)


def test_a_run_that_learns_both_at_once_has_no_stage() -> None:
    assert not hallucination_stage(range(3), [2.08, 1.0, 0.0], [0.69, 0.3, 0.0], 4).found
