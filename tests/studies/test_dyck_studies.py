from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from stand_in import LAB

import sandlab as sl
from sandlab.studies.dyck import (
    balance,
    copying,
    embeddings,
    exact_models,
    lemmas,
    prefixes,
    pruning,
    runs,
    variation_table,
    violation_bound,
)
from sandlab.worlds.dyck.language import Dyck

TINY = runs.Run(steps=3, batch_size=8, tests=10, long=40, long_tests=4, width=12, mlp_width=8)


@pytest.mark.parametrize("model", ["standard", "minimal"])
@pytest.mark.parametrize("contrast", [0.0, 0.3])
def test_a_run_reports_accuracy_attention_and_balance(model: str, contrast: float) -> None:
    found = runs.train_run(replace(TINY, model=model, seeds=(0, 1), contrast=contrast))
    assert found["in_argmax"].shape == (2,) and found["long_argmax"].shape == (2,)
    assert ("balance" in found) == (model == "minimal")
    for pattern in found["maps"].values():
        assert np.allclose(pattern.sum(-1), 1, atol=1e-5)


def test_frozen_attention_stays_uniform() -> None:
    found = runs.train_run(replace(TINY, frozen=True))
    for pattern in found["maps"].values():
        rows = np.tril(np.ones(pattern.shape[-2:]))
        assert np.allclose(pattern[0, 0], rows / rows.sum(-1, keepdims=True), atol=1e-6)


def test_the_nested_prefix_is_balanced_and_keeps_the_word() -> None:
    batch = Dyck(words="bounded").sample(20, rng=sl.rng(0))
    inputs, kept = runs.Nested(2, 4)(batch, sl.rng(1))
    assert torch.equal(inputs[:, -kept + 1 :], batch.inputs[:, 1:])
    prefix = inputs[:, 1 : inputs.shape[1] - kept + 1]
    assert bool(Dyck(words="complete", length=prefix.shape[1]).accepts(prefix).all())


def test_the_distance_of_a_seed_to_the_others_is_brute_force() -> None:
    maps = np.random.default_rng(0).random((3, 4, 4))
    found = runs.apart(maps)
    expected = [np.mean([((maps[a] - maps[b]) ** 2).sum() for b in range(3) if b != a]) for a in range(3)]
    assert found == pytest.approx(expected)


def test_copying_targets_are_the_inputs() -> None:
    batch = copying.DyckCopy().sample(5, rng=sl.rng(2))
    assert torch.equal(batch.inputs, batch.targets)
    found = copying.copy_run(copying.CopyJob((0, 1), "cpu", 1, 2, 16, 3))
    assert found["accuracy"].shape == (2,) and len(found["maps"]) == 1


def test_exact_models_stay_exact_and_disturbed_ones_do_not() -> None:
    found = exact_models.examine(exact_models.BalanceJob(0, 60, 2, 3))
    assert found["errors"][0] < 1e-9 and found["errors"][-1] > 0.1
    assert found["gap"] < 1e-12


def test_pruning_jobs_report_falling_errors() -> None:
    found = pruning.prune(pruning.PruneJob(0, 3, 96))
    assert found["linear"][-1] < 1e-2 * found["linear"][0]


def measured(study: Any, preset: str = "full", **changes: Any) -> dict[str, float]:
    """Means by short claim id of a study run here and now with small settings."""
    _, findings = study.measure(study.config(preset, **changes), LAB, preset)
    return {finding.claim.split(".")[1]: finding.mean for finding in findings}


def test_every_cell_of_the_published_table_has_a_claim_and_is_measured() -> None:
    run = replace(TINY, arrangement="theory", sentences=3)
    found = measured(variation_table.variation_table, seeds=2, run=run)
    cells = {name for name in found if name.startswith("cell-")}
    assert cells == {f"cell-{k}-{d}-{n}" for k in (2, 3) for d in (4, 8) for n in (2, 3)}


def test_maps_of_sentences_have_nineteen_tokens_and_rows_that_sum_to_one() -> None:
    found = runs.train_run(replace(TINY, arrangement="theory", layers=3, sentences=3, seeds=(0, 1)))
    assert len(found["sentence_maps"]) == 3
    for maps in found["sentence_maps"].values():
        assert maps.shape == (2, 3, 19, 19) and np.allclose(maps.sum(-1), 1, atol=1e-5)


def test_the_four_panels_of_embeddings_are_compared_pair_by_pair() -> None:
    found = measured(embeddings.embeddings, seeds=2, run=replace(TINY, model="minimal"))
    assert {f"accurate-{panel}" for panel in "abcd"} <= set(found)
    first, second = np.zeros((2, 3, 3)), np.ones((2, 3, 3))
    assert embeddings.between(first, second) == 9.0


def test_prefixes_compare_standard_with_minimal_models() -> None:
    small = replace(TINY, words="prefix")
    found = measured(prefixes.prefixes, seeds=3, run=replace(small, model="minimal"), standard_seeds=2, standard=small)
    assert {"varies", "varies-linear", "no-prediction", "current-or-initial"} <= set(found)
    own = np.tile(np.eye(5), (2, 1, 1))
    assert prefixes.ends_mass(own) == pytest.approx([1.0, 1.0])


def test_the_price_of_a_violation_is_at_least_what_the_theorem_says() -> None:
    run = replace(TINY, model="minimal", words="prefix")
    found = measured(violation_bound.violation_bound_study, seeds=2, draws=2, run=run, lengths=(8, 12))
    assert found["bounds-error"] > 1 and found["bounds-loss"] > 0


def test_correlations_of_the_two_violations_are_both_reported() -> None:
    found = measured(balance.balance, seeds=3, run=replace(TINY, model="minimal"))
    assert {"correlation", "correlation-worst-pair", "correlation-all"} <= set(found)


def test_the_lemmas_hold_and_the_misprints_do_not() -> None:
    _, findings = lemmas.lemmas.measure(lemmas.lemmas.config("quick", draws=40), LAB, "quick")
    verdicts = {finding.claim.split(".")[1]: finding.verdict for finding in findings}
    wrong = {"composition-printed", "select-printed"}
    assert {name for name, verdict in verdicts.items() if verdict == "fails"} == wrong
    assert all(verdict == "holds" for name, verdict in verdicts.items() if name not in wrong)


def test_the_probe_word_nests_each_of_two_types_to_the_largest_depth() -> None:
    assert runs.probe_word(2, 4)[0].tolist() == [4] + [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
