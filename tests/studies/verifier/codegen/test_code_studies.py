"""The code-generation studies: claims on made-up texts, tiny models run through every study, counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
import torch
from claim_cases import check
from stand_in import StandIn, remembering

import sandlab as sl
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.decoders.sampling import Sampling
from sandlab.lab._store.codec import decode, encode
from sandlab.learning.experiment import Training
from sandlab.models.base import seeded
from sandlab.models.transformer import Transformer, TransformerConfig
from sandlab.studies.claims import NotMeasured
from sandlab.studies.verifier._decoding_runs import Decoding, Writer
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen import (
    _published,
    codegen,
    codegen_depth,
    codegen_frontier,
    codegen_layers,
    codegen_names,
    codegen_no_argmax,
    codegen_settings,
    codegen_threshold,
    codegen_verifiers,
)
from sandlab.worlds.verifier.append_cases import AppendCases

STUDIES = [
    each.study
    for each in (
        codegen,
        codegen_depth,
        codegen_frontier,
        codegen_layers,
        codegen_names,
        codegen_no_argmax,
        codegen_settings,
        codegen_threshold,
        codegen_verifiers,
    )
]
WORLD = AppendCases(cases=1, longest=1, functions=("append", "pop"), examples=1)
TRAINING = Training(steps=60, batch_size=8, lr=1e-2, ema=0.99, evals=1, eval_examples=16)
TINY = code.Settings(
    code.experiment(WORLD, layers=2, width=16, mlp_width=16, seeds=2, training=TRAINING),
    names=2,
    misleading=("pop",),
    completions=2,
    searched=30,
    probe_steps=5,
    hidden=8,
)


@pytest.fixture(scope="module")
def lab() -> StandIn:
    return remembering()


# ------------------------------------------------------------------ made-up texts


def as_published(decoding: Decoding) -> float:
    """Accuracies like the published ones: the verifier helps, a random one does not, cold and hot are worse."""
    top_p, heat = decoding.top_p, decoding.temperature
    accuracy = 0.01 if top_p == 0 else 0.1 + 0.3 * heat if heat < 1 else 0.66 if top_p < 1 else 0.5
    accuracy -= 0.06 if heat > 1 and top_p < 1 else 0.2 if heat > 1 else 0.0
    if decoding.candidates:
        return accuracy + 0.04 - 0.02 * math.log2(decoding.candidates)
    if not decoding.quota:
        return accuracy - 0.05 * decoding.misleading
    accuracy += {"random": 0.0, "exact": 0.065, "trained": 0.06, "layer 0": 0.065}.get(decoding.verifier, 0.055)
    accuracy -= 0.03 * (decoding.threshold == 0.5) + 0.01 * (decoding.redo == "none") + 0.01 * (decoding.stride == 10)
    accuracy -= 0.02 * (decoding.quota == 10 and decoding.verifier == "trained")
    return accuracy - 0.01 * decoding.misleading


def opposite(decoding: Decoding) -> float:
    return 5 - 5 * as_published(decoding)


def only_the_main_one(decoding: Decoding) -> float:
    """The trained verifier of the last layer works, and nothing that resembles it."""
    return 0.7 if decoding in (code.MAIN, code.EXACT, code.PLAIN) else 0.4


def cost(decoding: Decoding) -> float:
    return float(round(1000 * (decoding.candidates or 1) ** 0.82 * (1.03 if decoding.quota else 1.0)))


def odd_cost(decoding: Decoding) -> float:
    """Backtracking is expensive, candidates cost nothing."""
    return 10.0 if decoding.candidates else 3000.0 if decoding.quota else 1000.0


def made_up(
    decodings: Sequence[Decoding],
    accuracy: Callable[[Decoding], float],
    queries: Callable[[Decoding], float] = cost,
    linear: float = 0.96,
    lost: int = 0,
) -> code.Cases:
    """Eight models that differ a little; `lost` queries were no tokens."""

    def written(decoding: Decoding, model: int) -> code.Written:
        correct = 100 * accuracy(decoding) * (1 + 1e-4 * model)
        curve, paid = np.array([[correct / 2, correct]] * 2), np.array([[0.5, 1.0]] * 2) * queries(decoding)
        tokens = int(paid[:, -1].sum()) - lost
        return code.Written(100, curve, paid, tokens, 1.0, {"no ==": 3}, 20, "assert …\n")

    verifiers = {"trained": linear, "layer 0": linear, "lines": 0.9, "depth 2": 0.96, "depth 4": 0.97, "depth 8": 0.96}
    return code.Cases(
        decodings=list(decodings),
        written=[[written(decoding, model) for model in range(8)] for decoding in decodings],
        validation={name: [value + 1e-4 * model for model in range(8)] for name, value in verifiers.items()},
        loss=[0.5] * 8,
        errors=[300] * 8,
    )


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_tiny_models_measure_the_claims_and_every_claim_can_hold_and_fail(
    lab: StandIn, study: sl.studies.Study
) -> None:
    settings = replace(TINY, nuclei=(0.8, 0.95, 1.0), temperatures=(0.2, 1.0, 1.2))
    outcome = study.run(settings, lab, "full")
    measured = {finding.claim for finding in outcome.findings} | set(outcome.unmeasured)
    assert measured == {claim.id for claim in study.claims} and outcome.figures
    for rows in outcome.tables.values():
        # Every column can be stored: one kind of value.
        pyarrow.table({name: [row.get(name) for row in rows] for row in rows for name in row})
    results = decode(encode(outcome.results), study.results_type)
    assert results.decodings == outcome.results.decodings
    decodings = results.decodings
    check(
        study,
        made_up(decodings, as_published),
        made_up(decodings, opposite, odd_cost, linear=0.5, lost=1),
        made_up(decodings, only_the_main_one, odd_cost),
    )


def test_every_query_is_a_token_kept_or_erased_and_candidates_cost_in_proportion(lab: StandIn) -> None:
    cases = code.Cases.collect(TINY, lab, [code.PLAIN, code.MAIN, *code.BLOCKS])
    for models in cases.written:
        assert all(each.paid[:, -1].sum() == each.tokens for each in models)
    few, many = (cases.queries(decoding).mean() for decoding in code.BLOCKS[:2])
    assert 1.4 < many / few < 2.8


def test_the_full_grid_has_a_published_row_for_every_decoding_and_every_row_is_used() -> None:
    settings = code.FULL
    grid = [codegen_settings.sampling(p, heat) for p in settings.nuclei for heat in settings.temperatures]
    rows = [_published.published(each) for each in (*grid, code.GREEDY, *code.BLOCKS, *codegen_settings.GUIDED)]
    tables = (_published.SAMPLING, _published.BACKTRACKING, _published.BEST_OF)
    assert all(accuracy for accuracy, _ in rows) and len(rows) == sum(map(len, tables))
    assert _published.published(code.MAIN) == ("0.714 ± 0.011", "39443 ± 235")
    assert _published.published(code.EXACT) == ("", "")


def test_quota_zero_is_plain_sampling_on_the_same_random_numbers() -> None:
    config = TINY.model.model
    assert isinstance(config, TransformerConfig)
    with seeded(0):
        writer = Writer(Transformer.from_config(config).eval(), WORLD, WORLD.length, 1, "cpu")
    prompts = code.prompts(WORLD, ["abc", "xyz"], 0) * 3
    never = writer.complete(prompts, Backtracking(quota=0, top_p=0.95), "same", verifier="exact")
    assert torch.equal(never.tokens, writer.complete(prompts, Sampling(top_p=0.95), "same").tokens)


def test_documents_lose_only_the_padding_that_none_of_them_needs() -> None:
    whole, short = WORLD.sample(16, rng=sl.rng(3)), code.Documents(WORLD).sample(16, rng=sl.rng(3))
    assert short.mask.any(0).all() and short.mask.sum() == whole.mask.sum()
    assert torch.equal(short.inputs, whole.inputs[:, : short.inputs.shape[1]])


def test_test_names_are_new_to_the_verifier() -> None:
    names = code.random_names(20, 3)
    assert len(set(names)) == 20 and all(len(name) == 3 and name.isalpha() for name in names)
    assert not set(names) & set(code.TRAINING_NAMES)


def test_claims_about_distributions_that_the_grid_leaves_out_are_not_measured() -> None:
    grid = [code.PLAIN, code.GREEDY, *code.BLOCKS, *codegen_settings.GUIDED]
    with pytest.raises(NotMeasured, match=r"top-p 0\.95 with temperature 0\.2"):
        codegen_settings.cold(made_up(grid, as_published))
