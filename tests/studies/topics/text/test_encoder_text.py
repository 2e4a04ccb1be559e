"""The study of topics in an encoder of natural language: claims on made-up reports, and a small run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.lenses.topics.lda import fit_lda
from sandlab.studies.claims import NotMeasured
from sandlab.studies.topics import encoder_topics
from sandlab.studies.topics.text.encoder_text import (
    QUICK,
    Results,
    Text,
    control_is_flat,
    digest,
    experiment,
    study,
    topics_of_text,
)
from sandlab.worlds.topics.text import TopicText, read_documents


def results(same: float, several: float, slope: float, untrained: float, together: float) -> Results:
    """Averages over pairs of one topic against 1 over pairs of two; `together`: how frequent pairs differ."""
    noise = 1 + 1e-3 * np.random.default_rng(0).normal(size=(4, 2, 3, 3, 2))
    means = np.ones((2, 3, 3, 2))
    means[0, ..., 0], means[1, ..., 0] = same, several
    means[0, :, 2, 0] += slope * np.arange(3)
    control = np.ones((4, 2, 3, 3, 2))
    control[..., 0] = untrained
    control[..., 0, :] = 0.001  # cosines of random embeddings are near zero
    pairs = np.array([1.0, 1.0, 1 + together, 1 - together]) * noise[:, 0, :, :1, 0]
    nine = np.where(np.eye(3).repeat(3, 0).repeat(3, 1) > 0, same, 1.0) + 0.001 * np.arange(4)[:, None, None]
    reports = {"trained": means * noise, "untrained": control}
    found = encoder_topics.Results(
        reports, pairs, np.ones(3, int), nine, tuple("abcdefghi"), float("nan"), np.arange(4.0)
    )
    return Results(found, "0")


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results(1.5, 1.2, -0.05, 1.0, 0.3)
    check(study, good, results(0.9, 1.2, 0.05, 1.0, -0.3), results(1.5, 1.2, -0.05, 1.3, 0.3))


def test_a_text_goes_through_the_whole_protocol(tmp_path: Path) -> None:
    text = "\n".join(f"= Title {number} =\n{part}" for number, part in enumerate(read_documents() * 2))
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    brief = replace(QUICK.training, steps=3, batch_size=4, warmup=0)
    small = replace(QUICK, path=str(tmp_path), layers=1, heads=2, width=8, training=brief, seeds=2, read=10)
    outcome = study.run(small, LAB, "quick")
    assert outcome.results.found.names[:3] == ("frog", "toad", "lizard")
    assert outcome.results.found.pairs.shape == (2, 3, 4)
    assert set(outcome.figures) == {"words", "ratios"} and outcome.results.digest == digest(str(tmp_path)) != digest("")


def test_the_control_is_judged_whatever_attention_learnt_and_refused_where_nothing_was_trained() -> None:
    """Attention that is lower within topics than before training is no reason to leave the control out."""
    lower = results(0.7, 1.2, -0.05, 1.0, 0.3)
    assert control_is_flat(lower) == pytest.approx(0.05 * np.ones(4))
    same = replace(lower.found, reports=dict.fromkeys(("trained", "untrained"), lower.found.reports["untrained"]))
    with pytest.raises(NotMeasured, match="training changed nothing"):
        control_is_flat(Results(same, "0"))


@pytest.mark.parametrize("whole", [True, False])
def test_topics_are_those_of_documents_or_of_windows(whole: bool) -> None:
    source = experiment(QUICK).world
    assert isinstance(source, TopicText)
    found = topics_of_text(Text(source, 3, 10, QUICK.shares, whole=whole, passes=4))
    corpus, stop = source.corpus, source.corpus.stop | ~source.corpus.whole
    counts = np.zeros((len(corpus if whole else corpus.windows(24)), source.outputs))
    for row, each in zip(counts, (corpus if whole else corpus.windows(24)).documents):
        np.add.at(row, each[~stop[each]], 1)
    np.testing.assert_allclose(found.law, fit_lda(counts, 3, passes=4), rtol=1e-9)
    assert found.stop.tolist() == [*stop, True] and found.names[0] == "[MASK]"
    # Pairs that occur together most often are those of windows either way.
    here = (np.pad(corpus.windows(24).counts(), ((0, 0), (0, 1))) > 0)[:, found.often]
    assert (np.diff(here.all(2).sum(0)) <= 0).all() and here.all(2).sum(0)[0] > 1


def test_without_a_path_the_encoder_reads_the_articles_of_the_laboratory() -> None:
    source = experiment(QUICK).world
    assert {"mozart", "algebra", "lizard"} <= set(source.letters)
