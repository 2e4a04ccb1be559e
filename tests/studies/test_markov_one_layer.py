"""Studies of one-layer transformers on a binary chain, at toy size."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from stand_in import LAB

from sandlab.circuits import kernel_predictor, marginal_predictor
from sandlab.learning.markov.one_layer import OneLayerMarkovTheory
from sandlab.registry import get
from sandlab.studies.markov import flow_portrait, hessian, one_layer_runs, weight_tying
from sandlab.studies.markov.one_layer_runs import BinaryRun, train_on_chain
from sandlab.worlds.markov.chain import MarkovChain

TINY = BinaryRun(0.2, 0.3, tied=True, seeds=(0, 1), device="cpu", steps=6, batch=4, length=8, looks=3)


def verdicts(name: str, **changes) -> dict[str, str]:
    study = get("studies", name)
    outcome, findings = study.measure(study.config("quick", **changes), LAB)
    assert outcome.figures
    return {finding.claim.split(".")[1]: finding.verdict for finding in findings}


def test_the_hessian_study_finds_what_the_closed_forms_say():
    assert set(verdicts("markov/hessian", seeds=1, length=3, width=2, curve=(0.4, 1.6)).values()) == {"holds"}


def test_a_tied_model_at_p_plus_q_below_one_would_fail_the_claim_of_a_minimum():
    found = verdicts("markov/hessian", seeds=1, length=3, width=2, curve=(0.4,), fast=(0.2, 0.3), slow=(0.5, 0.8))
    assert found["tied-minimum"] == "fails"
    assert found["tied-saddle"] == "fails"


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.5, 0.8)])
def test_the_enumerated_loss_is_the_entropy_rate_at_the_kernel_and_the_marginals_entropy_at_the_marginal(p, q):
    world, loss = MarkovChain.binary(p, q), hessian.exact_loss(p, q, 4)
    assert loss(kernel_predictor(p, q, length=4)).item() == pytest.approx(world.entropy_rate(), abs=1e-12)
    assert loss(marginal_predictor(p, q, length=4)).item() == pytest.approx(world.marginal_entropy(), abs=1e-12)


def test_the_flow_study_holds_on_a_small_grid():
    found = verdicts("markov/flow-portrait", seeds=1, grid=12, starts=600, sgd_steps=2)
    assert {found[claim] for claim in ("energy", "ends", "basins", "small-init-slow", "small-init-fast")} == {"holds"}
    assert found["samples"] != "holds", "two steps of training cannot have got anywhere"


def test_sampled_training_of_the_three_numbers_is_recorded_from_its_starts():
    job = flow_portrait.SampledJob(0.9, 0.9, steps=3, lr=0.1, seed=0, device="cpu")
    path = flow_portrait.follow_samples(job)["path"]
    np.testing.assert_allclose(path[0], flow_portrait.RING, rtol=1e-6)


def test_starts_of_the_sampled_runs_keep_away_from_the_border():
    starts = torch.tensor(flow_portrait.RING, dtype=torch.float64)
    energy = flow_portrait.flow_energy(starts[:, 0], starts[:, 1])
    left = starts[:, 1] < 0
    assert (energy - flow_portrait.SADDLE_ENERGY).abs()[left].min() > 0.1
    assert OneLayerMarkovTheory(0.9, 0.9).escapes(starts[:, 0], starts[:, 1]).double().mean() == pytest.approx(5 / 14)


@pytest.mark.parametrize("variant", list(one_layer_runs.VARIANTS))
def test_a_run_gives_one_curve_per_seed_that_starts_at_chance(variant):
    result = train_on_chain(replace(TINY, variant=variant))
    assert result["steps"].tolist() == [0, 2, 4, 6]
    assert result["loss"].shape == (2, 4)
    # Small initial weights: the prediction is uniform, whose cross-entropy is log 2 whatever the chain.
    np.testing.assert_allclose(result["loss"][:, 0], np.log(2), atol=0.05)
    np.testing.assert_allclose(result["after zero"][:, 0], 0.5, atol=0.05)


def test_the_measured_loss_is_the_entropy_rate_for_the_kernel_and_follows_the_marginal():
    world = MarkovChain.binary(0.2, 0.3, length=16)
    measure = one_layer_runs._expected_loss(world, replace(TINY, length=16))
    kernel = measure(kernel_predictor(0.2, 0.3, length=16))
    assert float(kernel["loss"]) == pytest.approx(world.entropy_rate(), abs=1e-9)
    assert float(kernel["after zero"]) == pytest.approx(0.2)
    assert float(kernel["after one"]) == pytest.approx(0.7)
    marginal = measure(marginal_predictor(0.2, 0.3, length=16))
    assert float(marginal["loss"]) == pytest.approx(world.marginal_entropy(), abs=0.02)


def test_spectra_are_kept_at_every_look():
    name = "layers.0.mlp.up_proj.weight"
    result = train_on_chain(replace(TINY, spectra=(name,)))
    assert result[f"spectrum {name}"].shape == (4, 2, 8)


def test_excess_is_zero_at_the_kernel_and_one_at_the_marginal():
    run = replace(TINY, p=0.5, q=0.8)
    world = MarkovChain.binary(0.5, 0.8)
    result = {"loss": np.array([[9.0, world.entropy_rate()], [9.0, world.marginal_entropy()]])}
    np.testing.assert_allclose(weight_tying._excess(run, result), [0, 1], atol=1e-12)
    assert weight_tying._learnt(run, result) == [1.0, 0.0]
    assert weight_tying._learnt(replace(TINY, p=0.5, q=0.5), result) == [], "independent tokens have nothing to learn"


def test_the_weight_tying_study_measures_every_claim_and_untrained_models_learn_nothing():
    sizes = {"steps": 2, "length": 6, "batch": 2, "grid_steps": 1, "grid_length": 4, "grid_seeds": 1}
    found = verdicts("markov/weight-tying", seeds=2, grid=(0.2, 0.8), **sizes)
    assert found["untied-learns"] == found["slow-tied"] == "fails"


def test_the_low_rank_study_tells_initial_weights_from_rank_one():
    found = verdicts("markov/low-rank", seeds=3, steps=2, length=6, batch=2, looks=2)
    assert found["feed-forward"] == "fails"
    assert found["from-full-rank"] == "holds"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["markov/weight-tying", "markov/hessian", "markov/flow-portrait", "markov/low-rank"])
def test_every_claim_of_the_quick_preset_holds(name):
    assert set(verdicts(name).values()) == {"holds"}


def test_sampling_is_reproducible():
    first, second = train_on_chain(TINY), train_on_chain(TINY)
    np.testing.assert_array_equal(first["loss"], second["loss"])
