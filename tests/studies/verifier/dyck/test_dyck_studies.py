"""The Dyck studies: claims on made-up results, tiny models run through every study, counts against known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from claim_cases import check
from stand_in import StandIn, remembering

import sandlab as sl
from sandlab.lab._store.codec import decode, encode
from sandlab.learning.experiment import Snapshot, Training
from sandlab.learning.population import Population
from sandlab.models.base import build
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.verifier.dyck import _dyck_runs as dyck
from sandlab.studies.verifier.dyck import (
    backtracks_needed,
    diversity,
    dyck_backtracking,
    dyck_no_argmax,
    dyck_pretraining,
    forced_backtracking,
    remaining_errors,
    representations,
)

STUDIES = [
    each.study
    for each in (
        backtracks_needed,
        diversity,
        dyck_backtracking,
        dyck_no_argmax,
        dyck_pretraining,
        forced_backtracking,
        remaining_errors,
        representations,
    )
]
MODEL = TransformerConfig(vocab=6, length=dyck.LIMIT, layers=2, heads=2, width=16)
TRAINING = Training(steps=30, batch_size=16, lr=2e-3, ema=0.9, evals=1, eval_examples=64)
TINY = dyck.Settings(
    replace(dyck.SMALL, model=MODEL, training=TRAINING, seeds=2),
    searched=120,
    for_verifier=30,
    prefixes=20,
    fresh=30,
    repetitions=2,
    rounds=2,
    diverse=4,
    points=40,
    probe_steps=20,
    splits=2,
    shuffles=5,
)


@pytest.fixture(scope="module")
def lab() -> StandIn:
    return remembering()


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_tiny_models_measure_every_claim_and_results_are_read_back(lab: StandIn, study: sl.studies.Study) -> None:
    outcome = study.run(TINY, lab, "full")
    assert {finding.claim for finding in outcome.findings} == {claim.id for claim in study.claims}
    assert outcome.figures and outcome.tables
    again = study.judge(decode(encode(outcome.results), study.results_type), "full")
    assert [finding.values for finding in again.findings] == [finding.values for finding in outcome.findings]


def test_every_query_is_a_token_kept_or_erased(lab: StandIn) -> None:
    fresh = dyck.Fresh.completed(dyck.train_models(TINY, lab), list(dyck.DECODINGS))
    for counts in fresh.counts.values():
        assert (counts["queries"] == counts["written"]).all() and (counts["prompts"] == 60).all()
        assert ((counts["wrong"] >= 0) & (counts["wrong"] <= 60)).all()


def test_errors_end_at_the_first_wrong_token_and_correct_strings_are_prefixes_of_words(lab: StandIn) -> None:
    for writer in dyck.train_models(TINY, lab).writers:
        errors = writer.errors
        for string, label in zip(errors.strings, errors.labels):
            tokens = torch.tensor([string, string])
            before, whole = dyck.UNFAMILIAR.completable(tokens, torch.tensor([len(string) - 1, len(string)])).tolist()
            assert before and whole == bool(label)
        assert 0 < len(errors.prefixes) <= 20


def test_a_stored_verifier_answers_as_the_trained_one(lab: StandIn) -> None:
    writer = dyck.train_models(TINY, lab).writers[0]
    errors = writer.errors
    scores = errors.verifiers["trained"].network.score(writer.features(errors.strings, "ln_final")["ln_final"])
    labels = torch.tensor(errors.labels)
    right = ((scores > 0.5).long() == labels).double().mean()
    assert 0 <= errors.verifiers["trained"].validation <= 1 and float(right) > 0.5


def test_the_closing_error_counts_brackets_that_are_not_the_most_probable_token() -> None:
    population = Population(lambda seed: build(MODEL), seeds=(0, 1))
    batch = dyck.FAMILIAR.sample(40, rng=sl.rng(0))
    found = dyck.closing_error(Snapshot(population, dyck.FAMILIAR, batch))["closing error"]
    for member, error in enumerate(found.tolist()):
        likeliest = population.member(member)(batch.inputs).argmax(-1)
        closing = [(row, time) for row, time in (batch.targets % 2 == 1).nonzero().tolist()]
        pairs = [(row, time) for row, time in closing if batch.targets[row, time] < 4]
        wrong = [bool(likeliest[row, time] != batch.targets[row, time]) for row, time in pairs]
        assert error == pytest.approx(np.mean(wrong))


# ------------------------------------------------------------------ claims on made-up results


def models(value: float) -> np.ndarray:
    """Eight models that differ a little."""
    return value * (1 + 1e-3 * np.linspace(-1, 1, 8))


def fresh(wrong: dict[str, float], extra: float = 0.0) -> dyck.Fresh:
    """Wrong completions in 1000 prompts; `extra` queries that were no tokens."""
    return dyck.Fresh({
        name: {
            "prompts": models(1000) * 0 + 1000,
            "wrong": models(wrong.get(name, 15.0)),
            "queries": models(5000) + extra,
            "written": models(5000),
            "backtracks": models(100),
        }
        for name in dyck.DECODINGS
    })  # fmt: skip


NAMES = ("baseline", "trained", "no argmax", "exact")
PUBLISHED = dict(zip([f"{name} 0.9" for name in NAMES], (24.0, 17.9, 24.6, 12.0)))
PUBLISHED |= dict(zip([f"{name} 1.0" for name in NAMES], (46.2, 20.0, 40.0, 12.0)))
USELESS = dict(zip([f"{name} 0.9" for name in NAMES], (20.0, 20.0, 15.0, 25.0)))
USELESS |= dict(zip([f"{name} 1.0" for name in NAMES], (18.0, 19.0, 16.0, 25.0)))


def test_claims_of_dyck_pretraining() -> None:
    def results(familiar: float, unfamiliar: float, wrong: dict[str, float]) -> dyck_pretraining.Results:
        accuracy = {"familiar": models(familiar), "unfamiliar": models(unfamiliar)}
        return dyck_pretraining.Results(models(0.8), 0.7, accuracy, [100] * 8, fresh(wrong))

    check(dyck_pretraining.study, results(0.999, 0.97, PUBLISHED), results(0.9, 0.95, USELESS))


def test_claims_of_forced_backtracking() -> None:
    good = {name: models(value) for name, value in dyck.FORCED.items()}
    bad = {name: models(1 - value) for name, value in dyck.FORCED.items()}
    check(forced_backtracking.study, forced_backtracking.Results(good), forced_backtracking.Results(bad))


def quota(sign: float) -> dict[str, np.ndarray]:
    """The published accuracies, or their opposite; fewer backtracks with longer strides, or more."""
    found = {}
    for cell, accuracy in dyck.WITH_VERIFIER.items():
        found |= {f"accuracy {cell}": models(0.6 + sign * (accuracy - 0.6)), f"without {cell}": models(0.3)}
        found |= {f"backtracks {cell}": models(500 - sign * 20 * int(cell[2])), f"greedy {cell}": models(0.4)}
    return found


def test_claims_of_backtracks_needed() -> None:
    good, bad = (backtracks_needed.Results(models(164), quota(sign)) for sign in (1.0, -1.0))
    check(backtracks_needed.study, good, bad)


def test_claims_of_dyck_backtracking() -> None:
    forced = {name: models(value) for name, value in dyck.FORCED.items()}
    good = dyck_backtracking.Results(forced, quota(1.0), fresh(PUBLISHED))
    bad = dyck_backtracking.Results({"nucleus 0.9": models(0.99)}, quota(-1.0), fresh(USELESS, extra=1.0))
    check(dyck_backtracking.study, good, bad)


def test_claims_of_dyck_no_argmax() -> None:
    check(dyck_no_argmax.study, fresh(PUBLISHED), fresh(USELESS))


def test_claims_of_remaining_errors() -> None:
    closing = remaining_errors.Mistake(remaining_errors.CLOSING, "^([", ")", 0.9, ")", 0.9, 0)
    other = replace(closing, kind=0, token="(", probability=0.2, quota_left=3)
    good, bad = (remaining_errors.Results([[each] * 60] * 4, [[each] * 60] * 4) for each in (closing, other))
    check(remaining_errors.study, good, bad, remaining_errors.Results([[]], [[]]))


def test_claims_of_diversity() -> None:
    def results(trained: int, exact: int, sampled: int) -> diversity.Results:
        counts = {"trained 1.0": trained, "exact 1.0": exact, "baseline 0.9": sampled, "baseline 1.0": sampled}
        each = {name: diversity.Distinct([count] * 9 + [count + 1], [3] * 10) for name, count in counts.items()}
        return diversity.Results({name: [one] * 4 for name, one in each.items()})

    check(diversity.study, results(6, 6, 6), results(2, 3, 7))


def test_claims_of_representations() -> None:
    def results(validation: float, silhouette: float) -> representations.Results:
        names = ["embed", "layers.0.resid_post", "ln_final", "1 maps", "2 maps", "4 maps"]
        probes = {name: models(0.8) for name in names} | {f"{n} brackets": models(0.1) for n in range(25, 33)}
        picture = representations.Picture(np.zeros((4, 2)), np.array([0, 0, 1, 1]), silhouette, [0.0, 0.1])
        return representations.Results(probes | {"linear": models(validation)}, [picture] * 8)

    check(representations.study, results(0.93, 0.3), results(0.6, 0.0))
