"""Networks as masked predictors: claims on made-up results, and small runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.hmm import masked_transformer, network_predictors

NOISE = np.random.default_rng(0)


def test_claims_of_the_masked_transformer() -> None:
    level = NOISE.uniform(0.9, 1.1, (3, 4))
    good = masked_transformer.Results(level, level * np.array([[0.04], [0.04], [0.3]]), level)
    check(masked_transformer.study, good, replace(good, error=level * np.array([[0.3], [0.3], [0.3]])))


def test_claims_of_the_network_predictors() -> None:
    level = NOISE.uniform(0.9, 1.1, (3, 4))
    good = network_predictors.Results(0.02 * level, level * np.array([[0.03], [1], [1]]), 0.03 * level[0])
    bad = network_predictors.Results(level, level, 2 * level[1])
    check(network_predictors.study, good, bad)


def test_small_trainings_run_from_end_to_end() -> None:
    settings = masked_transformer.QUICK
    few = replace(settings, width=8, seeds=1, training=replace(settings.training, steps=2, batch_size=8, warmup=0))
    assert masked_transformer.study.run(few, LAB, "quick").results.error.shape == (3, 1)
    how = network_predictors.QUICK
    tiny = replace(how, hidden=(8,), seeds=1, training=replace(how.training, steps=2, batch_size=8), pairs=200)
    assert network_predictors.study.run(tiny, LAB, "quick").results.error.shape == (3, 1)


def test_a_large_reference_is_streamed() -> None:
    settings = replace(network_predictors.QUICK, pairs=network_predictors.STORED + 1000)
    error = network_predictors.reference(network_predictors.Reference(settings, 0))
    assert error < 0.2
