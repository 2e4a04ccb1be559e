"""The study of topics in encoders: claims on made-up reports, and small runs on made-up documents and on a text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.studies.topics.encoder_topics import QUICK, Results, study
from sandlab.worlds.topics.text import read_documents


def results(same: float, several: float, slope: float, untrained: float) -> Results:
    noise = 1 + 1e-3 * np.random.default_rng(0).normal(size=(3, 2, 3, 3, 2))
    means = np.ones((2, 3, 3, 2))
    means[0, ..., 0], means[1, ..., 0] = same, several
    means[0, :, 2, 0] += slope * np.arange(3)
    nine = np.where(np.eye(3).repeat(3, 0).repeat(3, 1) > 0, same, 1.0) + 0.001 * np.arange(3)[:, None, None]
    reports = {"trained": means * noise, "untrained": untrained * np.ones((3, 2, 3, 3, 2))}
    reports["untrained"][..., 1] = 1.0
    reports["untrained"][..., 0, :] -= untrained - 0.001  # cosines of random embeddings are near zero
    names = tuple("abcdefghi")
    return Results(reports, np.ones((3, 3, 4)), np.ones(3), nine, names, 0.9, np.ones(3))


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(1.5, 1.2, -0.05, 1.0), results(0.9, 1.2, 0.05, 1.0), results(1.5, 1.2, -0.05, 1.3))


BRIEF = replace(QUICK.training, steps=3, batch_size=4, warmup=0)
TINY = replace(QUICK, layers=1, heads=2, width=8, length=24, training=BRIEF, seeds=2, documents=80, read=10)
SHARES = (0.01, 0.02, 0.03)


def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(replace(TINY, size=300, topics=4, shares=SHARES), LAB, "quick")
    assert len(outcome.findings) + len(outcome.unmeasured) == len(study.claims) and set(outcome.figures) == {
        "words",
        "ratios",
    }
    assert outcome.results.reports["trained"].shape == (2, 2, 3, 3, 2)
    assert outcome.results.purity > 0.3 and outcome.results.nine.shape == (2, 9, 9)
    # Before training there is nothing: |cosine| is small and attention is the same within topics and between.
    assert np.abs(outcome.results.reports["untrained"][:, 0, -1, 0]).max() < 0.5
    assert outcome.results.ratios("untrained")[:, 0, -1, 2] == pytest.approx(1.0, abs=0.1)


def test_a_text_of_ones_own_goes_through_the_same_pipeline(tmp_path: Path) -> None:
    text = "\n".join(f"= Title {number} =\n{part}" for number, part in enumerate(read_documents() * 4))
    (tmp_path / "text.txt").write_text(text)
    outcome = study.run(replace(TINY, text=str(tmp_path), size=200, topics=3, shares=SHARES), LAB, "quick")
    assert outcome.results.names[:3] == ("frog", "toad", "lizard") and np.isnan(outcome.results.purity)
    assert outcome.results.pairs.shape == (2, 3, 4)
