"""What must be true of every study."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import sandlab as sl
from sandlab.learning.experiment import Experiment, member_groups
from sandlab.registry import _study_modules
from sandlab.studies.claims import Exact
from sandlab.worlds.base import World

STUDIES = sorted(_study_modules())
DETERMINISTIC = {
    "diffusions/interval-sweep": {"stationary-contrast-gets-harder", "nearby-contrast-gets-easier"},  # quadrature of ε*
    "diffusions/log-cosh": {"order-of-the-baselines"},  # KL of given kernels, by quadrature
    "distillation/grammar-lengths": {"published-percentiles"},  # lengths of a grammar's words, by dynamic programming
    # Sums over all inputs of a cube, compared with closed forms:
    "distillation/theory": {
        "majority-coefficients", "ratio-of-coefficients", "gap-of-coefficients", "gradient", "weights",
        "pair-on-support", "pair-off-support", "even-degrees", "corollary",
    },
    "dyck/attention-variation": {"baseline"},  # a closed form of random attention
    "dyck/uniform": {"exact"},  # the construction, not the trained model
    "dyck/violation-bound": {"bounds-error", "bounds-loss"},  # an inequality for each given set of weights
    # Tables of all inputs, counted:
    "expressivity/protocols": {"index-and-disjointness-need-n-bits", "majority-needs-a-count"},
    # Ranks of Jacobians and two models that predict alike:
    "hmm/identifiability-map": {
        "integer-table", "gaussian-table", "counter-example", "counter-example-is-no-permutation",
    },
    "markov/chi2-gradient": {"needs-second-layer"},  # a gradient that vanishes identically
    "markov/flow-portrait": {"energy", "ends", "basins"},  # integrated curves of the gradient flow
    "ngrams/constructions": {"exact", "rate", "matches", "jacobians"},  # constructions and their derivatives
    "parallel/decode-speed": {"passes-do-not-grow", "one-pass-per-token"},  # passes that the algorithms make
    "parallel/mask-more": {"masking-more-is-better"},  # eigenvalues of matrices given in closed form
    # Chances of a finite chain, by linear algebra:
    "parallel/separation": {
        "exact-exceeds-the-bound", "stuck-as-long-as-bounded", "the-gap-needs-coupling-and-size",
    },
    "reasoning/ideal-horizon": {"distractor-rate"},  # counted over all elements of the groups
}  # fmt: skip
"""Claims of studies with trained or sampled results whose quantity no random draw enters, with the reason."""


@pytest.mark.parametrize("name", STUDIES)
def test_exact_claims_of_studies_with_random_results_are_about_things_that_are_not_drawn(name: str) -> None:
    study = sl.get("studies", name)
    text = Path(str(sys.modules[study.__module__].__file__)).read_text(encoding="utf-8")
    if study.null is None and not re.search(r"lab\.train|train_models", text):
        return
    exact = {claim.id.rpartition(".")[2] for claim in study.claims if isinstance(claim.relation, Exact)}
    assert exact == DETERMINISTIC.get(name, set())


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_simulated_is_not_exact(name: str) -> None:
    exact = [claim for claim in sl.get("studies", name).claims if isinstance(claim.relation, Exact)]
    drawn = r"p-value|probability of the observed|mean over (seeds|draws)"
    assert [claim.id for claim in exact if re.search(drawn, claim.quantity)] == []


@pytest.mark.parametrize("name", STUDIES)
def test_presets_differ_and_claims_say_where_they_come_from(name: str) -> None:
    study = sl.get("studies", name)
    assert study.claims and study.text and study.figures
    for claim in study.claims:
        assert claim.source and claim.statement.endswith((".", ")", "…")) and claim.quantity
    assert study.describe("quick") and study.describe("full")
    assert study.results_type is not object and study.results_type.__module__.startswith("sandlab.")


def test_three_hundred_and_fifty_claims_and_more_show_the_source_s_number() -> None:
    claims = [claim for name in STUDIES for claim in sl.get("studies", name).claims]
    assert sum(bool(re.search(r"\d", claim.paper)) for claim in claims) >= 350


def experiments(value: Any) -> Iterator[Experiment]:
    """Every experiment inside settings."""
    if isinstance(value, Experiment):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        yield from itertools.chain.from_iterable(experiments(getattr(value, each.name)) for each in fields(value))
    elif isinstance(value, (tuple, list)):
        yield from itertools.chain.from_iterable(map(experiments, value))


def first_batches(experiment: Experiment, device: str) -> list[tuple[Tensor, Tensor]]:
    """Inputs and targets of the first batch of each seed, drawn as in training: one stream for each group of seeds."""
    found: list[tuple[Tensor, Tensor]] = []
    for group in member_groups(experiment, device):
        drawn = experiment.world.at(0).sample(2 * len(group), rng=sl.rng(group[0], "data"))
        found += zip(drawn.inputs.split(2), drawn.targets.split(2))
    return found


def equal(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first, second))


def test_first_batches_of_different_seeds_differ_in_every_study_and_on_every_device() -> None:
    worlds = {}
    for name in STUDIES:
        worlds |= {each.world: (name, each) for each in experiments(sl.get("studies", name).presets["quick"])}
    assert len(worlds) > 100
    for name, experiment in worlds.values():
        two = replace(experiment, seeds=2)
        for device in ("cpu", "cuda"):
            assert not equal(*first_batches(two, device)) or has_one_word(two.world), (name, device)


def has_one_word(world: World) -> bool:
    """Whether the world has one input only, such as abab…, whose acceptance is to be learnt from the positions."""
    words = world.sample(64, rng=sl.rng(0)).inputs
    return bool((words == words[:1]).all())
