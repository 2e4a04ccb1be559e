"""BLEU against SacreBLEU, and repeats against pairs counted by hand."""

from __future__ import annotations

import random

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.lenses.parallel.bleu_score import bleu, tokenise
from sandlab.lenses.parallel.stuttering import attention_dependence, decoder_patterns, stutter_rate
from sandlab.models.parallel.encoder_decoder import EncoderDecoder

sacrebleu = pytest.importorskip("sacrebleu")
LINES = [
    "The cat's on the mat, isn't it? (Yes.)",
    "Prices rose 3.5% to $1,200.00 - a record; see p.12-13.",
    'He said: "a &amp; b &quot;c&quot;" <skipped> and left...',
    "state-of-the-art 10-20 [brackets] {braces} a/b x=y",
    "Größe: 5,3 km² – „Zitat“ … 100 €",
    "我 有3只猫,它们叫A和B。",
    "",
]


@pytest.mark.parametrize("kind", ["13a", "intl", "zh", "none"])
def test_words_are_those_of_sacrebleu(kind: str) -> None:
    from sacrebleu.metrics.bleu import BLEU

    other = BLEU(tokenize=kind, trg_lang="zh" if kind == "zh" else "").tokenizer
    for line in LINES:
        assert tokenise(line, kind) == other(line).split()


@pytest.mark.parametrize("kind", ["13a", "intl", "zh"])
@pytest.mark.parametrize("seed", range(6))
def test_scores_are_those_of_sacrebleu(kind: str, seed: int) -> None:
    chance = random.Random(seed)
    words = ["a", "b", "c", "d,", "e.", "f", "3.5", "g-h", "猫", "「", "x"]
    pairs = [(chance.choices(words, k=chance.randrange(1, 14)), chance.random() * seed / 5) for _ in range(20)]
    references = [" ".join(line) for line, _ in pairs]
    outputs = [
        " ".join(chance.choice(words) if chance.random() < share else word for word in line) for line, share in pairs
    ]
    expected = sacrebleu.corpus_bleu(outputs, [references], tokenize=kind, smooth_method="exp").score
    assert bleu(outputs, references, kind=kind) == pytest.approx(expected, abs=1e-9)


def test_short_outputs_are_penalised_and_missing_matches_smoothed() -> None:
    outputs, references = ["the cat sat"], ["the cat sat on the mat"]
    assert bleu(outputs, references) == pytest.approx(sacrebleu.corpus_bleu(outputs, [references]).score)
    outputs, references = ["a b c d e"], ["a x c y e"]
    assert bleu(outputs, references) == pytest.approx(sacrebleu.corpus_bleu(outputs, [references]).score)
    assert bleu(outputs, references, smooth="none") == 0
    with pytest.raises(BadInput, match="one reference"):
        bleu([], [])


def test_repeats_that_the_reference_has_do_not_count() -> None:
    outputs = torch.tensor([[5, 5, 6, 1, 0], [5, 6, 7, 1, 0], [8, 8, 9, 9, 1]])
    references = torch.tensor([[7, 5, 5, 1, 0], [5, 6, 7, 1, 0], [8, 9, 9, 1, 0]])
    found = stutter_rate(outputs, references)
    assert found.sequences == pytest.approx(1 / 3) and found.pairs == pytest.approx(1 / 7)


def test_attention_is_split_by_repeats() -> None:
    """Positions 0 and 1 repeat and share their source; 1 and 2 do not."""
    cross = torch.zeros(1, 2, 3, 4)
    cross[:, :, 0, 1] = cross[:, :, 1, 1] = 1.0
    cross[:, :, 2, 3] = 1.0
    self_ = torch.tensor([[0.2, 0.6, 0.2], [0.4, 0.5, 0.1], [0.3, 0.3, 0.4]]).expand(1, 2, 3, 3)
    found = attention_dependence({"self": self_, "cross": cross}, torch.tensor([[5, 5, 6]]))
    assert found["yes"]["cross/tv-avg"] == 0 and found["no"]["cross/tv-avg"] == 1
    assert found["yes"]["cross/top-1"] == 1 and found["no"]["cross/top-1"] == 0
    assert found["yes"]["self/avg"] == pytest.approx(0.5) and found["no"]["self/avg"] == pytest.approx(0.2)
    assert found["yes"]["self/top-1"] == 1


def test_recorded_patterns_are_distributions_of_the_last_layer() -> None:
    model = EncoderDecoder(vocab=20, source_length=4, target_length=6, width=16, heads=2).eval()
    source, fed = torch.randint(4, 20, (3, 4)), torch.randint(4, 20, (3, 6))
    found = decoder_patterns(model, source, fed)
    assert found["self"].shape == (3, 2, 6, 6) and found["cross"].shape == (3, 2, 6, 5)
    assert torch.allclose(found["cross"].sum(-1), torch.ones(3, 2, 6), atol=1e-5)
