"""Mitigations: claims on made-up errors, the table of remedies, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from flip_flop_cases import claims, reads, tiny
from stand_in import LAB

from sandlab import BadInput
from sandlab.learning.experiment import Members, train_members
from sandlab.learning.penalties import Penalised
from sandlab.studies.claims import Order
from sandlab.studies.flip_flop import _remedies
from sandlab.studies.flip_flop._remedies import FAMILIES, FAMILY, Results, Settings, compare, one_below_the_other
from sandlab.studies.flip_flop.mitigations import QUICK, study
from sandlab.studies.flip_flop.sparse_remedies import COMPARED

BASE = tiny(QUICK, seeds=1)


def results(before: float, **others: float) -> Results:
    """The tail error of the baseline, and those of other families."""
    errors = {label: others.get(family, before) for label, family in FAMILY.items()}
    errors |= {label: others[label] for label in others if label in FAMILY}
    return Results({label: reads(0.0, 0.0, error) for label, error in errors.items()})


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results(0.1, data=0.0, recurrent=0.0, regulariser=0.01, sharpening=0.001, architecture=0.01, scale=0.2)
    falling = {"1 layer": 0.5, "4 layers": 0.01, "6 layers": 0.001, "rate 3e-4": 1e-3}
    falling |= {"width 32": 0.5, "width 128": 0.01, "width 256": 0.001}
    bad = results(0.1, data=0.2, recurrent=0.1, regulariser=0.2, sharpening=0.2, architecture=0.2, scale=0.0, **falling)
    few = {label: good.runs[label] for label in ("baseline", "resume on tails")}
    check(study, good, bad, results(-0.1), Results(few))


def test_every_remedy_changes_the_baseline_into_something_that_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_remedies, "RESUMED_STEPS", 2)
    seen = set()
    for label, family in FAMILY.items():
        changed = FAMILIES[family][label](BASE)
        kind = (family, label.strip("0123456789. "))
        if kind in seen:  # one of several values of the same option is enough
            continue
        seen.add(kind)
        found = train_members(Members(tiny(changed, seeds=1), (0,)))
        assert set(found.final) == {"in", "sparse", "dense"}, label


def test_remedies_are_multiples_and_schedules_of_the_baseline() -> None:
    base = replace(QUICK, training=replace(QUICK.training, steps=100))
    assert FAMILIES["scale"]["3 × steps"](base).training.steps == 300
    assert FAMILIES["recurrent"]["LSTM"](base).training.steps == 25
    objective = FAMILIES["sharpening"]["entropy 0.1, rising"](base).training.objective
    assert isinstance(objective, Penalised) and objective.penalties[0].start == 20
    assert set(COMPARED) <= set(FAMILY)


def test_an_excess_compares_with_orders_of_magnitude_of_the_baseline() -> None:
    both = Results({"baseline": reads(0.0, 0.2, 0.0), "3 × steps": reads(0.0, 0.02, 0.0)})
    assert np.allclose(both.excess("3 × steps", "sparse"), -0.18, atol=1e-3)
    assert np.allclose(both.excess("3 × steps", "sparse", orders=-1.0), 0.0, atol=1e-3)


def test_the_best_setting_is_chosen_on_the_even_seeds_and_measured_on_the_odd_ones() -> None:
    found = Results({label: reads(0.0, 0.1, 0.0) for label in ("baseline", "entropy 0.1", "entropy 1")})
    errors = found.runs["entropy 1"].final["sparse"].copy()
    errors[::2] = 0.0
    found.runs["entropy 1"].final["sparse"] = errors
    assert np.allclose(found.best_excess(("entropy 0.1", "entropy 1"), "sparse"), 0.0)


def test_an_order_of_stacked_differences_judges_the_smallest() -> None:
    rows = one_below_the_other([np.array([1.0, 3.0]), np.array([-1.0, 2.0])])
    assert Order(above=0.0).estimate(rows) == 0.5


def test_feed_forward_dropout_leaves_attention_alone_and_sinusoids_stand_by_tokens_of_their_size() -> None:
    dropped = FAMILIES["regulariser"]["feed-forward dropout 0.1"](BASE).model
    assert (dropped.mlp_dropout, dropped.dropout) == (0.1, 0.0)
    assert FAMILIES["architecture"]["sinusoidal positions"](BASE).model.token_std == 1.0


def test_a_small_run_measures_every_claim_and_continues_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_remedies, "RESUMED_STEPS", 6)
    outcome = study.run(Settings(BASE), LAB)
    assert {finding.claim for finding in outcome.findings} == claims(study, "quick")
    assert set(outcome.figures) == {"violins", "scatter"} and set(outcome.tables) == {"settings"}
    assert [row["setting"] for row in outcome.tables["settings"]] == ["baseline", "resume on tails"]
    before, after = outcome.results.runs.values()
    assert before.then is None and before.loss.shape == (1, 4) and after.loss.shape == (1, 6)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(BadInput, match="compared"):
        compare(Settings(BASE, ("baseline", "prayer")), LAB)
