"""The light switch: claims on made-up accuracies, a tiny run, and local Hugging Face models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from claim_cases import check, verdicts
from flip_flop_cases import claims, tiny
from stand_in import LAB

from sandlab.studies.flip_flop.light_switch import QUICK, Results, study
from sandlab.worlds.flip_flop.light_switch import VOCABULARY


def results(short: float, long: float, *, better: float, beyond: float) -> Results:
    accuracy = np.array([[short, long], [short + better / 2, long + better / 2], [short + better, long + better]])
    accuracy[:, 0] += [0.0, 0.001, 0.0]
    return Results(
        accuracy,
        (8, 64),
        16,
        ["small", "middle", "large"],
        ((100, 1.0), (200, 0.99), (300, 1.0), (800, beyond), (900, beyond)),
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.95, 0.6, better=0.02, beyond=0.5), results(0.5, 0.6, better=-0.02, beyond=1.1))


def test_without_folders_and_dialogues_the_published_models_are_not_measured() -> None:
    found = verdicts(study, replace(results(0.9, 0.6, better=0.02, beyond=0.5), folders=[], chat=()))
    assert {name for name, verdict in found.items() if verdict == "not measured"} == {
        "published-models-decay",
        "chat-dialogue",
        "larger-is-better",
    }


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(replace(tiny(QUICK), lengths=(8, 12), prompts=10), LAB)
    assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == claims(study, "quick")
    assert len(outcome.unmeasured) == 3
    assert outcome.results.accuracy.shape == (2, 2) and outcome.results.trained == 16


def test_local_models_are_asked_in_the_order_given(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: token for token, word in enumerate((*VOCABULARY, "?"))}
    for layers in (1, 2):
        folder = tmp_path / f"model-{layers}"
        inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="?"))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        saved = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="?", eos_token="?")
        saved.save_pretrained(folder)
        config = transformers.GPT2Config(vocab_size=len(words), n_positions=256, n_embd=16, n_layer=layers, n_head=1)
        transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    folders = [str(tmp_path / f"model-{layers}") for layers in (1, 2)]
    outcome = study.run(replace(QUICK, folder=",".join(folders), lengths=(8, 12), prompts=10), LAB)
    assert [row["model"] for row in outcome.tables["accuracy"]] == folders
    assert set(outcome.unmeasured) == {"flip-flop/light-switch.chat-dialogue"}
    assert outcome.results.published().shape == (2, 2)
