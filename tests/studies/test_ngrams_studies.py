"""The jobs and the reading of curves behind the n-gram studies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from stand_in import LAB

import sandlab as sl
from sandlab.circuits.ngrams.counting import ngram_estimator
from sandlab.lenses.ngrams.stages import Plateau
from sandlab.models.base import seeded
from sandlab.studies.ngrams import constructions, gradient_norm, near_stationary
from sandlab.studies.ngrams.runs import Run, estimator_losses, population_gradient, split_seeds, train_run
from sandlab.studies.ngrams.stages import Stages

SMALL = Run(seeds=(0, 1), states=3, length=12, steps=12, looks=4, test=64, batch_size=16, nearest=True)


def test_a_run_keeps_losses_masses_and_names_at_every_look() -> None:
    found = train_run(SMALL)
    looks = len(found["steps"])
    assert found["steps"].tolist() == [0, 3, 6, 9, 12]
    assert found["loss"].shape == (2, looks) and np.isfinite(found["loss"]).all()
    assert found["mass"].shape == (2, looks, 2, 4)
    assert found["maps"].shape == (looks, 2, 12, 12)
    assert np.allclose(found["maps"].astype(float).sum(-1), 1, atol=1e-2)
    assert [len(names) for names in found["nearest"]] == [looks, looks]
    # Before training the first layer's attention is uniform over what came before.
    assert found["mass"][:, 0] == pytest.approx(np.mean([1 / n for n in range(3, 13)]), abs=0.02)


def test_longer_contexts_have_lower_losses() -> None:
    losses = estimator_losses(Run(states=3, length=64, test=64))
    assert losses["uniform"] == pytest.approx(np.log(3))
    assert losses["uniform"] > losses["unigram"] > losses["bigram"] > losses["trigram"]


def test_seeds_are_one_job_each_on_a_cpu_and_one_population_on_a_gpu() -> None:
    assert [run.seeds for run in split_seeds(SMALL, 3, "cpu")] == [(0,), (1,), (2,)]
    assert [run.seeds for run in split_seeds(SMALL, 3, "cuda")] == [(0, 1, 2)]


def test_the_early_plateau_is_the_longest_clearly_above_the_last() -> None:
    stages = Stages([Plateau(0, 5, 1.0), Plateau(6, 15, 0.99), Plateau(16, 40, 0.905), Plateau(41, 50, 0.9)])
    assert stages.early == Plateau(6, 15, 0.99) and stages.last.loss == 0.9
    assert Stages([Plateau(0, 9, 1.0)]).early is None
    # After a jump of 0.3 a shoulder 0.03 above the end is no stage of its own.
    assert Stages([Plateau(0, 5, 0.78), Plateau(6, 20, 0.75)], fall=0.3).early is None


def test_the_study_of_stages_measures_each_claim_of_its_quick_preset() -> None:
    study = sl.get("studies", "ngrams/stages")
    lab = LAB
    runs = {"trigram": SMALL, "fourgram": Run(states=2, order=3, length=12, heads=3, steps=12, looks=8, test=64,
            batch_size=16, nearest=True)}  # fmt: skip
    runs["trigram"] = Run(**{**vars(SMALL), "looks": 12})
    outcome, findings = study.measure(study.config("quick", seeds=2, fourgram_seeds=2, **runs), lab, "quick")
    assert {finding.claim for finding in findings} == {claim.id for claim in study.claims if "quick" in claim.presets}
    assert set(outcome.figures) == {"trigram", "4-gram"}


def test_every_lemma_holds_at_toy_size() -> None:
    study = sl.get("studies", "ngrams/theory")
    lab = LAB
    small = {"seeds": 2, "lengths": (100, 1000), "temperatures": (3.0, 5.0), "sequences": 256, "hessian_sequences": 32}
    _, findings = study.measure(study.config("quick", **small), lab, "quick")
    exact = {claim.id for claim in study.claims if claim.exact}
    assert {finding.verdict for finding in findings if finding.claim in exact} == {"holds"}


def test_the_table_of_exact_gradients_falls_with_the_length_and_grows_with_the_temperature() -> None:
    norms = near_stationary.enumerated_norms()
    assert (np.diff(norms, axis=-1) < 0).all() and (np.diff(norms, axis=1) > 0).all()


def test_the_surviving_block_has_its_closed_form_at_toy_size() -> None:
    study = sl.get("studies", "ngrams/near-stationary")
    lab = LAB
    small = {"seeds": 2, "lengths": (16, 32), "closed_sequences": 512, "sampled_sequences": 64}
    _, findings = study.measure(study.config("quick", **small), lab, "quick")
    verdicts = {finding.claim.split(".")[1]: finding.verdict for finding in findings}
    assert {verdicts[name] for name in ("closed-form", "silent-blocks", "unigram-exact", "enumerated-falls")} == {
        "holds"
    }


def test_levels_closer_than_two_hundredths_are_one() -> None:
    steps = np.arange(0, 1000, 10)
    stairs = 1.0 + 0.05 * (steps < 300) + 0.1 * (steps < 600)
    assert gradient_norm._levels_above(steps, stairs) == 2
    assert gradient_norm._levels_above(steps, np.where(steps < 500, 1.01, 1.0)) == 0


def test_the_way_down_is_measured_after_the_first_tenth() -> None:
    steps = np.arange(0, 110, 10)
    loss = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.7, 0.5, 0.4, 0.4, 0.4])
    assert constructions._half_way({"steps": steps, "loss": loss}) == 60.0


def test_the_inner_product_of_two_halves_is_the_squared_norm_without_noise() -> None:
    world = SMALL.world
    model = ngram_estimator(3, 0, 12, heads=2)
    with seeded(0):
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    batch = world.sample(400, rng=sl.rng(0))
    halves = []
    for part in (batch[:200], batch[200:]):
        loss = -(part.targets * model(part.inputs)).sum((-1, -2)).mean()
        halves.append(
            torch.cat([gradient.flatten() for gradient in torch.autograd.grad(loss, list(model.parameters()))])
        )
    assert float(population_gradient(model, batch)) == pytest.approx(float((halves[0] @ halves[1]).sqrt()), rel=1e-6)
