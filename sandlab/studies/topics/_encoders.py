"""What the studies of encoders share: their documents, LDA on them, and reports of trained and untrained encoders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from sandlab.learning.experiment import Experiment
from sandlab.lenses.topics.lda import cooccurrence_pairs, fit_lda, topic_purity, topic_sets, topic_words
from sandlab.lenses.topics.report import PairKinds, listed_pairs, pair_reports, topic_pairs
from sandlab.models.base import build, seeded
from sandlab.models.topics.encoder import MaskedEncoder
from sandlab.random import rng
from sandlab.worlds.base import World
from sandlab.worlds.topics.pseudo_wiki import PseudoWiki
from sandlab.worlds.topics.text import TopicText

SHARES = (0.0005, 0.001, 0.002)
MODES = ("one topic per word", "several topics per word")
MEASURES = ("cosine", "dot", "attention")
ENCODERS = ("trained", "untrained")
DOCUMENT = (64, 256)  # words of made-up documents
Source: TypeAlias = "PseudoWiki | TopicText"


def world(text: str, size: int, topics: int, length: int) -> Source:
    """Masked windows of a text, or of made-up documents."""
    # Five standard deviations above the mean number of masked positions.
    marked = min(length, int(0.15 * length + 5 * np.sqrt(0.1275 * length)) + 1)
    if text:
        return TopicText(path=text, size=size, length=length, marked=marked)
    return PseudoWiki(size=size, topics=topics, lengths=(length, length), marked=marked)


@dataclass(frozen=True)
class Corpus:
    """Documents and the number of topics to fit."""

    source: World
    topics: int
    documents: int
    shares: tuple[float, ...] = SHARES


@dataclass(frozen=True)
class Known:
    """What LDA found in the documents.

    law     p(token | topic); stop: tokens that may have no topic
    often   the most frequent pairs of different words
    """

    law: np.ndarray
    stop: np.ndarray
    often: np.ndarray
    names: tuple[str, ...]
    purity: float
    shares: tuple[float, ...] = SHARES

    def pairs(self) -> list[PairKinds]:
        """For each mode and share, the pairs within and between topics; then the most frequent pairs of each share."""
        lists = [
            topic_words(self.law, share, stop=self.stop, one_topic=one)
            for one in (True, False)
            for share in self.shares
        ]
        found = [topic_pairs(topic_sets(each, self.law.shape[1])) for each in lists]
        return found + [listed_pairs("often", self.often[:count]) for count in self.pair_counts()]

    def pair_counts(self) -> np.ndarray:
        """Pairs in one topic of ⌊θn⌋ + 1 words, for each share; at least one."""
        sizes = np.array([int(share * self.law.shape[1]) + 1 for share in self.shares])
        return np.maximum(sizes * (sizes - 1) // 2, 1)

    def nine(self, words: tuple[str, ...]) -> list[int]:
        """Tokens of these words, or, where some are missing, the three likeliest words of three topics."""
        number = {name: index for index, name in reversed(list(enumerate(self.names)))}
        if all(word in number for word in words):
            return [number[word] for word in words]
        lists = topic_words(self.law, 6 / self.law.shape[1], stop=self.stop)
        # The topics whose words are least shared with others.
        order = np.argsort(
            [-self.law[topic, each[:3]].sum() if len(each) >= 3 else 0.0 for topic, each in enumerate(lists)]
        )
        return [int(word) for topic in order[:3] for word in lists[topic][:3]]


def corpus(job: Corpus) -> Known:
    """Fit LDA to the documents: windows of a text, or made-up ones."""
    counts, stop = _counts(job)
    counts = np.where(stop, 0.0, counts)
    law = fit_lda(counts, job.topics, passes=3)
    source, purity = job.source, float("nan")
    if isinstance(source, PseudoWiki):
        lists = [topic_words(law, share, stop=stop) for share in job.shares]
        purity = float(np.mean([topic_purity(each, source.topic_law.argmax(0)) for each in lists]))
    most = int(job.shares[-1] * law.shape[1]) + 1
    often = cooccurrence_pairs(counts, max(1, most * (most - 1) // 2), stop=stop)
    return Known(law, stop, often, tuple(source.letters[: source.outputs]), purity, job.shares)


def documents(source: World, count: int) -> list[np.ndarray]:
    """Unmasked documents of half the window's length to the whole."""
    if isinstance(source, PseudoWiki):
        words = source.sample(count, rng=rng(5, "documents")).truth["words"].numpy()
    else:
        assert isinstance(source, TopicText)
        pieces = [each for each in source.corpus.windows(source.length).documents if len(each) == source.length]
        words = np.stack(pieces) + source.shift
        words = words[np.random.default_rng(5).permutation(len(words))[:count]]
    ends = np.random.default_rng(6).integers(words.shape[1] // 2, words.shape[1] + 1, size=len(words))
    return [row[:end] for row, end in zip(words, ends)]


def _counts(job: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Word counts of documents, and which tokens may have no topic."""
    source = job.source
    if isinstance(source, PseudoWiki):
        # LDA needs longer documents than the encoder's windows to find the topics.
        words = replace(source, lengths=DOCUMENT).sample(job.documents, rng=rng(5, "documents")).truth["words"].numpy()
        counted = [np.bincount(row, minlength=source.outputs) for row in words]
        return np.stack(counted).astype(float), source.is_stop
    assert isinstance(source, TopicText)
    pieces, rest = source.corpus.windows(source.length), (source.shift, 1)
    stop = np.pad(source.corpus.stop | ~source.corpus.whole, rest, constant_values=True)
    return np.pad(pieces.counts(), ((0, 0), rest)), stop


@dataclass(frozen=True)
class ReportJob:
    """One encoder: a trained one, or its weights before training."""

    experiment: Experiment
    corpus: Corpus
    read: int
    seed: int
    trained: bool


@dataclass(frozen=True)
class Read:
    """(mode, share, measure, same or different); (share, 4) for same-topic and frequent pairs; embeddings."""

    report: np.ndarray
    pairs: np.ndarray
    table: np.ndarray


def read(job: ReportJob, given: tuple[Known, dict[str, Tensor]]) -> Read:
    """Report of one encoder on unmasked documents."""
    known, weights = given
    with seeded(job.seed):
        encoder = build(job.experiment.model)
    assert isinstance(encoder, MaskedEncoder)
    if weights:
        encoder.load_state_dict(weights)
    encoder = encoder.to("cuda") if torch.cuda.is_available() else encoder
    found = pair_reports(_OnDevice(encoder), documents(job.corpus.source, job.read), known.pairs(), known.law.shape[1])
    cells = len(MODES) * len(known.shares)
    values = [[[getattr(each, m)[kind] for kind in ("same", "different")] for m in MEASURES] for each in found[:cells]]
    report = np.array(values).reshape(len(MODES), len(known.shares), len(MEASURES), 2)
    often = [[each.attention["often"], each.cosine["often"]] for each in found[cells:]]
    pairs = np.concatenate([report[0, :, [2, 0], 0].T, np.array(often)], 1)
    return Read(report, pairs, encoder.table().double().cpu().numpy())


class _OnDevice:
    """An encoder that takes tokens from anywhere."""

    def __init__(self, encoder: MaskedEncoder) -> None:
        self.encoder = encoder

    def table(self) -> Tensor:
        return self.encoder.table()

    def mean_attention(self, tokens: Tensor) -> Tensor:
        return self.encoder.mean_attention(tokens.to(self.encoder.device))
