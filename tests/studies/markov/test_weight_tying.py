"""The study of weight tying: claims on made-up losses, what counts as learnt, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.studies.markov.weight_tying import FAST, QUICK, SLOW, VARIANTS, Results, Trained, study
from sandlab.worlds.markov.chain import MarkovChain


def trained(chain: tuple[float, float], *, tied: bool, excess: float, seeds: int = 8) -> Trained:
    """Runs that end between the entropy rate (excess 0) and H(π) (excess 1)."""
    world = MarkovChain.binary(*chain)
    marginal, kernel = world.marginal_entropy(), world.entropy_rate()
    losses = {"expected loss": [0.7, kernel + excess * (marginal - kernel)]}
    runs = made_up(losses | {"after zero": [0.5, 0.4], "after one": [0.5, 0.4]}, seeds=seeds)
    return Trained(*chain, tied, marginal, kernel, runs)


def results(trap: float, elsewhere: float, scalar: float) -> Results:
    fast_tied = trained(FAST, tied=True, excess=trap)
    cases = ((FAST, False), (SLOW, True), (SLOW, False))
    others = [trained(chain, tied=tied, excess=elsewhere) for chain, tied in cases]
    grid = [
        trained((p, q), tied=tied, excess=trap if tied and p + q > 1 else elsewhere)
        for tied in (True, False)
        for p in (0.2, 0.8, 0.9)
        for q in (0.2, 0.8, 0.9)
    ]
    variants = [*[fast_tied] * (len(VARIANTS) - 1), trained(FAST, tied=True, excess=scalar)]
    return Results(fast_tied, *others, variants=variants, grid=grid)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(trap=1.0, elsewhere=0.0, scalar=0.0), results(trap=0.0, elsewhere=1.0, scalar=1.0))


def test_excess_is_zero_at_the_kernel_and_one_at_the_marginal() -> None:
    assert trained(FAST, tied=True, excess=0.0).excess == pytest.approx(np.zeros(8))
    assert trained(FAST, tied=True, excess=1.0).excess == pytest.approx(np.ones(8))
    assert trained(FAST, tied=True, excess=1.0, seeds=2).learnt == [False, False]
    assert trained((0.5, 0.5), tied=True, excess=0.0).learnt == [], "independent tokens have nothing to learn"


def test_a_small_run_measures_every_claim_and_untrained_models_learn_nothing() -> None:
    corners = [row * 4 + column for row in (0, 3, 4, 7) for column in (0, 3)]
    few = replace(QUICK, grid=tuple(QUICK.grid[index] for index in corners))
    found, outcome = measured(study, tiny(few), LAB)
    assert found["untied-learns"] == found["slow-tied"] == "fails"
    assert [row["layers"] for row in outcome.tables["fragility"]] == [layers for _, layers in VARIANTS]
    # Small initial weights: the prediction is uniform, whose cross-entropy is log 2 whatever the chain.
    for each in (outcome.results.fast_tied, outcome.results.slow_untied, *outcome.results.variants):
        assert each.runs.metrics["expected loss"][:, 0] == pytest.approx(np.log(2), abs=0.05)
        assert each.runs.metrics["after zero"][:, 0] == pytest.approx(0.5, abs=0.05)


def test_the_presets_have_one_run_per_cell_and_the_budget_of_the_public_code() -> None:
    full = study.presets["full"]
    assert len(QUICK.grid) == 2 * 4**2 and len(full.grid) == 2 * 6**2
    assert [each.training.steps for each in QUICK.variants] == [400, 400, 400, 800]
    assert QUICK.variants[-1].training.schedule == "constant"
    assert {each.seeds for each in full.main} == {16} and {each.seeds for each in full.grid} == {5}
