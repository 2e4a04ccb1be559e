"""What must be true of every study."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest

import sandlab as sl
from sandlab.registry import _study_modules
from sandlab.studies.claims import Exact

STUDIES = sorted(_study_modules())
DETERMINISTIC = {
    "diffusions/log-cosh": {"order-of-the-baselines"},  # KL of given kernels, by quadrature
    "dyck/attention-variation": {"baseline"},  # a closed form of random attention
    "dyck/uniform": {"exact"},  # the construction, not the trained model
    "dyck/violation-bound": {"bounds-error", "bounds-loss"},  # an inequality for each given set of weights
    # Tables of all inputs, counted:
    "expressivity/protocols": {"index-and-disjointness-need-n-bits", "majority-needs-a-count"},
    "markov/flow-portrait": {"energy", "ends", "basins"},  # integrated curves of the gradient flow
    "ngrams/constructions": {"exact", "rate", "matches", "jacobians"},  # constructions and their derivatives
    "verifier/dyck-backtracking": {"accounting"},  # counters of the decoder add up
}
"""Claims of training studies whose quantity no random draw enters, with the reason."""


@pytest.mark.parametrize("name", STUDIES)
def test_exact_claims_of_training_studies_are_about_things_that_are_not_drawn(name: str) -> None:
    study = sl.get("studies", name)
    text = Path(str(sys.modules[study.__module__].__file__)).read_text(encoding="utf-8")
    if not re.search(r"lab\.train|train_models", text):
        return
    exact = {claim.id.rpartition(".")[2] for claim in study.claims if isinstance(claim.relation, Exact)}
    assert exact <= DETERMINISTIC.get(name, set())


@pytest.mark.parametrize("name", STUDIES)
def test_presets_differ_and_claims_say_where_they_come_from(name: str) -> None:
    study = sl.get("studies", name)
    assert study.claims and study.text and study.figures
    for claim in study.claims:
        assert claim.source and claim.statement.endswith((".", ")", "…")) and claim.quantity
    assert study.describe("quick") and study.describe("full")
    assert study.results_type is not object and study.results_type.__module__.startswith("sandlab.")


def test_each_seed_has_its_own_weights_and_its_own_first_batch() -> None:
    """The seeds of every experiment in every preset's settings draw different data: their generators differ."""
    from sandlab.learning.experiment import Experiment, member_groups

    experiment = Experiment(
        sl.worlds.Dyck(), sl.models.TransformerConfig(vocab=6, length=32), sl.learning.Training(steps=1), seeds=4
    )
    groups = member_groups(experiment, "cpu")
    batches = [experiment.world.sample(4, rng=sl.rng(seeds[0], "data")).inputs for seeds in groups]
    assert all(not bool((first == other).all()) for first, other in itertools.pairwise(batches))
