"""The studies of decoding with a verifier: small configurations run through, every claim is measured and drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from stand_in import remembering

import sandlab as sl
from sandlab.studies.verifier.dyck_campaign import Campaign, campaign
from sandlab.studies.verifier.dyck_model import PUBLISHED, Best, Corpus, DyckModel, familiar, pretrain
from sandlab.studies.verifier.error_amplification import Job, solve

DYCK = [
    "verifier/dyck-pretraining",
    "verifier/representations",
    "verifier/forced-backtracking",
    "verifier/dyck-backtracking",
    "verifier/backtracks-needed",
    "verifier/remaining-errors",
    "verifier/diversity",
    "verifier/dyck-no-argmax",
]
TINY = Campaign(
    model=DyckModel(width=16, heads=2, steps=30, batch_size=16),
    harvested=120,
    for_verifier=30,
    prefixes=20,
    unseen=30,
    repetitions=2,
    rounds=2,
    diverse=4,
    points=40,
    probe_steps=20,
    splits=2,
    shuffles=5,
)


@pytest.fixture(scope="module")
def lab():
    return remembering()


@pytest.mark.parametrize("name", DYCK)
@pytest.mark.parametrize("preset", ["quick", "full"])
def test_dyck_studies_share_one_campaign_and_measure_every_claim(lab, name, preset):
    study = sl.get("studies", name)
    outcome, findings = study.measure(study.config(preset, campaign=TINY, seeds=2), lab, preset)
    assert {finding.claim for finding in findings} == {c.id for c in study.claims if preset in c.presets}
    assert outcome.figures and outcome.tables


def test_every_query_of_the_campaign_is_a_token_kept_or_erased(lab):
    (found,) = lab.map(campaign, [TINY])
    for counts in found["unseen"]["ways"].values():
        assert counts["queries"] == counts["written"] and len(counts["errors"]) == TINY.rounds
    assert 0 < found["prefixes"] <= 20


def test_a_corpus_is_read_once_from_beginning_to_end():
    words = familiar().sample(12, rng=sl.rng(0))
    pages = [Corpus(words).at(step).sample(4, rng=sl.rng(1)).inputs for step in range(3)]
    assert torch.equal(torch.cat(pages), words.inputs)


def test_the_best_weights_are_the_first_of_equals():
    words = familiar().sample(200, rng=sl.rng(0))
    config = DyckModel(width=16, heads=2, steps=40, batch_size=16, keep="best", looks=10)
    model, report = pretrain(config, 0, "cpu")
    assert report["weights of step"] in (0, 10, 20, 30, 40)
    best = Best(words)
    for step, accuracy in ((0, 0.5), (10, 0.9), (20, 0.9), (30, 0.7)):
        share = best.measure(model)["closing"]
        best.look(step, model, {"ema/closing": accuracy})
    assert best.step == 10 and best.accuracy == 0.9
    closes = [
        (row, place) for row, place in (words.targets % 2 == 1).nonzero().tolist() if words.targets[row, place] < 4
    ]
    likeliest = model(words.inputs).tolist()
    right = [max(range(6), key=likeliest[row][place].__getitem__) == words.targets[row, place] for row, place in closes]
    assert share == pytest.approx(np.mean(right))


def test_training_ends_when_no_weights_can_be_better():
    perfect = np.array([1.0]), np.array([0.999])
    assert [bool(Best.perfect(100, {"ema/closing": value})) for value in perfect] == [True, False]


def test_the_published_average_follows_early_weights():
    assert [round(PUBLISHED.decay(step), 4) for step in (0, 99, 100, 999, 40_000)] == [
        0.999,
        0.999,
        round(1 - 101**-0.67, 4),
        round(1 - 1000**-0.67, 4),
        0.999,
    ]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (
            "verifier/query-complexity",
            {"lengths": (2, 3), "runs": 60, "secret_lengths": (4, 5), "secrets": 20, "instances": 2},
        ),
        ("verifier/walk-laws", {"seeds": 2, "shapes": ((2, 3),), "runs": 200}),
        (
            "verifier/error-amplification",
            {"seeds": 2, "horizons": (2, 8, 14), "dyck_lengths": (4,), "simulated": 4, "runs": 50},
        ),
    ],
)
def test_exact_studies_run_through(lab, name, changes):
    study = sl.get("studies", name)
    outcome, findings = study.measure(study.config("quick", **changes), lab)
    exact = [finding for finding in findings if finding.count == 1 and finding.held]
    assert all(finding.verdict == "holds" for finding in exact)
    assert outcome.figures


def test_error_amplification_is_that_of_the_binomial_law():
    """Without backtracking the string is H−1 biased coins and a fair one: a distance between two binomial laws."""
    from scipy import stats

    for horizon, error in ((4, 0.3), (8, 0.1), (10, 0.5)):
        heads = np.arange(horizon)
        biased = stats.binom.pmf(heads, horizon - 1, (1 + error) / 2)
        fair = stats.binom.pmf(heads, horizon - 1, 0.5)
        found = solve(Job("bits", horizon, error, 0, 0))
        assert found["no backtracking"] == pytest.approx(0.5 * np.abs(biased - fair).sum(), abs=1e-12)
